#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A registry that misbehaves: a proxy in front of a good one, by rules.

usage: registry_flaky.py --upstream HOST:PORT --rules FILE --log FILE --port-file FILE
                         [--listen ADDRESS] [--cert PEM --key PEM] [--seed N]

FILE of rules is read anew for each request; the first rule that fits is used, "xN" at most N times:
    METHOD PATH-REGEX ACTION [ARGUMENT] [xN]
Actions (offsets count from the start of the whole object, also when a Range is asked for):
    pass                        nothing
    cut N | cut-random N        close the connection behind N bytes of the answer, or at random below N
    stall N                     send N bytes of the answer, then nothing
    slow N                      N bytes a second
    corrupt N                   flip a bit of byte N
    status CODE[,NAME=VALUE…]   refuse, with these header fields (@N: the date in N seconds), and an errors[] body
    body CODE,FILE              answer with a file
    redirect URL                307 to URL + path;  loop: 307 to itself;  location TEXT: 307 to TEXT itself
    length N                    another Content-Length;  more N: N bytes too many, without a length
    type TEXT, digest TEXT      other header fields
    norange                     200 whatever Range says;  badrange: a 206 that begins elsewhere;  416: that
    drop                        close without an answer
    garbage                     an answer that is not HTTP
The log has one line a request: METHOD PATH RANGE-or-- AUTHORIZATION-SCHEME-or-- HOST REQUESTS-AT-ONCE
"""
import argparse
import http.client
import http.server
import os
import random
import re
import socket
import socketserver
import ssl
import sys
import threading
import time

CHUNK = 16384


class Rules:
    """The rules file and how often each of its lines was used: a new file begins anew."""

    def __init__(self, path):
        self.path = path
        self.used = {}
        self.version = None
        self.lock = threading.Lock()

    def find(self, method, path):
        with self.lock, open(self.path, encoding='utf-8') as f:
            status = os.fstat(f.fileno())
            if self.version != (status.st_ino, status.st_mtime_ns):
                self.version, self.used = (status.st_ino, status.st_mtime_ns), {}
            for line in f.read().split('\n'):
                words = line.split()
                if len(words) < 3 or words[0].startswith('#'):
                    continue
                limit = int(words.pop()[1:]) if re.fullmatch(r'x\d+', words[-1]) else None
                if words[0] not in (method, '*') or not re.search(words[1], path):
                    continue
                if limit is not None:
                    if self.used.get(line, 0) >= limit:
                        continue
                    self.used[line] = self.used.get(line, 0) + 1
                return words[2], ' '.join(words[3:])
        return 'pass', ''


class Gone(Exception):
    pass


class Body:
    """Sends the answer's bytes, badly if so told."""

    def __init__(self, handler, action, argument, start):
        self.handler, self.action, self.argument = handler, action, argument
        self.sent = 0
        self.at = start
        self.stop = None
        if action in ('cut', 'stall'):
            self.stop = int(argument)
        elif action == 'cut-random':
            self.stop = handler.server.random.randrange(int(argument))

    def send(self, data):
        if self.action == 'corrupt' and self.at <= int(self.argument) < self.at + len(data):
            at = int(self.argument) - self.at
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
        self.at += len(data)
        if self.stop is not None and self.sent + len(data) >= self.stop:
            self.handler.wfile.write(data[:self.stop - self.sent])
            self.handler.wfile.flush()
            while self.action == 'stall' and not self.handler.is_gone():
                time.sleep(0.05)
            raise Gone
        if self.action == 'slow':
            time.sleep(len(data) / int(self.argument))
        self.handler.wfile.write(data)
        self.sent += len(data)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, format, *args):
        pass

    def is_gone(self):
        try:
            self.connection.settimeout(0.01)
            return self.connection.recv(1) == b''
        except (TimeoutError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True

    def note(self):
        scheme = (self.headers.get('Authorization') or '-').split()[0]
        line = f"{self.command} {self.path} {self.headers.get('Range', '-')} {scheme} {self.headers.get('Host')} {self.server.busy}\n"
        with open(self.server.log_path, 'a', encoding='utf-8') as f:
            f.write(line)

    def answer(self, code, headers, body=b''):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        if not any(n.lower() == 'content-length' for n, _ in headers):
            self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, argument):
        words = argument.split(',')
        fields = [w.split('=', 1) for w in words[1:]]
        fields = [(n, self.date_time_string(time.time() + int(v[1:])) if v.startswith('@') else v) for n, v in fields]
        body = b'{"errors":[{"code":"UNKNOWN","message":"so the rules say"}]}'
        self.answer(int(words[0]), fields, body)

    def at_once(self, action, argument):
        """Actions that need no upstream. True when one was taken."""
        if action == 'status':
            self.refuse(argument)
        elif action == 'body':
            code, path = argument.split(',')
            with open(path, 'rb') as f:
                self.answer(int(code), [('Content-Type', 'application/json')], f.read())
        elif action in ('redirect', 'loop', 'location'):
            place = {'redirect': argument + self.path, 'loop': self.path, 'location': argument}[action]
            self.answer(307, [('Location', place)])
        elif action == '416':
            self.answer(416, [('Content-Range', 'bytes */1')])
        elif action == 'garbage':
            self.wfile.write(b'220 mail.example ESMTP\r\n')
            raise Gone
        elif action == 'drop':
            raise Gone
        else:
            return False
        return True

    def forward(self, action, argument):
        asked = self.headers.get('Range')
        headers = {n: v for n, v in self.headers.items() if n.lower() not in ('connection', 'host')}
        headers['Host'] = self.headers.get('Host', '')
        if action in ('norange', 'badrange', 'more', 'length'):
            headers.pop('Range', None)
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=60)
        length = int(self.headers.get('Content-Length') or 0)
        upstream.request(self.command, self.path, self.rfile.read(length) if length else None, headers)
        reply = upstream.getresponse()
        try:
            self.relay(reply, action, argument, asked)
        finally:
            upstream.close()

    def relay(self, reply, action, argument, asked):
        hidden = ('connection', 'transfer-encoding', 'date', 'server')
        headers = [(n, v) for n, v in reply.getheaders() if n.lower() not in hidden]
        code, start = reply.status, 0
        found = re.match(r'bytes (\d+)-', reply.headers.get('Content-Range') or '')
        if found:
            start = int(found.group(1))
        if action == 'badrange' and asked:
            code = 206
            headers.append(('Content-Range', 'bytes 1-2/3'))
        replaced = {'type': 'content-type', 'digest': 'docker-content-digest', 'length': 'content-length'}.get(action)
        if replaced:
            headers = [(n, v) for n, v in headers if n.lower() != replaced] + [(replaced, argument)]
        if action == 'more':
            headers = [(n, v) for n, v in headers if n.lower() != 'content-length'] + [('Connection', 'close')]
            self.close_connection = True
        self.send_response_only(code)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command == 'HEAD':
            return
        body = Body(self, action, argument, start)
        for data in iter(lambda: reply.read(CHUNK), b''):
            body.send(data)
        if action == 'more':
            body.send(bytes(int(argument)))
        if action == 'length':
            self.close_connection = True

    def serve(self):
        with self.server.lock:
            self.server.busy += 1
        self.note()
        action, argument = self.server.rules.find(self.command, self.path)
        try:
            if not self.at_once(action, argument):
                self.forward(action, argument)
        except (Gone, OSError):
            self.close_connection = True
            self.wfile = open(os.devnull, 'wb')
        finally:
            with self.server.lock:
                self.server.busy -= 1

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = serve


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64
    context = None
    lock = threading.Lock()
    busy = 0

    def get_request(self):
        connection, address = super().get_request()
        if self.context:
            connection.settimeout(10)
        return connection, address

    def finish_request(self, request, client_address):
        if self.context:
            request = self.context.wrap_socket(request, server_side=True)
            request.settimeout(None)
        elif request.recv(1, socket.MSG_PEEK) == b'\x16':
            return  # TLS to a server without: as most servers do, it hangs up
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        pass


class Server6(Server):
    address_family = socket.AF_INET6


def main():
    parser = argparse.ArgumentParser()
    for name in ('upstream', 'rules', 'log', 'port-file'):
        parser.add_argument('--' + name, required=True)
    parser.add_argument('--listen', default='127.0.0.1')
    parser.add_argument('--cert')
    parser.add_argument('--key')
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    server = (Server6 if ':' in args.listen else Server)((args.listen, 0), Handler)
    server.upstream = args.upstream
    server.rules = Rules(args.rules)
    server.log_path = args.log
    server.random = random.Random(args.seed)
    if args.cert:
        server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.context.load_cert_chain(args.cert, args.key)
    with open(args.port_file + '.new', 'w', encoding='utf-8') as f:
        f.write(str(server.server_address[1]))
    os.rename(args.port_file + '.new', args.port_file)
    server.serve_forever()


sys.exit(main())
