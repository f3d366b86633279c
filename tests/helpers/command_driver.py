#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands over the execution API, for what curl cannot say: many at once, clients that do not read or go away.

usage: command_driver.py SOCKET CASE [ARGUMENT...]

many N           N commands at once, each with output and a status of its own; prints what was wrong, then the number
                 of right ones
throughput       64 MiB of lines of 80 bytes; prints "whole" when all of it came
unread JSON PID  start JSON and read nothing: prints the growth of PID's memory in MiB after a while, then goes away
slow PID         1 GiB in lines of 1,023 bytes, read with pauses; prints "whole, N MiB" with the growth of PID's memory
count JSON       number of events by type, and "exact" when the frames are bare JSON objects with rising numbers
"""
import concurrent.futures
import http.client
import json
import socket
import sys
import time

SOCKET = sys.argv[1]


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(300)
        self.sock.connect(SOCKET)


def start(body):
    c = Connection('x')
    c.request('POST', '/command', json.dumps(body), {'Content-Type': 'application/json'})
    return c.getresponse()


def events_of(data):
    """The contract: JSON objects in one line, an empty line behind each."""
    frames = data.split(b'\n\n')
    assert frames[-1] == b'', frames[-1][:100]
    return [json.loads(f) for f in frames[:-1]]


def run(body):
    r = start(body)
    data = r.read()
    assert r.status == 200, data
    return events_of(data)


def check(i):
    events = run({'command': f'echo out {i}; echo err {i} >&2; sleep 0.2; echo $V; exit {i % 100}', 'envs': {'V': f'v{i}'}})
    kinds = [e['type'] for e in events]
    stdout = [e['text'] for e in events if e['type'] == 'stdout']
    stderr = [e['text'] for e in events if e['type'] == 'stderr']
    assert kinds[:2] == ['init', 'ping'], kinds
    assert stdout == [f'out {i}', f'v{i}'] and stderr == [f'err {i}'], events
    assert kinds.count('error') + kinds.count('execution_complete') == 1, kinds
    if i % 100 == 0:
        assert kinds[-1] == 'execution_complete', kinds
    else:
        assert kinds[-1] == 'error' and events[-1]['error']['evalue'] == str(i % 100), events[-1]
    assert [e['eid'] for e in events] == list(range(1, len(events) + 1)), events
    return 1


def many(n):
    right = 0
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        for f in [pool.submit(check, i) for i in range(n)]:
            try:
                right += f.result()
            except Exception as e:  # pylint: disable=broad-except
                print(repr(e)[:300])
    print(right)


def throughput():
    line = '0123456789' * 7 + '012345678'
    r = start({'command': f'yes {line} | head -c {64 << 20}'})
    n = (64 << 20) // 80
    seen = 0
    tail = b''
    wanted = f'{{"type":"stdout","text":"{line}"'.encode()
    while True:
        data = r.read(1 << 20)
        if not data:
            break
        data = tail + data
        cut = data.rfind(b'\n\n') + 2
        tail = data[cut:]
        seen += data[:cut].count(wanted)
    print('whole' if seen in (n, n + 1) else f'{seen} of {n}')


def memory(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        return sum(int(line.split()[1]) for line in f if line.startswith('VmRSS')) / 1024


def unread(body, pid):
    before = memory(pid)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.connect(SOCKET)
    data = body.encode()
    s.sendall(b'POST /command HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n' % len(data) + data)
    most = 0.0
    for _ in range(20):
        time.sleep(0.1)
        most = max(most, memory(pid) - before)
    print(int(most))
    s.close()


def slow(pid):
    before = memory(pid)
    r = start({'command': f'yes {"@" * 1023} | head -c {1 << 30}'})
    most = 0.0
    seen = 0
    reads = 0
    while True:
        data = r.read(1 << 20)
        if not data:
            break
        seen += data.count(b'@')
        reads += 1
        if reads % 64 == 0:
            time.sleep(0.05)
            most = max(most, memory(pid) - before)
    print(f'{"whole" if seen == (1 << 20) * 1023 else seen}, {int(most)} MiB')


def count(body):
    events = run(json.loads(body))
    kinds = {}
    for e in events:
        kinds[e['type']] = kinds.get(e['type'], 0) + 1
    print(' '.join(f'{k}={v}' for k, v in sorted(kinds.items())))
    print('exact' if [e['eid'] for e in events] == list(range(1, len(events) + 1)) else 'gaps')


CASES = {'many': lambda n: many(int(n)), 'throughput': throughput, 'unread': unread, 'slow': slow, 'count': count}
CASES[sys.argv[2]](*sys.argv[3:])
