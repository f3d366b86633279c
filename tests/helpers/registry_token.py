#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Token server of Debian's docker-registry, and of tests of clients.

usage: registry_token.py --cert PEM --key PEM --log FILE --port-file FILE [--user NAME:PASSWORD] [--refresh TOKEN]
                         [--anonymous] [--mode FILE] [--tls]

GET and POST on any path, as the distribution specification has it. --cert and --key sign (RS256, by openssl; the
registry's rootcertbundle is the same certificate); with --tls they also serve. --mode FILE is read for each request:
    short       tokens that expire at once
    wrong       tokens without any rights;   foreign: of another issuer
    access      only access_token in the answer
    rubbish     no JSON;   huge: a token of a megabyte;   empty: an object without a token
    crlf        a token with a line end in it
    CODE        that status
The log has one line a request: METHOD SERVICE SCOPE USER-or--
"""
import argparse
import base64
import hashlib
import http.server
import json
import os
import re
import socketserver
import ssl
import subprocess
import sys
import time
import urllib.parse

ISSUER, SERVICE = 'osbx-tests', 'registry.test'


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b'=').decode()


class Signer:
    def __init__(self, cert, key):
        self.key = key
        with open(cert, encoding='ascii') as f:
            self.der = ''.join(re.search('-----BEGIN CERTIFICATE-----(.*?)-----END', f.read(), re.S).group(1).split())

    def sign(self, claims):
        header = {'typ': 'JWT', 'alg': 'RS256', 'x5c': [self.der]}
        text = b64(json.dumps(header).encode()) + '.' + b64(json.dumps(claims).encode())
        run = subprocess.run(['openssl', 'dgst', '-sha256', '-sign', self.key], input=text.encode(), capture_output=True, check=True)
        return text + '.' + b64(run.stdout)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, format, *args):
        pass

    def answer(self, code, value):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def mode(self):
        try:
            with open(self.server.args.mode, encoding='ascii') as f:
                return f.read().split()
        except (OSError, TypeError):
            return []

    def who(self, query):
        """Name of the user, '' for nobody, None: refused."""
        args = self.server.args
        if query.get('grant_type') == 'refresh_token':
            return 'refresh' if query.get('refresh_token') == args.refresh else None
        found = re.match(r'Basic (\S+)$', self.headers.get('Authorization') or '')
        if found:
            given = base64.b64decode(found.group(1)).decode()
            return given.split(':')[0] if given == args.user else None
        return '' if args.anonymous else None

    def token(self, scope, mode):
        access = []
        for words in (s.split(':') for s in scope.split()):
            access.append({'type': words[0], 'name': ':'.join(words[1:-1]), 'actions': words[-1].split(',')})
        now = int(time.time())
        claims = {'iss': 'foreign' if 'foreign' in mode else ISSUER, 'sub': '', 'aud': SERVICE, 'nbf': now - 10, 'iat': now, 'exp': now + 300,
                  'jti': hashlib.sha256(os.urandom(8)).hexdigest()[:16], 'access': [] if 'wrong' in mode else access}
        return self.server.signer.sign(claims)

    def serve(self):
        length = int(self.headers.get('Content-Length') or 0)
        text = self.rfile.read(length).decode() if length else urllib.parse.urlsplit(self.path).query
        query = dict(urllib.parse.parse_qsl(text))
        user = self.who(query)
        with open(self.server.args.log, 'a', encoding='utf-8') as f:
            f.write(f"{self.command} {query.get('service', '-')} {query.get('scope', '-')} {user or '-'}\n")
        mode = self.mode()
        if user is None:
            return self.answer(401, {'details': 'incorrect username or password'})
        if mode and mode[0].isdigit():
            return self.answer(int(mode[0]), {'errors': [{'code': 'UNAVAILABLE', 'message': 'so the mode says'}]})
        odd = {'rubbish': b'<html>', 'huge': {'token': 'x' * 1000000}, 'empty': {}, 'crlf': {'token': 'a\r\nX-Evil: 1'}}
        for name, value in odd.items():
            if name in mode:
                return self.answer(200, value)
        token = self.token(query.get('scope', ''), mode)
        value = {'access_token' if 'access' in mode else 'token': token, 'expires_in': 1 if 'short' in mode else 300}
        return self.answer(200, value)

    do_GET = do_POST = serve


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


def main():
    parser = argparse.ArgumentParser()
    for name in ('cert', 'key', 'log', 'port-file'):
        parser.add_argument('--' + name, required=True)
    for name in ('user', 'refresh', 'mode'):
        parser.add_argument('--' + name)
    parser.add_argument('--anonymous', action='store_true')
    parser.add_argument('--tls', action='store_true')
    args = parser.parse_args()
    server = Server(('127.0.0.1', 0), Handler)
    server.args = args
    server.signer = Signer(args.cert, args.key)
    if args.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(args.cert, args.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with open(args.port_file + '.new', 'w', encoding='utf-8') as f:
        f.write(str(server.server_address[1]))
    os.rename(args.port_file + '.new', args.port_file)
    server.serve_forever()


sys.exit(main())
