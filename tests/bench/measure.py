# SPDX-License-Identifier: Apache-2.0
"""measure - run contestants in turn and take one sample a run.

Theory of operation. A race belongs to one figure and one actor. It runs in a forked child that has
become the actor, so that no setpriv stands in the timed part. First each contestant proves that it
does what is measured (its command's output arrives, all bytes come through); then come rounds, in
each of which every contestant runs once, in an order that moves on by one: whatever disturbs the
machine disturbs all alike. Whoever fails is out of the race with a reason, the others go on.
Processes that outlive their run fall to the child, which is a subreaper, and are ended by pid.
"""
import gc
import json
import os
import secrets
import signal
import subprocess
import time
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import place as places

WARMUP_ROUNDS = 3
SETTLE_S = 1.0
MIB = 1 << 20


class Failed(Exception):
    """A contestant did not do what it was asked to."""


@dataclass(frozen=True)
class Job:
    argv: list[str]
    env: dict[str, str]
    prints: bool = False  # the sample is the number on its standard output


@dataclass(frozen=True)
class Method:
    prove: Callable  # (contest, peer)
    sample: Callable  # (contest, peer) -> float
    warmup: int
    outside: bool = False  # taken by the bench's own user, of processes that may not be looked into
    end: Callable | None = None  # (contest, peer), after the last round


@dataclass
class Contest:
    figure: object  # rows.Figure
    place: places.Place
    stderr: int = field(default_factory=lambda: os.memfd_create("stderr"))
    stdout: int = field(default_factory=lambda: os.memfd_create("stdout"))
    alive: set[str] = field(default_factory=set)  # peers of which a sandbox runs (detached.py)

    def run_job(self, peer, words, fresh):
        job = peer.run(self.place, words, fresh)
        if self.figure.method.outside:
            return replace(job, argv=[*self.place.actor.prefix(), *job.argv])
        return job


# -- one process -------------------------------------------------------------------------------


def rewind(fd):
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)


