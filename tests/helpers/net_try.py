#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What can be had from inside a sandbox, one line for each argument: "ARGUMENT: RESULT", and " slow" when what was refused took more
than a second to be so. One that begins with + goes on while the next ones are made.

get URL [at=ADDR] [host=NAME] [sni=NAME]     status of a GET; a body of "host=… sni=… at=…" is shown
kept HOST ADDR HOST2                         two requests over one connection, the second one for another host
upgrade HOST ADDR                            101, an echo, and a request for another host behind it
pieces NAME ADDR N                           a ClientHello in pieces of N bytes; "alert" or "hello" is what comes back
late NAME ADDR                               one that comes after a second and a half
tcp ADDR PORT [TEXT]                         connect, send, read
dns NAME TYPE [at=ADDR] [tcp] [size=N]       rcode, extended error, answers in order
tunnel HOST ADDR                             CONNECT through a server on port 80
do NAME                                      something with the system: see DEEDS
and those of net_datagrams.py
"""
import concurrent.futures
import errno
import os
import socket
import ssl
import struct
import sys
import time

import net_datagrams

WAIT = 40
REFUSED = ('reset', 'refused', 'unreachable', 'eof', 'EPERM', 'EACCES', 'NXDOMAIN', 'noname')


def failure(e):
    if isinstance(e, socket.gaierror):
        return 'noname' if e.errno in (socket.EAI_NONAME, socket.EAI_NODATA) else 'again'
    if isinstance(e, (socket.timeout, TimeoutError)):
        return 'timeout'
    if isinstance(e, ConnectionResetError):
        return 'reset'
    if isinstance(e, ConnectionRefusedError):
        return 'refused'
    if isinstance(e, ssl.SSLError):
        return 'eof' if 'EOF' in str(e) else 'tls'
    if isinstance(e, BrokenPipeError):
        return 'reset'
    if isinstance(e, OSError) and e.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return 'unreachable'
    return errno.errorcode.get(getattr(e, 'errno', None) or 0, type(e).__name__)


def options(words):
    return dict(w.split('=', 1) for w in words if '=' in w), [w for w in words if '=' not in w]


def recv_head(s):
    data = b''
    while b'\r\n\r\n' not in data:
        piece = s.recv(4096)
        if not piece:
            raise ConnectionResetError if not data else EOFError
        data += piece
    head, _, rest = data.partition(b'\r\n\r\n')
    n = 0
    for line in head.split(b'\r\n')[1:]:
        if line.lower().startswith(b'content-length:'):
            n = int(line.split(b':')[1])
    while len(rest) < n:
        piece = s.recv(4096)
        if not piece:
            break
        rest += piece
    return int(head.split()[1]), rest


def request(s, path, host):
    s.sendall(f'GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n'.encode())
    status, body = recv_head(s)
    return f'{status} {body.decode().strip()}'


def tls_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def do_get(url, *words):
    given, _ = options(words)
    scheme, _, rest = url.partition('://')
    where, _, path = rest.partition('/')
    name, port = where, 443 if scheme == 'https' else 80
    if ':' in where and not where.endswith(']'):
        name, port = where.rsplit(':', 1)
    name = name.strip('[]')
    s = socket.create_connection((given.get('at', name), int(port)), timeout=WAIT)
    if scheme == 'https':
        sni = given.get('sni', name)
        s = tls_context().wrap_socket(s, server_hostname=None if sni == '-' else sni)
    return request(s, '/' + path, given.get('host', where))


def do_kept(host, addr, host2):
    s = socket.create_connection((addr, 80), timeout=WAIT)
    first = request(s, '/one', host).split()[0]
    try:
        return f'{first} then ' + request(s, '/two', host2).split()[0]
    except OSError as e:
        return f'{first} then {failure(e)}'


def do_pipelined(host, addr, host2):
    s = socket.create_connection((addr, 80), timeout=WAIT)
    s.sendall(f'POST /one HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\n\r\nhello'
              f'GET /two HTTP/1.1\r\nHost: {host2}\r\n\r\n'.encode())
    data = b''
    try:
        while data.count(b'HTTP/1.1 ') < 2 and (piece := s.recv(4096)):
            data += piece
        return f'{data.count(b"HTTP/1.1 200")} answers'
    except OSError as e:
        return f'{data.count(b"HTTP/1.1 200")} answers, {failure(e)}'


def do_upgrade(host, addr):
    s = socket.create_connection((addr, 80), timeout=WAIT)
    s.sendall(f'GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'.encode())
    status, _ = recv_head(s)
    s.sendall(b'\x81ping')
    return f'{status} {s.recv(5)[1:].decode()}'


def do_smuggle(host, addr, host2):
    """A request for another host behind an upgrade."""
    s = socket.create_connection((addr, 80), timeout=WAIT)
    s.sendall(f'GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'.encode())
    status, _ = recv_head(s)
    s.sendall(f'GET /two HTTP/1.1\r\nHost: {host2}\r\n\r\n'.encode())
    return f'{status} {s.recv(5)[1:].decode()}'


def hello_of(name):
    """A ClientHello as OpenSSL writes it."""
    rx, tx = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = tls_context().wrap_bio(rx, tx, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return tx.read()


def tls_reply(s):
    kind = s.recv(1)
    return {b'\x15': 'alert', b'\x16': 'hello', b'': 'eof'}.get(kind, 'other')


def do_pieces(name, addr, n):
    hello = hello_of(name)
    s = socket.create_connection((addr, 443), timeout=WAIT)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for i in range(0, len(hello), int(n)):
        s.sendall(hello[i:i + int(n)])
        time.sleep(0.002)
    return tls_reply(s)


def do_records(name, addr):
    """The handshake message cut into TLS records of 7 bytes each."""
    body = hello_of(name)[5:]
    s = socket.create_connection((addr, 443), timeout=WAIT)
    for i in range(0, len(body), 7):
        piece = body[i:i + 7]
        s.sendall(b'\x16\x03\x01' + struct.pack('!H', len(piece)) + piece)
    return tls_reply(s)


def do_late(name, addr):
    s = socket.create_connection((addr, 443), timeout=WAIT)
    time.sleep(0.5)
    s.sendall(hello_of(name))
    return tls_reply(s)


def do_tcp(addr, port, text=''):
    s = socket.create_connection((addr.strip('[]'), int(port)), timeout=WAIT)
    if text:
        s.sendall(text.encode())
    data = s.recv(4096)
    return 'eof' if not data else data.decode(errors='replace').strip()[:40]


def do_fragments(addr, port):
    """A datagram larger than any link takes."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1.5)
    s.connect((addr, int(port)))
    s.send(b'x' * 60000)
    return f'{len(s.recv(65536))} bytes'


