# SPDX-License-Identifier: Apache-2.0
"""image - the images that are measured with, made by mkimage and cached.

They lie in $OSBX_BENCH_CACHE, else ${XDG_CACHE_HOME:-/var/cache}/osbx-bench, else, where that
cannot be written, in osbx-bench of the temporary directory.
"""
import json
import os
import subprocess
import tempfile
from pathlib import Path

MKIMAGE = Path(__file__).with_name("mkimage")


class ImageError(Exception):
    pass


def cache_dirs():
    if given := os.environ.get("OSBX_BENCH_CACHE"):
        return [Path(given)]
    system = Path(os.environ.get("XDG_CACHE_HOME") or "/var/cache")
    return [system / "osbx-bench", Path(tempfile.gettempdir()) / "osbx-bench"]


def trusted(path):
    """Anybody can make a directory in /tmp and let us run what he put there."""
    return path.stat().st_uid in (0, os.geteuid())


def find(kind):
    for cache in cache_dirs():
        if (cache / kind / "INFO").exists() and trusted(cache):
            return Image(kind, cache / kind)
    return None


def make(kind):
    for cache in cache_dirs():
        try:
            cache.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(cache, os.W_OK) and trusted(cache):
            break
    else:
        raise ImageError("no cache directory can be written, set OSBX_BENCH_CACHE")
    done = subprocess.run([MKIMAGE, kind, cache / kind], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise ImageError(done.stderr.strip().splitlines()[-1])
    return Image(kind, cache / kind)


def ensure(kind, progress):
    """mkimage itself knows a stale image; whoever may not write takes what is there."""
    found = find(kind)
    if found and not os.access(found.dir.parent, os.W_OK):
        return found
    if not found:
        progress(f"making the {kind} image, once" + (", minutes" if kind == "deb" else ""))
    return make(kind)


class Image:
    def __init__(self, kind, directory):
        self.kind = kind
        self.dir = directory
        self.layout = directory / "oci"
        self.archive = directory / f"{kind}.oci.tar"
        info = dict(line.split(" ", 1) for line in (directory / "INFO").read_text().splitlines())
        self.entries = int(info["entries"])

    @property
    def ref(self):
        return f"{self.layout}:{self.kind}"

    def _blob(self, descriptor):
        return self.layout / "blobs" / descriptor["digest"].replace(":", "/")

    def layers(self):
        (top,) = json.loads((self.layout / "index.json").read_text())["manifests"]
        manifest = json.loads(self._blob(top).read_text())
        return [self._blob(layer) for layer in manifest["layers"]]

    def extract(self, target):
        """Lay the layers down for runtimes that want a tree; for images without deletions."""
        target.mkdir()
        for layer in self.layers():
            subprocess.run(["tar", "-xzf", layer, "-C", target], check=True)

    def warm(self):
        """Bring the image into the page cache."""
        for path in [*self.layers(), *self.dir.glob("*.tar")]:
            with open(path, "rb", buffering=0) as f:
                while f.read(1 << 20):
                    pass
