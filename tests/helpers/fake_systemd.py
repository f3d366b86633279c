#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The part of systemd's manager that osbx speaks to, on a socket of its own (as /run/systemd/private).

usage: fake_systemd.py SOCKET CGROUP-DIR [failed|refuse|silent]

StartTransientUnit makes CGROUP-DIR/NAME, marks it as delegated, moves the pids there and says that the job is done. Each
call is one line on standard output, with the properties in the order they came.
"""
import os
import socket
import struct
import sys


class Reader:
    """Values of a D-Bus message body, little endian."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def align(self, n):
        self.at = (self.at + n - 1) // n * n

    def u32(self):
        self.align(4)
        self.at += 4
        return struct.unpack_from('<I', self.data, self.at - 4)[0]

    def string(self):
        n = self.u32()
        self.at += n + 1
        return self.data[self.at - n - 1:self.at - 1].decode()

    def signature(self):
        n = self.data[self.at]
        self.at += n + 2
        return self.data[self.at - n - 1:self.at - 1].decode()

    def value(self, kind):
        if kind in 'so':
            return self.string()
        if kind == 'g':
            return self.signature()
        if kind in 'ub':
            return self.u32()
        if kind == 'au':
            return [self.u32() for _ in range(self.u32() // 4)]
        raise ValueError(kind)


def put_string(s):
    return struct.pack('<I', len(s)) + s.encode() + b'\0'


def pad(data, n):
    return data + b'\0' * (-len(data) % n)


def message(kind, serial, fields, body=b''):
    head = b''
    for code, sig, value in fields:
        head = pad(head, 8) + bytes([code, 1]) + sig.encode() + b'\0'
        if sig == 'u':
            head = pad(head, 4) + struct.pack('<I', value)
        elif sig == 'g':
            head += bytes([len(value)]) + value.encode() + b'\0'
        else:
            head = pad(head, 4) + put_string(value)
    return pad(struct.pack('<cBBBII', b'l', kind, 1, 1, len(body), serial) + struct.pack('<I', len(head)) + head, 8) + body


class Connection:
    def __init__(self, sock, cgroup, mode):
        self.sock, self.cgroup, self.mode = sock, cgroup, mode
        self.data = b''
        self.serial = 1

    def more(self):
        got = self.sock.recv(65536)
        if not got:
            raise EOFError
        self.data += got

    def authenticate(self):
        answers = {'AUTH EXTERNAL': 'DATA', 'DATA': 'OK 0123456789abcdef0123456789abcdef',
                   'NEGOTIATE_UNIX_FD': 'AGREE_UNIX_FD'}
        while True:
            while b'\r\n' not in self.data:
                self.more()
            line, _, self.data = self.data.partition(b'\r\n')
            line = line.lstrip(b'\0').decode()
            if line == 'BEGIN':
                return
            if line.startswith('AUTH EXTERNAL '):
                line = 'DATA'
            self.sock.sendall((answers[line] + '\r\n').encode())

    def receive(self):
        while len(self.data) < 16:
            self.more()
        body_n, serial, head_n = struct.unpack_from('<III', self.data, 4)
        total = 16 + (head_n + 7) // 8 * 8 + body_n
        while len(self.data) < total:
            self.more()
        raw, self.data = self.data[:total], self.data[total:]
        r, fields = Reader(raw[:16 + head_n]), {}
        r.at = 16
        while r.at < 16 + head_n:
            r.align(8)
            if r.at >= 16 + head_n:
                break
            r.at += 1
            code = raw[r.at - 1]
            fields[code] = r.value(r.signature())
        return serial, fields, Reader(raw[total - body_n:])

    def send(self, kind, fields, body=b''):
        self.serial += 1
        self.sock.sendall(message(kind, self.serial, fields, body))

    def start(self, serial, body):
        name, mode = body.string(), body.string()
        n = body.u32()
        body.align(8)
        end, shown, pids = body.at + n, [], []
        while body.at < end:
            body.align(8)
            key = body.string()
            value = body.value(body.signature())
            if key == 'PIDs':
                pids = value
                value = len(value)
            shown.append(f'{key}={value}')
        print('StartTransientUnit', name, mode, *shown, flush=True)
        if self.mode == 'silent':
            return
        if self.mode == 'refuse':
            self.send(3, [(5, 'u', serial), (4, 's', 'org.freedesktop.DBus.Error.AccessDenied'), (8, 'g', 's')],
                      put_string('Interactive authentication required.'))
            return
        job = '/org/freedesktop/systemd1/job/7'
        self.send(2, [(5, 'u', serial), (8, 'g', 'o')], put_string(job))
        if self.mode != 'failed':
            path = os.path.join(self.cgroup, name)
            os.mkdir(path)
            os.setxattr(path, 'user.delegate', b'1')
            for pid in pids:
                with open(os.path.join(path, 'cgroup.procs'), 'w', encoding='ascii') as f:
                    f.write(str(pid))
        text = struct.pack('<I', 7) + put_string(job)
        text = pad(text, 4) + put_string(name)
        text = pad(text, 4) + put_string('failed' if self.mode == 'failed' else 'done')
        self.send(4, [(1, 'o', '/org/freedesktop/systemd1'), (2, 's', 'org.freedesktop.systemd1.Manager'),
                      (3, 's', 'JobRemoved'), (8, 'g', 'uoss')], text)

    def serve(self):
        self.authenticate()
        while True:
            serial, fields, body = self.receive()
            if fields.get(3) == 'StartTransientUnit':
                self.start(serial, body)
            else:
                print(fields.get(3), flush=True)
                self.send(2, [(5, 'u', serial)])


def main():
    path, cgroup = sys.argv[1:3]
    mode = sys.argv[3] if len(sys.argv) > 3 else ''
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(8)
    print('listening', flush=True)
    while True:
        sock = server.accept()[0]
        try:
            Connection(sock, cgroup, mode).serve()
        except (EOFError, ConnectionError):
            sock.close()


main()
