# SPDX-License-Identifier: Apache-2.0
"""detached - sandboxes that live on without their starter: commands in them, their making, what one
and what many of them cost.

A peer's detached says how: start(place, name, words), exec(place, name, words), stop(place, names),
and list(place), whose job prints nothing when no sandbox is left, where there is one.
"""
import json
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import measure
from measure import MIB, Failed, Method

NAME = "osbx-bench"
IDLE_WORDS = ("sleep", "1000")
CROWD = 500


@dataclass(frozen=True)
class Detached:
    start: Callable
    exec: Callable
    stop: Callable
    list: Callable | None = None


def job(contest, made):
    if contest.figure.method.outside:
        return replace(made, argv=[*contest.place.actor.prefix(), *made.argv])
    return made


def start(contest, peer, name, words=IDLE_WORDS):
    """-> seconds until it runs and its starter has ended"""
    return measure.run(contest, job(contest, peer.detached.start(contest.place, name, words)))


def stop(contest, peer, names):
    return measure.run(contest, job(contest, peer.detached.stop(contest.place, names)))


def ready(contest, peer):
    """One sandbox, alive for the whole race."""
    if peer.name not in contest.alive:
        start(contest, peer, NAME)
        contest.alive.add(peer.name)
        measure.kept.update(measure.descendants())


def end_exec(contest, peer):
    if peer.name in contest.alive:
        contest.alive.remove(peer.name)
        stop(contest, peer, [NAME])
        if not contest.alive:
            measure.kept.clear()


def prove_exec(contest, peer):
    ready(contest, peer)
    token = secrets.token_hex(8)
    got = measure.output(contest, peer.detached.exec(contest.place, NAME, ("echo", token)))
    if got != token:
        raise Failed(f"echo {token} printed {got[:100]!r}")


def sample_exec(contest, peer):
    words = contest.figure.words
    return measure.run(contest, peer.detached.exec(contest.place, NAME, words)) * 1e3


def sample_make(contest, peer):
    seconds = start(contest, peer, NAME)
    stop(contest, peer, [NAME])
    return seconds * 1e3


def sample_remove(contest, peer):
    start(contest, peer, NAME)
    return stop(contest, peer, [NAME]) * 1e3


def pss_beside_guests(words, wanted):
    """PSS of what holds so many sandboxes, without the commands that run in them"""
    guests = measure.workload(words)
    if len(guests) != wanted:
        raise Failed(f"{len(guests)} of {wanted} sandboxes run their command")
    return sum(measure.pss_bytes(p) for p in measure.descendants() if p not in guests)


def sample_density(contest, peer):
    start(contest, peer, NAME)
    time.sleep(measure.SETTLE_S)
    total = pss_beside_guests(IDLE_WORDS, 1)
    stop(contest, peer, [NAME])
    measure.sweep()
    return total / MIB


def nothing_left(contest, peer):
    deadline = time.monotonic() + contest.figure.timeout_s
    while left := measure.descendants():
        measure.reap()
        if time.monotonic() > deadline:
            raise Failed(f"{len(left)} processes are left")
        time.sleep(0.01)
    if peer.detached.list:
        said = measure.output(contest, job(contest, peer.detached.list(contest.place)))
        if said:
            raise Failed(f"{len(said.splitlines())} sandboxes are left")
    left = peer.name == "osbx" and os.listdir(f"{contest.place.env()['OSBX_RUNTIME']}/sandboxes")
    if left:
        raise Failed(f"{len(left)} directories are left")


def crowd(contest, peer):
    """CROWD sandboxes alive at once, once for all figures about them, -> what that took"""
    known = Path(contest.place.dir / f"crowd-{peer.name}.json")
    if known.exists():
        return json.loads(known.read_text())
    names = [f"{NAME}-{i}" for i in range(CROWD)]
    made = sum(start(contest, peer, name) for name in names)
    time.sleep(measure.SETTLE_S)
    pss = pss_beside_guests(IDLE_WORDS, CROWD)
    removed = stop(contest, peer, names)
    nothing_left(contest, peer)
    took = {"make": made * 1e3 / CROWD, "pss": pss / MIB / CROWD,
            "remove": removed * 1e3 / CROWD}
    known.write_text(json.dumps(took))
    return took


def crowd_method(what):
    return Method(measure.prove_nothing, lambda contest, peer: crowd(contest, peer)[what], 0,
                  outside=True)


EXEC = Method(prove_exec, sample_exec, measure.WARMUP_ROUNDS, end=end_exec)
MAKE = Method(measure.prove_nothing, sample_make, 1)
REMOVE = Method(measure.prove_nothing, sample_remove, 1)
DENSITY = Method(measure.prove_nothing, sample_density, 0, outside=True)
CROWD_MAKE, CROWD_PSS, CROWD_REMOVE = map(crowd_method, ("make", "pss", "remove"))
