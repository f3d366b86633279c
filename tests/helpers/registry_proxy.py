#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A forward proxy that knows every name as this machine.

usage: registry_proxy.py --user NAME:PASSWORD --log FILE --port-file FILE

The log has one line a request: METHOD TARGET USER, or - for one that was refused.
"""
import argparse
import base64
import http.client
import http.server
import os
import select
import socket
import socketserver
import sys
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, format, *args):
        pass

    def is_allowed(self):
        wanted = 'Basic ' + base64.b64encode(self.server.user.encode()).decode()
        allowed = self.headers.get('Proxy-Authorization') == wanted
        with open(self.server.log_path, 'a', encoding='utf-8') as f:
            f.write(f"{self.command} {self.path} {self.server.user.split(':')[0] if allowed else '-'}\n")
        if not allowed:
            self.send_response(407)
            self.send_header('Proxy-Authenticate', 'Basic realm="tests"')
            self.send_header('Content-Length', '0')
            self.end_headers()
        return allowed

    def do_CONNECT(self):
        if not self.is_allowed():
            return
        self.close_connection = True
        with socket.create_connection(('127.0.0.1', int(self.path.rsplit(':', 1)[1]))) as far:
            self.send_response(200)
            self.end_headers()
            ends = {self.connection: far, far: self.connection}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    ends[end].sendall(data)

    def do_GET(self):
        if not self.is_allowed():
            return
        place = urllib.parse.urlsplit(self.path)
        far = http.client.HTTPConnection('127.0.0.1', place.port or 80, timeout=30)
        far.request('GET', place.path, headers={n: v for n, v in self.headers.items() if not n.lower().startswith('proxy-')})
        reply = far.getresponse()
        body = reply.read()
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ('connection', 'transfer-encoding', 'content-length'):
                self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


def main():
    parser = argparse.ArgumentParser()
    for name in ('user', 'log', 'port-file'):
        parser.add_argument('--' + name, required=True)
    args = parser.parse_args()
    server = Server(('127.0.0.1', 0), Handler)
    server.user, server.log_path = args.user, args.log
    with open(args.port_file + '.new', 'w', encoding='utf-8') as f:
        f.write(str(server.server_address[1]))
    os.rename(args.port_file + '.new', args.port_file)
    server.serve_forever()


sys.exit(main())
