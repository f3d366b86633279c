#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays a person at a terminal before osbx. Prints "ok WHAT" or "not ok WHAT" a check.

usage: tty_driver.py OSBX IMAGE
"""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

OSBX, IMAGE = sys.argv[1:3]
PATIENCE = 20
PS1 = ['-e', 'PS1=READY$ ']


def check(good, what, seen=''):
    print(('ok ' if good else 'not ok ') + what)
    if not good:
        print(f'# seen: {seen!r}')
    sys.stdout.flush()


class Terminal:
    """A child at a pty of its own."""

    def __init__(self, argv, rows=24, cols=80):
        self.seen = b''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', rows, cols, 0, 0))
            os.execvp(argv[0], argv)

    def read(self, seconds):
        """What comes within the time; False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b''
        self.seen += data
        return bool(data)

    def wait_for(self, text, seconds=PATIENCE):
        """Read until text has come; what was seen up to it is forgotten."""
        end = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < end:
            if not self.read(0.1):
                break
        found = text in self.seen
        before, _, rest = self.seen.partition(text)
        if found:
            self.seen = rest
        return before if found else None

    def type(self, text):
        os.write(self.fd, text)

    def resize(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, cols, 0, 0))

    def local_modes(self):
        return termios.tcgetattr(self.fd)[3]

    def is_raw(self):
        return not self.local_modes() & (termios.ICANON | termios.ECHO | termios.ISIG)

    def becomes(self, question, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if question():
                return True
            time.sleep(0.02)
        return False

    def status(self, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.read(0.05) and select.select([self.fd], [], [], 0)[0]:
                    pass
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return 'still running'

    def close(self):
        os.close(self.fd)


def run(*args, **kwargs):
    return Terminal([OSBX, 'run', *args], **kwargs)


def interactive():
    t = run('-it', *PS1, IMAGE, 'sh', rows=33, cols=99)
    check(t.wait_for(b'READY$ ') is not None, 'a prompt comes', t.seen)
    check(t.is_raw(), 'the terminal is raw meanwhile')
    t.type(b'tty; stty size; echo done-$((1+1))\r')
    seen = t.wait_for(b'done-2\r\n')
    check(seen and b'/dev/pts/' in seen, 'the guest has a terminal of its own', seen)
    check(seen and b'33 99' in seen, 'of the same size', seen)
    t.type(b'echo by-console-$((40+2)) >/dev/console\n')
    check(t.wait_for(b'by-console-42\r\n') is not None, '/dev/console is that terminal', t.seen)
    t.resize(44, 120)
    time.sleep(0.2)
    t.type(b'stty size; echo done-$((2+2))\r')
    seen = t.wait_for(b'done-4\r\n')
    check(seen and b'44 120' in seen, 'also after a change of size', seen)
    t.type(b'sleep 100\r')
    time.sleep(0.3)
    t.type(b'\x03')
    t.type(b'echo status-$?\r')
    check(t.wait_for(b'status-130\r\n') is not None, 'Ctrl-C ends the command, not the shell', t.seen)
    t.type(b'sleep 100\r')
    time.sleep(0.3)
    t.type(b'\x1a')
    t.type(b'jobs; echo done-$((3+3))\r')
    seen = t.wait_for(b'done-6\r\n')
    check(seen and b'Stopped' in seen, 'Ctrl-Z stops the command, in the guest', seen)
    t.type(b'fg\r')
    time.sleep(0.3)
    t.type(b'\x03')
    t.type(b'exit 5\r')
    status = t.status()
    check(status == 5, 'exit status', (status, t.seen))
    check(not t.is_raw(), 'the terminal is as before')
    t.close()


def ends():
    t = run('-it', *PS1, IMAGE, 'sh')
    t.wait_for(b'READY$ ')
    t.type(b'\x04')
    check(t.status() == 0, 'Ctrl-D ends the shell')
    check(not t.is_raw(), 'and the terminal is as before')
    t.close()
    t = run('-it', IMAGE, '/nonexistent')
    check(t.status() == 127 and b'nonexistent' in t.seen, 'a command that does not exist', t.seen)
    check(not t.is_raw(), 'and the terminal is as before')
    t.close()
    t = run('-it', IMAGE, 'sh', '-c', 'trap "echo trapped; exit 9" TERM; echo go; while :; do sleep 0.1; done')
    t.wait_for(b'go\r\n')
    os.kill(t.pid, signal.SIGTERM)
    status = t.status()
    check(status == 9 and b'trapped' in t.seen, 'SIGTERM is forwarded', (status, t.seen))
    check(not t.is_raw(), 'and the terminal is as before')
    t.close()


def output():
    t = run('-it', IMAGE, 'sh', '-c', 'seq 20000')
    status = t.status()
    lines = t.seen.replace(b'\r\n', b'\n').split(b'\n')
    check(status == 0 and lines[:1] == [b'1'] and lines[-2:] == [b'20000', b''] and len(lines) == 20001,
          'all output arrives', (status, len(lines), lines[-3:]))
    t.close()
    t = run('-it', IMAGE, 'sh', '-c', 'stty raw -echo; head -c 100000 | wc -c')
    t.becomes(t.is_raw)
    time.sleep(0.5)
    sent = 0
    os.set_blocking(t.fd, False)
    while sent < 100000:
        select.select([t.fd], [t.fd], [], 1)
        t.read(0)
        try:
            sent += os.write(t.fd, b'x' * min(4096, 100000 - sent))
        except BlockingIOError:
            pass
    check(t.wait_for(b'100000') is not None, 'a paste of 100,000 bytes', t.seen[-80:])
    t.status()
    t.close()


def hangup():
    t = run('-it', *PS1, IMAGE, 'sh')
    t.wait_for(b'READY$ ')
    t.close()
    end = time.monotonic() + 5
    gone = False
    while time.monotonic() < end and not gone:
        gone = os.waitpid(t.pid, os.WNOHANG)[0] == t.pid
        time.sleep(0.1)
    if not gone:
        os.kill(t.pid, signal.SIGKILL)
        os.waitpid(t.pid, 0)
    check(gone, 'a terminal that is closed ends the sandbox, long before the ten seconds of a stop')


def killed():
    """Whoever runs osbx in a terminal without being a shell has nobody else to restore it."""
    for signo in (signal.SIGKILL, signal.SIGSEGV):
        t = Terminal(['sh', '-c', f'{OSBX} run -it -e "PS1=READY$ " {IMAGE} sh; sleep 100'])
        before = termios.tcgetattr(t.fd)
        t.wait_for(b'READY$ ')
        check(t.is_raw(), 'the terminal is raw')
        osbx = [int(pid) for pid in os.listdir('/proc') if pid.isdigit() and parent(pid) == t.pid]
        os.kill(osbx[0], signo)
        check(t.becomes(lambda: termios.tcgetattr(t.fd) == before), f'signal {signo} leaves it as it was', t.seen)
        os.kill(t.pid, signal.SIGKILL)
        t.status()
        t.close()
    t = run('-it', *PS1, IMAGE, 'sh')
    t.wait_for(b'READY$ ')
    modes = termios.tcgetattr(t.fd)
    modes[3] |= termios.ECHO
    termios.tcsetattr(t.fd, termios.TCSANOW, modes)
    os.kill(t.pid, signal.SIGKILL)
    t.status()
    time.sleep(0.3)
    check(termios.tcgetattr(t.fd)[3] == modes[3], 'what somebody else has set meanwhile is left alone', t.seen)
    t.close()


def parent(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as f:
            return int(f.read().rpartition(')')[2].split()[1])
    except OSError:
        return -1


def shows_only():
    t = run('-t', IMAGE, 'sh', '-c', 'test -t 1 && echo yes; sleep 100')
    t.wait_for(b'yes')
    check(not t.is_raw(), '-t without -i leaves the terminal as it is')
    t.type(b'\x03')
    check(t.status() == 130, 'Ctrl-C is forwarded once')
    t.close()


def no_terminal():
    t = run('-i', IMAGE, 'sh', '-c', 'read x; echo got-$x; cat; echo end; sleep 100')
    time.sleep(0.5)
    check(not t.is_raw(), '-i without -t leaves the terminal as it is')
    t.type(b'line\n')
    check(t.wait_for(b'got-line') is not None, 'a typed line arrives', t.seen)
    t.type(b'\x04')
    check(t.wait_for(b'end') is not None, 'Ctrl-D is the end of the input', t.seen)
    t.type(b'\x03')
    check(t.status() == 130, 'Ctrl-C ends the command')
    t.close()


def job_control():
    """In a shell with job control: Ctrl-Z stops osbx and freezes the sandbox, fg goes on."""
    t = Terminal(['bash', '--norc', '--noprofile', '-i'])
    t.type(b"PS1='SHELL> '\n")
    t.wait_for(b'SHELL> ')
    t.wait_for(b'SHELL> ', 1)
    t.type(f"{OSBX} run {IMAGE} sh -c 'i=0; while :; do i=$((i+1)); echo tick-$i; sleep 0.1; done'\n".encode())
    check(t.wait_for(b'tick-3\r\n') is not None, 'it runs in the foreground of a shell', t.seen)
    t.type(b'\x1a')
    check(t.wait_for(b'Stopped') is not None and t.wait_for(b'SHELL> ') is not None, 'Ctrl-Z gives the shell back', t.seen)
    t.seen = b''
    t.read(0.1)
    t.seen = b''
    end = time.monotonic() + 1
    while time.monotonic() < end:
        t.read(0.1)
    check(b'tick' not in t.seen, 'the sandbox stands still', t.seen)
    t.type(b'fg\n')
    # The shell shows the command before it hands over the terminal.
    check(t.wait_for(b'\ntick-') is not None, 'fg lets it go on', t.seen)
    t.type(b'\x03')
    check(t.wait_for(b'SHELL> ') is not None, 'Ctrl-C ends it', t.seen)
    t.type(b'echo status-$?\n')
    check(t.wait_for(b'status-130') is not None, 'with 130', t.seen)
    t.type(f"{OSBX} run -it -e 'PS1=REA''DY$ ' {IMAGE} sh\n".encode())  # the echo of this is no prompt
    t.wait_for(b'READY$ ')
    os.kill(foreground(t), signal.SIGTSTP)
    check(t.wait_for(b'SHELL> ') is not None, 'SIGTSTP stops osbx also at a raw terminal', t.seen)
    check(t.becomes(lambda: not t.is_raw() or t.local_modes() & termios.ISIG), 'and restores it')
    t.type(b'fg\n')
    time.sleep(0.3)
    t.type(b'echo again-$((1+1))\r')
    check(t.wait_for(b'again-2\r\n') is not None, 'fg goes on', t.seen)
    t.type(b'exit\r')
    t.wait_for(b'SHELL> ')
    t.type(b'exit\n')
    t.status()
    t.close()


def foreground(t):
    """The process that stands at the terminal now."""
    return struct.unpack('i', fcntl.ioctl(t.fd, termios.TIOCGPGRP, b'\0' * 4))[0]


def refused():
    run_ = subprocess.run([OSBX, 'run', '-it', IMAGE, 'true'], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    check(run_.returncode == 125 and b'not a terminal' in run_.stderr, '-it without a terminal is refused', run_.stderr)


for part in (interactive, ends, output, hangup, killed, shows_only, no_terminal, job_control, refused):
    try:
        part()
    except Exception as e:  # pylint: disable=broad-except
        check(False, f'{part.__name__}: {type(e).__name__}', str(e))
