#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images built entry by entry, most of them hostile.

usage: mkimage.py CASE OUT [BASE]    one case as an OCI layout OUT (tag t); with BASE, an OCI layout whose tag 1 lies below it
       mkimage.py --all OUT [BASE]   all of them, as OUT/CASE
       mkimage.py --list             names of all cases
       mkimage.py --tar CASE OUT     the topmost layer's plain tar alone (seed of the fuzz corpus)
"""
import gzip
import hashlib
import json
import os
import struct
import sys
import zlib

OCI = 'application/vnd.oci.image.'


# --- tar, byte by byte -------------------------------------------------------------------------

def octal(value, width):
    """A number field; GNU base-256 where it does not fit (negative ones too)."""
    if 0 <= value < 8 ** (width - 1):
        return b'%0*o\0' % (width - 1, value)
    return bytes([0xff if value < 0 else 0x80]) + value.to_bytes(width - 1, 'big', signed=value < 0)


def field(text, width):
    text = text if isinstance(text, bytes) else text.encode()
    return text[:width].ljust(width, b'\0')


def header(name, kind=b'0', size=0, mode=0o644, uid=0, gid=0, mtime=1000000000, link='', device=(0, 0), magic=b'ustar\x0000', prefix=''):
    block = (field(name, 100) + octal(mode, 8) + octal(uid, 8) + octal(gid, 8) + octal(size, 12) + octal(mtime, 12) + b' ' * 8
             + kind + field(link, 100) + magic + field('', 64) + octal(device[0], 8) + octal(device[1], 8) + field(prefix, 155))
    block = block.ljust(512, b'\0')
    return block[:148] + b'%06o\0 ' % sum(block) + block[156:]


def padded(data):
    return data + b'\0' * (-len(data) % 512)


def record(key, value):
    key = key if isinstance(key, bytes) else key.encode()
    value = value if isinstance(value, bytes) else value.encode()
    body = b' ' + key + b'=' + value + b'\n'
    length = len(body) + 1
    while len(b'%d' % length) + len(body) != length:
        length = len(b'%d' % length) + len(body)
    return b'%d' % length + body


def pax(records, kind=b'x'):
    data = b''.join(record(k, v) for k, v in records)
    return header('./PaxHeaders/x', kind, len(data)) + padded(data)


def gnu_long(kind, text):
    data = text.encode() + b'\0'
    return header('././@LongLink', kind, len(data), magic=b'ustar  \0') + padded(data)


def file(name, data=b'data\n', **kw):
    data = data if isinstance(data, bytes) else data.encode()
    return header(name, b'0', len(data), **kw) + padded(data)


def folder(name, mode=0o755, **kw):
    return header(name, b'5', 0, mode, **kw)


def symlink(name, target, **kw):
    return header(name, b'2', 0, 0o777, link=target, **kw)


def hardlink(name, target, **kw):
    return header(name, b'1', 0, link=target, **kw)


def whiteout(name):
    where, _, last = name.rpartition('/')
    return file((where + '/' if where else '') + '.wh.' + last, b'', mode=0)


def opaque(where):
    return file(where + '/.wh..wh..opq', b'', mode=0)


def device(name, kind=b'3', major=1, minor=3):
    return header(name, kind, 0, 0o666, device=(major, minor))


END = b'\0' * 1024


# --- compression -------------------------------------------------------------------------------

def zstd(data):
    """A frame of raw blocks: valid zstd without a compressor."""
    out = struct.pack('<IBI', 0xfd2fb528, 0xa0, len(data))
    pieces = [data[i:i + 65536] for i in range(0, len(data), 65536)] or [b'']
    for i, piece in enumerate(pieces):
        out += struct.pack('<I', len(piece) << 3 | (i == len(pieces) - 1))[:3] + piece
    return out


COMPRESS = {'gzip': lambda d: gzip.compress(d, 6, mtime=0), 'zstd': zstd, 'none': lambda d: d}


# --- images ------------------------------------------------------------------------------------

def sha(data):
    return 'sha256:' + hashlib.sha256(data).hexdigest()


class Layer:
    """One layer and what its documents claim about it."""

    def __init__(self, *entries, compression='gzip', media=None, end=END, behind=b'', blob=None, diff=None, digest=None, size=None):
        self.tar = b''.join(entries) + end
        self.blob = (COMPRESS[compression](self.tar) if blob is None else blob) + behind
        suffix = {'gzip': '+gzip', 'zstd': '+zstd', 'none': ''}[media or compression]
        self.descriptor = {'mediaType': OCI + 'layer.v1.tar' + suffix, 'digest': digest or sha(self.blob), 'size': len(self.blob) if size is None else size}
        self.diff = diff or sha(self.tar)
        self.name = digest if digest and digest.startswith('sha256:') and len(digest) == 71 else sha(self.blob)


class Base:
    """The layers of an image that is there already."""

    def __init__(self, layout):
        def blob(digest):
            with open(os.path.join(layout, 'blobs', *digest.split(':')), 'rb') as f:
                return f.read()
        with open(os.path.join(layout, 'index.json'), encoding='utf-8') as f:
            manifest = json.loads(blob(json.load(f)['manifests'][0]['digest']))
        config = json.loads(blob(manifest['config']['digest']))
        self.layers = []
        for descriptor, diff in zip(manifest['layers'], config['rootfs']['diff_ids']):
            layer = Layer(blob=blob(descriptor['digest']))
            layer.descriptor, layer.diff, layer.name = descriptor, diff, descriptor['digest']
            self.layers.append(layer)


def write_layout(out, layers, tag='t'):
    os.makedirs(os.path.join(out, 'blobs/sha256'))

    def put(data, name=None):
        with open(os.path.join(out, 'blobs', *(name or sha(data)).split(':')), 'wb') as f:
            f.write(data)
        return {'digest': sha(data), 'size': len(data)}

    for layer in layers:
        put(layer.blob, layer.name)
    machine = {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(os.uname().machine, os.uname().machine)
    config = {'architecture': machine, 'os': 'linux', 'config': {'Cmd': ['sh'], 'Env': ['PATH=/bin:/usr/bin']},
              'rootfs': {'type': 'layers', 'diff_ids': [layer.diff for layer in layers]}}
    manifest = {'schemaVersion': 2, 'mediaType': OCI + 'manifest.v1+json',
                'config': {'mediaType': OCI + 'config.v1+json', **put(json.dumps(config).encode())},
                'layers': [layer.descriptor for layer in layers]}
    entry = {'mediaType': OCI + 'manifest.v1+json', **put(json.dumps(manifest).encode()),
             'annotations': {'org.opencontainers.image.ref.name': tag}}
    with open(os.path.join(out, 'index.json'), 'w', encoding='utf-8') as f:
        json.dump({'schemaVersion': 2, 'manifests': [entry]}, f)
    with open(os.path.join(out, 'oci-layout'), 'w', encoding='utf-8') as f:
        f.write('{"imageLayoutVersion": "1.0.0"}')


# --- cases -------------------------------------------------------------------------------------

CANARY = os.environ.get('CANARY', '/tmp/canary')  # a file of the host that no case may touch
UP = '../' * 12


def bomb(head):
    """4 GiB of zeros behind head, in 4 MiB of gzip members and without making them."""
    unit = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = b'\0' * (1 << 20)
    member = b''.join([unit.compress(zeros) for _ in range(64)]) + unit.flush()
    return Layer(blob=COMPRESS['gzip'](head) + member * 64, diff=sha(b'bomb'))


def sparse_old(name, size, pieces):
    """GNU's old format: the map in the header."""
    data = b''.join(d for _, d in pieces)
    block = bytearray(header(name, b'S', len(data), magic=b'ustar  \0'))
    block[345:500] = b'\0' * 155
    for i, (offset, piece) in enumerate(pieces[:4]):
        block[386 + 24 * i:410 + 24 * i] = octal(offset, 12) + octal(len(piece), 12)
    block[483:495] = octal(size, 12)
    block[148:156] = b' ' * 8
    block[148:156] = b'%06o\0 ' % sum(block)
    return bytes(block) + padded(data)


