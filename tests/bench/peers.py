# SPDX-License-Identifier: Apache-2.0
"""peers - how osbx and everybody else are run.

A peer's run() gives the job that runs words in a sandbox over the busybox image without a network;
unpack() the job that makes the deb image runnable beneath an empty directory, pull() the same from
the registry; prepare() does what
run() wants to find, once for each actor. A peer runs with its own defaults, less what a machine may
be unable to give (cgroup limits, a terminal).
"""
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from api import floor_api
from detached import Detached
from measure import Job, failure

FLOOR_ITERATIONS = "5"


@dataclass(frozen=True)
class Peer:
    name: str
    program: str  # without it there is no peer
    version: tuple[str, ...] | None = ("--version",)
    run: Callable | None = None  # (place, words, fresh) -> Job
    unpack: Callable | None = None  # (place, fresh) -> Job
    pull: Callable | None = None  # (place, fresh) -> Job
    detached: Detached | None = None
    prepare: Callable | None = None  # (place)
    every: int = 1  # takes part in each n-th round
    linger_s: float = 0  # it tidies up in the background, at the next one's cost
    api: Callable | None = None  # (place, words) -> Job that prints the figure; None: osbx's way


def do(place, argv):
    """Run a step of preparation as the actor, -> its output"""
    done = subprocess.run([*place.actor.prefix(), *map(str, argv)], env=place.env(), text=True,
                          cwd=place.dir, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=120)
    if done.returncode:
        raise failure(done.returncode, done.stderr)
    return done.stdout.strip()


# -- osbx --------------------------------------------------------------------------------------


def osbx_prepare(place):
    do(place, [place.programs["osbx"], "load", f"oci:{place.images['busybox'].ref}"])


def osbx_run(place, words, _fresh):
    return Job([place.programs["osbx"], "run", "--network", "none",
                f"oci:{place.images['busybox'].ref}", *words], place.env())


def osbx_job(place, *words):
    return Job([place.programs["osbx"], *words], place.env())


OSBX_DETACHED = Detached(
    lambda place, name, words: osbx_job(place, "run", "-d", "--name", name, "--network", "none",
                                        f"oci:{place.images['busybox'].ref}", *words),
    lambda place, name, words: osbx_job(place, "exec", name, *words),
    lambda place, names: osbx_job(place, "rm", "-q", "-f", *names),
    lambda place: osbx_job(place, "ps", "-aq"))


def osbx_fresh(place, fresh, words):
    env = place.env() | {"OSBX_ROOT": f"{fresh}/store", "OSBX_RUNTIME": f"{fresh}/run"}
    return Job([place.programs["osbx"], *words], env)


def osbx_unpack(place, fresh):
    return osbx_fresh(place, fresh, ["load", f"oci:{place.images['deb'].ref}"])


def osbx_pull(place, fresh):
    return osbx_fresh(place, fresh, ["pull", f"{place.registry}/deb:1"])


# -- bubblewrap, crun, runc --------------------------------------------------------------------


def bwrap_run(place, words, _fresh):
    return Job([place.programs["bwrap"], "--unshare-all", "--bind", str(place.rootfs), "/",
                "--proc", "/proc", "--dev", "/dev", *words], place.env())


def id_maps(actor):
    """Of container ids as rootless engines do: the actor is root, the rest is subordinate."""
    maps = []
    for kind, own in enumerate((actor.uid, actor.gid)):
        rows = [{"containerID": 0, "hostID": own, "size": 1}]
        if actor.sub:
            rows.append({"containerID": 1, "hostID": actor.sub[kind], "size": 65535})
        maps.append(rows)
    return dict(zip(("uidMappings", "gidMappings"), maps))


def bundle(place, runtime, words):
    """A bundle of the runtime's own making, for words, -> its directory"""
    path = place.dir / f"{runtime}-{words[0]}-{abs(hash(words))}"
    if path.exists():
        return path
    path.mkdir()
    root = place.actor.uid == 0
    subprocess.run([place.programs[runtime], "spec", *([] if root else ["--rootless"])], cwd=path,
                   check=True, capture_output=True)
    config = json.loads((path / "config.json").read_text())
    config["process"] |= {"terminal": False, "args": list(words)}
    config["root"]["path"] = str(place.rootfs)
    config["linux"].pop("resources", None)
    if not root:
        config["linux"] |= id_maps(place.actor)
        config["mounts"] = [m for m in config["mounts"] if m["type"] != "cgroup"]
    (path / "config.json").write_text(json.dumps(config))
    return path


def runtime_run(runtime):
    def make(place, words, _fresh):
        return Job([place.programs[runtime], "--root", str(place.tmpfs / runtime), "run",
                    "--bundle", str(bundle(place, runtime, words)), f"osbx-bench-{runtime}"],
                   place.env())

    return make


def runtime_detached(runtime):
    def job(place, *words):
        return Job([place.programs[runtime], "--root", str(place.tmpfs / runtime), *words],
                   place.env())

    return Detached(
        lambda place, name, words: job(place, "run", "--detach", "--bundle",
                                       str(bundle(place, runtime, words)), name),
        lambda place, name, words: job(place, "exec", name, *words),
        lambda place, names: job(place, "delete", "--force", names[0]))


