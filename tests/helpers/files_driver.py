#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uploads to the execution API as clients send them, which curl cannot. One line "pass WHAT" or "FAIL WHAT: why" each.

usage: files_driver.py SOCKET
"""
import http.client
import json
import os
import socket
import sys
import time
import urllib.parse

SOCK = sys.argv[1]
DIR = '/tmp/driver'


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(120)
        self.sock.connect(SOCK)


def request(method, path, body=None, headers=None):
    connection = Connection('x')
    connection.request(method, path, body=body, headers=headers or {}, encode_chunked='Transfer-Encoding' in (headers or {}))
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, data, answer


def check(what, got, expected):
    if got == expected:
        print(f'pass {what}')
    else:
        print(f'FAIL {what}: {got!r:.200}, expected {expected!r:.200}')


def download(path):
    status, data, _ = request('GET', '/files/download?' + urllib.parse.urlencode({'path': path}))
    return data if status == 200 else status


def names(folder=DIR):
    status, data, _ = request('GET', '/directories/list?' + urllib.parse.urlencode({'path': folder, 'depth': 9}))
    return [e['path'][len(folder) + 1:] for e in json.loads(data)] if status == 200 else status


def part(boundary, disposition, kind, data):
    return b'--%s\r\nContent-Disposition: form-data; %s\r\nContent-Type: %s\r\n\r\n%s\r\n' % (
        boundary, disposition.encode(), kind.encode(), data)


def metadata(path, **more):
    return json.dumps({'path': path, 'owner': None, 'group': None, 'mode': None, **more}).encode()


def meta_part(boundary, path, **more):
    return part(boundary, 'name="metadata"; filename="metadata"', 'application/json', metadata(path, **more))


def file_part(boundary, name, data, kind='application/octet-stream'):
    return part(boundary, f'name="file"; filename="{name}"', kind, data)


def post(parts, boundary=b'opensandbox_0123456789abcdef_1700000000', chunk=65536, content_type=None, end=True):
    """Chunked, in pieces of a size, as the direct mode of the Python SDK does it."""
    body = b''.join(parts) + (b'--%s--\r\n' % boundary if end else b'')
    kind = content_type or f'multipart/form-data; boundary={boundary.decode()}'
    pieces = (body[i:i + chunk] for i in range(0, len(body), chunk))
    status, data, _ = request('POST', '/files/upload', pieces, {'Content-Type': kind, 'Transfer-Encoding': 'chunked'})
    return status, (json.loads(data)['code'] if data else '')


def main():
    b = b'opensandbox_0123456789abcdef_1700000000'
    text = 'zwölf\r\n'.encode()
    blob = os.urandom(300000)
    got = post([meta_part(b, DIR + '/a.txt', mode=644), file_part(b, 'a.txt', text, 'text/plain; charset=utf-8'),
                meta_part(b, DIR + '/deep/er/b.bin', mode=600), file_part(b, 'b.bin', blob)])
    check('two files in one chunked form', (got, download(DIR + '/a.txt'), download(DIR + '/deep/er/b.bin')), ((200, ''), text, blob))
    for size in (1, 7, 4096):
        got = post([meta_part(b, DIR + '/small'), file_part(b, 'small', text * 50)], chunk=size)
        check(f'chunks of {size}', (got, download(DIR + '/small')), ((200, ''), text * 50))
    hard = f'\r\n--{b.decode()[:-1]}\r\n--'.encode() + b'\r\n' * 5
    got = post([meta_part(b, DIR + '/hard'), file_part(b, 'hard', hard)], chunk=3)
    check('content that resembles a boundary', (got, download(DIR + '/hard')), ((200, ''), hard))
    got = post([meta_part(b, DIR + '/empty'), file_part(b, 'x', b'')])
    check('an empty file', (got, download(DIR + '/empty')), ((200, ''), b''))
    got = post([file_part(b, 'x', b'first'), meta_part(b, DIR + '/1'), file_part(b, 'x', b'second'), meta_part(b, DIR + '/2')])
    check('files before their metadata', (got, download(DIR + '/1'), download(DIR + '/2')), ((200, ''), b'first', b'second'))
    got = post([meta_part(b, DIR + '/3'), meta_part(b, DIR + '/4'), file_part(b, 'x', b'three'), file_part(b, 'x', b'four')])
    check('all metadata first', (got, download(DIR + '/3'), download(DIR + '/4')), ((200, ''), b'three', b'four'))
    parts = []
    for i in range(300):
        parts += [meta_part(b, f'{DIR}/many/{i}'), file_part(b, str(i), str(i).encode() * 100)]
    got = post(parts)
    check('300 files', (got, len(names(DIR + '/many')), download(DIR + '/many/299')), ((200, ''), 300, b'299' * 100))
    got = post([part(b, 'name=metadata; filename=metadata; filename*=utf-8\'\'metadata', 'application/json', metadata(DIR + '/cs')),
                part(b, 'name=file; filename=x; filename*=utf-8\'\'x', 'application/octet-stream', b'sharp')],
               content_type=f'multipart/form-data; boundary="{b.decode()}"')
    check('unquoted parameters and a quoted boundary', (got, download(DIR + '/cs')), ((200, ''), b'sharp'))
    got = post([part(b, 'name="note"', 'text/plain', b'ignored'), meta_part(b, DIR + '/5'), file_part(b, 'x', b'five')])
    check('other fields are ignored', (got, download(DIR + '/5')), ((200, ''), b'five'))

    # As many at once as one client of the SDKs has connections, all in the middle of a file.
    waiting = []
    for i in range(100):
        form = meta_part(b, f'{DIR}/at-once/{i}') + file_part(b, 'x', blob) + b'--%s--\r\n' % b
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(120)
        s.connect(SOCK)
        s.sendall(f'POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary={b.decode()}\r\nContent-Length: {len(form)}\r\n\r\n'.encode() + form[:1000])
        waiting.append((s, form[1000:]))
    statuses = []
    for s, rest in waiting:
        s.sendall(rest)
        statuses.append(s.recv(4096)[:12])
        s.close()
    check('100 uploads at once', (statuses, len(names(DIR + '/at-once'))), ([b'HTTP/1.1 200'] * 100, 100))

    before = names()
    check('no metadata', post([file_part(b, 'x', b'x')]), (400, 'INVALID_FILE_METADATA'))
    check('no parts', post([]), (400, 'INVALID_FILE_METADATA'))
    check('metadata without a file name is not seen', post([part(b, 'name="metadata"', 'application/json', metadata(DIR + '/no1')),
                                                          file_part(b, 'x', b'x')]), (400, 'INVALID_FILE_METADATA'))
    check('no file', post([meta_part(b, DIR + '/no2')]), (400, 'INVALID_FILE_CONTENT'))
    check('counts differ', post([meta_part(b, DIR + '/no3'), file_part(b, 'x', b'x'), file_part(b, 'y', b'y')]), (400, 'INVALID_FILE'))
    check('counts differ the other way', post([meta_part(b, DIR + '/no4'), file_part(b, 'x', b'x'), meta_part(b, DIR + '/no5')]), (400, 'INVALID_FILE'))
    for what, data in (('no JSON', b'{'), ('an array', b'[]'), ('no path', b'{}'), ('an empty path', metadata('')), ('a bad mode', metadata(DIR + '/no', mode=999)),
                       ('more than 64 KiB', metadata(DIR + '/no6', owner='x' * 70000))):
        got = post([part(b, 'name="metadata"; filename="metadata"', 'application/json', data), file_part(b, 'x', b'x')])
        check(f'metadata: {what}', got, (400, 'INVALID_FILE_METADATA'))
    check('no end of the form', post([meta_part(b, DIR + '/new/no7'), file_part(b, 'x', b'x')], end=False), (400, 'INVALID_FILE'))
    check('another media type', post([meta_part(b, DIR + '/no8')], content_type='application/json'), (400, 'INVALID_FILE'))
    check('no boundary', post([meta_part(b, DIR + '/no9')], content_type='multipart/form-data'), (400, 'INVALID_FILE'))
    check('what was refused left nothing', names(), before)

    # The peer goes in the middle of a file.
    for how in ('chunked', 'length'):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.connect(SOCK)
        begin = meta_part(b, f'{DIR}/cut-{how}/x') + file_part(b, 'x', blob)[:-100]
        head = f'POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary={b.decode()}\r\n'.encode()
        if how == 'chunked':
            s.sendall(head + b'Transfer-Encoding: chunked\r\n\r\n%x\r\n%s' % (len(begin) + 9, begin))
        else:
            s.sendall(head + b'Content-Length: %d\r\n\r\n%s' % (len(begin) + 500, begin))
        # Others see nothing of it meanwhile, but perhaps a name of our own.
        check(f'{how}: nothing is there before the end', download(f'{DIR}/cut-{how}/x'), 404)
        s.close()
        for _ in range(200):
            if names() == before:
                break
            time.sleep(0.05)
        check(f'{how}: what is cut short leaves nothing', names(), before)


main()
