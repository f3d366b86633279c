#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays a person who logs in at a terminal. Prints "ok WHAT" or "not ok WHAT" a check.

usage: login_driver.py OSBX REGISTRY USER PASSWORD
"""
import os
import pty
import select
import signal
import sys
import termios
import time

OSBX, REGISTRY, USER, PASSWORD = sys.argv[1:5]
PATIENCE = 20


def check(good, what, seen=b''):
    print(('ok ' if good else 'not ok ') + what)
    if not good:
        print(f'# seen: {seen!r}')


class Terminal:
    def __init__(self, *words):
        self.seen = b''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # Keeps the terminal after osbx, to be asked how it was left.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.execv(OSBX, [OSBX, *words])
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            echo = bool(termios.tcgetattr(0)[3] & termios.ECHO)
            os.write(1, f'[ended {status} echo {echo}]'.encode())
            # With the end of its session a terminal forgets what was not read yet.
            os.read(0, 1)
            os._exit(0)

    def read_until(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    break
        return text in self.seen

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        self.read_until(b'[ended ')
        self.read_until(b']')
        os.close(self.fd)
        os.waitpid(self.pid, 0)
        return self.seen


def answered():
    t = Terminal('login', REGISTRY)
    check(t.read_until(b'Username: '), 'it asks for the name', t.seen)
    t.type(USER + '\n')
    check(t.read_until(b'Password: '), 'and for the password', t.seen)
    t.type(PASSWORD + '\n')
    seen = t.end()
    check(b'[ended 0 echo True]' in seen and f'logged in to {REGISTRY}'.encode() in seen, 'and logs in', seen)
    check(PASSWORD.encode() not in seen, 'the password is not shown', seen)


def broken_off(what, key, status):
    t = Terminal('login', '-u', USER, REGISTRY)
    check(t.read_until(b'Password: ') and b'Username' not in t.seen, 'with a name it asks for the password alone', t.seen)
    t.type(key)
    seen = t.end()
    check(f'[ended {status} echo True]'.encode() in seen, what + ' ends it, and the terminal echoes again', seen)


def wrong():
    t = Terminal('login', '-u', USER, REGISTRY)
    t.read_until(b'Password: ')
    t.type('not-it\n')
    seen = t.end()
    check(b'[ended 125 echo True]' in seen and b'refuses the credentials' in seen, 'a wrong password is refused', seen)


answered()
broken_off('Ctrl-C', 'abc\x03', -signal.SIGINT)
broken_off('an empty line', '\n', 125)
wrong()
