#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small internet in namespaces, for tests of private networks: a host's network, and behind a link another one with a
resolver that answers by a script and servers at public-looking addresses. Needs CAP_NET_ADMIN in network and mount namespaces
of its own:

usage: unshare -nm networld.py DIR COMMAND...       (root)
       unshare -Urnm networld.py DIR COMMAND...     (an ordinary user)

COMMAND runs in the host's network; its exit status is the one of this program. DIR gets ca.pem, the CA of all servers, and
log, a line for each thing that arrived: "dns udp|tcp NAME TYPE", "tcp ADDR PORT", "udp ADDR PORT", "http HOST SNI PATH".
DIR/etc is the host's /etc, where it can be made (resolv.conf may be replaced there).

names      allowed.test other.test sub.allowed.test: two servers with TLS; cdn.test: at allowed.test's address
           echo.test: port 7 echoes, also UDP, and 8 of UDP answers from another port; ssh.test: port 22 speaks first; git.test: repo.git by https and git; talk.test: 443 and 80 speak first
           private.test mixed.test rebind.test mapped.test evil-alias.test metadata.test own.test own-public.test loop.test: lead to
           addresses that are nobody's business
           alias.test chain.test loop-alias.test big.test huge.test ttl0.test v6.test lame.test servfail.test refused.test garbage.test
