#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Routes of tests/api/routes.txt and routes of man/osbx-execd.8 are the same set.

The page says ".It Ic METHOD Pa /path"; what stands below the prefix of an account it has once, without it.
usage: routes.py ROOT
"""
import os
import re
import sys

ACCOUNT = '/v1/filesystem/{}/{}'


def plain(method, path):
    return f'{method} {re.sub("{[^}]*}", "{}", path)}'


def listed(root):
    with open(os.path.join(root, 'tests/api/routes.txt'), encoding='utf-8') as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith('#')]
    return [plain(method, path) for method, path in lines]


def main(root):
    problems = []
    routes = listed(root)
    if len(routes) < 40:
        problems.append('tests/api/routes.txt: fewer than 40 routes: this check reads it wrongly')
    for route in sorted({r for r in routes if routes.count(r) > 1}):
        problems.append(f'tests/api/routes.txt: {route}: twice')
    for route in routes:
        if f' {ACCOUNT}/' in route and route.replace(ACCOUNT, '') not in routes:
            problems.append(f'tests/api/routes.txt: {route}: only for an account')
    with open(os.path.join(root, 'man/osbx-execd.8'), encoding='utf-8') as f:
        found = re.findall(r'^\.It Ic ([A-Z]+) Pa (\S+)', f.read(), re.M)
    documented = {plain(method, path) for method, path in found}
    wanted = {r for r in routes if ACCOUNT not in r}
    problems += [f'man/osbx-execd.8: {r} is missing' for r in sorted(wanted - documented)]
    problems += [f'man/osbx-execd.8: {r} does not exist' for r in sorted(documented - wanted)]
    print('\n'.join(problems))
    return 1 if problems else 0


sys.exit(main(sys.argv[1]))
