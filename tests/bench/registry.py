# SPDX-License-Identifier: Apache-2.0
"""registry - Debian's docker-registry on a port of this machine, for those who pull.

It runs beside the contestants, so its own work is part of every sample, the same for all.
"""
import socket
import subprocess
import time

import measure
import place as places

PATIENCE_S = 20

CONFIG = """
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {root}}}}}
http: {{addr: "{address}", secret: bench}}
"""


class RegistryError(Exception):
    pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(address):
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


class Registry:
    """A registry that holds one image as NAME:1."""

    def __init__(self, work, image):
        program, skopeo = places.which("docker-registry"), places.which("skopeo")
        if not program or not skopeo:
            raise RegistryError(f"{'skopeo' if program else 'docker-registry'} is not installed")
        self.address = f"127.0.0.1:{free_port()}"
        config = work.disk / "registry.yml"
        config.write_text(CONFIG.format(root=work.disk / "registry", address=self.address))
        self.process = subprocess.Popen([program, "serve", config], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        measure.kept.add(self.process.pid)
        try:
            self.fill(skopeo, image)
        except BaseException:
            self.stop()
            raise

    def fill(self, skopeo, image):
        end = time.monotonic() + PATIENCE_S
        while not answers(self.address):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RegistryError("docker-registry does not answer")
            time.sleep(0.05)
        done = subprocess.run([skopeo, "copy", "-q", "--preserve-digests", "--dest-tls-verify=false",
                               f"oci:{image.ref}", f"docker://{self.address}/{image.kind}:1"],
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise RegistryError(done.stderr.strip().splitlines()[-1][:200])

    def stop(self):
        self.process.kill()
        self.process.wait()
        measure.kept.discard(self.process.pid)