def do_tunnel(host, addr):
    s = socket.create_connection((addr, 80), timeout=WAIT)
    s.sendall(f'CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n'.encode())
    return str(recv_head(s)[0])


QTYPES = {'A': 1, 'AAAA': 28, 'CNAME': 5, 'TXT': 16, 'HTTPS': 65, 'SVCB': 64, 'MX': 15, 'ANY': 255, 'PTR': 12}
RCODES = {0: 'NOERROR', 1: 'FORMERR', 2: 'SERVFAIL', 3: 'NXDOMAIN', 4: 'NOTIMP', 5: 'REFUSED'}


def read_name(data, at):
    """(name, end): names of an answer may point back."""
    labels, end = [], None
    for _ in range(200):
        n = data[at]
        if n >= 0xc0:
            end = end or at + 2
            at = struct.unpack_from('!H', data, at)[0] & 0x3fff
        elif n == 0:
            return '.'.join(labels), end or at + 1
        else:
            labels.append(data[at + 1:at + 1 + n].decode('latin-1'))
            at += 1 + n
    raise ValueError('name')


def show_record(data, at, rtype, n):
    if rtype == 1:
        return socket.inet_ntop(socket.AF_INET, data[at:at + 4])
    if rtype == 28:
        return socket.inet_ntop(socket.AF_INET6, data[at:at + 16])
    if rtype == 5:
        return 'cname:' + read_name(data, at)[0]
    return f'type{rtype}'


