#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone, is guarded by its path, and comments every prototype.

usage: headers.py ROOT COMPILER...
"""
import os
import re
import subprocess
import sys


def prototypes_without_comment(text):
    """Names of functions of a public header that have no comment right above their group."""
    lines = text.split('\n')
    missing = []
    covered = False
    in_comment = False
    for line in lines:
        if in_comment:
            in_comment = '*/' not in line
            covered = True
        elif line.startswith('/*'):
            in_comment = '*/' not in line
            covered = True
        elif not line.strip() or line.startswith(('}', '#endif')):
            covered = False
        elif re.match(r'[a-z][\w \*]*\b\w+\(', line) and not line.startswith(('static', 'typedef', 'extern', 'struct error;')):
            if not covered:
                name = re.search(r'(\w+)\(', line).group(1)
                if not name.endswith(('_done', '_free', '_stop', '_close')) and name != '__attribute__':
                    missing.append(name)
    return missing


def main(root, compiler):
    problems = []
    headers = []
    for folder in ('include/osbx', 'src/base', 'src/runtime', 'src/engine', 'src/cli', 'src/http', 'src/api', 'oci', 'policy', 'execd'):
        full = os.path.join(root, folder)
        if os.path.isdir(full):
            headers += [f'{folder}/{n}' for n in sorted(os.listdir(full)) if n.endswith('.h')]
    for header in headers:
        path = os.path.join(root, header)
        with open(path, encoding='utf-8') as f:
            text = f.read()
        name = header.removeprefix('include/').removeprefix('osbx/').removeprefix('src/')
        guard = 'OSBX_' + re.sub(r'\W', '_', name).upper()
        if f'#ifndef {guard}\n#define {guard}\n' not in text:
            problems.append(f'{header}: guard is not {guard}')
        if header.startswith('include/'):
            problems += [f'{header}: {n} has no comment' for n in prototypes_without_comment(text)]
        run = subprocess.run(
            [*compiler, '-std=gnu17', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Wno-unused-function', '-Werror', '-fsyntax-only', '-x', 'c',
             '-I' + os.path.join(root, 'include'), path],
            capture_output=True, text=True, check=False)
        if run.returncode != 0:
            problems.append(f'{header}: does not compile alone\n{run.stderr}')
    print('\n'.join(problems))
    return 1 if problems else 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
