# SPDX-License-Identifier: Apache-2.0
"""rows - what is measured, against whom, and within which budget.

A figure says what is done and how it is measured; a row says for whom, beside which peer, and what
the outcome must keep to. A new figure or row is one entry here.
"""
from dataclasses import dataclass

import api
import detached
import interpreter
import lifecycle
import measure
import network


@dataclass(frozen=True)
class Figure:
    title: str
    unit: str
    method: measure.Method
    rounds: int
    quick: int  # rounds with --quick
    words: tuple[str, ...] = ()  # command inside the sandbox
    image: str = "busybox"
    tmpfs: bool = False  # fresh directories of a run lie on tmpfs, else on disk
    higher: bool = False  # is better
    timeout_s: int = 30
    registry: bool = False  # the image lies in a registry on this machine

    def keeps(self, value, limit):
        return value >= limit if self.higher else value <= limit


@dataclass(frozen=True)
class Budget:
    limit: float
    relative: bool  # to the peer, else in the figure's own unit
    aim: bool = False


@dataclass(frozen=True)
class Row:
    figure: str
    who: str  # an actor of place.py
    peer: str | None
    budget: Budget | None = None  # None: for information

    @property
    def key(self):
        return "/".join(filter(None, (self.figure, self.who, self.peer)))


def times(limit, aim=False):
    return Budget(limit, relative=True, aim=aim)


def absolute(limit):
    return Budget(limit, relative=False)