"""
import asyncio
import ctypes
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
HOST4, GATE4, RESOLVER, RESOLVER2 = '192.168.77.1', '192.168.77.2', '192.168.77.53', '192.168.77.54'
HOST6, GATE6 = 'fd77::1', 'fd77::2'
OWN_PUBLIC = '203.0.113.200'

A1, B1 = ('203.0.113.10', '2001:db8::10'), ('203.0.113.11', '2001:db8::11')
WEB = [*A1, *B1, '203.0.113.20', '198.51.100.40', '198.51.100.41', '10.99.0.5', '169.254.169.254', '100.64.0.9', '2001:db8::66']
ECHO = ('203.0.113.30', '2001:db8::30')
TALK, SSH, OTHER_DNS = '203.0.113.31', '203.0.113.32', '203.0.113.53'

ADDRESSES = [*WEB, *ECHO, TALK, SSH, OTHER_DNS, RESOLVER, RESOLVER2]

NAMES = {
    'allowed.test': A1,
    'sub.allowed.test': A1,
    'other.test': B1,
    'cdn.test': A1,
    'git.test': ('203.0.113.20',),
    'echo.test': ECHO,
    'talk.test': (TALK,),
    'ssh.test': (SSH,),
    'private.test': ('10.99.0.5',),
    'cgnat.test': ('100.64.0.9',),
    'mixed.test': ('10.99.0.5', A1[0]),
    'mapped.test': ('::ffff:10.99.0.5',),
    'nat64.test': ('64:ff9b::10.99.0.5',),
    'metadata.test': ('169.254.169.254',),
    'own.test': (HOST4, HOST6),
    'own-public.test': (OWN_PUBLIC,),
    'loop.test': ('127.0.0.1', '::1'),
    'v6.test': ('2001:db8::66',),
    'v6only.test': (A1[1],),
    'ttl0.test': A1,
    'big.test': tuple(f'203.0.113.{i}' for i in range(10, 110)),
    'huge.test': tuple(f'198.51.{100 + i // 250}.{1 + i % 250}' for i in range(900)),
}
ALIASES = {'alias.test': 'deep.alias.test', 'deep.alias.test': 'allowed.test', 'evil-alias.test': 'private.test',
           'loop-alias.test': 'loop-alias2.test', 'loop-alias2.test': 'loop-alias.test'}
ALIASES.update({f'c{i}.chain.test': f'c{i + 1}.chain.test' for i in range(400)})
ALIASES['chain.test'] = 'c0.chain.test'
NAMES['c400.chain.test'] = A1
SHORT = {f's{i}.short.test': f's{i + 1}.short.test' for i in range(5)}
ALIASES.update(SHORT)
ALIASES['short.test'] = 's0.short.test'
NAMES['s5.short.test'] = A1

TYPES = {1: 'A', 28: 'AAAA', 5: 'CNAME', 16: 'TXT', 65: 'HTTPS', 64: 'SVCB', 15: 'MX', 12: 'PTR', 255: 'ANY'}


class Log:
    def __init__(self, path):
        self.file = open(path, 'a', buffering=1, encoding='utf-8')

    def __call__(self, *words):
        self.file.write(' '.join(str(w) for w in words) + '\n')


# Names and answers.

def encode_name(name):
    return b''.join(bytes([len(label)]) + label.encode('latin-1') for label in name.split('.') if label) + b'\0'


def decode_question(data):
    at, labels = 12, []
    while data[at]:
        labels.append(data[at + 1:at + 1 + data[at]].decode('latin-1').lower())
        at += 1 + data[at]
    qtype, = struct.unpack_from('!H', data, at + 1)
    return '.'.join(labels), qtype, data[12:at + 5]


def packed(address):
    import ipaddress
    if '.' in address and ':' in address:
        head, tail = address.rsplit(':', 1)
        return bytes.fromhex({'64:ff9b:': '0064ff9b' + 16 * '0', '::ffff': 20 * '0' + 'ffff'}[head]) + ipaddress.ip_address(tail).packed
    return ipaddress.ip_address(address).packed


class Zone:
    def __init__(self):
        self.rebinds = 0

    def addresses(self, name, qtype):
        if name == 'rebind.test':
            if qtype != 1:
                return []
            self.rebinds += 1
            return [packed(A1[0] if self.rebinds == 1 else '10.99.0.5')]
        found = [packed(a) for a in NAMES.get(name, ())]
        return [p for p in found if len(p) == (4 if qtype == 1 else 16)]

    def records(self, name, qtype):
        """(name, type, data) of the answer, None when there is no such name."""
        rows, known = [], False
        for _ in range(500):
            if name not in ALIASES:
                break
            known = True
            rows.append((name, 5, encode_name(ALIASES[name])))
            name = ALIASES[name]
            if name == 'loop-alias.test':
                return rows
        if name not in NAMES and name != 'rebind.test':
            return rows if known else None
        if qtype in (1, 28):
            rows += [(name, qtype, p) for p in self.addresses(name, qtype)]
        elif qtype == 16:
            rows.append((name, 16, b'\x05hello'))
        elif qtype in (64, 65):
            # SvcPriority 1, target ".", ech, an ipv4hint of the private server
            rows.append((name, qtype, b'\0\1\0' + b'\0\4\0\4' + packed('10.99.0.5') + b'\0\5\0\4ECHX'))
        return rows


def reply(query, zone, limit):
    """Bytes of the answer; None: silence."""
    name, qtype, question = decode_question(query)
    ident = query[:2]
    if name.endswith('lame.test'):
        return None
    if name == 'garbage.test':
        return ident + b'\x81\x80\0\1\0\xff\0\0\0\0' + question + b'\xc0\xff' * 40
    if name == 'wrong-id.test':
        return bytes([ident[0] ^ 1, ident[1]]) + b'\x81\x80\0\1\0\0\0\0\0\0' + question
    codes = {'servfail.test': 2, 'refused.test': 5}
    if name in codes:
        return ident + bytes([0x81, 0x80 | codes[name]]) + b'\0\1\0\0\0\0\0\0' + question
    rows = zone.records(name, qtype)
    if rows is None:
        return ident + b'\x81\x83\0\1\0\0\0\0\0\0' + question
    ttl = 0 if name in ('ttl0.test', 'rebind.test') else 300
    body = b''
    for owner, rtype, data in rows:
        body += encode_name(owner) + struct.pack('!HHIH', rtype, 1, ttl, len(data)) + data
    whole = ident + b'\x81\x80\0\1' + struct.pack('!H', len(rows)) + b'\0\0\0\0' + question + body
    if len(whole) > limit:
        return ident + b'\x83\x80\0\1\0\0\0\0\0\0' + question
    return whole


def edns_size(query):
    """What the asker takes by UDP: an OPT record is the last thing in a query."""
    at = query.rfind(b'\0\0\x29')
    return max(512, struct.unpack_from('!H', query, at + 3)[0]) if at >= 12 else 512


class Resolver(asyncio.DatagramProtocol):
    def __init__(self, zone, log, where):
        self.zone, self.log, self.where = zone, log, where

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        name, qtype, _ = decode_question(data)
        self.log('dns', 'udp', name, TYPES.get(qtype, qtype), self.where)
        if name == 'silent-first.test' and self.where == RESOLVER:
            return
        answer = reply(data, self.zone, edns_size(data))
        if answer:
            self.transport.sendto(answer, addr)


def resolver_tcp(zone, log, where):
    async def serve(reader, writer):
        try:
            while True:
                n, = struct.unpack('!H', await reader.readexactly(2))
                data = await reader.readexactly(n)
                name, qtype, _ = decode_question(data)
                log('dns', 'tcp', name, TYPES.get(qtype, qtype), where)
                answer = reply(data, zone, 65535)
                if answer:
                    writer.write(struct.pack('!H', len(answer)) + answer)
                    await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()
    return serve


# Servers.

class EchoUdp(asyncio.DatagramProtocol):
    def __init__(self, log, where, port):
        self.log, self.where, self.port = log, where, port

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.log('udp', self.where, self.port)
        self.transport.sendto(data, addr)


class Elsewhere(EchoUdp):
    """Answers from another port."""

    def datagram_received(self, data, addr):
        self.log('udp', self.where, self.port)
        socket.socket(socket.AF_INET6 if ':' in self.where else socket.AF_INET, socket.SOCK_DGRAM).sendto(data, addr[:2])


async def echo(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


def speaks_first(text):
    async def serve(reader, writer):
        try:
            writer.write(text)
            await writer.drain()
            await reader.read(1 << 16)
        except OSError:
            pass
        writer.close()
    return serve


async def stream_bytes(writer, n):
    block = b'\0' * 65536
    while n > 0:
        writer.write(block[:min(n, len(block))])
        n -= len(block)
        await writer.drain()


def web(root, log, where, port):
    """HTTP with kept-alive connections: what it was asked for, files of DIR/www, /bytes/N, /slow, upgrades to an echo."""
    async def one(reader, writer):
        head = await reader.readuntil(b'\r\n\r\n')
        lines = head.decode('latin-1').split('\r\n')
        fields = {k.strip().lower(): v.strip() for k, _, v in (line.partition(':') for line in lines[1:] if line)}
        path = lines[0].split(' ')[1]
        if 'content-length' in fields:
            await reader.readexactly(int(fields['content-length']))
        sni = getattr(writer.get_extra_info('ssl_object'), 'sni', '-') or '-'
        log('http', fields.get('host', '-'), sni, path, where)
        if fields.get('upgrade'):
            writer.write(b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
            await echo(reader, writer)
            return False
        status, body = '200 OK', f'host={fields.get("host", "-")} sni={sni} at={where}:{port}\n'.encode()
        file = os.path.join(root, path.split('?')[0].lstrip('/'))
        if path.startswith('/bytes/'):
            n = int(path[7:])
            writer.write(f'HTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n'.encode())
            await stream_bytes(writer, n)
            return True
        if path.startswith('/slow'):
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n')
            for _ in range(600):
                writer.write(b'tick\n')
                await writer.drain()
                await asyncio.sleep(0.1)
            return False
        if os.path.isfile(file):
            with open(file, 'rb') as f:
                body = f.read()
        elif path.startswith(('/repo.git/', '/apt/')):
            status, body = '404 Not Found', b''
        writer.write(f'HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body)
        await writer.drain()
        return True

    async def serve(reader, writer):
        log('tcp', where, port)
        try:
            while await one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError, IndexError):
            pass
        writer.close()
    return serve


def git_daemon(root):
    """git:// for one connection."""
    async def copy(reader, writer):
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
            writer.close()
        except OSError:
            pass

    async def serve(reader, writer):
        daemon = await asyncio.create_subprocess_exec('git', 'daemon', '--inetd', '--export-all', f'--base-path={root}', root,
                                                      stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL)
        up = asyncio.ensure_future(copy(reader, daemon.stdin))
        await copy(daemon.stdout, writer)
        up.cancel()
        await daemon.wait()
    return serve


