# SPDX-License-Identifier: Apache-2.0
"""place - where and as whom things run: users, directories, private namespaces.

Actors: root; user, with subordinate ids; single, without. Root can be all three and makes the two
users when they are missing; anybody else is the one he is.
"""
import ctypes
import fcntl
import os
import pwd
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USERS = {"user": "osbx-bench", "single": "osbx-bench1"}
SUBIDS = 65536
OUTSIDE = "198.51.100.1"  # in the bench's own network namespace


@dataclass(frozen=True)
class Actor:
    who: str
    name: str
    uid: int
    gid: int
    sub: tuple[int, int] | None = None  # first subordinate uid and gid

    @property
    def itself(self):
        return self.uid == os.geteuid()

    def prefix(self):
        """Words before a command line that make it run as the actor."""
        if self.itself:
            return []
        return [which("setpriv"), "--reuid", str(self.uid), "--regid", str(self.gid),
                "--init-groups", "--"]

    def become(self):
        if not self.itself:
            os.initgroups(self.name, self.gid)
            os.setresgid(self.gid, self.gid, self.gid)
            os.setresuid(self.uid, self.uid, self.uid)


class Unavailable(Exception):
    """This actor cannot be had, and why."""


def which(program):
    return shutil.which(program, path=PATH)


def subid_ranges(kind):
    """(owner, first, count) of each line of /etc/subuid or /etc/subgid"""
    try:
        lines = Path(f"/etc/sub{kind}").read_text().splitlines()
    except FileNotFoundError:
        return []
    fields = [line.split(":") for line in lines if line.count(":") == 2]
    return [(owner, int(first), int(count)) for owner, first, count in fields]


def subids_of(name, uid):
    firsts = [next((first for owner, first, count in subid_ranges(kind)
                    if owner in (name, str(uid)) and count >= SUBIDS), None)
              for kind in ("uid", "gid")]
    return None if None in firsts else tuple(firsts)


def actor_of(who, entry):
    sub = subids_of(entry.pw_name, entry.pw_uid) if who != "root" else None
    return Actor(who, entry.pw_name, entry.pw_uid, entry.pw_gid, sub)


def user_make(who, name):
    if not which("useradd") or not which("usermod"):
        raise Unavailable(f"there is no useradd to make the user {name}")
    subprocess.run([which("useradd"), "--system", "--no-create-home", "--home-dir", "/nonexistent",
                    "--shell", "/usr/sbin/nologin", "--user-group", name], check=True)
    if who == "user":
        ranges = subid_ranges("uid") + subid_ranges("gid")
        first = max([100000, *(start + count for _, start, count in ranges)])
        span = f"{first}-{first + SUBIDS - 1}"
        subprocess.run([which("usermod"), "--add-subuids", span, "--add-subgids", span, name],
                       check=True)


def actor(who):
    own = pwd.getpwuid(os.geteuid())
    if own.pw_uid != 0:
        me = actor_of("user" if subids_of(own.pw_name, own.pw_uid) else "single", own)
        if me.who != who:
            raise Unavailable("needs root")
        return me
    if who == "root":
        return actor_of(who, own)
    try:
        entry = pwd.getpwnam(USERS[who])
    except KeyError:
        user_make(who, USERS[who])
        entry = pwd.getpwnam(USERS[who])
    found = actor_of(who, entry)
    if bool(found.sub) != (who == "user"):
        raise Unavailable(f"{found.name} has {'' if found.sub else 'no '}subordinate ids")
    return found


def fstype(path):
    """Type of the file system mounted at path last, None where nothing is"""
    found = None
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ", 1)
        if left.split()[4] == str(path):
            found = right.split()[0]
    return found


def mount(kind, target, options):
    subprocess.run([which("mount"), "-t", kind, "-o", options, "none", target], check=True)


def loopback_up():
    SIOCSIFFLAGS, IFF_UP = 0x8914, 1
    with socket.socket() as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def outside():
    """What private networks of sandboxes reach: an address that is not 127.0.0.1, a resolver at it that need not be root's."""
    SIOCSIFADDR = 0x8916
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFADDR, struct.pack("16sHH4s16x", b"lo:1", socket.AF_INET, 0,
                                                socket.inet_aton(OUTSIDE)))
    Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(f"nameserver {OUTSIDE}\n")
        f.flush()
        os.chmod(f.name, 0o644)
        subprocess.run([which("mount"), "--bind", f.name, os.path.realpath("/etc/resolv.conf")],
                       check=True)


