# SPDX-License-Identifier: Apache-2.0
"""interpreter - figures of /code: runs of Python in contexts of a sandbox of this machine's files.

A sample is the median of so many runs in one sandbox, from the request until the result is read.
The peer "python3" is the same program started anew for each; the peer "jupyter" a sandbox in which
Debian's jupyter-server has its kernels run the code, through the same API of osbx.
"""
import json
import statistics
import subprocess
import time
from contextlib import contextmanager

import api
import measure
from lifecycle import Connection, timed
from measure import Failed, Method

CODE = "6 * 7"
RESULT = "42"
PYTHON = "/usr/bin/python3"
PORT = 44771
JUPYTER = [PYTHON, "-m", "jupyter_server", "--ip=127.0.0.1", f"--port={PORT}", "--allow-root",
           "--no-browser", "--ServerApp.root_dir=/tmp", "--ServerApp.token=bench"]
JUPYTER_ENV = [f"JUPYTER_HOST=http://127.0.0.1:{PORT}", "JUPYTER_TOKEN=bench"]


class Client:
    """One that keeps its connection"""

    def __init__(self, path):
        self.connection = Connection(path)

    def call(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body is not None else None)
        answer = self.connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise Failed(f"{method} {path}: {answer.status} {data[:200]!r}")
        return json.loads(data) if data else None

    def run(self, context):
        """-> when the result was there"""
        self.connection.request("POST", "/code", json.dumps({"context": context, "code": CODE}))
        answer = self.connection.getresponse()
        at = None
        for line in answer:
            if at is None and b'"result"' in line:
                if json.loads(line)["results"]["text"] != RESULT:
                    raise Failed(f"another result: {line!r}")
                at = time.perf_counter()
        if at is None:
            raise Failed(f"no result, status {answer.status}")
        return at

    def run_anew(self):
        """In a context of its own, -> ms"""
        begin = time.perf_counter()
        context = {"id": self.call("POST", "/code/context", {"language": "python"})["id"]}
        took = (self.run(context) - begin) * 1e3
        self.call("DELETE", f"/code/contexts/{context['id']}")
        return took


@contextmanager
def sandbox(contest, peer):
    """-> a client; the server of Jupyter has answered"""
    words, env = ["sleep", "1000"], []
    if peer.name == "jupyter":
        words, env = JUPYTER, JUPYTER_ENV
    options = [w for e in [*env, "HOME=/tmp"] for w in ("--env", e)]
    name = api.osbx(contest, "run", "--detach", "--network", "none", *options, "@host", *words)
    try:
        told = json.loads(api.osbx(contest, "inspect", name))
        client = Client(told["execd"]["socket"])
        client.run_anew()
        yield client
    finally:
        api.osbx(contest, "rm", "--force", name)


def python_run():
    done = subprocess.run([PYTHON, "-c", f"print({CODE})"], stdout=subprocess.PIPE, check=True)
    if done.stdout.decode().strip() != RESULT:
        raise Failed(f"another result: {done.stdout!r}")


def sample_first(contest, peer):
    n = int(contest.figure.words[0])
    if peer.name == "python3":
        return statistics.median(timed(python_run)[1] for _ in range(n))
    with sandbox(contest, peer) as client:
        return statistics.median(client.run_anew() for _ in range(n))


def sample_next(contest, peer):
    with sandbox(contest, peer) as client:
        context, took = {"language": "python"}, []
        client.run(context)
        for _ in range(int(contest.figure.words[0])):
            begin = time.perf_counter()
            took.append((client.run(context) - begin) * 1e3)
        return statistics.median(took)


FIRST = Method(measure.prove_nothing, sample_first, 0)
NEXT = Method(measure.prove_nothing, sample_next, 0)