def logged(log, where, port, serve):
    async def wrapped(reader, writer):
        log('tcp', where, port)
        await serve(reader, writer)
    return wrapped


def certificate(folder):
    """ca.pem, and a server certificate for every name and address."""
    names = [*(f'DNS:{n}' for n in (*NAMES, *ALIASES) if '.chain.' not in n and '.short.' not in n), *(f'IP:{a}' for a in WEB)]
    with open(f'{folder}/ext', 'w', encoding='utf-8') as f:
        f.write('subjectAltName=' + ','.join(names) + '\nauthorityKeyIdentifier=keyid\n')  # RFC 5280, as python 3.13 insists on it
    for words in (['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30', '-subj', '/CN=test CA',
                   '-addext', 'keyUsage=critical,keyCertSign', '-keyout', 'ca.key', '-out', 'ca.pem'],
                  ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=test', '-keyout', 'server.key', '-out',
                   'server.csr'],
                  ['x509', '-req', '-in', 'server.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '30', '-extfile', 'ext', '-out',
                   'server.pem']):
        subprocess.run(['openssl', *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def tls(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f'{folder}/server.pem', f'{folder}/server.key')

    def remember(obj, name, _):
        obj.sni = name

    context.sni_callback = remember
    return context


async def targets(folder, ready):
    loop, log, zone = asyncio.get_running_loop(), Log(f'{folder}/log'), Zone()
    context = tls(folder)
    for where in (RESOLVER, RESOLVER2, OTHER_DNS):
        await loop.create_datagram_endpoint(lambda where=where: Resolver(zone, log, where), local_addr=(where, 53))
        await asyncio.start_server(resolver_tcp(zone, log, where), where, 53)
    for where in WEB:
        await asyncio.start_server(web(f'{folder}/www', log, where, 80), where, 80, backlog=1000)
        await asyncio.start_server(web(f'{folder}/www', log, where, 8080), where, 8080)
        await asyncio.start_server(web(f'{folder}/www', log, where, 443), where, 443, ssl=context, backlog=1000)
        await loop.create_datagram_endpoint(lambda where=where: EchoUdp(log, where, 443), local_addr=(where, 443))
    for where in ECHO:
        await asyncio.start_server(logged(log, where, 7, echo), where, 7, backlog=1000)
        await loop.create_datagram_endpoint(lambda where=where: EchoUdp(log, where, 7), local_addr=(where, 7))
        await loop.create_datagram_endpoint(lambda where=where: Elsewhere(log, where, 8), local_addr=(where, 8))
    await asyncio.start_server(logged(log, OTHER_DNS, 853, echo), OTHER_DNS, 853)
    await asyncio.start_server(web(f'{folder}/www', log, OTHER_DNS, 443), OTHER_DNS, 443, ssl=context)
    await loop.create_datagram_endpoint(lambda: EchoUdp(log, OTHER_DNS, 5353), local_addr=(OTHER_DNS, 5353))
    for port in (80, 443, 7):
        await asyncio.start_server(logged(log, TALK, port, speaks_first(b'220 I speak first\r\n')), TALK, port)
    await asyncio.start_server(logged(log, SSH, 22, speaks_first(b'SSH-2.0-test\r\n')), SSH, 22)
    await asyncio.start_server(logged(log, '203.0.113.20', 9418, git_daemon(f'{folder}/www')), '203.0.113.20', 9418)
    os.write(ready, b'1')
    os.close(ready)
    await asyncio.Event().wait()


async def host_services(folder, ready):
    """What listens on the host itself."""
    log = Log(f'{folder}/log')
    for where in ('127.0.0.1', '::1', HOST4, HOST6, OWN_PUBLIC):
        await asyncio.start_server(web(f'{folder}/www', log, where, 8080), where, 8080)
        await asyncio.start_server(web(f'{folder}/www', log, where, 80), where, 80)
    os.write(ready, b'1')
    os.close(ready)
    await asyncio.Event().wait()


# The world.

def ip(*words):
    subprocess.run(['ip', *words], check=True)


def child(run, *args):
    """A process that says when it is ready; its pid."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        try:
            run(w, *args)
        finally:
            os._exit(1)
    os.close(w)
    if os.read(r, 1) != b'1':
        sys.exit('networld: a part of the world does not come up')
    os.close(r)
    return pid


def other_side(ready, go):
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) < 0:
        sys.exit('networld: unshare: ' + os.strerror(ctypes.get_errno()))
    os.write(ready, b'1')
    os.read(go, 1)  # the link has come
    ip('link', 'set', 'lo', 'up')
    ip('addr', 'add', f'{GATE4}/24', 'dev', 't0')
    ip('addr', 'add', f'{GATE6}/64', 'dev', 't0', 'nodad')
    ip('addr', 'add', 'fe80::2/64', 'dev', 't0', 'nodad')  # RFC 4861 7.2.2: a neighbour that is stale is asked from it
    ip('link', 'set', 't0', 'up')
    batch = ''.join(f'addr add {a}/{128 if ":" in a else 32} dev lo{" nodad" if ":" in a else ""}\n' for a in ADDRESSES)
    subprocess.run(['ip', '-batch', '-'], input=batch, text=True, check=True)


def make_links(pid):
    ip('link', 'set', 'lo', 'up')
    ip('link', 'add', 'w0', 'type', 'veth', 'peer', 'name', 't0')
    ip('link', 'set', 'w0', 'addrgenmode', 'none')
    ip('link', 'set', 't0', 'addrgenmode', 'none', 'netns', str(pid))
    ip('addr', 'add', f'{HOST4}/24', 'dev', 'w0')
    ip('addr', 'add', f'{HOST6}/64', 'dev', 'w0', 'nodad')
    ip('addr', 'add', 'fe80::1/64', 'dev', 'w0', 'nodad')
    ip('addr', 'add', f'{OWN_PUBLIC}/32', 'dev', 'w0')
    ip('link', 'set', 'w0', 'up')
    ip('route', 'add', 'default', 'via', GATE4)
    ip('-6', 'route', 'add', 'default', 'via', GATE6, 'dev', 'w0')


def make_etc(folder):
    """A writable /etc with a resolv.conf of this world."""
    subprocess.run(['mount', '--make-rprivate', '/'], check=True)
    subprocess.run(['cp', '-a', '/etc', f'{folder}/etc'], check=False, stderr=subprocess.DEVNULL)
    os.chmod(f'{folder}/etc', 0o755)
    path = f'{folder}/etc/resolv.conf'
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(f'nameserver {RESOLVER}\nnameserver {RESOLVER2}\n')
    subprocess.run(['mount', '--bind', f'{folder}/etc', '/etc'], check=True)


def make_repository(folder):
    """www/repo.git, for the protocol without a program on the server."""
    work, bare = f'{folder}/work', f'{folder}/www/repo.git'
    os.makedirs(f'{folder}/www')
    if not shutil.which('git'):
        return
    environment = {**os.environ, 'HOME': folder, 'GIT_CONFIG_NOSYSTEM': '1'}
    for words in (['init', '-q', work], ['-C', work, '-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '-q', '--allow-empty', '-m', 'first'],
                  ['clone', '-q', '--bare', work, bare], ['-C', bare, 'update-server-info']):
        subprocess.run(['git', *words], check=True, env=environment, stderr=subprocess.DEVNULL)


def main(folder, command):
    os.makedirs(folder, exist_ok=True)
    folder = os.path.abspath(folder)
    certificate(folder)
    make_repository(folder)
    open(f'{folder}/log', 'w', encoding='utf-8').close()
    go_r, go_w = os.pipe()

    def far(ready):
        r, w = os.pipe()
        os.close(go_w)
        other_side(ready, go_r)
        os.close(r)
        asyncio.run(targets(folder, w_ready))

    ready_r, w_ready = os.pipe()
    pid = child(far)
    make_links(pid)
    os.close(w_ready)
    os.write(go_w, b'1')
    if os.read(ready_r, 1) != b'1':
        sys.exit('networld: the servers do not come up')
    near = child(lambda ready: asyncio.run(host_services(folder, ready)))
    make_etc(folder)
    status = subprocess.run(command, check=False).returncode
    for p in (near, pid):
        os.kill(p, signal.SIGKILL)
        os.waitpid(p, 0)
    return status if status >= 0 else 128 - status


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