def make_private():
    """As root start over in own mount and network namespaces, where runtimes find what they expect.

    Does nothing for anybody else, or when it has been done.
    """
    mark = "OSBX_BENCH_PRIVATE"
    if os.geteuid() != 0:
        return
    if not os.environ.get(mark):
        os.environ[mark] = "1"
        os.execv(which("unshare"), ["unshare", "--mount", "--net", "--propagation", "private",
                                    sys.executable, *sys.argv])
    loopback_up()
    outside()
    # crun and runc want one hierarchy; podman leaves its locks in /dev/shm.
    if fstype("/sys/fs/cgroup") != "cgroup2":
        mount("cgroup2", "/sys/fs/cgroup", "rw")
    mount("tmpfs", "/dev/shm", "mode=1777")


def subreaper():
    """Whoever loses its parent becomes a child of this process, so that it can be found."""
    PR_SET_CHILD_SUBREAPER = 36
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def remove(path):
    """Remove a tree, also where parts of it are closed or belong to our own subordinate ids."""
    try:
        shutil.rmtree(path)
    except PermissionError:
        me = pwd.getpwuid(os.geteuid())
        others = ["--map-auto"] if subids_of(me.pw_name, me.pw_uid) else []
        subprocess.run([which("unshare"), "--user", "--map-root-user", *others,
                        which("rm"), "-rf", path], check=True)


class Place:
    """The directories and environment of one actor."""

    def __init__(self, work, who):
        self.actor = actor(who)
        self.dir = work.disk / who
        self.tmpfs = work.tmpfs / who
        self.rootfs = work.rootfs
        self.images, self.missing = work.images, work.missing
        self.programs = work.programs
        self.registry = work.registry  # its address, None when there is none
        for path in (self.dir, self.tmpfs, self.dir / "home", self.tmpfs / "runtime"):
            path.mkdir(mode=0o700)
            os.chown(path, self.actor.uid, self.actor.gid)
        # As all peers, unless a row says otherwise.
        (self.dir / "osbx.conf").write_text("[sandbox]\nnetwork=none\n")
        self.prepared = set()  # names of peers
        self._fresh = 0

    def env(self):
        home, runtime = str(self.dir / "home"), str(self.tmpfs / "runtime")
        return {
            "PATH": PATH, "LANG": "C.UTF-8", "HOME": home, "USER": self.actor.name,
            "LOGNAME": self.actor.name, "XDG_RUNTIME_DIR": runtime, "TMPDIR": str(self.dir),
            "OSBX_ROOT": str(self.dir / "osbx"), "OSBX_RUNTIME": runtime + "/osbx",
            "OSBX_CONFIG": str(self.dir / "osbx.conf"),
        }

    def fresh(self, tmpfs):
        """A new directory. Never one that was there before: ext4 is slow to reuse inodes."""
        self._fresh += 1
        path = (self.tmpfs if tmpfs else self.dir) / f"{os.getpid():x}.{self._fresh:x}"
        path.mkdir()
        os.chown(path, self.actor.uid, self.actor.gid)
        return path


class Work:
    """Everything that goes when the bench ends."""

    def __init__(self, parent, programs):
        self.disk = Path(tempfile.mkdtemp(prefix="osbx-bench-", dir=parent))
        self.disk.chmod(0o755)
        self.rootfs = self.disk / "rootfs"
        self.images, self.missing = {}, {}  # the image, or why there is none, by kind
        self.programs = programs
        self.registry = None
        if os.geteuid() == 0:
            self.tmpfs = self.disk / "tmpfs"
            self.tmpfs.mkdir()
            mount("tmpfs", self.tmpfs, "mode=755,size=80%")
        else:
            shm = "/dev/shm" if fstype("/dev/shm") == "tmpfs" else None
            self.tmpfs = Path(tempfile.mkdtemp(prefix="osbx-bench-", dir=shm))

    def images_add(self, images, missing):
        self.images = {image.kind: image for image in images}
        self.missing = missing
        if "busybox" in self.images:
            self.images["busybox"].extract(self.rootfs)

    def close(self):
        if os.geteuid() == 0:
            subprocess.run([which("umount"), self.tmpfs], check=True)
        else:
            remove(self.tmpfs)
        remove(self.disk)