# -- podman ------------------------------------------------------------------------------------


def podman(place, store, runtime):
    return [place.programs["podman"], "--root", f"{store}/storage", "--runroot",
            f"{runtime}/run", "--tmpdir", f"{runtime}/tmp", "--storage-driver", "overlay",
            "--cgroup-manager", "cgroupfs", "--events-backend", "file"]


def podman_prepare(place):
    image = do(place, [*podman(place, place.dir, place.tmpfs), "pull", "-q",
                       f"oci:{place.images['busybox'].ref}"])
    (place.dir / "podman-image").write_text(image)


def podman_run(place, words, _fresh):
    # Root without CAP_SYS_RESOURCE cannot have podman's default limits.
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
    return Job([*podman(place, place.dir, place.tmpfs), "run", "--rm", "--network", "none",
                "--cgroups", "disabled", *(limits if place.actor.uid == 0 else []),
                (place.dir / "podman-image").read_text(), *words], place.env())


def podman_job(place, *words):
    return Job([*podman(place, place.dir, place.tmpfs), *words], place.env())


PODMAN_DETACHED = Detached(
    lambda place, name, words: podman_job(
        place, "run", "-d", "--name", name, "--network", "none", "--cgroups", "disabled",
        *(("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
          if place.actor.uid == 0 else ()),
        (place.dir / "podman-image").read_text(), *words),
    lambda place, name, words: podman_job(place, "exec", name, *words),
    lambda place, names: podman_job(place, "rm", "-f", "-t", "0", *names))


def podman_unpack(place, fresh):
    return Job([*podman(place, fresh, fresh), "load", "-q", "-i",
                str(place.images["deb"].archive)], place.env())


def podman_pull(place, fresh):
    return Job([*podman(place, fresh, fresh), "pull", "-q", "--tls-verify=false",
                f"{place.registry}/deb:1"], place.env())


# -- unpackers, floors -------------------------------------------------------------------------


def umoci_unpack(place, fresh):
    rootless = [] if place.actor.uid == 0 else ["--rootless"]
    return Job([place.programs["umoci"], "unpack", *rootless, "--image",
                place.images["deb"].ref, f"{fresh}/bundle"], place.env())


SKOPEO_UMOCI = """
set -e
"$2" copy -q --preserve-digests --src-tls-verify=false "docker://$4/deb:1" "oci:$1/oci:deb"
"$3" unpack $5 --image "$1/oci:deb" "$1/bundle"
"""


def skopeo_pull(place, fresh):
    rootless = "" if place.actor.uid == 0 else "--rootless"
    programs = [place.programs["skopeo+umoci"], place.programs["umoci"] or "umoci"]
    return Job(["/bin/sh", "-c", SKOPEO_UMOCI, "sh", str(fresh), *programs, place.registry,
                rootless], place.env())


IGZIP_TAR = """
target=$1 igzip=$2 pids=
shift 2
for layer; do
	mkdir "$target/${layer##*/}"
	"$igzip" -dc <"$layer" | tar -x -p -C "$target/${layer##*/}" &
	pids="$pids $!"
done
for pid in $pids; do wait "$pid" || exit; done
"""


def igzip_unpack(place, fresh):
    layers = [str(path) for path in place.images["deb"].layers()]
    return Job(["/bin/sh", "-c", IGZIP_TAR, "sh", str(fresh), place.programs["igzip"], *layers],
               place.env())


def floor_prepare(place):
    source = os.path.join(os.path.dirname(__file__), "floor.c")
    subprocess.run([place.programs["floor"], "-O2", "-o", place.dir / "floor", source], check=True,
                   capture_output=True)


def floor_run(place, _words, fresh):
    return Job([str(place.dir / "floor"), "-n", FLOOR_ITERATIONS, str(place.rootfs),
                str(fresh)], place.env(), prints=True)


PEERS = {peer.name: peer for peer in [
    Peer("osbx", "osbx", ("version",), osbx_run, osbx_unpack, osbx_pull, OSBX_DETACHED,
         osbx_prepare),
    Peer("crun", "crun", run=runtime_run("crun"), detached=runtime_detached("crun")),
    Peer("runc", "runc", run=runtime_run("runc"), detached=runtime_detached("runc")),
    Peer("bwrap", "bwrap", run=bwrap_run),
    Peer("podman", "podman", run=podman_run, unpack=podman_unpack, pull=podman_pull,
         detached=PODMAN_DETACHED, prepare=podman_prepare, every=10, linger_s=0.3),
    Peer("umoci", "umoci", unpack=umoci_unpack),
    Peer("skopeo+umoci", "skopeo", pull=skopeo_pull),
    Peer("igzip", "igzip", unpack=igzip_unpack),
    Peer("direct", "sh", None),  # osbx itself, without its server
    Peer("python3", "python3"),
    Peer("jupyter", "jupyter-server"),
    Peer("floor", "cc", None, run=floor_run, prepare=floor_prepare, api=floor_api),
]}
