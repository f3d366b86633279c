#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What stands behind a port of a sandbox in the tests of the proxy: it tells what came, and answers as few servers do.

usage: serve_backend.py PORT
"""
import base64
import hashlib
import json
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
go = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def answer(self, status, body=b'', fields=()):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def chunks(self):
        while True:
            n = int(self.rfile.readline().split(b';')[0], 16)
            if n == 0:
                while self.rfile.readline().strip():
                    pass
                return
            yield self.rfile.read(n)
            self.rfile.readline()

    def body(self):
        if self.headers.get('Transfer-Encoding') == 'chunked':
            yield from self.chunks()
            return
        left = int(self.headers.get('Content-Length') or 0)
        while left > 0:
            data = self.rfile.read(min(left, 1 << 20))
            if not data:
                raise ConnectionError('cut')
            left -= len(data)
            yield data

    def any(self):
        path = self.path.split('?')[0]
        if path == '/ws':
            self.websocket()
        elif path == '/sse':
            self.sse()
        elif path == '/trailer':
            self.trailer()
        elif path == '/early':
            self.close_connection = True
            self.answer(413, b'too much', [('Connection', 'close')])
        elif path == '/go':
            go.set()
            self.answer(200)
        elif path == '/cookies':
            self.answer(200, b'x', [('Set-Cookie', 'a=1'), ('Set-Cookie', 'b=2; Path=/'), ('Server', 'backend'), ('X-Request-ID', 'backend'),
                                    ('Connection', 'X-Hop'), ('X-Hop', '1'), ('Keep-Alive', 'timeout=5')])
        elif path.startswith('/redirect'):
            self.answer(302, b'', [('Location', {'/redirect/root': '/there?a=b', '/redirect/relative': 'there', '/redirect/other': 'http://other.example/x',
                                                 '/redirect/scheme': '//other.example/x',
                                                 '/redirect/own': f'http://{self.headers["Host"]}/there?a=b'}[path])])
        else:
            n, digest = 0, hashlib.sha256()
            for data in self.body():
                n += len(data)
                if path != '/count':
                    digest.update(data)
            self.answer(200, json.dumps({'method': self.command, 'path': self.path, 'n': n, 'sha256': digest.hexdigest(),
                                         'fields': [[k.lower(), v] for k, v in self.headers.items()]}).encode(),
                        [('Content-Type', 'application/json')])

    def sse(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Connection', 'close')
        self.end_headers()
        self.wfile.write(b'data: 1\n\n')
        go.wait(60)
        self.wfile.write(b'data: 2\n\n')
        self.close_connection = True

    def trailer(self):
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.send_header('Trailer', 'X-Sum')
        self.end_headers()
        self.wfile.write(b'3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n')

    def websocket(self):
        """Echoes the bytes behind the handshake until their end, then says how many there were."""
        accept = base64.b64encode(hashlib.sha1((self.headers['Sec-WebSocket-Key'] + MAGIC).encode()).digest()).decode()
        self.send_response(101)
        for name, value in (('Upgrade', 'websocket'), ('Connection', 'Upgrade'), ('Sec-WebSocket-Accept', accept), ('Sec-WebSocket-Protocol', 'b')):
            self.send_header(name, value)
        self.end_headers()
        n = 0
        while data := self.connection.recv(65536):
            n += len(data)
            self.wfile.write(data)
        self.wfile.write(b'end %d' % n)
        self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_PROPFIND = any


socketserver.TCPServer.request_queue_size = 128
ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