def spawn(contest, job, stdout=None):
    rewind(contest.stderr)
    actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
               (os.POSIX_SPAWN_DUP2, contest.stderr, 2)]
    if stdout is None:
        actions.append((os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0))
    else:
        actions.append((os.POSIX_SPAWN_DUP2, stdout, 1))
    try:
        # Python ignores SIGPIPE, and an ignored signal would be inherited.
        return os.posix_spawn(job.argv[0], job.argv, job.env, file_actions=actions, setpgroup=0,
                              setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
    except OSError as e:
        raise Failed(f"{job.argv[0]}: {e.strerror}") from e


@contextmanager
def deadline(seconds, pid_of):
    """Kill the process group pid_of() names and raise Failed after so many seconds."""
    def on_alarm(*_):
        raise TimeoutError

    old = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except TimeoutError:
        os.killpg(pid_of(), signal.SIGKILL)
        os.waitpid(pid_of(), 0)
        raise Failed(f"no end within {seconds} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def failure(code, stderr):
    """-> a Failed with the end of what was said: the error, perhaps a hint after it"""
    said = " | ".join(stderr.strip().splitlines()[-2:])
    return Failed(f"exit status {code}" + (f": {said[:300]}" if said else ""))


def check(contest, status):
    if code := os.waitstatus_to_exitcode(status):
        raise failure(code, os.pread(contest.stderr, MIB, 0).decode(errors="replace"))


def run(contest, job, stdout=None):
    """Run to the end, -> seconds"""
    pid = None
    with deadline(contest.figure.timeout_s, lambda: pid):
        begin = time.perf_counter()
        pid = spawn(contest, job, stdout)
        _, status = os.waitpid(pid, 0)
        end = time.perf_counter()
    check(contest, status)
    return end - begin


def output(contest, job):
    rewind(contest.stdout)
    run(contest, job, contest.stdout)
    return os.pread(contest.stdout, MIB, 0).decode(errors="replace").strip()


# -- processes left over -----------------------------------------------------------------------


kept = set()  # pids that no sweep ends


def descendants():
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        children.setdefault(int(after_name[1]), []).append(int(stat.parent.name))
    found = [os.getpid()]
    for pid in found:
        found += children.get(pid, [])
    return [pid for pid in found[1:] if pid not in kept]


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def sweep():
    for _ in range(50):
        reap()
        left = descendants()
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        time.sleep(0.01)


# -- methods -----------------------------------------------------------------------------------


@contextmanager
def fresh_dir(contest):
    path = contest.place.fresh(contest.figure.tmpfs)
    try:
        yield path
    finally:
        places.remove(path)


def prove_output(contest, peer):
    token = secrets.token_hex(8)
    with fresh_dir(contest) as fresh:
        job = contest.run_job(peer, ("echo", token), fresh)
        if not job.prints and (got := output(contest, job)) != token:
            raise Failed(f"echo {token} printed {got[:100]!r}")


def sample_wall(contest, peer):
    with fresh_dir(contest) as fresh:
        job = contest.run_job(peer, contest.figure.words, fresh)
        if job.prints:
            return float(output(contest, job))
        return run(contest, job) * 1e3


def through_pipe(contest, peer, drain):
    """Run with a pipe as standard output; drain(fd) takes the other end. -> seconds"""
    with fresh_dir(contest) as fresh:
        job = contest.run_job(peer, contest.figure.words, fresh)
        pid = None
        with deadline(contest.figure.timeout_s, lambda: pid):
            reader, writer = os.pipe()
            begin = time.perf_counter()
            pid = spawn(contest, job, writer)
            os.close(writer)
            drain(reader)
            _, status = os.waitpid(pid, 0)
            end = time.perf_counter()
        check(contest, status)
    return end - begin


PIPE_BYTES = 1 << 30


def prove_pipe(contest, peer):
    seen = 0

    def count(reader):
        nonlocal seen
        with open(reader, "rb", buffering=0) as f:
            while data := f.read(MIB):
                seen += len(data)

    through_pipe(contest, peer, count)
    if seen != PIPE_BYTES:
        raise Failed(f"{seen} of {PIPE_BYTES} bytes came through")


def sample_pipe(contest, peer):
    def cat(reader):
        argv = [places.which("cat")]
        pid = os.posix_spawn(argv[0], argv, {}, file_actions=[
            (os.POSIX_SPAWN_DUP2, reader, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
        os.close(reader)
        os.waitpid(pid, 0)

    return PIPE_BYTES / through_pipe(contest, peer, cat) / 1e6


def proc_text(pid, name):
    """Empty for a process that has gone"""
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def pss_bytes(pid):
    return sum(int(line.split()[1]) * 1024 for line in proc_text(pid, "smaps_rollup").splitlines()
               if line.startswith("Pss:"))


def workload(words):
    """Pids of ours that run the sandbox's command, by their own argv"""
    return [pid for pid in descendants()
            if proc_text(pid, "cmdline").split("\0")[0] == words[0]]


def sample_idle(contest, peer):
    """PSS of what a peer keeps to hold one sandbox, in MiB. The command itself is the guest's."""
    words = contest.figure.words
    with fresh_dir(contest) as fresh:
        job = contest.run_job(peer, words, fresh)
        pid = None
        with deadline(contest.figure.timeout_s, lambda: pid):
            pid = spawn(contest, job)
            while not (guests := workload(words)):
                if os.waitpid(pid, os.WNOHANG)[0]:
                    raise Failed("ended before its command ran")
                time.sleep(0.01)
            time.sleep(SETTLE_S)
            total = sum(pss_bytes(p) for p in descendants() if p not in guests)
            for guest in guests:
                os.kill(guest, signal.SIGKILL)
            os.waitpid(pid, 0)
        sweep()
    return total / MIB


def sample_tree(contest, job_of):
    wanted = contest.place.images[contest.figure.image].entries
    with fresh_dir(contest) as fresh:
        seconds = run(contest, job_of(contest.place, fresh))
        found = sum(len(dirs) + len(files) for _, dirs, files in os.walk(fresh))
        # Whiteouts, and directories an actor may not read, make for a little less.
        if found < 0.9 * wanted:
            raise Failed(f"left {found} entries of an image of {wanted}")
    return seconds


def sample_unpack(contest, peer):
    return sample_tree(contest, peer.unpack)


def sample_pull(contest, peer):
    return sample_tree(contest, peer.pull)


def prove_nothing(_contest, _peer):
    """Each sample is checked."""


WALL = Method(prove_output, sample_wall, WARMUP_ROUNDS)
PIPE = Method(prove_pipe, sample_pipe, 0)
IDLE = Method(prove_output, sample_idle, 0, outside=True)
UNPACK = Method(prove_nothing, sample_unpack, 0)
PULL = Method(prove_nothing, sample_pull, 0)


# -- races -------------------------------------------------------------------------------------


def attempt(step, contest, peer, failures):
    """None when it failed; the reason is in failures then."""
    try:
        value = step(contest, peer)
    except (Failed, OSError, ValueError, subprocess.SubprocessError) as e:
        failures[peer.name] = str(e) if isinstance(e, Failed) else f"{type(e).__name__}: {e}"
        sweep()
        return None
    time.sleep(peer.linger_s)
    reap()
    return value


def rounds(contest, peers, count):
    """-> (samples, failures), by peer"""
    method = contest.figure.method
    samples, failures = {p.name: [] for p in peers}, {}
    for peer in peers:
        attempt(method.prove, contest, peer, failures)
    for r in range(-method.warmup, count):
        turn = r % len(peers)
        for peer in peers[turn:] + peers[:turn]:
            if peer.name in failures or r % peer.every:
                continue
            value = attempt(method.sample, contest, peer, failures)
            if value is not None and r >= 0:
                samples[peer.name].append(value)
    for peer in peers if method.end else []:
        attempt(method.end, contest, peer, failures)
    return samples, failures


def isolated(actor, work):
    """Call work() in a child that has become the actor (None: stays itself), -> its result"""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            places.subreaper()
            if actor:
                actor.become()
            gc.disable()
            result = json.dumps(work())
            sweep()
            with open(writer, "w") as f:
                f.write(result)
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader) as f:
        text = f.read()
    os.waitpid(child, 0)
    sweep()
    if not text:
        raise RuntimeError("a race ended without a result")
    return json.loads(text)


def race(figure, place, peers, count):
    def work():
        os.umask(0o022)
        os.chdir(place.dir)
        return rounds(Contest(figure, place), peers, count)

    return isolated(None if figure.method.outside else place.actor, work)