FIGURES = {
    "start": Figure("osbx run --network none IMAGE true", "ms", measure.WALL, 200, 40,
                    words=("true",)),
    "private": Figure("osbx run with a private network and a policy, beside peers without a network",
                      "ms", network.START, 200, 40, words=("true",)),
    "private-idle": Figure("processes of one idle detached sandbox with a private network, the "
                           "sleep it runs left out", "MiB PSS", network.IDLE, 5, 3,
                           words=detached.IDLE_WORDS),
    # Through a sandbox's network, beside the same without one.
    "connect": Figure("a connection and a byte there and back", "us", network.TRAFFIC, 5, 2,
                      words=("connect", "500"), timeout_s=60),
    "datagram": Figure("a datagram there and back", "us", network.TRAFFIC, 5, 2,
                       words=("datagram", "1000"), timeout_s=60),
    "lookup": Figure("a question for a name that nobody has asked for", "us", network.TRAFFIC, 5,
                     2, words=("lookup", "1000", "new"), timeout_s=60),
    "lookup-known": Figure("a question for a name that is known", "us", network.TRAFFIC, 5, 2,
                           words=("lookup", "1000", "known"), timeout_s=60),
    "relay-down": Figure("512 MiB by one connection, to the sandbox", "MB/s", network.TRAFFIC, 5,
                         2, words=("get", "512"), higher=True, timeout_s=60),
    "relay-up": Figure("512 MiB by one connection, from the sandbox", "MB/s", network.TRAFFIC, 5,
                       2, words=("put", "512"), higher=True, timeout_s=60),
    "idle": Figure("processes of one idle sandbox, the sleep it runs left out", "MiB PSS",
                   measure.IDLE, 5, 3, words=("sleep", "1000")),
    "exec": Figure("osbx exec in a running sandbox, of true", "ms", detached.EXEC, 200, 40,
                   words=("true",)),
    "make": Figure("osbx run -d --network none IMAGE sleep 1000, until it returns", "ms",
                   detached.MAKE, 100, 20, words=detached.IDLE_WORDS),
    "remove": Figure("osbx rm -f of a running sandbox", "ms", detached.REMOVE, 100, 20,
                     words=detached.IDLE_WORDS),
    "density": Figure("processes of one idle detached sandbox, the sleep it runs left out",
                      "MiB PSS", detached.DENSITY, 5, 3, words=detached.IDLE_WORDS),
    "crowd-make": Figure(f"one of {detached.CROWD} detached sandboxes, made one after another",
                         "ms", detached.CROWD_MAKE, 1, 1, words=detached.IDLE_WORDS,
                         timeout_s=120),
    "crowd-pss": Figure(f"one of {detached.CROWD} idle sandboxes that are alive at once",
                        "MiB PSS", detached.CROWD_PSS, 1, 1, words=detached.IDLE_WORDS,
                        timeout_s=120),
    "crowd-remove": Figure(f"one of {detached.CROWD} removed by one osbx rm -f; nothing is left",
                           "ms", detached.CROWD_REMOVE, 1, 1, words=detached.IDLE_WORDS,
                           timeout_s=120),
    "pipe": Figure("1 GiB written in a sandbox, through a pipe to cat", "MB/s", measure.PIPE, 9, 3,
                   words=("dd", "if=/dev/zero", "bs=64k", "count=16384"), higher=True,
                   timeout_s=60),
    "unpack": Figure("osbx load oci:DIR:TAG into an empty store on tmpfs", "s", measure.UNPACK,
                     5, 2, image="deb", tmpfs=True, timeout_s=300),
    "pull": Figure("osbx pull from a registry on this machine into an empty store on tmpfs", "s",
                   measure.PULL, 5, 2, image="deb", tmpfs=True, timeout_s=300, registry=True),
    # 50 commands a sample, so few samples.
    "command": Figure("POST /command true, until its last event", "ms", api.API, 9, 3,
                      words=("done", "50")),
    "command-end": Figure("POST /command true, until the end of the answer", "ms", api.API, 9, 3,
                          words=("end", "50")),
    "commands": Figure("50 commands at once, until the last one is complete", "ms", api.API, 15, 5,
                       words=("many", "50")),
    "proxied": Figure("POST /command true through osbx serve, beside without it", "ms",
                      api.PROXIED, 9, 3, words=("end", "50")),
    "proxied-output": Figure("256 MiB of output in lines of 80 bytes through osbx serve, beside "
                             "without it", "MB/s", api.PROXIED, 3, 1, words=("lines", "256"),
                             higher=True, timeout_s=120),
    "proxied-upload": Figure("POST /files/upload of 1 GiB to a tmpfs through osbx serve, beside "
                             "without it", "MB/s", api.PROXIED, 3, 1, words=("upload", "1024"),
                             higher=True, timeout_s=120),
    # A sample is so many sandboxes, created and removed as an SDK does it.
    "created": Figure("POST /sandboxes until a ping is answered, beside osbx run -d", "ms",
                      lifecycle.CREATED, 5, 2, words=("40",), timeout_s=120),
    "created-99": Figure("the same, 99 of 100 took no longer", "ms", lifecycle.CREATED_99, 3, 1,
                         words=("100",), timeout_s=120),
    "deleted": Figure("DELETE until GET answers 404, beside osbx rm -f", "ms", lifecycle.DELETED,
                      5, 2, words=("40",), timeout_s=120),
    "created-burst": Figure("50 at once until a ping is answered, 95 of 100 took no longer", "ms",
                            lifecycle.BURST, 5, 2, words=("50",), timeout_s=120),
    "served-list": Figure(f"GET /sandboxes, {lifecycle.PAGE} of {lifecycle.CROWD} that are alive",
                          "ms", lifecycle.LIST, 1, 1, timeout_s=300),
    "served-get": Figure(f"GET of one of {lifecycle.CROWD}", "ms", lifecycle.GET, 1, 1,
                         timeout_s=300),
    "served-idle": Figure("osbx serve with nothing to do", "MiB PSS", lifecycle.IDLE, 1, 1,
                          timeout_s=300),
    "served-more": Figure(f"what {lifecycle.CROWD} sandboxes add to its own memory", "MiB",
                          lifecycle.MORE, 1, 1, timeout_s=300),
    "code-first": Figure("POST /code/context and /code until the result, of Python", "ms",
                         interpreter.FIRST, 5, 2, words=("10",), timeout_s=120),
    "code-next": Figure("POST /code in a context that has run before, until the result", "ms",
                        interpreter.NEXT, 5, 2, words=("50",), timeout_s=120),
    "tick": Figure("a printed line until its event, 95 of 100 took no longer", "ms", api.API, 5, 2,
                   words=("tick", "100")),
    "output": Figure("1 GiB of output in lines of 80 bytes, as events", "MB/s", api.API, 3, 1,
                     words=("lines", "1024"), higher=True, timeout_s=120),
    "output-memory": Figure("the same, memory of PID 1", "MiB", api.MEMORY, 2, 1,
                            words=("lines", "1024"), timeout_s=120),
    "line": Figure("1 GiB of output in one line, as events", "MB/s", api.API, 3, 1,
                   words=("endless", "1024"), higher=True, timeout_s=120),
    "line-memory": Figure("the same, memory of PID 1", "MiB", api.MEMORY, 2, 1,
                          words=("endless", "1024"), timeout_s=120),
    "upload": Figure("POST /files/upload of 1 GiB to a tmpfs", "MB/s", api.API, 3, 1,
                     words=("upload", "1024"), higher=True, timeout_s=120),
    "download": Figure("GET /files/download of 1 GiB from a tmpfs", "MB/s", api.API, 3, 1,
                       words=("download", "1024"), higher=True, timeout_s=120),
    "files-memory": Figure("both, memory of PID 1 and its workers", "MiB", api.MEMORY, 2, 1,
                           words=("download", "1024"), timeout_s=120),
}

