#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""netd alone: this is its keeper, the outside world (a resolver and servers), and the programs of the sandbox.

usage: netd_keeper.py OSBX      TAP without a plan; needs user and network namespaces, nothing else
"""
import array
import ctypes
import errno
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

BEGIN, RESOLVERS, READY, ERROR, DIAL, DIALED, POLICY, SAVED, DENIED = range(9)
TOKEN = 'secret-token'
LIMIT = 30
libc = ctypes.CDLL(None, use_errno=True)


def check(good, text, note=''):
    print(('ok ' if good else 'not ok ') + text)
    if not good and note != '':
        print('# ' + repr(note))
    sys.stdout.flush()


def name_wire(name):
    return b''.join(bytes([len(p)]) + p.encode() for p in name.rstrip('.').split('.')) + b'\0'


def question(name, kind, ident=0x1234, edns=True):
    head = struct.pack('>HHHHHH', ident, 0x0100, 1, 0, 0, 1 if edns else 0)
    return head + name_wire(name) + struct.pack('>HH', kind, 1) + (b'\0\0\x29\x10\0\0\0\0\0\0\0' if edns else b'')


def read_name(m, at):
    parts, end = [], None
    while m[at]:
        if m[at] >= 192:
            end = end or at + 2
            at = (m[at] & 63) << 8 | m[at + 1]
            continue
        parts.append(m[at + 1:at + 1 + m[at]].decode())
        at += 1 + m[at]
    return '.'.join(parts), end or at + 1


class Answer:
    """rcode, addresses (text), ttls, the text of an extended error, the TC bit"""

    def __init__(self, m):
        flags, qn, an, ns, ar = struct.unpack('>HHHHH', m[2:12])
        self.rcode, self.tc, self.addrs, self.ttls, self.ede, self.ede_code = flags & 15, bool(flags & 0x200), [], [], '', 0
        at = 12
        for _ in range(qn):
            at = read_name(m, at)[1] + 4
        for _ in range(an + ns + ar):
            at = read_name(m, at)[1]
            kind, _, ttl, n = struct.unpack('>HHIH', m[at:at + 10])
            data = m[at + 10:at + 10 + n]
            at += 10 + n
            if kind in (1, 28):
                self.addrs.append(socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, data))
                self.ttls.append(ttl)
            if kind == 41 and data[:2] == b'\0\x0f':
                self.ede_code, self.ede = struct.unpack('>H', data[4:6])[0], data[6:].decode()


class World:
    """An upstream resolver and servers on the machine's loopback; netd is told that they are elsewhere."""

    def __init__(self):
        self.asked = []
        self.hits = []
        self.names = {}
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(('127.0.0.1', 0))
        self.tcp = socket.create_server(('127.0.0.1', self.udp.getsockname()[1]))
        self.echo = self.server(self.echo_one)
        self.http = self.server(self.http_one)
        self.ssh = self.server(self.ssh_one)
        self.flood = self.server(self.flood_one)
        self.at = {80: self.http, 443: self.echo, 22: self.ssh, 7: self.echo, 9: self.flood, 8443: self.echo}
        for f in (self.dns_udp, self.dns_tcp):
            threading.Thread(target=f, daemon=True).start()

    def server(self, one):
        s = socket.create_server(('127.0.0.1', 0), backlog=1024)

        def loop():
            while True:
                c, _ = s.accept()
                threading.Thread(target=one, args=(c,), daemon=True).start()
        threading.Thread(target=loop, daemon=True).start()
        return s.getsockname()

    def echo_one(self, c):
        try:
            while True:
                b = c.recv(65536)
                if not b:
                    break
                c.sendall(b)
            c.sendall(b'END')
            c.close()
        except OSError:
            pass

    def http_one(self, c):
        f = c.makefile('rwb')
        while True:
            head = []
            while True:
                try:
                    line = f.readline()
                except OSError:
                    return
                if not line:
                    return
                if line == b'\r\n':
                    break
                head.append(line.decode().strip())
            self.hits.append(head)
            f.write(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi')
            f.flush()

    def ssh_one(self, c):
        c.sendall(b'SSH-2.0-test\r\n')
        c.recv(100)
        c.sendall(b'done')
        c.close()

    def flood_one(self, c):
        n = int(c.makefile('rb').readline())
        block = b'x' * 65536
        while n > 0:
            c.sendall(block[:min(n, len(block))])
            n -= len(block)
        c.close()

    def reply(self, m, by_tcp):
        name, at = read_name(m, 12)
        kind = struct.unpack('>H', m[at:at + 2])[0]
        self.asked.append((name, kind))
        found = self.names.get(name.lower())
        if found is None:
            return m[:2] + b'\x81\x83' + m[4:6] + b'\0\0\0\0\0\0' + m[12:at + 4]
        if found == 'silent':
            return None
        records = b''
        n = 0
        for alias in found.get('aliases', []):
            records += b'\xc0\x0c' if n == 0 else name_wire(found['aliases'][n - 1])
            w = name_wire(alias)
            records += struct.pack('>HHIH', 5, 1, 60, len(w)) + w
            n += 1
        owner = name_wire(found['aliases'][-1]) if n else b'\xc0\x0c'
        for a in found['addrs']:
            family = socket.AF_INET6 if ':' in a else socket.AF_INET
            if (kind == 28) == (family == socket.AF_INET6):
                raw = socket.inet_pton(family, a)
                records += owner + struct.pack('>HHIH', kind, 1, found.get('ttl', 60), len(raw)) + raw
                n += 1
        if not by_tcp and len(records) > 1200:
            return m[:2] + b'\x83\x80' + m[4:6] + b'\0\0\0\0\0\0' + m[12:at + 4]
        return m[:2] + b'\x81\x80' + m[4:6] + struct.pack('>HHH', n, 0, 0) + m[12:at + 4] + records

    def dns_udp(self):
        while True:
            m, who = self.udp.recvfrom(4096)
            r = self.reply(m, False)
            if r:
                self.udp.sendto(r, who)

    def dns_tcp(self):
        while True:
            c, _ = self.tcp.accept()
            f = c.makefile('rwb')
            n = struct.unpack('>H', f.read(2))[0]
            r = self.reply(f.read(n), True)
            f.write(struct.pack('>H', len(r)) + r)
            f.flush()
            c.close()


class Keeper:
    def __init__(self, osbx, world, policy, binds=True):
        self.world, self.osbx, self.binds = world, osbx, binds
        self.policy = policy
        self.dials, self.denied, self.saved, self.fail_save = [], [], [], 0
        self.own = set()
        self.holder = subprocess.Popen(['unshare', '-Urn', 'cat'], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.inside_pid = self.holder.pid
        end = time.monotonic() + LIMIT
        while os.readlink(f'/proc/{self.inside_pid}/ns/net') == os.readlink('/proc/self/ns/net') or \
                not open(f'/proc/{self.inside_pid}/uid_map').read():
            if time.monotonic() > end:
                sys.exit('no namespaces')
            time.sleep(0.01)
        self.ns = [os.open(f'/proc/{self.inside_pid}/ns/{n}', os.O_RDONLY) for n in ('user', 'net')]
        self.start()

    def start(self):
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

        def at_three():
            os.dup2(theirs.fileno(), 3)
        t = time.perf_counter()
        self.netd = subprocess.Popen([self.osbx, 'netd'], preexec_fn=at_three, close_fds=False)
        theirs.close()
        memfd = os.memfd_create('policy')
        os.write(memfd, json.dumps(self.policy).encode())
        self.send(BEGIN, struct.pack('65s?', TOKEN.encode(), self.binds), self.ns + [memfd])
        os.close(memfd)
        up = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        up.connect(self.world.udp.getsockname())
        self.send(RESOLVERS, struct.pack('I', 1), [up.fileno()])
        up.close()
        kind, body, _ = self.receive()
        self.ready_ms = (time.perf_counter() - t) * 1e3
        if kind != READY:
            sys.exit(f'netd: {kind} {body[12:300].split(bytes(1))[0].decode()}')
        threading.Thread(target=self.serve, args=(self.sock,), daemon=True).start()

    def send(self, kind, body=b'', fds=()):
        m = struct.pack('HHIII', 1, kind, len(body), len(fds), 0) + body
        self.sock.sendmsg([m], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else [])

    def receive(self, sock=None):
        m, fds, _, _ = socket.recv_fds(sock or self.sock, 4096, 8)
        if not m:
            return None, b'', []
        return struct.unpack('HHIII', m[:16])[1], m[16:], fds

    def serve(self, sock):
        while True:
            try:
                kind, body, fds = self.receive(sock)
            except OSError:
                return
            if kind is None:
                return
            if kind == DIAL:
                self.dial(body)
            elif kind == POLICY:
                self.saved.append(json.loads(os.pread(fds[0], 1 << 22, 0)))
                self.send(SAVED, struct.pack('i', self.fail_save))
            elif kind == DENIED:
                self.denied.append(body[8:264].split(b'\0')[0].decode())
            for fd in fds:
                os.close(fd)

    def dial(self, body):
        ident, kind, port, family, raw = struct.unpack('IHHB16s', body[:25])
        if kind == 3:
            where = self.world.udp.getsockname()
        else:
            text = socket.inet_ntop(socket.AF_INET, raw[:4]) if family == 4 else socket.inet_ntop(socket.AF_INET6, raw)
            self.dials.append((text, port))
            if text in self.own:
                self.send(DIALED, struct.pack('IiH2x', ident, 13, 0))
                return
            where = self.world.at.get(port, ('127.0.0.1', 1))
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(where)
        self.send(DIALED, struct.pack('IiH2x', ident, 0, 0), [s.fileno()])
        s.close()

    def inside(self, f):
        """f() in a process in the sandbox; what it returns."""
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for fd, kind in zip(self.ns, (0x10000000, 0x40000000)):
                    if libc.setns(fd, kind) < 0:
                        raise OSError(ctypes.get_errno(), 'setns')
                signal.alarm(LIMIT)
                os.write(w, json.dumps(f()).encode())
                code = 0
            except BaseException as e:  # noqa: the child must not go on in the parent's code
                os.write(w, json.dumps(f'{type(e).__name__}: {e}').encode())
            finally:
                os._exit(code)
        os.close(w)
        text = b''
        while True:
            b = os.read(r, 65536)
            if not b:
                break
            text += b
        os.close(r)
        os.waitpid(pid, 0)
        return json.loads(text or '"died"')

    def api(self, method, path, body=None, token=TOKEN):
        def f():
            c = socket.create_connection(('127.0.0.1', 18080), LIMIT)
            head = f'{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n'
            if token:
                head += f'OPENSANDBOX-EGRESS-AUTH: {token}\r\n'
            text = '' if body is None else json.dumps(body)
            c.sendall((head + f'Content-Length: {len(text)}\r\n\r\n' + text).encode())
            got = b''
            while True:
                b = c.recv(65536)
                if not b:
                    break
                got += b
            head, _, rest = got.decode().partition('\r\n\r\n')
            return [int(head.split()[1]), rest]
        return self.inside(f)

    def stop(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        code = self.netd.wait(LIMIT)
        return code

    def end(self):
        self.holder.kill()
        self.holder.wait()


# What programs of the sandbox do; these run inside.

def lookup(name, kind=1, server='192.0.0.1', by_tcp=False, edns=True):
    family = socket.AF_INET6 if ':' in server else socket.AF_INET
    q = question(name, kind, edns=edns)
    if by_tcp:
        s = socket.create_connection((server, 53), LIMIT)
        s.sendall(struct.pack('>H', len(q)) + q)
        f = s.makefile('rb')
        m = f.read(struct.unpack('>H', f.read(2))[0])
    else:
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.settimeout(LIMIT)
        s.connect((server, 53))
        s.send(q)
        m = s.recv(65536)
    return vars(Answer(m))


def talk(addr, port, say=b'', wait=True):
    """Connect, say, read to the end of 64 KiB; the text or the error's name."""
    try:
        s = socket.create_connection((addr, port), LIMIT)
        if say:
            s.sendall(say)
        if wait:
            b = s.recv(65536)
            return b.decode('latin1')
        return ''
    except OSError as e:
        return type(e).__name__


def hello(name):
    """A ClientHello."""
    sni = struct.pack('>HBH', len(name) + 3, 0, len(name)) + name.encode()
    exts = struct.pack('>HH', 0, len(sni)) + sni if name else struct.pack('>HHB', 23, 0, 0)[:4]
    body = b'\x03\x03' + bytes(32) + b'\0' + b'\0\x02\x13\x01' + b'\x01\0' + struct.pack('>H', len(exts)) + exts
    shake = b'\x01' + struct.pack('>I', len(body))[1:] + body
    return b'\x16\x03\x01' + struct.pack('>H', len(shake)) + shake


def get(host):
    return f'GET / HTTP/1.1\r\nHost: {host}\r\n\r\n'.encode()


def two_requests(addr, first, second):
    s = socket.create_connection((addr, 80), LIMIT)
    s.sendall(get(first))
    one = s.recv(65536).decode()
    s.sendall(get(second))
    try:
        two = s.recv(65536).decode()
    except OSError as e:
        two = type(e).__name__
    return [one[:15], two[:15]]


def names_and_addresses(k, w):
    a = k.inside(lambda: lookup('good.test'))
    check(a['rcode'] == 0 and a['addrs'] == ['203.0.113.1'] and 0 < a['ttls'][0] <= 60, 'an allowed name is resolved, with its TTL', a)
    n = len(w.asked)
    k.inside(lambda: lookup('good.test'))
    check(len(w.asked) == n, 'and from the cache the second time')
    a = k.inside(lambda: lookup('secret-data.evil.test'))
    check(a['rcode'] == 3 and 'policy' in a['ede'] and a['ede_code'] == 15, 'a denied one does not exist, and why is said', a)
    end = time.monotonic() + LIMIT
    while 'secret-data.evil.test' not in k.denied and time.monotonic() < end:
        time.sleep(0.01)
    check(len(w.asked) == n and 'secret-data.evil.test' in k.denied, 'the resolver of the host has not been asked, the keeper been told', w.asked)
    a = k.inside(lambda: lookup('alias.test'))
    check(a['addrs'] == ['203.0.113.2'], 'an alias is followed', a)
    a = k.inside(lambda: lookup('private.test'))
    check(a['rcode'] == 0 and a['addrs'] == [] and a['ede_code'] == 17, 'a private address is left out', a)
    a = k.inside(lambda: lookup('office.test'))
    check(a['addrs'] == ['10.1.2.3'], 'but not one that has a rule', a)
    a = k.inside(lambda: lookup('good.test', 28))
    check(a['addrs'] == ['2001:db8::1'], 'IPv6 addresses', a)
    a = k.inside(lambda: lookup('good.test', 65))
    check(a['rcode'] == 0 and a['addrs'] == [] and ('good.test', 65) not in w.asked, 'HTTPS records are not asked', a)
    a = k.inside(lambda: lookup('big.test', edns=False))
    check(a['tc'] and ('big.test', 1) in w.asked, 'a long answer is cut by UDP', a)
    a = k.inside(lambda: lookup('big.test', by_tcp=True))
    check(len(a['addrs']) == 100, 'and whole by TCP', len(a['addrs']))
    a = k.inside(lambda: lookup('big2.test', by_tcp=True))
    check(len(a['addrs']) == 100, 'also when it was not known', len(a['addrs']))
    a = k.inside(lambda: lookup('good.test', server='8.8.8.8'))
    check(a['addrs'] == ['203.0.113.1'], 'another resolver is this one', a)
    a = k.inside(lambda: lookup('evil.test', server='8.8.8.8', by_tcp=True))
    check(a['rcode'] == 3, 'by TCP, too', a)
    a = k.inside(lambda: lookup('good.test', server='2001:db8::53'))
    check(a['addrs'] == ['203.0.113.1'], 'and by IPv6', a)
    a = k.inside(lambda: lookup('lost.good.test'))
    check(a['rcode'] == 3 and a['ede'] == '', 'a name that is allowed and does not exist', a)
    a = k.inside(lambda: lookup('silent.test'))
    check(a['rcode'] == 2 and a['ede_code'] == 22, 'a resolver that does not answer: SERVFAIL, and why', a)


def connections(k, w):
    check(k.inside(lambda: talk('203.0.113.1', 443, hello('good.test'))) == hello('good.test').decode('latin1'), 'TLS to an allowed name')
    check(k.dials[-1] == ('203.0.113.1', 443), 'at its address')
    n = len(k.dials)
    for addr, port, say, what in (
            ('203.0.113.1', 443, hello('evil.test'), 'TLS to another name at its address'),
            ('203.0.113.9', 443, hello('good.test'), 'TLS to an allowed name at an address that is not its'),
            ('203.0.113.1', 443, hello('alias.test'), 'TLS to an allowed name that has another address'),
            ('203.0.113.1', 443, hello(''), 'TLS without a name'),
            ('203.0.113.1', 443, b'SSH-2.0-x\r\n', 'no TLS on port 443'),
            ('203.0.113.9', 7, b'x', 'an address of nobody'),
            ('10.1.2.4', 80, get('good.test'), 'a private address'),
            ('169.254.169.254', 80, get('169.254.169.254'), 'the metadata service'),
            ('2001:db8::9', 443, hello('good.test'), 'an IPv6 address of nobody'),
            ('::ffff:203.0.113.9', 443, hello('good.test'), 'an IPv4 address in IPv6'),
            ('203.0.113.1', 853, hello('good.test'), 'a port that no rule names'),
            ('203.0.113.1', 80, get('evil.test'), 'HTTP to another name'),
            ('203.0.113.1', 80, b'GET http://evil.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n', 'HTTP with two names'),
            ('203.0.113.1', 80, b'GET / HTTP/1.1\r\nHost: good.test\r\nHost: evil.test\r\n\r\n', 'HTTP with two hosts')):
        got = k.inside(lambda: talk(addr, port, say))
        check(got in ('ConnectionResetError', 'ConnectionRefusedError'), what + ' is reset', got)
    check(len(k.dials) == n, 'nothing of this was dialed', k.dials[n:])
    check(k.inside(lambda: talk('203.0.113.1', 80, get('good.test')))[:15] == 'HTTP/1.1 200 OK', 'HTTP to an allowed name')
    check(k.inside(lambda: two_requests('203.0.113.1', 'good.test', 'good.test')) == ['HTTP/1.1 200 OK'] * 2, 'twice on one connection')
    got = k.inside(lambda: two_requests('203.0.113.1', 'good.test', 'evil.test'))
    check(got == ['HTTP/1.1 200 OK', 'ConnectionReset'], 'the second one to another name is reset', got)
    check(not any('evil.test' in line for head in w.hits for line in head), 'no server has seen it')
    check(k.inside(lambda: talk('203.0.113.2', 22)) == 'SSH-2.0-test\r\n', 'where the server speaks first, an allowed name is enough')
    got = k.inside(lambda: talk('203.0.113.2', 8443, hello('evil.test')))
    check(got == 'ConnectionResetError', 'but TLS on such a port is looked at', got)
    check(k.inside(lambda: talk('10.1.2.3', 7, b'x')) == 'x', 'a private address with a rule')
    check(k.inside(lambda: talk('2001:db8::1', 443, hello('good.test'))) == hello('good.test').decode('latin1'), 'IPv6')
    k.own.add('10.1.2.3')
    check(k.inside(lambda: talk('10.1.2.3', 7, b'x')) == 'ConnectionResetError', 'what the keeper refuses is reset')
    k.own.clear()
    check(k.inside(lambda: talk('10.1.2.3', 1, b'x')) == 'ConnectionResetError', 'a server that refuses: reset')

    def datagram():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(LIMIT)
        try:
            s.connect(('10.9.9.9', 443))
            s.send(b'x')
            return len(s.recv(100))
        except OSError as e:
            return e.errno
    check(k.inside(datagram) == errno.EHOSTUNREACH, 'UDP that the policy does not allow is refused at once')

    def own():
        s = socket.create_server(('0.0.0.0', 4444))
        c = [socket.create_connection((a, 4444)) for a in ('127.0.0.1', '192.0.0.2')]
        return [s.accept()[1][0], s.accept()[1][0], len(c)]
    check(k.inside(own) == ['127.0.0.1', '192.0.0.2', 2], 'its own servers are reached')

    def flood():
        s = socket.create_connection(('10.1.2.3', 9), LIMIT)
        s.sendall(b'%d\n' % (64 << 20))
        n = 0
        while True:
            b = s.recv(1 << 20)
            if not b:
                return n
            n += len(b)
    check(k.inside(flood) == 64 << 20, 'many bytes, to the last one')

    def half():
        s = socket.create_connection(('10.1.2.3', 7), LIMIT)
        s.sendall(b'abc')
        s.shutdown(socket.SHUT_WR)
        return s.makefile('rb').read().decode()
    check(k.inside(half) == 'abcEND', 'a side that has ended still gets its answer')


def burst(k):
    def f():
        all_of_them = [socket.socket() for _ in range(300)]
        for s in all_of_them:
            s.settimeout(LIMIT)
            s.setblocking(False)
            s.connect_ex(('10.1.2.3', 7))
        for s in all_of_them:
            s.setblocking(True)
            s.settimeout(LIMIT)
            s.sendall(b'x')
        return sum(s.recv(1) == b'x' for s in all_of_them)
    got = k.inside(f)
    check(got == 300, 'hundreds of connections at once', got)


def edits(k, w):
    check(k.api('GET', '/policy', token=None) == [401, 'unauthorized'], 'the policy is not told to everybody')
    check(k.api('GET', '/policy', token='x')[0] == 401, 'nor with another token')
    status, body = k.api('GET', '/policy')
    check(status == 200 and json.loads(body)['policy']['defaultAction'] == 'deny', 'but with its own', body)
    r, wr = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)

        def stay():
            s = socket.create_connection(('203.0.113.1', 443), LIMIT)
            s.sendall(hello('good.test'))
            s.recv(65536)
            os.write(wr, b'1')
            try:
                return len(s.recv(1))
            except OSError as e:
                return type(e).__name__
        got = k.inside(stay)
        os.write(wr, json.dumps(got).encode())
        os._exit(0)
    os.close(wr)
    os.read(r, 1)
    t = time.perf_counter()
    status, body = k.api('PATCH', '/policy', [{'action': 'deny', 'target': 'good.test'}])
    took = (time.perf_counter() - t) * 1e3
    check(status == 200 and k.saved[-1]['egress'][0] == {'action': 'deny', 'target': 'good.test'}, 'an edit is put on record', body)
    text = b''
    while True:
        b = os.read(r, 100)
        if not b:
            break
        text += b
    os.waitpid(pid, 0)
    check(json.loads(text) == 'ConnectionResetError', 'a connection that has become forbidden is cut', text)
    print('# the edit took %.1f ms' % took)
    check(k.inside(lambda: lookup('good.test'))['rcode'] == 3, 'and its name is gone')
    status, body = k.api('DELETE', '/policy', ['good.test'])
    check(status == 200 and k.inside(lambda: lookup('good.test'))['rcode'] == 0, 'rules of a target are deleted', body)
    k.fail_save = 28
    status, body = k.api('PUT', '/policy', {'defaultAction': 'deny'})
    check(status == 500 and k.inside(lambda: lookup('good.test'))['rcode'] == 0, 'what cannot be put on record is not in force', body)
    k.fail_save = 0
    check(k.api('PUT', '/policy', {'defaultAction': 'deny'})[0] == 200 and
          k.inside(lambda: lookup('good.test'))['rcode'] == 3, 'and then it is')
    status, body = k.api('GET', '/policy/denials')
    found = json.loads(body)['denials']
    check(status == 200 and any(d.get('name') == 'good.test' for d in found), 'what was refused can be read', body[:300])


def silent_client(k):
    def f():
        s = socket.create_connection(('203.0.113.1', 443), LIMIT)
        t = time.monotonic()
        try:
            s.recv(1)
        except OSError as e:
            return [type(e).__name__, time.monotonic() - t < LIMIT]
        return 'open'
    check(k.inside(f) == ['ConnectionResetError', True], 'a program that says no name is reset after a while')


def confined(k):
    pid = k.netd.pid
    status = dict(line.split(':\t', 1) for line in open(f'/proc/{pid}/status').read().splitlines())
    check(status['CapEff'] == '0' * 16 and status['CapPrm'] == '0' * 16, 'no capabilities', status['CapEff'])
    check(status['Seccomp'] == '2' and status['NoNewPrivs'] == '1', 'a filter of system calls')
    if os.geteuid() == 0:
        pss = [int(line.split()[1]) for line in open(f'/proc/{pid}/smaps_rollup') if line.startswith('Pss:')][0]
        print(f'# PSS {pss} KiB, ready after {k.ready_ms:.1f} ms')


def closed(k):
    os.kill(k.netd.pid, signal.SIGKILL)
    k.netd.wait()
    k.sock.close()
    got = k.inside(lambda: [talk('10.1.2.3', 7, b'x'), talk('203.0.113.1', 443, hello('good.test'))])
    check(got == ['ConnectionRefusedError'] * 2, 'killed: the network is closed', got)
    k.start()
    k.inside(lambda: lookup('good.test'))
    check(k.inside(lambda: talk('203.0.113.1', 443, hello('good.test'))) == hello('good.test').decode('latin1'), 'started again: it is open')


def open_world(osbx, w):
    k = Keeper(osbx, w, {'defaultAction': 'allow', 'egress': [{'action': 'deny', 'target': 'evil.test'}]})
    check(k.inside(lambda: talk('203.0.113.9', 443, hello('any.test'))) == hello('any.test').decode('latin1'), 'by default allowed: any public address')
    check(k.inside(lambda: talk('203.0.113.9', 443, hello('evil.test'))) == 'ConnectionResetError', 'but a name that is denied')
    check(k.inside(lambda: talk('203.0.113.9', 7, b'x')) == 'x', 'other protocols')
    check(k.inside(lambda: talk('10.1.2.3', 7, b'x')) == 'ConnectionResetError', 'no private address')
    check(k.stop() == 0, 'it ends with its keeper')
    k.end()


def main():
    signal.alarm(240)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    w = World()
    w.names = {
        'good.test': {'addrs': ['203.0.113.1', '2001:db8::1']},
        'alias.test': {'aliases': ['other.test'], 'addrs': ['203.0.113.2']},
        'private.test': {'addrs': ['10.9.9.9', '127.0.0.1']},
        'office.test': {'addrs': ['10.1.2.3']},
        'big.test': {'addrs': ['203.0.113.%d' % i for i in range(100, 200)]},
        'big2.test': {'addrs': ['203.0.113.%d' % i for i in range(100, 200)]},
        'silent.test': 'silent',
        'evil.test': {'addrs': ['203.0.113.66']},
    }
    policy = {'defaultAction': 'deny', 'egress': [
        {'action': 'allow', 'target': t}
        for t in ('good.test:443', 'good.test:80', '*.good.test', 'alias.test', 'private.test', 'office.test', '10.1.2.3',
                  'big.test', 'big2.test', 'silent.test')]}
    k = Keeper(sys.argv[1], w, policy)
    confined(k)
    names_and_addresses(k, w)
    connections(k, w)
    silent_client(k)
    burst(k)
    closed(k)
    edits(k, w)
    check(k.stop() == 0, 'it ends with its keeper')
    k.end()
    open_world(sys.argv[1], w)


main()
