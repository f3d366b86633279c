#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Routes of the lists in tests/api and routes of their manual pages are the same sets.

A page says ".It Ic METHOD Pa /path"; what stands below the prefix of an account it has once, without it.
usage: routes.py ROOT
"""
import os
import re
import sys

ACCOUNT = '/v1/filesystem/{}/{}'
PAGES = [('tests/api/routes.txt', 'man/osbx-execd.8', 40), ('tests/api/lifecycle.txt', 'man/osbx-api.7', 25)]


def plain(method, path):
    return f'{method} {re.sub("{[^}]*}", "{}", path)}'


def listed(root, name):
    with open(os.path.join(root, name), encoding='utf-8') as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith('#')]
    return [plain(method, path) for method, path in lines]


def compare(root, name, page, least, problems):
    routes = listed(root, name)
    if len(routes) < least:
        problems.append(f'{name}: fewer than {least} routes: this check reads it wrongly')
    for route in sorted({r for r in routes if routes.count(r) > 1}):
        problems.append(f'{name}: {route}: twice')
    for route in routes:
        if f' {ACCOUNT}/' in route and route.replace(ACCOUNT, '') not in routes:
            problems.append(f'{name}: {route}: only for an account')
    with open(os.path.join(root, page), encoding='utf-8') as f:
        found = re.findall(r'^\.It Ic ([A-Z]+) Pa (\S+)', f.read(), re.M)
    documented = {plain(method, path) for method, path in found}
    wanted = {r for r in routes if ACCOUNT not in r}
    problems += [f'{page}: {r} is missing' for r in sorted(wanted - documented)]
    problems += [f'{page}: {r} does not exist' for r in sorted(documented - wanted)]


def main(root):
    problems = []
    for name, page, least in PAGES:
        compare(root, name, page, least, problems)
    print('\n'.join(problems))
    return 1 if problems else 0


sys.exit(main(sys.argv[1]))
