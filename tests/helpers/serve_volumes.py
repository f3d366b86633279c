#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Host volumes through the lifecycle API: what is allowed, links that lead out, also while a sandbox swaps them. One line "pass WHAT" or
"FAIL WHAT: why" each.

usage: serve_volumes.py SOCKET FOLDER; the server has --host-path FOLDER/allowed and FOLDER/second
"""
import json
import os
import stat
import subprocess
import sys

from serve_client import Server, check, code_of, wait_for, wish

server = Server(sys.argv[1])
BASE = os.path.realpath(sys.argv[2])
ALLOWED = f'{BASE}/allowed'
OUTSIDE = f'{BASE}/outside'
SECRET = 'not-for-sandboxes'
ROUNDS = 60
ROUNDS_MAX = 600
LOOK = 'ls -aR /v 2>&1; cat /v /v/* /v/sub/* 2>/dev/null'

# In the sandbox: the directory and a link that leads out change places, for ever. Neither is ever missing.
SWAP = '''
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
n = 0
while True:
    for a, b in ((b"/w/cur", b"/w/other"), (b"/w/deep/cur", b"/w/deep/other")):
        if libc.renameat2(-100, a, -100, b, 2):
            raise OSError(ctypes.get_errno(), "renameat2")
    n += 1
    if n % 1000 == 1:
        with open("/w/count", "w") as f:
            f.write(str(n))
'''


def volume(path, name='v', mount='/v', **more):
    return {'name': name, 'mountPath': mount, 'host': {'path': path}, **more}


def create(*volumes, entrypoint=('sleep', '1000')):
    """-> status, id or code, body"""
    status, data, _ = server.request('POST', '/v1/sandboxes', wish(volumes=list(volumes), entrypoint=list(entrypoint)))
    return status, json.loads(data)['id'] if status == 202 else code_of(data), data


def delete(name):
    server.request('DELETE', f'/v1/sandboxes/{name}')


def inside(name, script):
    run = subprocess.run([os.environ['OSBX'], 'exec', name, 'sh', '-c', script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         timeout=120, check=False)
    return run.stdout.decode(errors='replace').strip()


def with_volumes(*volumes, script):
    """What a script says in a sandbox with these."""
    status, name, data = create(*volumes)
    if status != 202:
        return f'{status} {name} {data!r:.200}'
    told = inside(name, script)
    delete(name)
    return told


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)


def tree(top):
    """Every name below, with what it is"""
    found = []
    for folder, folders, files in os.walk(top):
        for one in folders + files:
            path = os.path.join(folder, one)
            found.append((os.path.relpath(path, top), stat.S_IFMT(os.lstat(path).st_mode)))
    return sorted(found)


def shown(name, what):
    """What the volume of a sandbox has must not be anything of outside."""
    told = inside(name, LOOK)
    check(f'{what}: nothing of outside', SECRET in told or 'secret' in told, False)


def part_list():
    """Which paths are allowed"""
    refused = [
        ('INVALID_HOST_PATH', ['allowed', './allowed', f'{ALLOWED}/..', f'{ALLOWED}/../outside', f'{ALLOWED}/real/../../outside', f'{ALLOWED}/', f'{BASE}//allowed', '/..', '']),
        ('HOST_PATH_NOT_ALLOWED', ['/', '/etc', BASE, OUTSIDE, f'{ALLOWED}x', f'{ALLOWED}x/sub', ALLOWED[:-1], f'{BASE}/allowed.', f'{BASE}/./outside', f'{BASE}/to-allowed',
                                   f'{BASE}/to-allowed/real', ALLOWED.upper(), f'{BASE}/allowed%2freal', '/proc/self/root' + ALLOWED]),
    ]
    for code, paths in refused:
        for path in paths:
            status, got, _ = create(volume(path))
            check(f'host.path {path.replace(BASE, "BASE")!r}', (status, got), (400, f'VOLUME::{code}'))
    check('nothing was made for what was refused', (os.path.exists(f'{BASE}/allowed.'), os.path.exists(f'{BASE}/allowed%2freal'), os.path.exists(f'{ALLOWED}x/sub')),
          (False, False, False))
    for sub in ('/etc', '..', '../outside', 'real/../..', 'a/..', './..', '../allowed'):
        status, got, _ = create(volume(ALLOWED, subPath=sub))
        check(f'subPath {sub!r}', (status, got), (400, 'VOLUME::INVALID_SUB_PATH'))
    for mount in ('v', '/v/..', '/../v', './v', ''):
        status, got, _ = create(volume(f'{ALLOWED}/real', mount=mount))
        check(f'mountPath {mount!r}', (status, got), (400, 'VOLUME::INVALID_MOUNT_PATH'))
    for path, sub in ((ALLOWED, 'real'), (f'{ALLOWED}/real', None), (f'{ALLOWED}/./real', None), (f'{ALLOWED}/real', ''), (ALLOWED, './real'), (ALLOWED, 'real/')):
        told = with_volumes(volume(path, **({} if sub is None else {'subPath': sub})), script='cat /v/file')
        check(f'host.path {path.replace(BASE, "BASE")}, subPath {sub!r}', told, 'of-real')
    check('the second directory that is allowed', with_volumes(volume(f'{BASE}/second'), script='cat /v/file'), 'of-second')
    check('an allowed directory itself', with_volumes(volume(ALLOWED), script='cat /v/real/file'), 'of-real')


def part_links():
    """Links below an allowed directory, last and in the middle, of host.path and of subPath"""
    for name, target in (('abs', OUTSIDE), ('rel', '../outside'), ('up', '../../../../../../../../../..' + OUTSIDE), ('root', '/'), ('proc', f'/proc/self/root{OUTSIDE}'),
                         ('cwd', f'/proc/{os.getpid()}/root{OUTSIDE}'), ('prefix', f'{ALLOWED}x'), ('dots', 'real/../../outside')):
        os.symlink(target, f'{ALLOWED}/{name}')
    os.symlink('abs', f'{ALLOWED}/chain1')
    os.symlink(f'{ALLOWED}/chain1', f'{ALLOWED}/chain2')
    os.symlink('real/back', f'{ALLOWED}/chain3')
    os.symlink('../rel', f'{ALLOWED}/real/back')
    os.symlink(f'{OUTSIDE}/secret', f'{ALLOWED}/file-abs')
    os.symlink('../outside/secret', f'{ALLOWED}/file-rel')
    os.symlink('loop', f'{ALLOWED}/loop')
    os.symlink(f'{OUTSIDE}/made', f'{ALLOWED}/dangling')
    os.symlink('../outside/made', f'{ALLOWED}/dangling-rel')
    before = tree(OUTSIDE)
    run = subprocess.run([os.environ['OSBX'], 'run', '-v', f'{OUTSIDE}:/v', '@host', 'sh', '-c', LOOK], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=120, check=False)
    check('what is outside would be seen', SECRET in run.stdout.decode())
    links = sorted(one for one in os.listdir(ALLOWED) if os.path.islink(f'{ALLOWED}/{one}'))
    check('there are links', len(links) >= 16)
    for link in links:
        for tail in ('', '/sub', '/sub/made'):
            for wanted, what in ((volume(f'{ALLOWED}/{link}{tail}'), 'host.path'), (volume(ALLOWED, subPath=f'{link}{tail}'), 'subPath'),
                                 (volume(f'{ALLOWED}/real', subPath='back/sub'), 'both')):
                if what == 'both' and (link, tail) != ('chain3', ''):
                    continue
                status, name, _ = create(wanted)
                if status == 202:
                    shown(name, f'{what} {link}{tail}')
                    delete(name)
                else:
                    check(f'{what} {link}{tail} is refused', (status, name.startswith('VOLUME::') or name == 'SANDBOX::START_FAILED'), (400, True))
    check('nothing was made outside', tree(OUTSIDE), before)
    os.symlink('real', f'{ALLOWED}/good')
    check('a link that stays below', with_volumes(volume(f'{ALLOWED}/good'), script='cat /v/file'), 'of-real')
    check('the same as subPath', with_volumes(volume(ALLOWED, subPath='good'), script='cat /v/file'), 'of-real')


def part_kinds():
    """What a volume can be"""
    check('a regular file', with_volumes(volume(f'{ALLOWED}/real/file', mount='/etc/note'), script='cat /etc/note'), 'of-real')
    os.mkfifo(f'{ALLOWED}/pipe')
    check('a named pipe', create(volume(f'{ALLOWED}/pipe'))[0], 400)
    os.unlink(f'{ALLOWED}/pipe')
    check('a directory below a file', create(volume(f'{ALLOWED}/real/file/x'))[0], 400)
    script = 'touch /v/x 2>&1; echo y >/v/file; rm /v/file 2>&1; mkdir /v/d 2>&1; chmod 777 /v 2>&1; mount -o remount,rw,bind /v 2>/dev/null && echo remounted; touch /v/z 2>&1; cat /v/file'
    told = with_volumes(volume(f'{ALLOWED}/real', readOnly=True), script=f'({script}) 2>&1')
    check('read-only is read-only', (told.count('Read-only file system') >= 5, told.endswith('of-real'), 'remounted' in told), (True, True, False))
    check('and was not written to', (sorted(os.listdir(f'{ALLOWED}/real')), os.stat(f'{ALLOWED}/real').st_mode & 0o777), (['file'], 0o755))
    check('without it, it can be written to', with_volumes(volume(f'{ALLOWED}/rw', readOnly=False), script='echo new >/v/new && cat /v/new'), 'new')
    check('by the user of the server', os.stat(f'{ALLOWED}/rw/new').st_uid, os.getuid())


def part_missing():
    """Directories that are missing are made, by the user of the server, in a mode of no surprise"""
    os.umask(0o022)
    for wanted, made in ((volume(f'{ALLOWED}/m1/a/b'), 'm1/a/b'), (volume(ALLOWED, subPath='m2/a/b'), 'm2/a/b'), (volume(f'{ALLOWED}/m3/a', subPath='b'), 'm3/a/b'),
                         (volume(f'{ALLOWED}/m4/a', readOnly=True), 'm4/a')):
        told = with_volumes(wanted, script='stat -c "%u %F" /v; touch /v/x 2>/dev/null && echo written')
        check(f'{made} is there', told, '0 directory' + ('' if wanted.get('readOnly') else '\nwritten'))
        path = f'{ALLOWED}/{made}'
        while path != ALLOWED:
            st = os.stat(path)
            check(f'{os.path.relpath(path, ALLOWED)} is of the user of the server', (st.st_uid, st.st_gid, oct(st.st_mode)), (os.getuid(), os.getgid(), oct(0o40755)))
            path = os.path.dirname(path)


def part_nested():
    """One volume inside another, in either order, and twice the same"""
    outer, inner = volume(f'{ALLOWED}/rw', 'outer', '/v', readOnly=True), volume(f'{ALLOWED}/real', 'inner', '/v/nest')
    os.makedirs(f'{ALLOWED}/rw/nest', exist_ok=True)
    put(f'{ALLOWED}/rw/nest/hidden', 'hidden')
    for order in ((outer, inner), (inner, outer)):
        told = with_volumes(*order, script='cat /v/nest/file; ls /v/nest/hidden 2>/dev/null; touch /v/x 2>/dev/null || echo outer-ro; touch /v/nest/x && rm /v/nest/x && echo inner-rw')
        check(f'{order[0]["name"]} first', told, 'of-realouter-ro\ninner-rw')
    told = with_volumes(volume(f'{ALLOWED}/rw', 'outer', '/v'), {**inner, 'readOnly': True}, script='touch /v/y && rm /v/y && echo outer-rw; touch /v/nest/x 2>/dev/null || echo inner-ro')
    check('a read-only one inside one that is not', told, 'outer-rw\ninner-ro')
    status, code, _ = create(volume(f'{ALLOWED}/rw', 'a', '/v'), volume(f'{ALLOWED}/real', 'b', '/v'))
    check('two at one place', (status, code.startswith('VOLUME::') or code.startswith('SANDBOX::')) if status != 202 else (status, delete(code)), (400, True))
    check('one source at two places', with_volumes(volume(f'{ALLOWED}/real', 'a', '/a'), volume(f'{ALLOWED}/real', 'b', '/b'), script='cat /a/file /b/file'), 'of-realof-real')
    check('the mount point was not made in the source', os.path.exists(f'{ALLOWED}/rw/nest/file'), False)


def part_swap():
    """A sandbox swaps a directory and a link that leads out, while others are created with paths through it"""
    shared = f'{ALLOWED}/shared'
    for folder, target in ((shared, '../../outside'), (f'{shared}/deep', OUTSIDE)):
        put(f'{folder}/cur/sub/inside', 'inside')
        os.symlink(target, f'{folder}/other')
    before = tree(OUTSIDE)
    status, swapper, data = create(volume(shared, mount='/w'), entrypoint=('python3', '-c', SWAP))
    if not check('a sandbox that swaps', (status, code_of(data)), (202, None)):
        return

    def count():
        try:
            with open(f'{shared}/count', encoding='utf-8') as f:
                return int(f.read() or 0)
        except FileNotFoundError:
            return 0

    begin = wait_for(count)
    check('it swaps', begin > 0)
    wishes = [volume(f'{shared}/cur'), volume(f'{shared}/cur/sub'), volume(shared, subPath='cur/sub'), volume(f'{shared}/deep/cur', subPath='sub'),
              volume(f'{shared}/deep', subPath='cur'), volume(f'{shared}/deep/other/sub')]
    made = refused = leaks = good = 0
    while made + refused < ROUNDS or (good < 3 and made + refused < ROUNDS_MAX):
        status, name, data = create(wishes[(made + refused) % len(wishes)])
        if status != 202:
            refused += 1
            # It was there when it was looked for, and is another one or none when it is opened.
            if not (status == 400 and name.startswith('VOLUME::')) and not (status in (400, 409, 500) and name == 'SANDBOX::START_FAILED'):
                check(f'refused: {status} {data!r:.200}', name, 'a code of volumes')
            continue
        made += 1
        told = inside(name, LOOK)
        leaks += SECRET in told or 'secret' in told
        good += 'inside' in told
        delete(name)
    check('none of them sees what is outside', leaks, 0)
    check('some see what is inside', good > 0)
    check('nothing was made outside', tree(OUTSIDE), before)
    wait_for(lambda: count() > begin)
    check('it swapped all the time', (count() > begin, json.loads(server.request('GET', f'/v1/sandboxes/{swapper}')[1])['status']['state']), (True, 'Running'))
    print(f'# {made} made, {refused} refused, {good} saw the directory', file=sys.stderr)
    delete(swapper)


def run():
    for path, text in ((f'{ALLOWED}/real/file', 'of-real'), (f'{BASE}/second/file', 'of-second'), (f'{OUTSIDE}/secret', SECRET), (f'{OUTSIDE}/sub/secret', SECRET),
                       (f'{ALLOWED}x/secret', SECRET)):
        put(path, text)
    os.makedirs(f'{ALLOWED}/rw')
    os.symlink('allowed', f'{BASE}/to-allowed')
    for part in (part_list, part_kinds, part_missing, part_nested, part_links, part_swap):
        part()


run()
