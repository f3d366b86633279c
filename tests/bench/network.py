# SPDX-License-Identifier: Apache-2.0
"""network - what a private network and its policy cost, beside peers without any network."""
import subprocess
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import api
import detached
import measure
from measure import MIB, Failed, Job, Method
from place import OUTSIDE

RESOLVER = "192.0.0.1"
POLICY = ("private", "--deny", "*", "--allow", "host.test", "--allow", "*.host.test:443")


def private(peer, job):
    """osbx with one instead of none."""
    if peer.name != "osbx":
        return job
    at = job.argv.index("none")
    return replace(job, argv=[*job.argv[:at], *POLICY, *job.argv[at + 1:]])


def sample_start(contest, peer):
    with measure.fresh_dir(contest) as fresh:
        job = private(peer, contest.run_job(peer, contest.figure.words, fresh))
        return measure.run(contest, job) * 1e3


def sample_idle(contest, peer):
    made = peer.detached.start(contest.place, detached.NAME, detached.IDLE_WORDS)
    measure.run(contest, detached.job(contest, private(peer, made)))
    time.sleep(measure.SETTLE_S)
    total = detached.pss_beside_guests(detached.IDLE_WORDS, 1)
    detached.stop(contest, peer, [detached.NAME])
    measure.sweep()
    return total / MIB


@contextmanager
def servers(contest):
    """net.c as the other side, -> the program"""
    program = api.client(contest.place, Path(__file__).with_name("net.c"))
    with subprocess.Popen([program, "serve", OUTSIDE], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
        try:
            if other.stdout.readline() != "ready\n":
                raise Failed(f"no servers at {OUTSIDE}, which root makes: {other.stderr.read()}")
            yield program
        finally:
            other.kill()


def sample_traffic(contest, peer):
    """Of osbx from a sandbox with a policy, of its peer without one. words: what, and how much"""
    place = contest.place
    what, *much = contest.figure.words
    with servers(contest) as program:
        if peer.name != "osbx":
            return float(measure.output(contest, Job([str(program), what, OUTSIDE, *much],
                                                     place.env())))
        to = RESOLVER if what == "lookup" else OUTSIDE
        return float(api.osbx(contest, "run", "--quiet", "--network", "private", "--deny", "*",
                              "--allow", OUTSIDE, "--allow", "*.bench.test", "--volume",
                              f"{program.parent}:/bench:ro", f"oci:{place.images['busybox'].ref}",
                              f"/bench/{program.name}", what, to, *much))


START = Method(measure.prove_output, sample_start, measure.WARMUP_ROUNDS)
IDLE = Method(measure.prove_nothing, sample_idle, 0, outside=True)
TRAFFIC = Method(measure.prove_nothing, sample_traffic, 1)
