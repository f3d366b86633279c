#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All tables, chains, rules, sets and elements of nftables in this network namespace, as the kernel tells them; without the program nft.

usage: nft_dump.py         print them, a line each
       nft_dump.py make    add a table "others" with a chain that counts
"""
import os
import socket
import struct
import sys

NFNL_NFTABLES = 10
KINDS = {'table': (0, 1), 'chain': (3, 4), 'rule': (6, 7), 'set': (9, 10), 'object': (18, 19), 'flowtable': (22, 23)}
NLM_REQUEST, NLM_ACK, NLM_CREATE, NLM_DUMP = 1, 4, 0x400, 0x300


def connect():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    s.bind((0, 0))
    return s


def message(kind, flags, body, family=0, seq=1):
    return struct.pack('=IHHII', 20 + len(body), kind, flags, seq, 0) + struct.pack('!BBH', family, 0, 0) + body


def attribute(kind, data):
    return struct.pack('=HH', 4 + len(data), kind) + data + b'\0' * (-len(data) % 4)


def text(data):
    """Bytes with what is readable readable; counters of rules do not stand in dumps of tables and chains."""
    return ''.join(chr(c) if 32 <= c < 127 else f'\\{c:02x}' for c in data)


def dump(s, name):
    get = KINDS[name][1]
    s.send(message(NFNL_NFTABLES << 8 | get, NLM_REQUEST | NLM_DUMP, b''))
    while True:
        data = s.recv(1 << 20)
        while data:
            n, kind = struct.unpack_from('=IH', data)
            if kind == 3:
                return
            if kind == 2:
                code, = struct.unpack_from('=i', data, 16)
                sys.exit(f'nft_dump: {name}: {os.strerror(-code)}')
            # without the generation, which every change counts up
            print(name, data[16], text(data[20:n]))
            data = data[(n + 3) & ~3:]


def make(s):
    batch = struct.pack('=IHHII', 20, 16, NLM_REQUEST, 0, 0) + struct.pack('!BBH', 0, 0, NFNL_NFTABLES)
    batch += message(NFNL_NFTABLES << 8, NLM_REQUEST | NLM_CREATE, attribute(1, b'others\0'), family=1, seq=1)
    hook = attribute(0x8004, attribute(1, struct.pack('!I', 3)) + attribute(2, struct.pack('!I', 0)))
    chain = attribute(1, b'others\0') + attribute(3, b'out\0') + hook + attribute(5, struct.pack('!I', 1)) + attribute(7, b'filter\0')
    batch += message(NFNL_NFTABLES << 8 | 3, NLM_REQUEST | NLM_CREATE | NLM_ACK, chain, family=1, seq=2)
    batch += struct.pack('=IHHII', 20, 17, NLM_REQUEST, 3, 0) + struct.pack('!BBH', 0, 0, NFNL_NFTABLES)
    s.send(batch)
    code, = struct.unpack_from('=i', s.recv(65536), 16)
    if code:
        sys.exit(f'nft_dump: {os.strerror(-code)}')


def main():
    s = connect()
    if sys.argv[1:] == ['make']:
        make(s)
        return
    for name in KINDS:
        dump(s, name)


main()
