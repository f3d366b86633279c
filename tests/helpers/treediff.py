#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""treediff.py [--no-owner] [--no-dir-mtime] [--subid=USER:FIRST] A B: compare two trees: names, types, modes, owners,
sizes, contents, link targets, modification times, user attributes, hard links. Prints each
difference; exit status 1 if there is one. --subid: USER owns what belongs to 0 in B, FIRST and up
what belongs to 1 and up."""
import hashlib
import os
import stat
import sys

options = {a for a in sys.argv[1:] if a.startswith('--')}
roots = [os.fsencode(a) for a in sys.argv[1:] if not a.startswith('--')]
SUBID = [tuple(map(int, a.partition('=')[2].split(':'))) for a in options if a.startswith('--subid=')]
IGNORED = (b'user.overlay.', b'user.containers.', b'user.rootlesscontainers')


def content(path):
    h = hashlib.sha256()
    with open(path, 'rb') as f:
        while piece := f.read(1 << 20):
            h.update(piece)
    return h.hexdigest()


def attributes(path):
    names = [os.fsencode(n) for n in os.listxattr(path, follow_symlinks=False)]
    return {n: os.getxattr(path, n, follow_symlinks=False) for n in sorted(names)
            if n.startswith(b'user.') and not n.startswith(IGNORED)}


def inside(owner):
    if not SUBID:
        return owner
    user, first = SUBID[0]
    return 0 if owner == user else owner - first + 1 if owner >= first else owner


def describe(path, st, links, name):
    d = {'type': stat.S_IFMT(st.st_mode), 'mode': oct(stat.S_IMODE(st.st_mode))}
    if '--no-owner' not in options:
        d['owner'] = (inside(st.st_uid), inside(st.st_gid))
    if not stat.S_ISDIR(st.st_mode) or '--no-dir-mtime' not in options:
        d['mtime'] = st.st_mtime_ns
    if stat.S_ISREG(st.st_mode):
        d['size'] = st.st_size
        d['content'] = content(path)
        d['xattrs'] = attributes(path)
        if st.st_nlink > 1:
            d['linked'] = links.setdefault((st.st_dev, st.st_ino), name)
    elif stat.S_ISLNK(st.st_mode):
        d['target'] = os.readlink(path)
    elif stat.S_ISDIR(st.st_mode):
        d['xattrs'] = attributes(path)
    elif stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode):
        d['device'] = st.st_rdev
    return d


def scan(root):
    found, links, todo = {}, {}, [b'']
    while todo:
        name = todo.pop()
        path = os.path.join(root, name) if name else root
        st = os.lstat(path)
        found[name] = describe(path, st, links, name)
        if stat.S_ISDIR(st.st_mode):
            todo += sorted((os.path.join(name, n) for n in os.listdir(path)), reverse=True)
    return found


a = scan(roots[0])
SUBID = []
b = scan(roots[1])
differences = 0
for name in sorted(a.keys() | b.keys()):
    label = name.decode('utf-8', 'backslashreplace') or '/'
    if name not in a or name not in b:
        print('only in', os.fsdecode(roots[0] if name in a else roots[1]) + ':', label)
        differences += 1
        continue
    for key in sorted(a[name].keys() | b[name].keys()):
        left, right = a[name].get(key), b[name].get(key)
        if left != right:
            print(f'{label}: {key}: {left} != {right}')
            differences += 1
print(f'{len(a)} and {len(b)} entries, {differences} differences')
sys.exit(differences > 0)
