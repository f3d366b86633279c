#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House style that a compiler cannot see. usage: style.py ROOT"""
import os
import re
import sys

FOLDERS = ('include', 'src', 'oci', 'policy', 'execd', 'tests')
BANNED = ('strcpy strcat sprintf vsprintf strtok strtok_r atoi atol atoll strtol strtoul strtoll strtoull sscanf gets '
          'system popen alloca basename dirname getpwnam getpwuid getgrnam getgrgid signal').split()
ONLY_BASE = 'malloc calloc realloc strdup strndup open openat close fork vfork mount umount umount2'.split()
FILE_LINES = 800
FUNCTION_LINES = 80


def strip(text):
    """Text with comments and string literals blanked, line numbers kept."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group(0))
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def check_calls(path, number, line, problems):
    for name in re.findall(r'(?<![\w.>])(\w+)\s*\(', line):
        if name in BANNED:
            problems.append(f'{path}:{number}: {name}() is banned')
        if name in ONLY_BASE and not path.startswith(('src/base/', 'tests/', 'include/')):
            problems.append(f'{path}:{number}: {name}() only in src/base')


def check_functions(path, code, problems):
    start = None
    for number, line in enumerate(code.split('\n'), 1):
        if line.startswith('{'):
            start = number
        elif line.startswith('}') and start is not None:
            if number - start - 1 > FUNCTION_LINES:
                problems.append(f'{path}:{start}: function of {number - start - 1} lines')
            start = None


def check_must_check(path, text, problems):
    for found in re.finditer(r'^(?!static|typedef|extern)[\w \*]+?(\w+)\([^;{]*struct error \*\w+\)([^;{]*);', text, re.M):
        name = found.group(1)
        if 'MUST_CHECK' not in found.group(2) and not name.startswith(('error_', 'log_')) and not re.search(
                r'^\s*void ' + name, found.group(0)):
            problems.append(f'{path}: {name} takes a struct error and has no MUST_CHECK')


def check_file(root, path, problems):
    with open(os.path.join(root, path), encoding='utf-8') as f:
        text = f.read()
    lines = text.split('\n')
    if lines[0] != '/* SPDX-License-Identifier: Apache-2.0 */':
        problems.append(f'{path}: first line is not the SPDX line')
    if len(lines) - 1 > FILE_LINES:
        problems.append(f'{path}: {len(lines) - 1} lines')
    if re.search(r'\b(FIXME|TODO|XXX)\b', text):
        problems.append(f'{path}: unfinished by its own word')
    code = strip(text)
    for number, line in enumerate(code.split('\n'), 1):
        check_calls(path, number, line, problems)
        if '//' in line:
            problems.append(f'{path}:{number}: // comment')
        auto = re.match(r'\s*(autofree|autoclose|AUTO\(\w+\))\s+[^=;]*;', line)
        if auto:
            problems.append(f'{path}:{number}: {auto.group(1)} without an initialiser')
    check_functions(path, code, problems)
    if path.startswith('include/'):
        check_must_check(path, code, problems)


def main(root):
    problems = []
    for folder in FOLDERS:
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith(('.c', '.h')):
                    check_file(root, os.path.relpath(os.path.join(where, name), root), problems)
    print('\n'.join(problems))
    return 1 if problems else 0


sys.exit(main(sys.argv[1]))