def show_reply(data):
    _, flags, qd, an, ns, ar = struct.unpack_from('!HHHHHH', data)
    at, shown, extended = 12, [], ''
    for _ in range(qd):
        at = read_name(data, at)[1] + 4
    for i in range(an + ns + ar):
        _, at = read_name(data, at)
        rtype, _, ttl, n = struct.unpack_from('!HHIH', data, at)
        at += 10
        if i < an:
            shown.append(show_record(data, at, rtype, n) + (' ttl0' if ttl == 0 and rtype != 5 else ''))
        if rtype == 41 and n >= 6:
            code, length, info = struct.unpack_from('!HHH', data, at)
            if code == 15:
                extended = f' ede={info}'
        at += n
    if len(shown) > 4:
        shown = [f'{len(shown)} records']
    return RCODES.get(flags & 15, str(flags & 15)) + (' truncated' if flags & 0x200 else '') + extended + ''.join(' ' + s for s in shown)


def do_dns(name, qtype, *words):
    given, plain = options(words)
    where = (given.get('at', '192.0.0.1'), 53)
    query = struct.pack('!HHHHHH', 0x1234, 0x0100, 1, 0, 0, 1)
    query += b''.join(bytes([len(label)]) + label.encode() for label in name.split('.') if label) + b'\0' + struct.pack('!HH', QTYPES[qtype], 1)
    query += b'\0' + struct.pack('!HHIH', 41, int(given.get('size', 1232)), 0, 0)
    family = socket.AF_INET6 if ':' in where[0] else socket.AF_INET
    if 'tcp' in plain:
        s = socket.create_connection(where, timeout=WAIT)
        s.sendall(struct.pack('!H', len(query)) + query)
        data, n = b'', 65537
        while len(data) < n:
            piece = s.recv(65536)
            if not piece:
                raise ConnectionResetError
            data += piece
            if len(data) >= 2:
                n = struct.unpack_from('!H', data)[0] + 2
        return show_reply(data[2:])
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(WAIT)
    s.connect(where)
    s.send(query)
    return show_reply(s.recv(65536))


def do_lookup(name, family='0'):
    """As programs look names up, through the C library."""
    found = {a[4][0] for a in socket.getaddrinfo(name, None, family=int(family), type=socket.SOCK_STREAM)}
    return ' '.join(sorted(found))


# Things that would lead around the policy.

def deed_raw():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


def deed_packet():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)


def deed_ping():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    s.settimeout(1)
    s.connect(('203.0.113.10', 0))
    s.send(b'\x08\0\0\0\0\0\0\0' + b'x' * 48)
    return 'answer ' + str(len(s.recv(100)))


def netlink(family, kind, flags, body):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, family)
    s.bind((0, 0))
    s.settimeout(2)
    s.send(struct.pack('=IHHII', 16 + len(body), kind, flags, 1, 0) + body)
    data = s.recv(65536)
    kind, = struct.unpack_from('=H', data, 4)
    if kind == 2:
        code, = struct.unpack_from('=i', data, 16)
        if code:
            raise OSError(-code, os.strerror(-code))
    return kind


def deed_route():
    """ip route add default dev lo"""
    attr = struct.pack('=HHI', 8, 4, 1)
    netlink(0, 24, 0x605, struct.pack('=BBBBBBBBI', 2, 0, 0, 0, 254, 3, 0, 1, 0) + attr)


def deed_link():
    """ip link set lo down"""
    netlink(0, 16, 5, struct.pack('=BxHiII', 0, 0, 1, 0, 1))


