# SPDX-License-Identifier: Apache-2.0
"""network - what a private network and its policy cost, beside peers without any network."""
import time
from dataclasses import replace

import detached
import measure
from measure import MIB, Method

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


START = Method(measure.prove_output, sample_start, measure.WARMUP_ROUNDS)
IDLE = Method(measure.prove_nothing, sample_idle, 0, outside=True)
