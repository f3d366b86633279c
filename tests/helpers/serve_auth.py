#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keys of the lifecycle API: every route without a key, with an empty, a wrong and each right one. One line "pass WHAT" or "FAIL WHAT: why" each.

usage: serve_auth.py SOCKET|PORT KEY…
"""
import base64
import itertools
import json
import re
import sys

from serve_client import NOBODY, Server, check, code_of, fill, mounts, routes, values, wish

FIELD = 'OPEN-SANDBOX-API-KEY'
KEYS = sys.argv[2:]
server = Server(sys.argv[1])

# What must be refused: fields of the request -> code
REFUSED = [
    ('no key', {}, 'MISSING_API_KEY'),
    ('an empty key', {FIELD: ''}, 'MISSING_API_KEY'),
    ('a blank key', {FIELD: '  '}, 'MISSING_API_KEY'),
    ('a wrong key', {FIELD: 'wrong'}, 'INVALID_API_KEY'),
    ('the beginning of a key', {FIELD: KEYS[0][:-1]}, 'INVALID_API_KEY'),
    ('more than a key', {FIELD: KEYS[0] + 'x'}, 'INVALID_API_KEY'),
    ('a key in other case', {FIELD: KEYS[0].upper()}, 'INVALID_API_KEY'),
    ('the name of a key', {FIELD: 'alice'}, 'INVALID_API_KEY'),
    ('the whole line of a key', {FIELD: f'alice:{KEYS[0]}'}, 'INVALID_API_KEY'),
    ('two keys in one', {FIELD: f'{KEYS[0]}, {KEYS[1]}'}, 'INVALID_API_KEY'),
    ('a comment of the file', {FIELD: '# keys'}, 'INVALID_API_KEY'),
    ('another field', {'Authorization': f'Bearer {KEYS[0]}', 'Cookie': f'{FIELD}={KEYS[0]}', 'X-API-Key': KEYS[0]}, 'MISSING_API_KEY'),
]


def is_open(path):
    return path in ('/health', '/version') or '/proxy/' in path


def methods_of(method):
    return ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD'] if method == 'ANY' else [method]


def refused(what, method, path, fields, code, body=None):
    status, data, got = server.request(method, path, body, {**fields, 'X-Request-ID': 'own-1'})
    has_body = method != 'HEAD'
    check(f'{what}: {method} {path}', (status, code_of(data) if has_body else None, sorted(json.loads(data)) if has_body else data, values(got, 'x-request-id')),
          (401, code if has_body else None, ['code', 'message'] if has_body else b'', ['own-1']))


def matrix(name):
    """Every route with its own method, at both mounts"""
    seen = set()
    for method, listed in routes():
        for path in mounts(listed):
            seen.add(is_open(path))
            for verb, (what, fields, code) in itertools.product(methods_of(method), REFUSED):
                # Nothing may be changed by one that is let in wrongly, but what is nobody's.
                target = fill(path, name if is_open(path) else NOBODY)
                if not is_open(path):
                    refused(what, verb, target, fields, code, body=wish() if verb == 'POST' else None)
                    continue
                status, data, _ = server.request(verb, target, None, fields)
                check(f'{what}: {verb} {path} is open', (status != 401, code_of(data) in ('MISSING_API_KEY', 'INVALID_API_KEY')), (True, False))
            for verb, key in itertools.product(methods_of(method), KEYS):
                status, data, _ = server.request(verb, fill(path, NOBODY), None, {FIELD: key})
                check(f'a right key: {verb} {path}', status in (200, 204, 404, 422, 501), True)
    check('there are open routes and others', seen, {True, False})


def other_methods(name):
    """HEAD and OPTIONS of every route, and methods that it does not have"""
    for listed in sorted({path for _, path in routes()}):
        for path in mounts(listed):
            target = fill(path, name if is_open(path) else NOBODY)
            for verb in ('HEAD', 'OPTIONS', 'TRACE', 'PROPFIND'):
                if '/proxy/' in path or (path in ('/health', '/version') and verb == 'HEAD'):
                    status, _, _ = server.request(verb, target)
                    check(f'no key: {verb} {path} is open', status != 401)
                    continue
                refused('no key', verb, target, {}, 'MISSING_API_KEY')
                refused('a wrong key', verb, target, {FIELD: 'wrong'}, 'INVALID_API_KEY')
            if '/proxy/' not in path:
                status, _, fields = server.request('OPTIONS', target, None, {FIELD: KEYS[0]})
                check(f'a right key: OPTIONS {path}', (status, bool(values(fields, 'allow'))), (204, True))


def near_misses(name):
    """Paths that look open and are not, with and without what leads back"""
    proxy = f'/v1/sandboxes/{name}/proxy/44772'
    closed = ['/', '/v1', '/nothing', '/v1/health', '/v1/version', '/health/', '/health/x', '/healthx', '//health', '/HEALTH', '/version/', '/health%2f', '/./health',
              '/%68ealth/..', '/health/../v1/sandboxes', '/health/%2e%2e/v1/sandboxes', '/v1/sandboxes/', f'//v1/sandboxes/{name}', f'/v1/sandboxes/{name}/proxy',
              f'/v1/sandboxes/{name}/proxyx/44772/ping', f'/v1/sandboxes/{name}//proxy/44772/ping', f'/v1/sandboxes/{name}/x/proxy/44772/ping',
              f'/v2/sandboxes/{name}/proxy/44772/ping', f'/sandboxes%2f{name}/proxy/44772/ping']
    back = ['..', '%2e%2e', '%2E%2E', '.%2e', '%2e.', '%2E.']
    for dots in back:
        closed += [f'{proxy}/{dots}', f'{proxy}/{dots}/ping', f'{proxy}/a/{dots}/ping', f'{proxy}/{dots}/{dots}/{dots}/{dots}/sandboxes', f'{proxy}/{dots}%2fping',
                   f'{proxy}/a%2f{dots}', f'/v1/sandboxes/{dots}/proxy/80/x', f'/v1/sandboxes/{name}/proxy/{dots}/x', f'/sandboxes/{name}/proxy/44772/{dots}/{dots}',
                   f'/v1/{dots}/health', f'{proxy}/{dots}?a=b']
    for path in closed:
        refused('no key', 'GET', path, {}, 'MISSING_API_KEY')
        refused('a wrong key', 'GET', path, {FIELD: 'wrong'}, 'INVALID_API_KEY')
    opened = [f'{proxy}/ping', f'{proxy}/ping?a=..', f'{proxy}/ping?a=%2e%2e', f'{proxy}/a%20b', f'{proxy}/%2ehidden', f'{proxy}/.', '/health?a=..', '/version?x']
    for path in opened:
        check(f'no key: {path} is open', server.request('GET', path)[0] != 401)
    for target in (f'http://localhost{proxy}/../ping', 'http://localhost/v1/sandboxes'):
        refused('no key, the absolute form', 'GET', target, {}, 'MISSING_API_KEY')


def twice():
    """More than one field: never is the one that is right found behind one that is not"""
    with server.dial() as sock:
        sock.sendall(f'GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\n{FIELD}: wrong\r\n{FIELD}: {KEYS[0]}\r\nConnection: close\r\n\r\n'.encode())
        got = b''
        while part := sock.recv(65536):
            got += part
    check('a wrong key and a right one', got[9:12] in (b'400', b'401'))
    with server.dial() as sock:
        sock.sendall(f'GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\n{FIELD}: {KEYS[0]}\r\n\r\nGET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'.encode())
        got = b''
        while part := sock.recv(65536):
            got += part
    check('a key holds for one request, not for its connection', re.findall(rb'HTTP/1\.1 (\d+)', got), [b'200', b'401'])


def websocket(path, fields=''):
    key = base64.b64encode(b'0123456789abcdef').decode()
    with server.dial() as sock:
        sock.sendall(f'GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{fields}\r\n'.encode())
        got = b''
        while b'\r\n\r\n' not in got and (part := sock.recv(65536)):
            got += part
    return int(got[9:12])


def websockets(name):
    """The terminal of the sandbox, through the proxy"""
    base = f'/v1/sandboxes/{name}/proxy/44772'
    for mount in (base, base[3:]):
        status, data, _ = server.request('POST', f'{mount}/pty', {})
        session = json.loads(data)['session_id']
        check(f'no key: a WebSocket through {mount.replace(name, "ID")}', (status, websocket(f'{mount}/pty/{session}/ws')), (201, 101))
    check('a wrong key is nothing to the proxy', websocket(f'{base}/pty/{session}/ws?takeover=1', f'{FIELD}: wrong\r\n') != 401)
    check('no key: a WebSocket with a path that leads back', websocket(f'{base}/%2e%2e/44772/pty/{session}/ws'), 401)
    check('no key: a WebSocket of another route', websocket('/v1/sandboxes'), 401)


def run():
    before = server.request('GET', '/v1/sandboxes', None, {FIELD: KEYS[0]})[1]
    check('none at first', json.loads(before)['pagination']['totalItems'], 0)
    status, data, _ = server.request('POST', '/v1/sandboxes', wish(), {FIELD: KEYS[0]})
    check('a sandbox', status, 202)
    name = json.loads(data)['id']
    for part in (matrix, other_methods, near_misses, websockets):
        part(name)
    twice()
    listed = json.loads(server.request('GET', '/v1/sandboxes', None, {FIELD: KEYS[-1]})[1])['items']
    check('what was refused has changed nothing', [(one['id'], one['status']['state'], 'metadata' in one) for one in listed], [(name, 'Running', False)])
    check('it can be deleted', server.request('DELETE', f'/v1/sandboxes/{name}', None, {FIELD: KEYS[-1]})[0], 204)


run()
