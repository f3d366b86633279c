#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options of the tables in src/cli and options of the manual pages are the same sets.

A command is documented in man/osbx-COMMAND.1 or .8, or in the section ".Ss COMMAND" of man/osbx.1.
usage: man_options.py ROOT
"""
import glob
import os
import re
import sys


def table_options(root):
    """command -> {long name: letter or None}, for commands that people see."""
    commands = {}
    for path in sorted(glob.glob(os.path.join(root, 'src/cli/*.c'))):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        tables = {}
        for name, body in re.findall(r'struct args_option (\w+)\[\] = \{(.*?)\n?\};', text, re.S):
            rows = re.findall(r'\{\s*"([a-z0-9-]+)",\s*(0|\'.\'),\s*ARGS_', body)
            tables[name] = {n: None if c == '0' else c[1] for n, c in rows}
        for body in re.findall(r'struct args_command \w+ = \{(.*?)\n\};', text, re.S):
            if '.hidden = true' not in body:
                name = re.search(r'\.name = "([a-z]+)"', body).group(1)
                commands[name] = tables[re.search(r'\.options = (\w+)', body).group(1)]
    return commands


def section(text, command):
    """The part of osbx.1 about a command, None if there is none."""
    found = re.search(rf'^\.Ss {command}\n(.*?)(?=^\.S[sh] |\Z)', text, re.S | re.M)
    return found.group(1) if found else None


def man_options(text):
    options = {}
    for line in re.findall(r'^\.It (Fl .*)$', text, re.M):
        letter = re.search(r'Fl ([A-Za-z])\b', line)
        name = re.search(r'Fl Fl ([a-z0-9-]+)', line)
        if name:
            options[name.group(1)] = letter.group(1) if letter else None
    return options


def main(root):
    problems = []
    with open(os.path.join(root, 'man/osbx.1'), encoding='utf-8') as f:
        main_page = f.read()
    commands = table_options(root)
    if len(commands) < 5:
        problems.append('fewer than five commands found in src/cli: this check reads the tables wrongly')
    for command, options in commands.items():
        text = section(main_page, command)
        for page in (os.path.join(root, f'man/osbx-{command}.{number}') for number in (1, 8)):
            if os.path.exists(page):
                with open(page, encoding='utf-8') as f:
                    text = f.read()
        if text is None:
            problems.append(f'{command}: no page man/osbx-{command}.1 and no ".Ss {command}" in man/osbx.1')
            continue
        documented = man_options(text)
        for name in sorted(options.keys() - documented.keys()):
            problems.append(f'{command}: --{name} is not in the manual')
        for name in sorted(documented.keys() - options.keys()):
            problems.append(f'{command}: the manual has --{name}, the table does not')
        for name in sorted(options.keys() & documented.keys()):
            if options[name] != documented[name]:
                problems.append(f'{command}: --{name}: letter {options[name]} in the table, {documented[name]} in the manual')
    print('\n'.join(problems))
    return 1 if problems else 0


sys.exit(main(sys.argv[1]))
