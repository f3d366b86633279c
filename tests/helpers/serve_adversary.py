#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What has once been got wrong by the lifecycle API, or could be. One line "pass WHAT" or "FAIL WHAT: why" each.

usage: serve_adversary.py SOCKET|PORT PART [ARGUMENT]
"""
import concurrent.futures
import json
import os
import socket
import sys
import time

from serve_client import LIMIT_S, Server, check, code_of, values, wait_for, wish

server = Server(sys.argv[1])


def create(**more):
    status, data, _ = server.request('POST', '/v1/sandboxes', wish(**more))
    if status != 202:
        raise SystemExit(f'FAIL create: {status} {data!r:.300}')
    return json.loads(data)['id']


def delete(name):
    server.request('DELETE', f'/v1/sandboxes/{name}')


def part_patches():
    """Patches of one sandbox at the same time: each is a part of what is there in the end"""
    name = create(metadata={'first': 'x'})
    one = f'/v1/sandboxes/{name}'
    for turn in range(3):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            got = list(pool.map(lambda i: server.request('PATCH', f'{one}/metadata', {f'k{i}': str(turn)})[0], range(16)))
        there = json.loads(server.request('GET', one)[1])['metadata']
        check('patches at the same time', (set(got), there), ({200}, {'first': 'x', **{f'k{i}': str(turn) for i in range(16)}}))
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        patches = [pool.submit(server.request, 'PATCH', f'{one}/metadata', {f'k{i}': None}) for i in range(8)]
        gone = pool.submit(server.request, 'DELETE', one)
        odd = [p.result() for p in patches if p.result()[0] not in (200, 404, 409)]
        check('patches beside a delete', odd, [])
        check('which is done', gone.result()[0], 204)
    check('nothing of it is left', server.request('GET', one)[0], 404)


def part_wishes():
    """What is refused says what it is refused for"""
    for body in ({'templateId': 't', 'timeout': 600, 'secureAccess': False}, wish(templateId='t')):
        status, data, _ = server.request('POST', '/v1/sandboxes', body)
        check('a template', (status, code_of(data), 'templateId' in json.loads(data)['message']), (400, 'SANDBOX::API_NOT_SUPPORTED', True))
    status, data, _ = server.request('POST', '/v1/sandboxes', wish(templateId=' '))
    check('a blank template is none', status, 202)
    delete(json.loads(data)['id'])


def part_volumes(base):
    """base: allowed, with a link out of it, and BASE-missing, allowed and not there"""
    def refusal(path, **more):
        status, data, _ = server.request('POST', '/v1/sandboxes', wish(volumes=[{'name': 'v', 'mountPath': '/v', 'host': {'path': path}, **more}]))
        return status, code_of(data), json.loads(data).get('message', '')

    for path in ('out', 'out/new', 'up', 'up/new'):
        status, code, text = refusal(f'{base}/{path}')
        check(f'a link out: {path}', (status, code, 'link leads out' in text), (400, 'VOLUME::HOST_PATH_NOT_ALLOWED', True))
    status, code, text = refusal(base, subPath='out/new')
    check('a link out in subPath', (status, code, 'link leads out' in text), (400, 'VOLUME::INVALID_SUB_PATH', True))
    for path in (f'{base}-missing', f'{base}-missing/sub'):
        status, code, text = refusal(path)
        check('an allowed directory that is missing is named', (status, code, f'{base}-missing: No such file' in text), (400, 'VOLUME::HOST_PATH_CREATE_FAILED', True))
    check('nothing was made', (os.listdir(f'{base}-outside'), os.path.exists(f'{base}-missing')), ([], False))


def part_pages():
    """No key, on TCP: what a browser may be made to ask"""
    name = create(entrypoint=['python3', '-c', 'import http.server as h\n'
                              'class H(h.BaseHTTPRequestHandler):\n'
                              '    def do_GET(self):\n'
                              '        self.send_response(200)\n'
                              '        self.send_header("Service-Worker-Allowed", "/")\n'
                              '        self.send_header("X-Own", "1")\n'
                              '        self.send_header("Content-Length", "0")\n'
                              '        self.end_headers()\n'
                              'h.ThreadingHTTPServer(("127.0.0.1", 8000), H).serve_forever()'])
    one = f'/v1/sandboxes/{name}'
    page = f'{one}/proxy/8000/'
    here = f'127.0.0.1:{server.where}'
    check('the page of a sandbox', wait_for(lambda: server.request('GET', page)[0] == 200))
    # Host, other fields -> may it ask the API, may it ask the proxy?
    rows = [
        (here, {}, True, True),
        (f'localhost:{server.where}', {}, True, True),
        ('a.localhost', {}, True, True),
        ('[::1]:80', {}, True, True),
        ('evil.example', {}, False, False),
        (f'evil.example:{server.where}', {}, False, False),
        ('notlocalhost', {}, False, False),
        ('localhost.evil.example', {}, False, False),
        ('127.0.0.1.evil.example', {}, False, False),
        ('', {}, False, False),
        (here, {'Origin': 'http://evil.example'}, False, False),
        (here, {'Origin': 'null'}, False, False),
        (here, {'Origin': ''}, False, False),
        (here, {'Origin': f'http://{here}.evil.example'}, False, False),
        (here, {'Origin': f'http://{here}'}, False, True),
        (here, {'Sec-Fetch-Site': 'same-origin'}, False, True),
        (here, {'Sec-Fetch-Site': 'none'}, True, True),
        (here, {'Sec-Fetch-Mode': 'cors'}, True, True),
    ]
    for host, fields, may_api, may_proxy in rows:
        for path, may in ((one, may_api), ('/v1/sandboxes', may_api), (f'{one}/endpoints/80', may_api), (page, may_proxy)):
            status, data, _ = server.request('GET', path, None, {'Host': host, **fields})
            check(f'Host {host} {fields}: {path.replace(name, "ID")}', (status, code_of(data)) if status != 200 else status, 200 if may else (403, 'FORBIDDEN'))
    status, data, _ = server.request('POST', '/v1/sandboxes', wish(), {'Host': here, 'Origin': f'http://{here}'})
    check('a page of a sandbox creates none', (status, code_of(data)), (403, 'FORBIDDEN'))
    fields = server.request('GET', page)[2]
    check('no service worker for all sandboxes', (values(fields, 'service-worker-allowed'), values(fields, 'x-own')), ([], ['1']))
    delete(name)


def part_alive():
    """A peer that vanishes without a word is noticed: the kernel asks after it (timer 2 of proc(5))"""
    def timer(sock):
        own, port = (f'{sock.getsockname()[1]:04X}', f'{int(server.where):04X}')
        with open('/proc/net/tcp', encoding='ascii') as f:
            rows = [line.split() for line in f]
        return [row[5].split(':')[0] for row in rows if row[1].endswith(':' + port) and row[2].endswith(':' + own)]

    with server.dial() as sock:
        sock.sendall(b'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')
        check('an answer', sock.recv(65536)[:12], b'HTTP/1.1 200')
        check('then the connection is watched', wait_for(lambda: timer(sock) == ['02']))


def part_files():
    """A server with few descriptors, and more connections than it can have: a sandbox that is there is never one that is not"""
    name = create()
    socks = [server.dial() for _ in range(160)]
    for sock in socks:
        sock.sendall(f'GET /v1/sandboxes/{name}/proxy/44772/ping HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
    seen = set()
    # Those that are answered make room for the others.
    for sock in socks:
        seen.add(sock.recv(65536).split(b' ')[1])
        sock.close()
    check('answers', sorted(seen), [b'200', b'503'])
    check('it recovers', wait_for(lambda: server.request('GET', f'/v1/sandboxes/{name}/proxy/44772/ping')[0] == 200))
    delete(name)


def part_idle(seconds):
    """A WebSocket is somebody who is there"""
    name = create()
    pty = json.loads(server.request('POST', f'/v1/sandboxes/{name}/proxy/44772/pty', {})[1])['session_id']
    with server.dial() as sock:
        sock.sendall(f'GET /v1/sandboxes/{name}/proxy/44772/pty/{pty}/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
                     'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n'.encode())
        check('it is opened', sock.recv(65536)[:12], b'HTTP/1.1 101')
        sock.settimeout(3 * float(seconds))
        end = ''
        try:
            while data := sock.recv(65536):
                end = data
        except socket.timeout:
            end = None
        check('and stays open while nothing else comes', end, None)
        sock.settimeout(LIMIT_S)
        # A masked ping with a mask of zeros.
        sock.sendall(b'\x89\x82\0\0\0\0ab')
        got = b''
        while b'\x8a\x02ab' not in got and (data := sock.recv(65536)):
            got += data
        check('and still answers', b'\x8a\x02ab' in got)


globals()[f'part_{sys.argv[2]}'](*sys.argv[3:])