def deed_nft():
    """nft delete table inet osbx"""
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    s.bind((0, 0))
    s.settimeout(2)

    def message(kind, flags, body, family=1):
        return struct.pack('=IHHII', 20 + len(body), kind, flags, 1, 0) + struct.pack('=BBH', family, 0, 0) + body

    table = struct.pack('=HH', 9, 1) + b'osbx\0\0\0\0'
    begin = struct.pack('=IHHII', 20, 16, 1, 0, 0) + struct.pack('!BBH', 0, 0, 10)
    end = struct.pack('=IHHII', 20, 17, 1, 2, 0) + struct.pack('!BBH', 0, 0, 10)
    s.send(begin + message(0xa02, 5, table) + end)
    data = s.recv(65536)
    code, = struct.unpack_from('=i', data, 16)
    if code:
        raise OSError(-code, os.strerror(-code))


def ask_private(s):
    s.settimeout(WAIT)
    s.connect(('10.99.0.5', 80))
    s.sendall(b'GET / HTTP/1.1\r\nHost: private.test\r\n\r\n')
    if not s.recv(10):
        raise ConnectionResetError


def deed_mark():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, 36, 1)  # SO_MARK
    ask_private(s)


def deed_device():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'lo\0')
    ask_private(s)


def deed_transparent():
    s = socket.socket()
    s.setsockopt(socket.SOL_IP, 19, 1)  # IP_TRANSPARENT
    s.bind(('10.99.0.6', 0))
    ask_private(s)


def deed_netns():
    """A network namespace of its own (in a user namespace) has no way out either."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x40000000) < 0 and libc.unshare(0x10000000 | 0x40000000) < 0:
        raise OSError(ctypes.get_errno(), 'unshare')
    s = socket.socket()
    s.settimeout(WAIT)
    s.connect(('203.0.113.10', 80))


def deed_netd_port():
    """Nobody gets at the policy without its token."""
    s = socket.create_connection(('127.0.0.1', 18080), timeout=WAIT)
    s.sendall(b'PUT /policy HTTP/1.1\r\nHost: x\r\nContent-Length: 25\r\n\r\n{"defaultAction":"allow"}')
    status, _ = recv_head(s)
    return str(status)


def deed_listeners():
    """What listens on the loopback and is not the workload's: none takes a request by another way than it is meant."""
    found, answers = [], []
    for name, family in (('tcp', socket.AF_INET), ('tcp6', socket.AF_INET6)):
        with open(f'/proc/net/{name}', encoding='ascii') as f:
            for words in (line.split() for line in f.readlines()[1:]):
                port = int(words[1].rsplit(':', 1)[1], 16)
                if words[3] == '0A' and port not in (18080, 44772):
                    found.append(('::1' if family == socket.AF_INET6 else '127.0.0.1', port))
    for where in found:
        for request_bytes in (b'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n', hello_of('allowed.test')):
            try:
                s = socket.create_connection(where, timeout=3)
                s.sendall(request_bytes)
                answers.append(s.recv(10))
            except OSError:
                answers.append(b'')
    return f'{"some" if found else "no"} listeners, {sum(bool(a) for a in answers)} answers'


def deed_kill_netd():
    """No process of it is seen here."""
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            try:
                with open(f'/proc/{entry}/cmdline', 'rb') as f:
                    if f.read().split(b'\0')[1:2] == [b'netd']:
                        return 'seen'
            except OSError:
                pass
    return 'not seen'


def do_do(name):
    return globals()['deed_' + name]() or 'done'


def attempt(argument, again=True):
    words = argument.lstrip('+').split()
    begin = time.monotonic()
    try:
        made = globals().get('do_' + words[0]) or getattr(net_datagrams, 'do_' + words[0])
        result = made(*words[1:])
    except Exception as e:  # pylint: disable=broad-except
        result = failure(e)
    took = time.monotonic() - begin
    slow = result.split()[0] in REFUSED and took > 1
    if slow and took < 4 and again:
        return attempt(argument, False)  # a machine that is busy
    return argument.lstrip('+') + ': ' + result + (' slow' if slow else '')


def main(arguments):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        later = []
        for argument in arguments:
            if argument.startswith('+'):
                later.append(pool.submit(attempt, argument))
            else:
                print(attempt(argument), flush=True)
        for future in later:
            print(future.result(), flush=True)


if __name__ == '__main__':
    main(sys.argv[1:])
