#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small WebSocket client over a Unix socket, and what tests/integration/api_basic.sh does with it to /pty.

usage: ws_client.py SOCKET CASE [TOKEN]
Prints "ok WHAT" or "not ok WHAT" a check.
"""
import base64
import json
import os
import socket
import struct
import sys
import time

SOCKET = sys.argv[1]
PATIENCE = 30


def check(good, what, seen=''):
    print(('ok ' if good else 'not ok ') + what)
    if not good:
        print(f'# seen: {seen!r}')
    sys.stdout.flush()
    return good


def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(PATIENCE)
    s.connect(SOCKET)
    return s


def request(method, path, body=None):
    """One plain request: status and JSON of the answer (None: not one)."""
    s = connect()
    data = b'' if body is None else json.dumps(body).encode()
    s.sendall(f'{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n'
              .encode() + data)
    answer = b''
    while True:
        piece = s.recv(65536)
        if not piece:
            break
        answer += piece
    head, _, rest = answer.partition(b'\r\n\r\n')
    try:
        parsed = json.loads(rest)
    except ValueError:
        parsed = None
    return int(head.split()[1]), parsed


class WebSocket:
    """Client's side of RFC 6455, without fragments."""

    def __init__(self, path, expect=101):
        self.s = connect()
        self.rest = b''
        self.closed = None
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall((f'GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
                        f'Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n').encode())
        while b'\r\n\r\n' not in self.rest:
            piece = self.s.recv(65536)
            if not piece:
                break
            self.rest += piece
        head, _, self.rest = self.rest.partition(b'\r\n\r\n')
        self.status = int(head.split()[1])
        if self.status != expect:
            raise RuntimeError(f'status {self.status}: {head!r} {self.rest!r}')

    def frame(self, opcode, data):
        mask = os.urandom(4)
        n = len(data)
        head = bytes([0x80 | opcode]) + (bytes([0x80 | n]) if n < 126 else b'\xfe' + struct.pack('>H', n) if n < 65536
                                         else b'\xff' + struct.pack('>Q', n)) + mask
        pad = (mask * (n // 4 + 1))[:n]
        masked = (int.from_bytes(data, 'big') ^ int.from_bytes(pad, 'big')).to_bytes(n, 'big') if n else b''
        self.s.sendall(head + masked)

    def text(self, **members):
        self.frame(1, json.dumps(members).encode())

    def type(self, data):
        self.frame(2, b'\0' + data)

    def take(self, n):
        while len(self.rest) < n:
            piece = self.s.recv(65536)
            if not piece:
                raise EOFError
            self.rest += piece
        data, self.rest = self.rest[:n], self.rest[n:]
        return data

    def next(self):
        """Next message: ('text', dict), ('binary', bytes) or ('close', code, reason)."""
        while True:
            first, second = self.take(2)
            n = second & 0x7f
            if n == 126:
                n = struct.unpack('>H', self.take(2))[0]
            elif n == 127:
                n = struct.unpack('>Q', self.take(8))[0]
            data = self.take(n)
            opcode = first & 0x0f
            if opcode == 1:
                return 'text', json.loads(data)
            if opcode == 2:
                return 'binary', data
            if opcode == 8:
                self.frame(8, data[:2])
                return 'close', struct.unpack('>H', data[:2])[0], data[2:].decode()
            if opcode == 9:
                self.frame(10, data)

    def until(self, done):
        """Messages until done(output, errors, texts) is true or the end: (output, errors, texts, close)."""
        out, err, texts = b'', b'', []
        end = time.monotonic() + PATIENCE
        while not done(out, err, texts) and time.monotonic() < end:
            try:
                kind, *message = self.next()
            except (EOFError, TimeoutError, ConnectionError):
                return out, err, texts, None
            if kind == 'close':
                return out, err, texts, tuple(message)
            if kind == 'text':
                texts.append(message[0])
            elif message[0][0] == 1:
                out += message[0][1:]
            elif message[0][0] == 2:
                err += message[0][1:]
            elif message[0][0] == 3:
                out += message[0][9:]
        return out, err, texts, None


def never(_out, _err, _texts):
    return False


def session(**body):
    status, answer = request('POST', '/pty', body)
    assert status == 201, (status, answer)
    return answer['session_id']


def attach(ident, query=''):
    return WebSocket(f'/pty/{ident}/ws{query}')


def case_basic():
    """A terminal: input, size, signals, end."""
    ident = session(cwd='/tmp')
    status, answer = request('GET', f'/pty/{ident}')
    check((status, answer) == (200, {'session_id': ident, 'running': False, 'output_offset': 0}), 'a new session', answer)
    ws = attach(ident)
    _, _, texts, _ = ws.until(lambda o, e, t: t)
    check(texts == [{'type': 'connected', 'session_id': ident, 'mode': 'pty', 'role': 'controller'}], 'connected', texts)
    ws.type(b'stty -echo; pwd; stty size; tty; echo E=$((1+1))ND\n')
    out, _, _, _ = ws.until(lambda o, e, t: b'E=2ND' in o)
    check(b'/tmp' in out and b'24 80' in out and b'/dev/pts/' in out, 'a terminal of 24 by 80 in its directory', out)
    ws.text(type='resize', cols=100, rows=30)
    ws.type(b'stty size; echo E=$((2+1))ND\n')
    out, _, _, _ = ws.until(lambda o, e, t: b'E=3ND' in o)
    check(b'30 100' in out, 'it changes its size', out)
    ws.text(type='stdin', data='echo t\u00e4xt\n')
    out, _, _, _ = ws.until(lambda o, e, t: 'täxt'.encode() in o)
    check('täxt'.encode() in out, 'input as text', out)
    ws.text(type='ping')
    _, _, texts, _ = ws.until(lambda o, e, t: {'type': 'pong'} in t)
    check({'type': 'pong'} in texts, 'ping is answered', texts)
    ws.text(type='nonsense')
    ws.frame(1, b'no json')
    ws.frame(2, b'\x07x')
    ws.text(type='signal', signal='SIGNONE')
    ws.text(type='resize', cols=0, rows=1)
    _, _, texts, _ = ws.until(lambda o, e, t: len(t) == 5)
    check([t.get('code') for t in texts] == ['INVALID_FRAME'] * 5, 'what is no message is an error and no more', texts)
    ws.type(b'sleep 1000; echo E=$((3+1))ND\n')
    time.sleep(0.3)
    for _ in range(20):
        ws.text(type='signal', signal='SIGINT')
        status, answer = request('GET', f'/pty/{ident}')
        time.sleep(0.05)
    ws.type(b'echo E=$((4+1))ND\n')
    out, _, _, _ = ws.until(lambda o, e, t: b'E=5ND' in o)
    check(b'E=5ND' in out, 'an interrupt ends what runs, not the shell', out)
    check(answer['running'] is True and answer['output_offset'] > 20, 'it runs and has said something', answer)
    ws.type(b'exit 7\n')
    _, _, texts, close = ws.until(never)
    check(texts[-1:] == [{'type': 'exit', 'exit_code': 7}] and close == (1000, 'process exited'), 'its end', (texts, close))
    check(request('GET', f'/pty/{ident}')[1]['running'] is False, 'it does not run any more')
    ws = attach(ident)
    ws.type(b'echo E=$((5+1))ND\n')
    out, _, _, _ = ws.until(lambda o, e, t: b'E=6ND' in o)
    check(b'E=6ND' in out and b'E=5ND' in out, 'another shell, behind what the first one said', out)
    ws.s.close()
    ws = WebSocket(f'/proxy/44772/pty/{ident}/ws?takeover=1&since=99999999')
    ws.type(b'echo E=$((6+1))ND\n')
    out, _, _, _ = ws.until(lambda o, e, t: b'E=7ND' in o)
    check(b'E=7ND' in out and b'E=6ND' not in out, 'a WebSocket goes through the proxy', out)
    check(request('DELETE', f'/proxy/44772/pty/{ident}')[0] == 200, 'deleted')
    _, _, _, close = ws.until(never)
    check(close is not None and close[0] == 1000, 'its client is told', close)
    status, answer = request('GET', f'/pty/{ident}')
    check(status == 404 and answer['code'] == 'CONTEXT_NOT_FOUND', 'and it is gone', answer)


def case_pipes():
    """Without a terminal: standard error apart, input that is not read, a command."""
    ident = session(command='cat; echo oops >&2; exit 3')
    ws = attach(ident, '?pty=0')
    _, _, texts, _ = ws.until(lambda o, e, t: t)
    check(texts[0]['mode'] == 'pipe', 'with pipes', texts)
    ws.type(b'\x00\xffbytes')
    out, _, _, _ = ws.until(lambda o, e, t: len(o) >= 7)
    check(out == b'\x00\xffbytes', 'bytes go through as they are', out)
    ws.text(type='signal', signal='SIGTERM')
    _, _, texts, close = ws.until(never)
    check(texts[-1:] == [{'type': 'exit', 'exit_code': 143}] and close[0] == 1000, 'ended by a signal', (texts, close))
    ident = session(command='echo oops >&2; echo out; exit 3')
    ws = attach(ident, '?pty=0')
    out, err, texts, _ = ws.until(never)
    check((out, err, texts[-1:]) == (b'out\n', b'oops\n', [{'type': 'exit', 'exit_code': 3}]), 'output apart', (out, err, texts))
    ident = session(command='sleep 1000')
    ws = attach(ident, '?pty=0')
    ws.s.settimeout(3)
    sent = 0
    try:
        for _ in range(200):
            ws.type(b'x' * 65536)
            sent += 65536
    except TimeoutError:
        pass
    check(sent < 200 * 65536, 'input that nobody reads is not taken for ever', sent)
    check(request('GET', '/ping')[0] == 200, 'and stops nobody else')
    check(request('DELETE', f'/pty/{ident}')[0] == 200, 'it can be deleted')
    ident = session(cwd='/nowhere/at/all')
    ws = attach(ident)
    _, _, texts, close = ws.until(never)
    check(any(t.get('code') == 'START_FAILED' and '/nowhere/at/all' in t['error'] for t in texts) and close[0] == 1011,
          'a directory that is missing is told', (texts, close))


def case_many():
    """Replay, takeover, viewers, a client that does not read."""
    ident = session()
    first = attach(ident)
    first.type(b'stty -echo; echo E=$((1+1))ND\n')
    first.until(lambda o, e, t: b'E=2ND' in o)
    status, answer = request('GET', f'/pty/{ident}/ws')
    check(status == 409 and answer['code'] == 'ALREADY_CONNECTED', 'one client at a time', answer)
    try:
        attach(ident)
        check(False, 'a second one is refused')
    except RuntimeError as e:
        check('status 409' in str(e), 'a second one is refused', str(e))
    viewer = attach(ident, '?mode=viewer')
    out, _, texts, _ = viewer.until(lambda o, e, t: t)
    check(texts[0]['role'] == 'viewer' and b'E=2ND' in out, 'one may look on', (out, texts))
    viewer.type(b'echo E=$((2+1))ND\n')
    viewer.text(type='signal', signal='SIGKILL')
    _, _, texts, _ = viewer.until(lambda o, e, t: len(t) == 2)
    check([t['code'] for t in texts] == ['READ_ONLY'] * 2, 'but not touch', texts)
    second = attach(ident, '?takeover=1&since=0')
    out, _, _, _ = second.until(lambda o, e, t: t)
    check(b'E=2ND' in out, 'another one takes over, from the beginning', out)
    _, _, _, close = first.until(never)
    check(close == (4001, 'TAKEN_OVER'), 'the first is told', close)
    second.type(b'echo E=$((3+1))ND\n')
    out, _, _, _ = second.until(lambda o, e, t: b'E=4ND' in o)
    check(b'E=4ND' in out, 'the shell is the same', out)
    out, _, _, _ = viewer.until(lambda o, e, t: b'E=4ND' in o)
    check(b'E=4ND' in out, 'the viewer sees it too', out)
    second.type(b'seq 1 400000; echo E=$((4+1))ND\n')
    time.sleep(1)
    check(request('GET', f'/pty/{ident}')[1]['output_offset'] < 2700000, 'who does not read stops the output')
    viewer.s.close()
    out, _, _, _ = second.until(lambda o, e, t: b'E=5ND' in o)
    lines = out.replace(b'\r\n', b'\n').split(b'\n')
    check(b'400000' in lines and lines.count(b'200000') == 1, 'and gets all of it when it does', len(out))
    offset = request('GET', f'/pty/{ident}')[1]['output_offset']
    second.s.close()
    for _ in range(200):
        try:
            third = attach(ident, f'?since={offset - 2000000}')
            break
        except RuntimeError:
            time.sleep(0.05)
    kind, data = third.next()
    start = struct.unpack('>Q', data[1:9])[0]
    check(kind == 'binary' and data[0] == 3 and len(data) - 9 == 1 << 20 and start == offset - (1 << 20),
          'the last mebibyte is kept, with its offset', (kind, start, offset))
    status, answer = request('GET', f'/pty/{ident}/ws?since=x&takeover=1')
    check(status == 400 and answer['code'] == 'INVALID_QUERY', 'an offset is a number', answer)
    check(request('DELETE', f'/pty/{ident}')[0] == 200, 'deleted')
    made = []
    status, answer = request('POST', '/pty')
    while status == 201 and len(made) < 100:
        made.append(answer['session_id'])
        status, answer = request('POST', '/pty')
    check(status == 503 and 50 < len(made) <= 64, 'there is a limit', (len(made), answer))
    check({request('DELETE', f'/pty/{one}')[0] for one in made} == {200}, 'all are deleted')
    check(request('POST', '/pty')[0] == 201, 'and make room')


{'basic': case_basic, 'pipes': case_pipes, 'many': case_many}[sys.argv[2]]()
