# SPDX-License-Identifier: Apache-2.0
"""lifecycle - figures of the lifecycle API: osbx serve on a Unix socket, and a client as SDKs are, in this process.

A sandbox is created as an SDK does it: POST, both endpoints, and pings until one is answered. The
peer "direct" is osbx run -d and osbx rm -f without a server. words of a figure are numbers.
"""
import concurrent.futures
import http.client
import json
import math
import os
import socket
import statistics
import time

import api
import measure
from measure import MIB, Failed, Method

CROWD = 500
PAGE = 200


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


class Client:
    """One that keeps its connection"""

    def __init__(self, path, place):
        self.connection = Connection(path)
        self.image = f"oci:{place.images['busybox'].ref}"

    def call(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body is not None else None)
        answer = self.connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise Failed(f"{method} {path}: {answer.status} {data[:200]!r}")
        return json.loads(data) if data else None

    def create(self):
        """-> its id, when it has answered a ping"""
        made = self.call("POST", "/v1/sandboxes", {
            "image": {"uri": self.image}, "entrypoint": ["sleep", "1000"], "timeout": 3600,
            "resourceLimits": {"cpu": "1", "memory": "2Gi"}})
        for port in (44772, 18080):
            self.call("GET", f"/v1/sandboxes/{made['id']}/endpoints/{port}")
        self.call("GET", f"/v1/sandboxes/{made['id']}/proxy/44772/ping")
        return made["id"]

    def delete(self, name):
        """Until it is gone"""
        self.call("DELETE", f"/v1/sandboxes/{name}")
        self.connection.request("GET", f"/v1/sandboxes/{name}")
        answer = self.connection.getresponse()
        answer.read()
        if answer.status != 404:
            raise Failed(f"{name} is still there: {answer.status}")


def timed(call, *args):
    begin = time.perf_counter()
    result = call(*args)
    return result, (time.perf_counter() - begin) * 1e3


def quantile(values, q):
    return sorted(values)[math.ceil(len(values) * q) - 1]


def serving(contest):
    images = os.path.dirname(contest.place.images["busybox"].ref.rsplit(":", 1)[0])
    return api.server(contest, "--limits", "best-effort", "--host-path", images)


def times_of(contest):
    """Created and removed one after another, -> ms of each"""
    created, removed = [], []
    with serving(contest) as (path, _):
        client = Client(path, contest.place)
        for _ in range(int(contest.figure.words[0])):
            name, took = timed(client.create)
            created.append(took)
            removed.append(timed(client.delete, name)[1])
    return created, removed


def direct_times(contest):
    created, removed = [], []
    image = f"oci:{contest.place.images['busybox'].ref}"
    for _ in range(int(contest.figure.words[0])):
        name, took = timed(api.osbx, contest, "run", "--detach", "--network", "none", image,
                           "sleep", "1000")
        created.append(took)
        removed.append(timed(api.osbx, contest, "rm", "--force", name)[1])
    return created, removed


def sampler(which, of):
    def sample(contest, peer):
        taken = times_of(contest) if peer.name == "osbx" else direct_times(contest)
        return of(taken[which])

    return Method(measure.prove_nothing, sample, 0)


def sample_burst(contest, _peer):
    """So many at once, each on a connection of its own: 95 of 100 took no longer"""
    n = int(contest.figure.words[0])
    with serving(contest) as (path, _), concurrent.futures.ThreadPoolExecutor(n) as pool:
        clients = [Client(path, contest.place) for _ in range(n)]
        done = list(pool.map(lambda c: timed(c.create), clients))
        list(pool.map(lambda c, d: c.delete(d[0]), clients, done))
    return quantile([took for _, took in done], 0.95)


def crowd(contest):
    """CROWD sandboxes alive at once, once for all figures about them"""
    known = contest.place.dir / "crowd-serve.json"
    if known.exists():
        return json.loads(known.read_text())
    with serving(contest) as (path, pid):
        client = Client(path, contest.place)
        time.sleep(measure.SETTLE_S)
        idle, own = measure.pss_bytes(pid), api.status_of(pid, "RssAnon")
        names = [client.create() for _ in range(CROWD)]
        lists = [timed(client.call, "GET", f"/v1/sandboxes?pageSize={PAGE}") for _ in range(20)]
        if lists[0][0]["pagination"]["totalItems"] != CROWD:
            raise Failed(f"the list has {lists[0][0]['pagination']['totalItems']} of {CROWD}")
        gets = [timed(client.call, "GET", f"/v1/sandboxes/{names[0]}")[1] for _ in range(50)]
        time.sleep(measure.SETTLE_S)
        # Not PSS: all keepers share the pages of the program, so that its part becomes less.
        more = api.status_of(pid, "RssAnon") - own
        for name in names:
            client.delete(name)
    took = {"list": statistics.median(t for _, t in lists), "get": statistics.median(gets),
            "idle": idle / MIB, "more": more / MIB}
    known.write_text(json.dumps(took))
    return took


def crowd_method(what):
    return Method(measure.prove_nothing, lambda contest, _peer: crowd(contest)[what], 0,
                  outside=True)


CREATED = sampler(0, statistics.median)
CREATED_99 = sampler(0, lambda taken: quantile(taken, 0.99))
DELETED = sampler(1, statistics.median)
BURST = Method(measure.prove_nothing, sample_burst, 0)
LIST, GET, IDLE, MORE = map(crowd_method, ("list", "get", "idle", "more"))
