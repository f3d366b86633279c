#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of a published port.

usage: publish_client.py echo ADDR PORT BYTES    send so many bytes, expect them back, with a half-close
       publish_client.py tail ADDR PORT          print how many bytes come until the end
       publish_client.py many ADDR PORT N        N connections at once, a line each
       publish_client.py reset ADDR PORT         print how a connection without a listener inside ends
       publish_client.py serve PORT              echo what comes, on all addresses of the sandbox
       publish_client.py wait ADDR PORT FILE     connect, send a line, write FILE, print what comes back
"""
import hashlib
import socket
import socketserver
import sys
import threading


def connect(addr, port):
    return socket.create_connection((addr, int(port)), timeout=30)


def echo(addr, port, n):
    s = connect(addr, port)
    block = bytes(range(256)) * 256
    want, got, have = hashlib.sha256(), hashlib.sha256(), 0

    def send():
        left = int(n)
        while left:
            piece = block[:min(left, len(block))]
            s.sendall(piece)
            want.update(piece)
            left -= len(piece)
        s.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    sender.start()
    while data := s.recv(1 << 20):
        got.update(data)
        have += len(data)
    sender.join()
    print(have, 'same' if want.digest() == got.digest() else 'other')


def tail(addr, port):
    s, n = connect(addr, port), 0
    while data := s.recv(1 << 16):
        n += len(data)
    print(n)


def many(addr, port, n):
    sockets = [connect(addr, port) for _ in range(int(n))]
    for i, s in enumerate(sockets):
        s.sendall(b'line %d\n' % i)
    good = sum(s.makefile('rb').readline() == b'line %d\n' % i for i, s in enumerate(sockets))
    print(good)


def reset(addr, port):
    try:
        print(connect(addr, port).recv(1))
    except ConnectionResetError:
        print('reset')


def wait(addr, port, path):
    s = connect(addr, port)
    s.sendall(b'ping\n')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('sent\n')
    print(s.makefile('rb').readline().decode().strip())


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(1 << 16):
            self.request.sendall(data)


def serve(port):
    server = socketserver.ThreadingTCPServer
    server.request_queue_size = 1000
    server(('0.0.0.0', int(port)), Echo).serve_forever()


if __name__ == '__main__':
    {'echo': echo, 'tail': tail, 'many': many, 'reset': reset, 'serve': serve, 'wait': wait}[sys.argv[1]](*sys.argv[2:])
