#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lifecycle API and its proxy byte for byte, where curl would be too polite. One line "pass WHAT" or "FAIL WHAT: why" each.

usage: serve_driver.py SOCKET|PORT PART…
"""
import base64
import concurrent.futures
import http.client
import json
import os
import re
import resource
import socket
import sys
import threading
import time

SOCK = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = '00000000-0000-4000-8000-000000000000'
LIMIT_S = 120


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = dial()


def dial():
    if SOCK.isdigit():
        return socket.create_connection(('127.0.0.1', int(SOCK)), LIMIT_S)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(LIMIT_S)
    sock.connect(SOCK)
    return sock


def request(method, path, body=None, headers=None, on=None):
    """-> status, body, fields (lower-case names)"""
    connection = on or Connection('localhost' if SOCK.isdigit() else 'x')
    chunked = 'Transfer-Encoding' in (headers or {})
    connection.request(method, path, body=body if chunked or not isinstance(body, dict) else json.dumps(body), headers=headers or {},
                       encode_chunked=chunked)
    answer = connection.getresponse()
    data = answer.read()
    if not on:
        connection.close()
    return answer.status, data, [(k.lower(), v) for k, v in answer.getheaders()]


def values(fields, name):
    return [v for k, v in fields if k == name]


def check(what, got, expected=True):
    if got == expected:
        print(f'pass {what}', flush=True)
    else:
        print(f'FAIL {what}: {got!r:.300}, expected {expected!r:.300}', flush=True)


def raw(data, half_close=False):
    """What comes back for these bytes, until the server closes."""
    with dial() as sock:
        sock.sendall(data)
        if half_close:
            sock.shutdown(socket.SHUT_WR)
        got = b''
        while part := sock.recv(65536):
            got += part
    return got


def wish(**more):
    return {'image': {'uri': '@host'}, 'timeout': 600, 'resourceLimits': {'cpu': '1', 'memory': '2Gi'}, 'entrypoint': ['sleep', '1000'], **more}


def create(**more):
    status, data, _ = request('POST', '/v1/sandboxes', wish(**more))
    if status != 202:
        raise SystemExit(f'FAIL create: {status} {data!r:.300}')
    return json.loads(data)['id']


def delete(name):
    return request('DELETE', f'/v1/sandboxes/{name}')[0]


def code_of(data):
    try:
        return json.loads(data).get('code')
    except (ValueError, AttributeError):
        return None


# -- answers -----------------------------------------------------------------------------------


def nulls(value):
    if isinstance(value, dict):
        return any(v is None or nulls(v) for v in value.values())
    return isinstance(value, list) and any(v is None or nulls(v) for v in value)


def part_answers():
    """Whatever is asked: one X-Request-ID, one Date, a length, and of an error code and message"""
    name = create(metadata={'a': 'b'})
    one = f'/v1/sandboxes/{name}'
    asked = [('GET', '/health'), ('GET', '/version'), ('GET', '/metrics'), ('GET', '/nothing'), ('GET', '/v1'), ('GET', '/v1/sandboxes'),
             ('GET', one), ('GET', f'/v1/sandboxes/{NOBODY}'), ('PUT', one), ('PATCH', f'{one}/metadata'), ('POST', f'{one}/resume'),
             ('POST', f'{one}/renew-expiration'), ('GET', f'{one}/endpoints/80'), ('GET', f'{one}/endpoints/0'), ('GET', f'{one}/endpoints/x'),
             ('GET', f'{one}/diagnostics/logs'), ('GET', f'{one}/diagnostics/summary'), ('GET', f'{one}/diagnostics/logs?scope=x'),
             ('GET', f'{one}/proxy/44772/ping'), ('GET', f'{one}/proxy/44772/nothing'), ('GET', f'{one}/proxy/9/'), ('GET', f'{one}/proxy/0/'),
             ('GET', f'/v1/sandboxes/{NOBODY}/proxy/80/'), ('HEAD', one), ('HEAD', '/v1/sandboxes'), ('OPTIONS', one), ('OPTIONS', '/v1/sandboxes'),
             ('TRACE', '/health'), ('POST', '/v1/sandboxes'), ('GET', '/v1/pools'), ('GET', f'{one}/networkpolicy'), ('POST', f'{one}/snapshots'),
             ('POST', '/v1/metrics/events'), ('GET', '/v1/sandboxes?page=0'), ('GET', '/v1/sandboxes?metadata=x')]
    for method, path in asked:
        status, data, fields = request(method, path, headers={'X-Request-ID': 'own-1'})
        what = f'{method} {path.replace(name, "ID")}: {status}'
        check(f'{what}: X-Request-ID', values(fields, 'x-request-id'), ['own-1'])
        check(f'{what}: Date', len(values(fields, 'date')), 1)
        has_length = bool(values(fields, 'content-length'))
        check(f'{what}: length', has_length, status != 204)
        if status >= 400 and method != 'HEAD' and '/44772/' not in path:
            body = json.loads(data)
            check(f'{what}: code and message', (isinstance(body.get('code'), str), bool(body.get('message'))), (True, True))
        if status < 400 and values(fields, 'content-type') == ['application/json'] and data:
            check(f'{what}: no null', nulls(json.loads(data)), False)
    _, _, fields = request('GET', '/v1/sandboxes')
    check('an id of its own is 32 digits', bool(re.fullmatch('[0-9a-f]{32}', values(fields, 'x-request-id')[0])))
    _, _, fields = request('GET', '/health', headers={'X-Request-ID': 'a b'})
    check('what cannot stand in a log is not echoed', values(fields, 'x-request-id') != ['a b'])
    paused = request('POST', f'{one}/pause')
    if paused[0] == 202:
        check('pause: 202, empty, Content-Length: 0', (paused[1], values(paused[2], 'content-length')), (b'', ['0']))
        check('pause of one that is paused', request('POST', f'{one}/pause')[0], 409)
        status, _, fields = request('GET', f'{one}/proxy/44772/ping')
        check('the proxy of one that is paused', (status, bool(values(fields, 'retry-after'))), (503, True))
        resumed = request('POST', f'{one}/resume')
        check('resume: 202, empty, Content-Length: 0', (resumed[0], resumed[1], values(resumed[2], 'content-length')), (202, b'', ['0']))
    status, data, fields = request('DELETE', one)
    check('delete: 204, empty', (status, data), (204, b''))


def part_forms():
    """Requests of every shape"""
    name = create()
    one = f'/v1/sandboxes/{name}'
    lines = f'GET {one} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n'.encode()
    last = f'GET {one} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'.encode()
    got = raw(lines + lines + last)
    check('GET with Content-Length: 0, three pipelined', (got.count(b'HTTP/1.1 200'), got.count(name.encode()) >= 3), (3, True))
    got = raw(last.replace(b'Connection: close\r\n', b''), half_close=True)
    check('a half-closed client is answered', got[:12], b'HTTP/1.1 200')
    body = json.dumps({'k': 'v'}).encode()
    status, data, _ = request('PATCH', f'{one}/metadata', body=iter([body[:3], body[3:]]), headers={'Transfer-Encoding': 'chunked'})
    check('a chunked body', (status, json.loads(data).get('metadata')), (200, {'k': 'v'}))
    for path in (f'/v1/sandboxes/%{ord(name[0]):02x}{name[1:]}', f'/v1//sandboxes/{name}', f'{one}/', f'/V1/sandboxes/{name}', f'{one}%00', f'{one}%2e', f'{one}?x=%zz'):
        status = request('GET', path)[0]
        expected = 200 if path.endswith('%zz') or '/%' in path else 404
        check(f'GET {path.replace(name, "ID").replace(name[1:], "D")}', status, expected)
    for text, expected in ((b'Content-Length: 5\r\nTransfer-Encoding: chunked', 400), (b'Content-Length: 5\r\nContent-Length: 6', 400),
                           (b'Transfer-Encoding: gzip', 501), (b'Content-Length: -1', 400), (b'Content-Length: 99999999', 413),
                           (b'Content-Length: 1048577', 413), (b'X: ' + b'a' * 40000, 431)):
        got = raw(f'POST {one}/renew-expiration HTTP/1.1\r\nHost: x\r\n'.encode() + text + b'\r\n\r\n')
        what = text[:60].decode().replace('\r\n', ' and ')
        check(what, int(got.split(b' ')[1]) in (expected, 400))
        check(f'{what}: with a request id and a code', (b'\r\nX-Request-ID: ' in got, b'"code"' in got), (True, True))
    got = raw(b'GET /' + b'a' * 20000 + b' HTTP/1.1\r\nHost: x\r\n\r\n')
    check('a target that is too long', got.split(b' ')[1], b'414')
    big = b'{"x":"' + b'a' * (1 << 20) + b'"}'
    status, data, _ = request('POST', '/v1/sandboxes', body=iter([big]), headers={'Transfer-Encoding': 'chunked'})
    check('a chunked body that grows too large', (status, code_of(data)), (413, 'REQUEST_TOO_LARGE'))
    deep = b'[' * 100000
    check('a document that is too deep', request('POST', '/v1/sandboxes', body=deep)[0], 422)
    for text in (b'[]', b'null', b'"x"', b'{}', b'{"image":[]}', b'{"image":{"uri":7}}', b'\xff\xfe', b'{"a":1}x'):
        check(f'POST {text.decode(errors="replace")}', request('POST', '/v1/sandboxes', body=text)[0], 422)
    check('it still runs', json.loads(request('GET', one)[1])['status']['state'], 'Running')
    delete(name)


# -- wishes ------------------------------------------------------------------------------------


def part_wishes():
    """Bounds of what can be asked for; what is refused leaves nothing"""
    refused = [
        (422, {'timeout': 59}), (422, {'timeout': 0}), (422, {'timeout': -1}), (422, {'timeout': '60'}), (422, {'timeout': 60.5}), (422, {'timeout': True}),
        (422, {'timeout': 1 << 62}), (422, {'entrypoint': []}), (422, {'entrypoint': [7]}), (422, {'entrypoint': 'sleep'}), (422, {'image': {'uri': ' '}}),
        (422, {'image': {'uri': '@host', 'auth': {'username': 'x'}}}), (422, {'resourceLimits': []}), (422, {'resourceLimits': {'cpu': 1}}),
        (422, {'env': []}), (422, {'env': {'A': 7}}), (422, {'env': {'OPENSANDBOX_LIFECYCLE': 'x'}}), (422, {'metadata': []}), (422, {'metadata': {'a': 7}}),
        (422, {'extensions': {'a': 7}}), (422, {'secureAccess': 'yes'}), (422, {'platform': {'os': 'linux'}}), (422, {'volumes': {}}),
        (400, {'metadata': {'': 'x'}}), (400, {'metadata': {'-a': 'x'}}), (400, {'metadata': {'a' * 64: 'x'}}), (400, {'metadata': {'a': 'x' * 64}}),
        (400, {'metadata': {'a': 'x y'}}), (400, {'metadata': {'opensandbox.io/x': 'y'}}), (400, {'metadata': {'Upper.example/x': 'y'}}),
        (400, {'metadata': {'a' * 254 + '/x': 'y'}}), (400, {'resourceLimits': {'cpu': '0'}}), (400, {'resourceLimits': {'cpu': 'nan'}}),
        (400, {'resourceLimits': {'cpu': '1e3'}}), (400, {'resourceLimits': {'memory': '1.5Gi'}}), (400, {'resourceLimits': {'memory': '-1'}}),
        (400, {'resourceLimits': {'memory': '99999999999999999999'}}), (400, {'resourceLimits': {'memory': '1Pi'}}), (400, {'platform': {'os': 'windows', 'arch': 'amd64'}}),
        (400, {'platform': {'os': 'linux', 'arch': 'sparc'}}), (400, {'secureAccess': True}), (422, {'networkPolicy': {'egress': [{'action': 'allow', 'target': 'x y'}]}}),
        (400, {'extensions': {'poolRef': 'p'}}), (400, {'extensions': {'access.renew.extend.seconds': '299'}}), (400, {'extensions': {'access.renew.extend.seconds': '86401'}}),
        (400, {'extensions': {'access.renew.extend.seconds': 'x'}}), (400, {'image': {'uri': 'oci:/etc:1'}}), (400, {'image': {'uri': 'rootfs:/'}}),
        (400, {'snapshotId': 's', 'image': None}), (400, {'lifecycle': {'preStart': {'command': ['x']}}}),
        (400, {'volumes': [{'name': 'a', 'mountPath': '/a', 'host': {'path': '/etc'}}]}),
        (400, {'volumes': [{'name': 'a', 'mountPath': '/a', 'pvc': {'claimName': 'x', 'storage': None}}]}),
    ]
    for expected, more in refused:
        status, data, _ = request('POST', '/v1/sandboxes', wish(**more))
        check(f'{json.dumps(more)[:90]}', (status, isinstance(code_of(data), str)), (expected, True))
        if status == 202:
            delete(json.loads(data)['id'])
    taken = [{'timeout': None}, {'timeout': 60}, {'resourceLimits': {}}, {'resourceRequests': {'cpu': '1'}}, {'env': {}}, {'env': {'A': None}},
             {'metadata': {'example.com/A_b.c': 'x' * 63, 'b': ''}}, {'extensions': {}}, {'volumes': []}, {'networkPolicy': None}, {'networkPolicy': {}}, {'networkPolicy': {'egress': [{'action': 'allow', 'target': 'x.test'}]}}, {'unknown': {'x': [1]}},
             {'credentialProxy': {'enabled': False}}, {'snapshotId': None, 'templateId': None, 'lifecycle': None},
             {'image': {'uri': '@host', 'auth': None}}, {'metadata': {f'k{i}': str(i) for i in range(32)}}]
    for more in taken:
        status, data, _ = request('POST', '/v1/sandboxes', wish(**more))
        check(f'{json.dumps(more)[:90]}', status, 202)
        if status == 202:
            body = json.loads(data)
            check('entrypoint as sent, no null', (body['entrypoint'], nulls(body)), (['sleep', '1000'], False))
            check('metadata as sent', body.get('metadata', {}), more.get('metadata') or {})
            check('expiresAt', 'expiresAt' in body, more.get('timeout', 600) is not None)
            delete(body['id'])
    check('nothing is left', json.loads(request('GET', '/v1/sandboxes')[1])['pagination']['totalItems'], 0)


# -- races -------------------------------------------------------------------------------------


def part_races():
    """Changes of one sandbox at the same time, and its end"""
    for _ in range(4):
        name = create()
        one = f'/v1/sandboxes/{name}'
        until = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 3600))
        calls = [('POST', f'{one}/renew-expiration', {'expiresAt': until}), ('PATCH', f'{one}/metadata', {'a': 'b'}), ('GET', one, None),
                 ('GET', f'{one}/endpoints/80', None), ('GET', '/v1/sandboxes', None), ('POST', f'{one}/pause', None), ('DELETE', one, None),
                 ('DELETE', one, None), ('GET', f'{one}/proxy/44772/ping', None), ('POST', f'{one}/renew-expiration', {'expiresAt': until})]
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            got = list(pool.map(lambda c: request(*c), calls))
        for (method, path, _body), (status, data, _) in zip(calls, got):
            check(f'{method} {path.replace(name, "ID")} beside a delete: {status} {code_of(data) or ""}', status in (200, 202, 204, 404, 409, 502, 503) or path.endswith('pause') and status == 501)
        check('one of two deletes at least succeeds', 204 in [got[6][0], got[7][0]])
        check('it is gone', request('GET', one)[0], 404)
        for method, path, body in calls[:2] + calls[5:7]:
            check(f'{method} of what is gone', request(method, path, body)[0], 404)
    name = create(timeout=60)
    one = f'/v1/sandboxes/{name}'
    soon = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() + 2))
    check('renew may shorten', request('POST', f'{one}/renew-expiration', {'expiresAt': soon})[0], 200)
    end = time.time() + LIMIT_S
    while request('GET', one)[0] != 404 and time.time() < end:
        time.sleep(0.1)
    check('one whose time is over is gone', request('GET', one)[0], 404)
    name = create(entrypoint=['true'])
    one = f'/v1/sandboxes/{name}'
    while json.loads(request('GET', one)[1])['status']['state'] == 'Running' and time.time() < end:
        time.sleep(0.05)
    check('one that has ended stays', json.loads(request('GET', one)[1])['status']['state'], 'Terminated')
    for method, path, body in (('POST', f'{one}/renew-expiration', {'expiresAt': until}), ('POST', f'{one}/pause', None), ('POST', f'{one}/resume', None),
                               ('GET', f'{one}/proxy/44772/ping', None)):
        status, data, _ = request(method, path, body)
        check(f'{method} {path.replace(name, "ID")} of one that has ended', (status, code_of(data)),
              (409, 'SANDBOX::NOT_PAUSED' if path.endswith('resume') else 'SANDBOX::NOT_RUNNING'))
    check('its metadata can be changed', request('PATCH', f'{one}/metadata', {'a': 'b'})[0], 200)
    check('its endpoints resolve', request('GET', f'{one}/endpoints/80')[0], 200)
    check('and it is removed', delete(name), 204)


# -- clients that go ---------------------------------------------------------------------------


def part_gone():
    """A creation whose client goes away, and clients that are slow"""
    def live():
        return json.loads(request('GET', '/v1/sandboxes?pageSize=200')[1])['pagination']['totalItems']

    body = json.dumps(wish(entrypoint=['sleep', '1000'])).encode()
    head = b'POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % len(body)
    for _ in range(5):
        with dial() as sock:
            sock.sendall(head + body)
    end = time.time() + LIMIT_S
    quiet = 0
    while quiet < 10 and time.time() < end:
        quiet = quiet + 1 if live() == 0 else 0
        time.sleep(0.1)
    check('creations whose clients have gone leave nothing', live(), 0)
    with dial() as sock:
        sock.sendall(head + body)
        sock.shutdown(socket.SHUT_WR)
        got = b''
        while part := sock.recv(65536):
            got += part
    # On TCP it was asked whether it is there.
    got = got.removeprefix(b'HTTP/1.1 100 Continue\r\n\r\n')
    check('one whose client only ends its side is answered', got[:12], b'HTTP/1.1 202')
    name = json.loads(got.split(b'\r\n\r\n', 1)[1])['id']
    check('and stays', json.loads(request('GET', f'/v1/sandboxes/{name}')[1])['status']['state'], 'Running')
    delete(name)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    idle = [dial() for _ in range(1000)]
    slow = [dial() for _ in range(50)]
    for sock in slow:
        sock.sendall(head + body[:10])
    begin = time.time()
    check('1000 idle and 50 slow connections', request('GET', '/v1/sandboxes')[0], 200)
    check('do not slow others down', time.time() - begin < 10)
    for sock in idle + slow:
        sock.close()


# -- proxy -------------------------------------------------------------------------------------


def backend():
    with open(os.path.join(HERE, 'serve_backend.py'), encoding='utf-8') as f:
        source = f.read()
    name = create(entrypoint=['python3', '-c', source.replace('int(sys.argv[1])', '8000')])
    base = f'/v1/sandboxes/{name}/proxy/8000'
    end = time.time() + LIMIT_S
    while request('GET', f'{base}/echo')[0] != 200 and time.time() < end:
        time.sleep(0.1)
    return name, base


def pieces(n):
    data = b'x' * (1 << 20)
    for _ in range(n):
        yield data


def part_proxy():
    name, base = backend()
    status, data, fields = request('GET', f'{base}/a%20b/%2e%2e/c;d?q=%41&q=+&e=%E2%82%AC', headers={
        'OPEN-SANDBOX-API-KEY': 'k', 'Authorization': 'Bearer x', 'Cookie': 'a=b', 'X-Forwarded-For': '6.6.6.6', 'X-Forwarded-Host': 'evil', 'Forwarded': 'for=6.6.6.6',
        'X-Real-IP': '6.6.6.6', 'OpenSandbox-Secure-Access': 's', 'OpenSandbox-Access-Renew': 'skip', 'Connection': 'close, X-Named', 'X-Named': '1', 'Keep-Alive': 'x',
        'TE': 'trailers', 'X-Own': 'yes', 'X-EXECD-ACCESS-TOKEN': 'token', 'Accept-Encoding': 'br'})
    told = json.loads(data)
    sent = {k: v for k, v in told['fields']}
    check('path and query byte for byte', told['path'], '/a%20b/%2e%2e/c;d?q=%41&q=+&e=%E2%82%AC')
    check('credentials and hop-by-hop fields stay here', sorted(set(sent) & {
        'open-sandbox-api-key', 'authorization', 'cookie', 'forwarded', 'x-real-ip', 'opensandbox-secure-access', 'opensandbox-access-renew', 'x-named', 'keep-alive'}), [])
    check('others go on', (sent.get('x-own'), sent.get('x-execd-access-token'), sent.get('accept-encoding')), ('yes', 'token', 'br'))
    check('X-Forwarded-* is made anew', (sent.get('x-forwarded-proto'), sent.get('x-forwarded-host'), '6.6.6.6' in str(told['fields'])), ('http', 'x', False))
    check('each once', len([k for k, _ in told['fields'] if k.startswith('x-forwarded')]), 3)
    for method in ('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'):
        status, data, _ = request(method, f'{base}/m', body=b'abc')
        check(f'{method} with a body', (status, json.loads(data)['method'], json.loads(data)['n']), (200, method, 3))
    status, data, fields = request('HEAD', f'{base}/m')
    check('HEAD', (status, data, int(values(fields, 'content-length')[0]) > 0), (200, b'', True))
    check('without a path', json.loads(request('GET', base)[1])['path'], '/')
    check('only a query', json.loads(request('GET', f'{base}?a=b')[1])['path'], '/?a=b')
    check('the other mount', json.loads(request('GET', f'{base[3:]}/x')[1])['path'], '/x')
    status, data, _ = request('POST', f'{base}/m', body=iter([b'abc', b'def']), headers={'Transfer-Encoding': 'chunked'})
    check('a chunked body', json.loads(data)['n'], 6)
    status, _, fields = request('GET', f'{base}/cookies')
    check('fields that come twice', values(fields, 'set-cookie'), ['a=1', 'b=2; Path=/'])
    check('hop-by-hop fields and Server of the answer', [k for k, _ in fields if k in ('x-hop', 'keep-alive', 'server')], [])
    check('one Date, one X-Request-ID', (len(values(fields, 'date')), len(values(fields, 'x-request-id')), values(fields, 'x-request-id') != ['backend']), (1, 1, True))
    for kind, expected in (('root', f'{base}/there?a=b'), ('own', f'{base}/there?a=b'), ('relative', 'there'), ('other', 'http://other.example/x'), ('scheme', '//other.example/x')):
        check(f'Location, {kind}', values(request('GET', f'{base}/redirect/{kind}')[2], 'location'), [expected])
    check('Location, through the other mount', values(request('GET', f'{base[3:]}/redirect/root')[2], 'location'), [f'{base[3:]}/there?a=b'])
    got = raw(f'GET {base}/trailer HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: close\r\n\r\n'.encode())
    check('trailers', got.endswith(b'0\r\nX-Sum: 6\r\n\r\n'))
    # One event must come before the next is made.
    connection = Connection('x')
    connection.request('GET', f'{base}/sse')
    answer = connection.getresponse()
    first = answer.readline() + answer.readline()
    request('GET', f'{base}/go')
    check('events are not held back', (first, answer.read()), (b'data: 1\n\n', b'data: 2\n\n'))
    # More than fits into any buffer, from a client that goes on sending.
    status, data, _ = request('POST', f'{base}/count', body=pieces(1024), headers={'Content-Length': str(1 << 30)})
    check('1 GiB, with a length', (status, json.loads(data)['n']), (200, 1 << 30))
    status, data, _ = request('POST', f'{base}/count', body=pieces(256), headers={'Transfer-Encoding': 'chunked'})
    check('256 MiB, chunked', (status, json.loads(data)['n']), (200, 256 << 20))
    with dial() as sock:
        sock.sendall(f'POST {base}/early HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n'.encode() + b'x' * 1000)
        check('an answer before the body is there', sock.recv(65536)[:12], b'HTTP/1.1 413')
    with dial() as sock:
        sock.sendall(f'GET {base}/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nX-Request-ID: ws-1\r\n'
                     f'Sec-WebSocket-Protocol: a, b\r\nSec-WebSocket-Key: {base64.b64encode(b"0123456789abcdef").decode()}\r\n\r\n'.encode() + b'early')
        got = b''
        while b'\r\n\r\n' not in got:
            got += sock.recv(65536)
        head, rest = got.split(b'\r\n\r\n', 1)
        check('an upgrade', (head.split(b' ')[1], b'Sec-WebSocket-Protocol: b' in head, b'X-Request-ID: ws-1' in head), (b'101', True, True))
        many = os.urandom(1 << 20)

        def push():
            sock.sendall(many)
            sock.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=push)
        thread.start()
        while part := sock.recv(1 << 16):
            rest += part
        thread.join()
        check('bytes both ways, and the end of one side before that of the other', rest == b'early' + many + b'end %d' % (len(many) + 5))
    check('what is not HTTP', request('GET', f'/v1/sandboxes/{name}/proxy/44772/ping')[0], 200)
    check('a client that goes away in the middle of an answer', part_cut(base))
    check('clients of upgraded connections that go away', part_left(base))
    delete(name)


def part_cut(base):
    with dial() as sock:
        sock.sendall(f'POST {base}/count HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc'.encode())
    return request('GET', f'{base}/echo')[0] == 200


def part_left(base):
    """Nobody reads what the echo writes any more, while it writes."""
    for i in range(60):
        with dial() as sock:
            sock.sendall(f'GET {base}/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
                         f'Sec-WebSocket-Key: {base64.b64encode(b"0123456789abcdef").decode()}\r\n\r\n'.encode())
            sock.settimeout(0.02)
            end = time.monotonic() + i % 20 / 1000
            try:
                while time.monotonic() < end:
                    sock.send(b'x' * 65536)
                    sock.recv(65536)
            except TimeoutError:
                pass
    return request('GET', f'{base}/echo')[0] == 200


# -- many --------------------------------------------------------------------------------------


def part_many():
    """More requests at once than workers: all are answered, those that are refused with Retry-After"""
    name = create()
    seen = set()

    def ask(_):
        status, _, fields = request('GET', '/v1/sandboxes')
        seen.add((status, bool(values(fields, 'retry-after')), len(values(fields, 'x-request-id'))))

    with concurrent.futures.ThreadPoolExecutor(600) as pool:
        list(pool.map(ask, range(1200)))
    check(f'1200 requests at once: {sorted(seen)}', seen <= {(200, False, 1), (503, True, 1)} and (200, False, 1) in seen)
    check('then all is well', request('GET', f'/v1/sandboxes/{name}')[0], 200)
    delete(name)


for part in sys.argv[2:]:
    globals()[f'part_{part}']()
