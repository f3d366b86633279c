# SPDX-License-Identifier: Apache-2.0
"""What the drivers of the lifecycle API share: requests over the server's socket, and verdicts, one line "pass WHAT" or "FAIL WHAT: why" each."""
import http.client
import json
import os
import re
import socket
import time

NOBODY = '00000000-0000-4000-8000-000000000000'
LIMIT_S = 120


class Server:
    """where: the path of a socket, or a port of the loopback"""

    def __init__(self, where):
        self.where = where

    def dial(self):
        if self.where.isdigit():
            return socket.create_connection(('127.0.0.1', int(self.where)), LIMIT_S)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(LIMIT_S)
        sock.connect(self.where)
        return sock

    def request(self, method, path, body=None, headers=None):
        """-> status, body, fields (lower-case names)"""
        connection = http.client.HTTPConnection('localhost')
        connection.sock = self.dial()
        connection.request(method, path, body=json.dumps(body) if isinstance(body, (dict, list)) else body, headers=headers or {})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data, [(k.lower(), v) for k, v in answer.getheaders()]


def check(what, got, expected=True):
    if got == expected:
        print(f'pass {what}', flush=True)
    else:
        print(f'FAIL {what}: {got!r:.400}, expected {expected!r:.400}', flush=True)
    return got == expected


def code_of(data):
    try:
        return json.loads(data).get('code')
    except (ValueError, AttributeError):
        return None


def values(fields, name):
    return [v for k, v in fields if k == name]


def wish(**more):
    return {'image': {'uri': '@host'}, 'timeout': 600, 'resourceLimits': {'cpu': '1', 'memory': '2Gi'}, 'entrypoint': ['sleep', '1000'], **more}


def wait_for(condition):
    """What condition() says as soon as it is true, or at the end of a long time."""
    end = time.time() + LIMIT_S
    while not (got := condition()) and time.time() < end:
        time.sleep(0.05)
    return got


def routes():
    """(method, path with its parameters) of tests/api/lifecycle.txt, as they are listed"""
    name = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../api/lifecycle.txt')
    with open(name, encoding='utf-8') as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith('#')]
    return [(method, path) for method, path in lines]


def mounts(path):
    """Where a listed route stands: at the root and below /v1, but for the server's own."""
    return [path] if path.startswith('/v1/') or path in ('/health', '/version', '/metrics') else [path, '/v1' + path]


def fill(path, sandbox, port=44772, rest='ping'):
    path = path.replace('{sandboxId}', sandbox).replace('{port}', str(port)).replace('{path*}', rest)
    return re.sub('{[^}]*}', 'none', path)
