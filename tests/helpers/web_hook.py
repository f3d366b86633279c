#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A web hook at 127.0.0.1: web_hook.py LOG STATUS... answers with these, one after the other, then always with the last ("hang": never).
Prints its port; LOG gets each body, a line."""
import http.server
import sys
import time

log, statuses = sys.argv[1], sys.argv[2:]


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length'])).decode()
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        with open(log, 'a', encoding='utf-8') as f:
            f.write(f'{status} {self.headers["Content-Type"]} {body}\n')
        if status == 'hang':
            time.sleep(60)
        self.send_response(int(status))
        self.send_header('Location', '/elsewhere')
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Hook)
print(server.server_port, flush=True)
server.serve_forever()
