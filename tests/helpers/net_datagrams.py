# SPDX-License-Identifier: Apache-2.0
"""What net_try.py can do without a connection, one function for each word:

udp ADDR PORT [TEXT]                         send, read
sizes ADDR PORT N...                         datagrams of these sizes, one after the other; "same" when all came back as they were
many ADDR PORT N                             N sockets at once; how many got their own answer
segments ADDR PORT                           one send that the kernel cuts into four (udp(7), UDP_SEGMENT); the sizes that came back
ttl ADDR PORT                                with a time to live of one
spoof ADDR PORT FROM                         from an address that is not the sandbox's
neighbour ADDR PORT                          to an address of the world's, while a socket here listens on all; what it got
ping ADDR [N]                                N echo requests; the sequence numbers that came back
flood ADDR PORT SECONDS                      as many as can be sent, each fourth one by a new socket
until ADDR PORT                              send and read until it fails: how
protocol NAME ADDR PORT                      udplite, dccp, sctp
"""
import errno
import select
import socket
import struct
import time

PROTOCOLS = {'udplite': (socket.SOCK_DGRAM, 136), 'dccp': (6, 33), 'sctp': (socket.SOCK_SEQPACKET, 132)}
UDP_SEGMENT = 103


def to(addr, port, kind=socket.SOCK_DGRAM, protocol=0, wait=5):
    s = socket.socket(socket.AF_INET6 if ':' in addr else socket.AF_INET, kind, protocol)
    s.settimeout(wait)
    s.connect((addr, int(port)))
    return s


def do_udp(addr, port, text='hello'):
    s = to(addr, port)
    s.send(text.encode())
    return s.recv(100).decode()


def do_sizes(addr, port, *sizes):
    s = to(addr, port)
    for n in map(int, sizes):
        sent = (b'%d:' % n * (n // 2 + 1))[:n]
        s.send(sent)
        if s.recv(70000) != sent:
            return f'{n} is another one'
    return 'same'


def do_many(addr, port, n):
    sockets = [to(addr, port) for _ in range(int(n))]
    for i, s in enumerate(sockets):
        s.send(b'%d' % i)
        if i % 16 == 15:
            time.sleep(0.02)  # no more sockets are asked for at once than this
    got = 0
    for i, s in enumerate(sockets):
        try:
            got += s.recv(100) == b'%d' % i
        except OSError:
            pass
    return str(got)


def do_segments(addr, port):
    s = to(addr, port)
    s.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
    s.send(b'x' * 3500)
    return ' '.join(str(len(s.recv(5000))) for _ in range(4))


def do_ttl(addr, port):
    s = to(addr, port)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 1)
    s.send(b'near')
    return s.recv(100).decode()


def do_spoof(addr, port, source):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((source, 0))
    s.settimeout(1)
    s.connect((addr, int(port)))
    s.send(b'spoofed')
    return s.recv(100).decode()


def do_neighbour(addr, port):
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind(('0.0.0.0', int(port)))
    s = to(addr, port, wait=2)
    try:
        s.send(b'for another')
        s.recv(100)
    except OSError:
        pass
    return 'it came here' if select.select([own], [], [], 0)[0] else 'nothing'


def do_ping(addr, n='1'):
    v6 = ':' in addr
    s = to(addr, 0, protocol=58 if v6 else 1)
    for i in range(int(n)):
        s.send(struct.pack('!BBHHH', 128 if v6 else 8, 0, 0, 0, i) + b'p' * (i * 100))
    got = []
    for _ in range(int(n)):
        m = s.recv(70000)
        kind, _, _, _, sequence = struct.unpack('!BBHHH', m[:8])
        if kind != (129 if v6 else 0) or m[8:] != b'p' * (sequence * 100):
            return 'another message'
        got.append(sequence)
    return ' '.join(map(str, sorted(got)))


def do_flood(addr, port, seconds):
    end = time.monotonic() + float(seconds)
    s = to(addr, port)
    sent = 0
    while time.monotonic() < end:
        if sent % 4 == 0:
            s = to(addr, port)
        try:
            s.send(b'f' * 500)
        except OSError:
            pass
        sent += 1
    return 'many' if sent > 1000 else str(sent)


def do_until(addr, port):
    s = to(addr, port)
    while True:
        s.send(b'still')
        try:
            s.recv(100)
        except (socket.timeout, TimeoutError):
            continue  # lost on the way
        time.sleep(0.01)


def do_protocol(name, addr, port):
    kind, number = PROTOCOLS[name]
    try:
        s = socket.socket(socket.AF_INET, kind, number)
    except OSError as e:
        return 'no socket: ' + errno.errorcode[e.errno]
    s.settimeout(2)
    s.connect((addr, int(port)))
    s.send(b'hello')
    return s.recv(100).decode()
