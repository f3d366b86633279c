# SPDX-License-Identifier: Apache-2.0
"""api - figures of the execution API, taken by client.c on the Unix socket of a sandbox, or on that
of a server in front of it.

Each sample has a sandbox of its own. words of a figure are what client.c wants to be told.
"""
import json
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import measure
from measure import Failed, Job, Method

SOURCE = Path(__file__).with_name("client.c")
POLL_S = 0.005


def client(place, source=SOURCE):
    """The program, static: it also runs in sandboxes. Made by the first who needs it."""
    path = place.dir / "client" / source.stem
    if path.exists():
        return path
    if not place.programs["floor"]:
        raise Failed("there is no C compiler")
    path.parent.mkdir(mode=0o755, exist_ok=True)
    done = subprocess.run([place.programs["floor"], "-O2", "-static", "-o", path, source],
                          env=place.env(), text=True, capture_output=True)
    if done.returncode:
        raise measure.failure(done.returncode, done.stderr)
    return path


def floor_api(place, words):
    """The same work by fork, execve and wait, with the sandbox's own shell"""
    return Job([str(client(place)), "floor", *words, f"{place.rootfs}/bin/busybox"], place.env())


def osbx(contest, *words):
    place = contest.place
    return measure.output(contest, Job([place.programs["osbx"], *map(str, words)], place.env()))


@contextmanager
def sandbox(contest):
    """-> its id, its socket, pid of its PID 1"""
    place = contest.place
    name = osbx(contest, "run", "--detach", "--network", "none", "--tmpfs", "/data:2g", "--volume",
                f"{client(place).parent}:/bench:ro", f"oci:{place.images['busybox'].ref}", "sleep",
                "1000")
    try:
        told = json.loads(osbx(contest, "inspect", name))
        yield name, told["execd"]["socket"], told["pid"]
    finally:
        osbx(contest, "rm", "--force", name)


def client_run(contest, socket):
    return float(measure.output(contest, Job([str(client(contest.place)), socket,
                                              *contest.figure.words], contest.place.env())))


def sample_api(contest, peer):
    if peer.api:
        return float(measure.output(contest, peer.api(contest.place, contest.figure.words)))
    with sandbox(contest) as (_, socket, _):
        return client_run(contest, socket)


@contextmanager
def server(contest, *options):
    """osbx serve, -> its socket, its pid"""
    place = contest.place
    socket = place.dir / "serve.sock"
    args = [place.programs["osbx"], "serve", "--listen", f"unix:{socket}", *options]
    with subprocess.Popen(args, env=place.env(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as serve:
        try:
            while not socket.exists():
                if serve.poll() is not None:
                    raise Failed(f"osbx serve ended with status {serve.returncode}")
                time.sleep(POLL_S)
            yield socket, serve.pid
        finally:
            serve.terminate()
            serve.wait()
            socket.unlink(missing_ok=True)


def sample_proxied(contest, peer):
    """Of osbx through its server, of its peer without one"""
    with sandbox(contest) as (name, socket, _):
        if peer.name != "osbx":
            return client_run(contest, socket)
        with server(contest) as (through, _):
            return client_run(contest, f"{through}:/v1/sandboxes/{name}/proxy/44772")


def status_of(pid, field):
    """Bytes, 0 for a process that has gone"""
    return next((int(line.split()[1]) * 1024
                 for line in measure.proc_text(pid, "status").splitlines()
                 if line.startswith(field + ":")), 0)


def workers_of(pid):
    """Children that do its work, not commands"""
    name = measure.proc_text(pid, "comm")
    listed = measure.proc_text(f"{pid}/task/{pid}", "children").split()
    return [child for child in listed if measure.proc_text(child, "comm") == name]


def sample_memory(contest, _peer):
    """The most that PID 1 had resident, and what its workers had beyond what they share with it"""
    with sandbox(contest) as (_, socket, pid):
        most, over = 0, threading.Event()

        def watch():
            nonlocal most
            while not over.wait(POLL_S):
                most = max(most, sum(status_of(w, "RssAnon") for w in workers_of(pid)))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            client_run(contest, socket)
        finally:
            over.set()
            watcher.join()
        peak = status_of(pid, "VmHWM")
        if not peak:
            raise Failed("PID 1 of the sandbox is gone")
        return (peak + most) / measure.MIB


API = Method(measure.prove_nothing, sample_api, 1)
PROXIED = Method(measure.prove_nothing, sample_proxied, 1)
MEMORY = Method(measure.prove_nothing, sample_memory, 0)
