#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A driver of the code interpreter without PID 1: its channel, its pipes, in a table of cells.

usage: driver_harness.py DRIVER CELL... -- COMMAND...

DRIVER is a file of execd/drivers, given as descriptor 4 (its comments are left in: embed.py takes them out). Each CELL is a
run; "@SECONDS:CODE" is interrupted after that time. What comes is printed, a line a piece, in the order that PID 1
would tell it.
"""
import os
import select
import signal
import socket
import subprocess
import sys
import time

LIMIT_S = 120


class Driver:
    def __init__(self, text, command):
        ours, theirs = socket.socketpair()
        self.channel, self.received = ours, b''
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        self.pipes = {out: 'stdout', err: 'stderr'}
        memory = os.memfd_create('driver', 0)
        os.write(memory, text)
        os.lseek(memory, 0, os.SEEK_SET)

        def place():
            os.dup2(theirs.fileno(), 53)
            os.dup2(memory, 54)
            os.dup2(53, 3)
            os.dup2(54, 4)

        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out_end, stderr=err_end, pass_fds=(3, 4),
                                        preexec_fn=place, start_new_session=True)
        for fd in (out_end, err_end, memory):
            os.close(fd)
        theirs.close()
        for fd in self.pipes:
            os.set_blocking(fd, False)

    def drain(self):
        for fd in self.pipes:
            text = b''
            while True:
                try:
                    piece = os.read(fd, 1 << 16)
                except BlockingIOError:
                    break
                if not piece:
                    break
                text += piece
            if text:
                print(self.pipes[fd], repr(text[:200].decode('utf-8', 'replace')), len(text))

    def frame(self):
        """The next frame, or None at the end of the driver."""
        end = self.received.find(b'\n')
        while end < 0 or len(self.received) <= end + int(self.received[2:end]):
            ready = select.select([self.channel, *self.pipes], [], [], LIMIT_S)[0]
            if not ready:
                raise TimeoutError
            if self.channel in ready:
                piece = self.channel.recv(1 << 16)
                if not piece:
                    self.drain()
                    return None
                self.received += piece
            else:
                self.drain()
                # A pipe at its end is always ready.
                time.sleep(0.001)
            end = self.received.find(b'\n')
        length = int(self.received[2:end])
        kind, payload = self.received[:1], self.received[end + 1:end + 1 + length]
        self.received = self.received[end + 1 + length:]
        return kind.decode(), payload.decode('utf-8')

    def until(self, last):
        while True:
            frame = self.frame()
            if frame is None:
                print('ended', self.process.wait())
                return False
            if frame[0] == 'S':
                self.drain()
                self.channel.sendall(b'A 0\n')
                continue
            print(frame[0], frame[1][:600])
            if frame[0] == last:
                return True

    def run(self, code):
        delay = None
        if code.startswith('@'):
            delay, code = code[1:].split(':', 1)
        data = code.encode()
        self.channel.sendall(b'R %d\n' % len(data) + data)
        if delay:
            time.sleep(float(delay))
            os.killpg(self.process.pid, signal.SIGINT)
        return self.until('F')


def main():
    split = sys.argv.index('--')
    cells, command = sys.argv[2:split], sys.argv[split + 1:]
    with open(sys.argv[1], 'rb') as f:
        driver = Driver(f.read(), command)
    start = time.monotonic()
    try:
        more = driver.until('H')
        print('# ready after', round(time.monotonic() - start, 2))
        for cell in cells:
            if not more:
                break
            start = time.monotonic()
            print('>', cell[:300].__repr__())
            more = driver.run(cell)
            print('#', round((time.monotonic() - start) * 1000, 1), 'ms')
        driver.channel.shutdown(socket.SHUT_RDWR)
        print('exit', driver.process.wait(20))
    finally:
        if driver.process.poll() is None:
            os.killpg(driver.process.pid, signal.SIGKILL)


main()
