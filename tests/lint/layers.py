#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Include discipline: which module may include which <osbx/*.h>; private headers stay at home.

The table is ordered: a module names only modules defined before it, so a cycle cannot be written down.
usage: layers.py ROOT
"""
import os
import re
import sys

LAYERS = {  # module -> (folder, modules whose headers it may include)
    'base': ('src/base', []),
    'http': ('src/http', ['base']),
    'oci': ('oci', ['base']),
    'policy': ('policy', ['base', 'http']),
    'runtime': ('src/runtime', ['base']),
    'execd': ('execd', ['base', 'http']),
    'engine': ('src/engine', ['base', 'oci', 'policy', 'runtime']),
    'api': ('src/api', ['base', 'http', 'policy', 'engine']),
    'cli': ('src/cli', ['base', 'http', 'oci', 'policy', 'engine', 'api']),
}
# Headers of libraries that only one module may know.
LIBRARIES = {
    'seccomp.h': 'policy', 'archive': 'oci', 'curl': 'oci', 'netlink': 'policy',
    'libnftnl': 'policy', 'openssl': 'base', 'isa-l': 'oci', 'zlib.h': 'oci', 'zstd.h': 'oci',
}


def fail(problems, text):
    problems.append(text)


def header_owners(root, problems):
    owners = {}
    folder = os.path.join(root, 'include/osbx')
    for header in sorted(os.listdir(folder)):
        with open(os.path.join(folder, header), encoding='utf-8') as f:
            found = re.search(r'^ \* module: (\w+)$', f.read(), re.M)
        if not found or found.group(1) not in LAYERS:
            fail(problems, f'include/osbx/{header}: no "module:" line, or an unknown module')
        else:
            owners[header] = found.group(1)
    return owners


def private_headers(root):
    return {n for folder, _ in LAYERS.values() if os.path.isdir(os.path.join(root, folder))
            for n in os.listdir(os.path.join(root, folder)) if n.endswith('.h')}


def check_file(root, path, module, owners, private, problems):
    allowed = set(LAYERS[module][1]) | {module}
    with open(os.path.join(root, path), encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            face = re.match(r'#\s*include <osbx/([^>]+)>', line)
            quoted = re.match(r'#\s*include "([^"]+)"', line)
            system = re.match(r'#\s*include <([^>]+)>', line)
            if face:
                owner = owners.get(face.group(1))
                if owner not in allowed:
                    fail(problems, f'{path}:{number}: {module} may not include {face.group(1)} of {owner}')
            elif system:
                library = next((m for p, m in LIBRARIES.items() if system.group(1).startswith(p)), module)
                if library != module:
                    fail(problems, f'{path}:{number}: only {library} knows <{system.group(1)}>')
            if quoted:
                name = quoted.group(1)
                here = os.path.join(root, os.path.dirname(path), name)
                # A header that stands nowhere in the tree is made by the build, in the folder's own build directory.
                if path.startswith('include/') or '/' in name or (name in private and not os.path.exists(here)):
                    fail(problems, f'{path}:{number}: private header {name} of another folder')


def check_table(problems):
    seen = []
    for module, (_, may) in LAYERS.items():
        for other in may:
            if other not in seen:
                fail(problems, f'layer table: {module} names {other} before it is defined')
        seen.append(module)


def main(root):
    problems = []
    check_table(problems)
    owners = header_owners(root, problems)
    private = private_headers(root)
    for header, module in owners.items():
        check_file(root, f'include/osbx/{header}', module, owners, private, problems)
    for module, (folder, _) in LAYERS.items():
        full = os.path.join(root, folder)
        for name in sorted(os.listdir(full)) if os.path.isdir(full) else []:
            if name.endswith(('.c', '.h')):
                check_file(root, f'{folder}/{name}', module, owners, private, problems)
    print('\n'.join(problems))
    return 1 if problems else 0


sys.exit(main(sys.argv[1]))