def sparse_pax(name, size, pieces):
    """GNU.sparse 1.0: the map before the data."""
    table = b'%d\n' % len(pieces) + b''.join(b'%d\n%d\n' % (o, len(d)) for o, d in pieces)
    body = padded(table) + b''.join(d for _, d in pieces)
    return pax([('GNU.sparse.major', '1'), ('GNU.sparse.minor', '0'), ('GNU.sparse.name', name), ('GNU.sparse.realsize', str(size))]) + \
        header('GNUSparseFile.0/x', b'0', len(body)) + padded(body)


LONG = '/'.join(['d' * 100] * 30) + '/file'   # 3,034 bytes
DEEP = 'n' * 300
PLAIN = [folder('./'), file('plain')]

CASES = {
    # names and links that point elsewhere
    'dotdot': lambda: [Layer(file(UP + CANARY, 'owned'), file('a/../../../b', 'inside'))],
    'absolute': lambda: [Layer(file(CANARY, 'owned'))],
    'dotdot_pax': lambda: [Layer(pax([('path', UP + CANARY)]) + file('x', 'owned'))],
    'symlink_parent': lambda: [Layer(symlink('out', os.path.dirname(CANARY)), file('out/' + os.path.basename(CANARY), 'owned'))],
    'symlink_parent_up': lambda: [Layer(symlink('out', UP + os.path.dirname(CANARY)), file('out/' + os.path.basename(CANARY), 'owned'))],
    'symlink_file': lambda: [Layer(symlink('out', CANARY), file('out', 'mine'))],
    'symlink_chain': lambda: [Layer(folder('d'), symlink('d/up', '..'), symlink('far', 'd/up/d/up/../../..'), file('far/x', 'inside'))],
    'symlink_loop': lambda: [Layer(symlink('a', 'b'), symlink('b', 'a'), file('a/x'))],
    'symlink_lower': lambda: [Layer(symlink('out', os.path.dirname(CANARY))), Layer(file('out/' + os.path.basename(CANARY), 'owned'))],
    'hardlink_dotdot': lambda: [Layer(hardlink('stolen', UP + CANARY))],
    'hardlink_absolute': lambda: [Layer(hardlink('stolen', CANARY))],
    'hardlink_through_symlink': lambda: [Layer(symlink('out', os.path.dirname(CANARY)), hardlink('stolen', 'out/' + os.path.basename(CANARY)))],
    'hardlink_to_symlink': lambda: [Layer(symlink('out', CANARY), hardlink('stolen', 'out'), file('stolen', 'mine'))],
    'hardlink_lower_symlink': lambda: [Layer(symlink('out', CANARY)), Layer(hardlink('stolen', 'out'))],
    'hardlink_directory': lambda: [Layer(folder('d'), hardlink('l', 'd'))],
    'hardlink_missing': lambda: [Layer(hardlink('l', 'no/such/file'))],
    'hardlink_self': lambda: [Layer(file('f', 'same\n'), hardlink('f', 'f'))],
    'hardlink_self_missing': lambda: [Layer(hardlink('f', 'f'))],
    'hardlink_whiteout': lambda: [Layer(file('d/gone'), file('d/stays')), Layer(file('x'), hardlink('d/.wh.gone', 'x'))],
    'whiteout_dotdot': lambda: [Layer(*PLAIN), Layer(file('.wh...', b''))],
    'whiteout_dot': lambda: [Layer(*PLAIN), Layer(file('d/.wh..', b''))],
    'whiteout_empty': lambda: [Layer(*PLAIN), Layer(file('d/.wh.', b''))],
    'whiteout_folder': lambda: [Layer(*PLAIN), Layer(file('.wh.d/x', b''))],
    'whiteout_through_symlink': lambda: [Layer(file('real/keep', 'kept\n')), Layer(symlink('l', 'real'), whiteout('l/keep'))],
    # the root entry
    'root_symlink': lambda: [Layer(symlink('./', CANARY)), Layer(file('x', 'owned'))],
    'root_symlink_dots': lambda: [Layer(symlink('a/..', os.path.dirname(CANARY))), Layer(file('x', 'owned'))],
    'root_file': lambda: [Layer(file('.', 'owned'))],
    'root_hardlink': lambda: [Layer(file('x'), hardlink('.', 'x'))],
    'root_mode': lambda: [Layer(folder('./', 0o000), file('f', 'in\n'))],
    'root_owner': lambda: [Layer(folder('./', 0o555, uid=1000, gid=1000), file('f', 'in\n'))],
    # types
    'device': lambda: [Layer(device('null'), device('disk', b'4', 8, 0), device('wh', b'3', 0, 0), file('f', 'in\n'))],
    'fifo': lambda: [Layer(header('pipe', b'6', mode=0o640))],
    'type_changes': lambda: [Layer(folder('a'), file('a/x'), file('a', 'file\n'), folder('b'), symlink('b', 'a'), file('c', 'c'), folder('c'), file('c/x', 'new\n'),
                                   file('e', 'e'), file('e/below', 'below\n'))],
    'duplicates': lambda: [Layer(*[file('f', 'number %d\n' % i, mode=0o600 + i) for i in range(5)])],
    'lower_type_changes': lambda: [Layer(file('was_dir/old'), file('was_file'), symlink('was_link', 'was_dir')),
                                   Layer(file('was_dir', 'now a file\n'), file('was_file/new', 'new\n'), file('was_link/new', 'new\n'))],
    'mode_000': lambda: [Layer(folder('locked', 0), file('locked/f', 'in\n', mode=0), folder('locked/d', 0), file('locked/d/g', 'in\n', mode=0)),
                         Layer(file('locked/f', 'second\n', mode=0o600), whiteout('locked/d/g'))],
    'setid': lambda: [Layer(file('suid', mode=0o4755, uid=3, gid=4), file('sgid', mode=0o2755), folder('sgid_dir', 0o2775, gid=50), file('sgid_dir/f'), folder('t', 0o1777))],
    # whiteouts
    'whiteout_after': lambda: [Layer(file('f', 'old\n'), file('d/old', 'old\n')), Layer(file('f', 'new\n'), whiteout('f'), file('d/new', 'new\n'), whiteout('d'))],
    'whiteout_before': lambda: [Layer(file('f', 'old\n'), file('d/old', 'old\n')), Layer(whiteout('f'), file('f', 'new\n'), whiteout('d'), file('d/new', 'new\n'))],
    'opaque_last': lambda: [Layer(file('d/old', 'old\n'), file('d/s/old')), Layer(folder('d'), file('d/new', 'new\n'), opaque('d'))],
    'opaque_first': lambda: [Layer(file('d/old', 'old\n'), file('d/s/old')), Layer(opaque('d'), folder('d'), file('d/new', 'new\n'))],
    'opaque_alone': lambda: [Layer(file('d/old', 'old\n')), Layer(opaque('d'))],
    'opaque_root': lambda: [Layer(file('gone1'), file('gone2/x'), file('both/old')), Layer(file('both/new'), file('.wh..wh..opq', b''))],
    'umoci_file': lambda: [Layer(file('a/x'), file('a/s/y')), Layer(file('a', 'file\n'), whiteout('a/s'), whiteout('a/x'))],
    'umoci_file_reversed': lambda: [Layer(file('a/x'), file('a/s/y')), Layer(whiteout('a/x'), whiteout('a/s'), file('a', 'file\n'))],
    'whiteout_nothing': lambda: [Layer(file('d/f')), Layer(whiteout('nothing'), whiteout('no/where/at/all'), whiteout('d/none'), opaque('void'), file('new/f'), whiteout('new/g'))],
    'whiteout_twice': lambda: [Layer(file('d/f'), file('g')), Layer(whiteout('d/f'), whiteout('d/f'), whiteout('d'), whiteout('g')), Layer(file('d/again', 'back\n'), whiteout('g'))],
    'aufs': lambda: [Layer(file('f')), Layer(folder('.wh..wh.plnk'), file('.wh..wh.plnk/1.2'), file('.wh..wh.aufs', b''), file('g', 'in\n'))],
    'forged_overlay': lambda: [Layer(file('d/keep', 'kept\n')),
                               Layer(pax([('SCHILY.xattr.user.overlay.opaque', 'y'), ('SCHILY.xattr.trusted.overlay.opaque', 'y')]) + folder('d'), device('f', b'3', 0, 0))],
    # hard links across layers
    'hardlink_lower': lambda: [Layer(file('usr/a', 'one\n'), file('b', 'two\n'), symlink('s', 'usr')), Layer(whiteout('b'), file('b', 'newer\n')),
                               Layer(hardlink('la', 'usr/a'), hardlink('lb', '/b'), hardlink('ls', 's/a'), hardlink('l2', 'la'))],
    'hardlink_hidden': lambda: [Layer(file('a/x')), Layer(whiteout('a')), Layer(hardlink('l', 'a/x'))],
    'hardlink_hidden_opaque': lambda: [Layer(file('a/x')), Layer(folder('a'), opaque('a')), Layer(hardlink('l', 'a/x'))],
    'hardlink_forward': lambda: [Layer(hardlink('l', 'f'), file('f', 'one\n'))],
    'implied_parents': lambda: [Layer(folder('p', 0o711, uid=7, gid=8, mtime=5), folder('p/q', 0o1777, mtime=6)), Layer(file('p/q/r/f', 'in\n'))],
    # formats
    'gnu_long': lambda: [Layer(gnu_long(b'L', LONG) + file('short', 'long name\n'), gnu_long(b'K', LONG) + symlink('link', 'x'))],
    'pax_long': lambda: [Layer(pax([('path', LONG)]) + file('short', 'long name\n'))],
    'pax_global': lambda: [Layer(pax([('comment', 'x'), ('path', 'owned'), ('uid', '5')], b'g'), file('f', 'in\n'))],
    'pax_names': lambda: [Layer(*[pax([('path', n)]) + file('x', n + b'\n') for n in
                                  (b'latin-\xe9', b'latin-\xe8', 'e\u0301'.encode(), '\u00e9'.encode(), b'new\nline')])],
    'pax_broken': lambda: [Layer(header('PaxHeader', b'x', 12) + padded(b'99999 path=a') + file('f'))],
    'pax_number': lambda: [Layer(pax([('size', '-5')]) + file('f'))],
    'component_long': lambda: [Layer(pax([('path', DEEP)]) + file('x'))],
    'path_long': lambda: [Layer(pax([('path', '/'.join(['d' * 200] * 40))]) + file('x'))],
    'sparse_gnu': lambda: [Layer(sparse_old('s', 10 << 20, [(4096, b'A' * 4096), (9 << 20, b'B' * 512)]))],
    'sparse_pax': lambda: [Layer(sparse_pax('s', 10 << 20, [(4096, b'A' * 4096), (9 << 20, b'B' * 512)]))],
    'sparse_huge': lambda: [Layer(sparse_old('s', 1 << 60, [(0, b'A' * 512)]))],
    'xattrs': lambda: [Layer(pax([('SCHILY.xattr.user.note', 'kept'), ('SCHILY.xattr.security.capability', b'\1\0\0\2' + b'\xff' * 16), ('SCHILY.xattr.user.containers.override_stat', '0:0:0777'),
                                  ('SCHILY.xattr.trusted.x', 'y')]) + file('f', 'in\n'))],
    'xattr_huge': lambda: [Layer(pax([('SCHILY.xattr.user.%d' % i, 'v' * 8000) for i in range(10)]) + file('f'))],
    'huge_id': lambda: [Layer(file('f', 'in\n', uid=200000, gid=200000))],
    'negative_id': lambda: [Layer(file('f', uid=-2))],
    'endless_id': lambda: [Layer(file('f', uid=1 << 40))],
    'bad_checksum': lambda: [Layer(file('f')[:148] + b'000000\0 ' + file('f')[156:])],
    'truncated': lambda: [Layer(header('f', b'0', 100000) + b'x' * 512, end=b'')],
    'no_end': lambda: [Layer(file('f', 'in\n'), end=b'')],
    'empty': lambda: [Layer(end=b'', compression='none'), Layer(), Layer(end=b'')],
    'not_tar': lambda: [Layer(b'this is no archive' * 1000)],
    # compression
    'members': lambda: [Layer(file('f', 'in\n'), blob=COMPRESS['gzip'](file('f', 'in\n')) + COMPRESS['gzip'](END))],
    'padding': lambda: [Layer(file('f', 'in\n'), behind=b'\0' * 1000)],
    'garbage_behind': lambda: [Layer(file('f'), behind=b'garbage')],
    'cut_gzip': lambda: [(lambda g: Layer(file('f', os.urandom(5000)), blob=g[:len(g) // 2]))(COMPRESS['gzip'](file('f', os.urandom(5000))))],
    'bad_crc': lambda: [(lambda g: Layer(file('f'), blob=g[:-8] + b'\0\0\0\0' + g[-4:]))(COMPRESS['gzip'](file('f') + END))],
    'zstd': lambda: [Layer(file('f', 'in\n'), compression='zstd')],
    'zstd_frames': lambda: [Layer(file('f', 'in\n'), media='zstd', blob=struct.pack('<II', 0x184d2a50, 4) + b'skip' + zstd(file('f', 'in\n')) + zstd(END))],
    'mislabelled': lambda: [Layer(file('f', 'in\n'), compression='gzip', media='none'), Layer(file('g', 'in\n'), compression='none', media='gzip'),
                            Layer(file('h', 'in\n'), compression='zstd', media='gzip')],
    'bzip2': lambda: [Layer(blob=b'BZh91AY&SY' + b'\0' * 100)],
    # claims
    'wrong_digest': lambda: [Layer(file('f'), digest='sha256:' + '0' * 64)],
    'wrong_diff': lambda: [Layer(file('f'), diff='sha256:' + '0' * 64)],
    'wrong_size': lambda: [Layer(file('f'), size=10)],
    'larger_size': lambda: [Layer(file('f'), size=1 << 20)],
    'behind_the_end': lambda: [Layer(file('f', 'in\n'), end=END + b'junk' * 1000)],
    # quantity
    'bomb': lambda: [bomb(header('bomb', b'0', 4 << 30))],
    'bomb_behind': lambda: [bomb(file('f') + END)],
    'many_entries': lambda: [Layer(*[header('e%d' % i) for i in range(3000)])],
}


def main():
    if sys.argv[1:] == ['--list']:
        print('\n'.join(CASES))
        return
    if sys.argv[1] == '--tar':
        with open(sys.argv[3], 'wb') as f:
            f.write(CASES[sys.argv[2]]()[-1].tar)
        return
    case, out = sys.argv[1:3]
    below = Base(sys.argv[3]).layers if len(sys.argv) > 3 else []
    for name in CASES if case == '--all' else [case]:
        write_layout(os.path.join(out, name) if case == '--all' else out, below + CASES[name]())


if __name__ == '__main__':
    main()