ROWS = [
    Row("start", "root", "crun", times(0.65)),
    Row("start", "root", "bwrap", times(1.2)),
    Row("start", "root", "floor", times(2.7)),
    Row("start", "root", "runc"),
    Row("start", "root", "podman"),
    Row("start", "user", "crun", times(0.55)),
    Row("start", "user", "bwrap", times(1.5)),
    Row("start", "user", "floor"),
    Row("start", "user", "runc"),
    Row("start", "user", "podman"),
    Row("start", "single", "bwrap", times(1.2)),
    Row("start", "single", "crun"),
    Row("start", "single", "floor"),
    Row("private", "root", "crun", times(1.5)),
    Row("private", "user", "crun", times(1.5)),
    Row("private", "single", None),
    Row("private-idle", "root", None, absolute(3.0)),
    Row("private-idle", "user", None, absolute(3.0)),
    *(Row(figure, who, "direct") for who in ("root", "user")
      for figure in ("connect", "datagram", "lookup", "lookup-known", "relay-down", "relay-up")),
    Row("idle", "root", None, absolute(2.0)),
    Row("idle", "root", "crun"),
    Row("idle", "root", "bwrap"),
    Row("idle", "user", None, absolute(2.0)),
    Row("idle", "user", "crun"),
    Row("idle", "user", "bwrap"),
    Row("exec", "root", "crun"),
    Row("exec", "root", "runc"),
    Row("exec", "root", "podman"),
    Row("exec", "user", "crun"),
    Row("exec", "user", "podman"),
    Row("make", "root", "crun"),
    Row("make", "root", "podman"),
    Row("make", "user", "crun"),
    Row("make", "user", "podman"),
    Row("remove", "root", "crun"),
    Row("remove", "user", "crun"),
    Row("density", "root", None, absolute(2.0)),
    Row("density", "root", "podman"),
    Row("density", "user", None, absolute(2.0)),
    Row("density", "user", "podman"),
    Row("crowd-make", "root", None),
    Row("crowd-pss", "root", None, absolute(2.0)),
    Row("crowd-remove", "root", None),
    Row("crowd-make", "user", None),
    Row("crowd-pss", "user", None, absolute(2.0)),
    Row("crowd-remove", "user", None),
    Row("pipe", "root", "bwrap"),
    Row("pipe", "root", "crun"),
    Row("pipe", "user", "bwrap"),
    Row("pipe", "user", "crun"),
    Row("unpack", "root", "umoci", times(0.2)),
    Row("unpack", "root", "igzip", times(1.5, aim=True)),
    Row("unpack", "root", "podman"),
    Row("unpack", "user", "umoci", times(0.2)),
    Row("unpack", "user", "igzip", times(1.5, aim=True)),
    Row("unpack", "user", "podman"),
    Row("pull", "root", "skopeo+umoci", times(0.3)),
    Row("pull", "root", "podman"),
    Row("pull", "user", "skopeo+umoci", times(0.3)),
    Row("pull", "user", "podman"),
    Row("command", "root", None, absolute(2)),
    Row("command", "root", "floor", times(2)),
    Row("command", "user", None, absolute(2)),
    Row("command", "user", "floor", times(2)),
    Row("command-end", "root", None, absolute(2)),
    Row("command-end", "root", "floor", times(2)),
    Row("command-end", "user", "floor", times(2)),
    # 0.4 x the 102 ms of OpenSandbox's own execd.
    Row("commands", "root", None, absolute(41)),
    Row("commands", "root", "floor", times(2)),
    Row("commands", "user", "floor", times(2)),
    Row("created", "root", "direct"),
    Row("created", "user", "direct"),
    Row("created-99", "root", None),
    Row("deleted", "root", "direct"),
    Row("created-burst", "root", None),
    Row("served-list", "root", None),
    Row("served-get", "root", None),
    Row("served-idle", "root", None, absolute(4.0)),
    Row("served-more", "root", None, absolute(0.25)),
    Row("proxied", "root", "direct", times(1.3)),
    Row("proxied", "user", "direct", times(1.3)),
    Row("proxied-output", "root", "direct"),
    Row("proxied-upload", "root", "direct"),
    Row("code-first", "root", "python3", times(1.3)),
    Row("code-first", "root", "jupyter"),
    Row("code-first", "user", "python3", times(1.3)),
    Row("code-next", "root", None, absolute(2)),
    Row("code-next", "root", "jupyter"),
    Row("code-next", "user", None, absolute(2)),
    Row("tick", "root", None, absolute(1)),
    Row("tick", "user", None, absolute(1)),
    Row("output", "root", None, absolute(150)),
    Row("output", "user", None, absolute(150)),
    Row("output-memory", "root", None, absolute(4)),
    Row("line", "root", None, absolute(150)),
    Row("line-memory", "root", None, absolute(4)),
    Row("upload", "root", None, absolute(1000)),
    Row("upload", "user", None, absolute(1000)),
    Row("download", "root", None, absolute(1000)),
    Row("download", "user", None, absolute(1000)),
    Row("files-memory", "root", None, absolute(4)),
]
