#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Jupyter server that misbehaves, for tests: of its REST interface and of a kernel's channels only what a client of
contexts asks for, and one thing wrong with it.

usage: jupyter_fake.py PORT FAULT
"""
import base64
import hashlib
import http.server
import json
import socket
import struct
import sys
import time

PORT, FAULT = int(sys.argv[1]), sys.argv[2]
GUID = b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
SPECS = {'default': 'p', 'kernelspecs': {'p': {'name': 'p', 'spec': {'language': 'python'}}}}
SESSION = {'id': 's-1', 'kernel': {'id': 'k-1', 'name': 'p'}}


class Server(http.server.BaseHTTPRequestHandler):
    """One connection."""
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def answer(self, status, body):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        if self.path.startswith('/api/kernelspecs'):
            self.specs()
        elif '/channels' in self.path:
            self.channels()
        else:
            self.answer(404 if FAULT == 'no-channels' else 200, {'id': 'k-1', 'execution_state': 'starting'})

    def specs(self):
        if FAULT == 'refused':
            self.answer(403, {'message': 'Forbidden'})
        elif FAULT == 'no-json':
            self.answer(200, b'<html>')
        elif FAULT == 'no-kernel':
            self.answer(200, {'kernelspecs': {'j': {'spec': {'language': 'java'}}, 'r': {'spec': {'language': 'R'}}}})
        elif FAULT == 'long-specs':
            self.answer(200, b'[' * (8 << 20))
        elif FAULT == 'no-http':
            self.wfile.write(b'220 mail.example ESMTP\r\n')
            self.close_connection = True
        else:
            self.answer(200, SPECS)

    def do_POST(self):
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if FAULT == 'bad-ids':
            self.answer(201, {'id': '../../x', 'kernel': {'id': 'k-1'}})
        elif self.path.endswith('/interrupt'):
            self.answer(204, b'')
        else:
            self.answer(201, SESSION)

    def do_DELETE(self):
        self.answer(204, b'')

    def channels(self):
        if FAULT == 'no-channels':
            time.sleep(30)
        key = base64.b64encode(hashlib.sha1(self.headers['Sec-WebSocket-Key'].encode() + GUID).digest()).decode()
        self.send_response(101)
        self.send_header('Upgrade', 'websocket')
        self.send_header('Connection', 'Upgrade')
        self.send_header('Sec-WebSocket-Accept', 'x' + key[1:] if FAULT == 'bad-accept' else key)
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        while True:
            request = json.loads(self.frame())
            if request['header']['msg_type'] == 'kernel_info_request':
                self.tell(request, 'kernel_info_reply', {})
            elif request['header']['msg_type'] == 'usage_request':
                for pid in (0, -5, 'x', 1 << 40, 1):
                    self.tell(request, 'usage_reply', {'hostname': socket.gethostname(), 'pid': pid})
            elif not self.execute(request):
                return

    def frame(self):
        head = self.rfile.read(2)
        if len(head) < 2:
            sys.exit()
        n = head[1] & 127
        n = struct.unpack('>H', self.rfile.read(2))[0] if n == 126 else struct.unpack('>Q', self.rfile.read(8))[0] if n == 127 else n
        mask = self.rfile.read(4)
        return bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(n)))

    def send(self, data):
        n = len(data)
        head = bytes([0x81, n]) if n < 126 else b'\x81\x7e' + struct.pack('>H', n) if n < 65536 else b'\x81\x7f' + struct.pack('>Q', n)
        self.wfile.write(head + data)
        self.wfile.flush()

    def tell(self, request, kind, content):
        parent = request['header'] if request else {}
        self.send(json.dumps({'header': {'msg_id': 'm', 'msg_type': kind}, 'parent_header': parent, 'content': content}).encode())

    def execute(self, request):
        """False: the connection is to be closed."""
        if FAULT == 'vanishes':
            return False
        if FAULT == 'dies':
            self.tell(None, 'status', {'execution_state': 'restarting'})
        elif FAULT == 'floods':
            self.tell(request, 'stream', {'name': 'stdout', 'text': 'x' * (20 << 20)})
        elif FAULT == 'mute':
            return True
        if FAULT == 'strange':
            self.send(b'{"header":')
            self.send(b'[' * 10000)
            self.send(b'{"header":{"msg_type":"stream"},"parent_header":7,"content":[]}')
            self.tell({'header': {'msg_id': 'of somebody else'}}, 'stream', {'name': 'stdout', 'text': 'not ours'})
            self.tell(request, 'stream', {'name': 7, 'text': None})
            self.tell(request, 'execute_result', {'data': 'no object', 'execution_count': -1})
            self.tell(request, 'error', {'ename': 1, 'traceback': {'a': 1}})
            self.tell(request, 'stream', {'name': 'stdout', 'text': 'ours \0 \ud800'})
        self.tell(request, 'status', {'execution_state': 'idle'})
        self.tell(request, 'execute_reply', {'status': 'ok'})
        return True


if FAULT == 'late':
    time.sleep(2)
http.server.ThreadingHTTPServer(('127.0.0.1', PORT), Server).serve_forever()
