#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images to pull: OCI layouts of some megabytes, tag t, the same bytes each time.

usage: pull_images.py OUT BUSYBOX NAME...

NAME is one of
    mixed      layers as gzip, zstd and plain tar
    big        a layer of 6 MB between two small ones
    same       one blob twice
    o0 … o9    two to four layers out of six that they share, each in another order, and one of their own
Each begins with busybox, so that it runs; every file /data/N holds its layer's bytes.
"""
import os
import random
import sys

from mkimage import Layer, file, folder, symlink, write_layout

APPLETS = ('sh', 'cat', 'echo', 'sha256sum', 'ls', 'true', 'sleep', 'find', 'sort', 'id')


def busybox(path):
    with open(path, 'rb') as f:
        program = f.read()
    links = [symlink('bin/' + name, 'busybox') for name in APPLETS]
    return Layer(folder('bin'), file('bin/busybox', program, mode=0o755), *links, folder('data'), folder('tmp', 0o1777))


def noise(name, size, compression='gzip'):
    return Layer(file(f'data/{name}', random.Random(name).randbytes(size)), compression=compression)


def overlapping(k):
    order = random.Random(k)
    shared = [noise(f's{i}', 300000 + 100000 * i) for i in range(6)]
    return order.sample(shared, 2 + k % 3) + [noise(f'own{k}', 50000)]


IMAGES = {
    'mixed': lambda: [noise('g', 400000), noise('z', 400000, 'zstd'), noise('n', 400000, 'none')],
    'big': lambda: [noise('before', 20000), noise('big', 6000000), noise('after', 30000)],
    'same': lambda: [noise('twice', 500000), noise('once', 1000), noise('twice', 500000)],
    **{f'o{k}': lambda k=k: overlapping(k) for k in range(10)},
}


def main():
    out, program = sys.argv[1:3]
    for name in sys.argv[3:]:
        write_layout(os.path.join(out, name), [busybox(program)] + IMAGES[name]())


main()
