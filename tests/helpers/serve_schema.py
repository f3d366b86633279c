#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every route of the lifecycle API through its answers, each against tests/api/lifecycle.schema.json. One line "pass WHAT" or "FAIL WHAT: why" each.

usage: serve_schema.py SOCKET KEY RATED-KEY; the server has these keys, --max-sandboxes 4 and --rate 60
"""
import json
import os
import sys
import time

import jsonschema

from serve_client import NOBODY, Server, check, code_of, fill, mounts, routes, values, wait_for, wish

KEY = {'OPEN-SANDBOX-API-KEY': sys.argv[2]}
RATED = {'OPEN-SANDBOX-API-KEY': sys.argv[3]}
server = Server(sys.argv[1])
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../api/lifecycle.schema.json'), encoding='utf-8') as f:
    SCHEMA = json.load(f)
seen = set()    # (route, status)
codes = set()   # (route, code)


def allowed(route, status):
    for table in (SCHEMA['answers'][route], SCHEMA['every']):
        for key in (str(status), f'{status}?'):
            if key in table:
                return table[key]
    return None


def problem(name, document):
    validator = jsonschema.Draft202012Validator({'$ref': f'#/$defs/{name}', '$defs': SCHEMA['$defs']})
    return [f'{list(e.absolute_path)}: {e.message:.200}' for e in validator.iter_errors(document)]


def judge(route, status, data, fields, scoped):
    """What is wrong with an answer, '' if nothing is."""
    form = allowed(route, status)
    kind = values(fields, 'content-type')
    if len(values(fields, 'x-request-id')) != 1 or form is None:
        return f'{status} {data!r:.200}, X-Request-ID {values(fields, "x-request-id")}'
    if form == 'empty':
        return '' if data == b'' and not kind else f'{data!r:.100} {kind}'
    if form == 'text' or (form in ('logs', 'events') and not scoped):
        return '' if kind and kind[0].startswith('text/plain') and data.decode() else f'{data!r:.100} {kind}'
    if kind != ['application/json']:
        return f'{kind}'
    document = json.loads(data)
    if isinstance(form, list):
        codes.add((route, document.get('code')))
        return '; '.join(problem('form_error' if status == 422 else 'error', document)) or ('' if document['code'] in form else document['code'])
    return '; '.join(problem(form, document))


def ask(route, expected, body=None, sandbox=NOBODY, query='', headers=None, **parts):
    """At each mount; -> the body of the last answer"""
    method, listed = route.split()
    for path in mounts(listed):
        target = fill(path, sandbox, **parts) + query
        status, data, fields = server.request('GET' if method == 'ANY' else method, target, body, KEY if headers is None else headers)
        seen.add((route, str(status)))
        wrong = judge(route, status, data, fields, 'scope=' in query)
        check(f'{method} {path}{query}: {expected}', (status in expected if isinstance(expected, tuple) else status == expected, wrong), (True, ''))
        if not (status in expected if isinstance(expected, tuple) else status == expected):
            print(f'# {status} {data!r:.200}', file=sys.stderr)
    return data


ONE = '/sandboxes/{sandboxId}'


def part_keys():
    for method, listed in routes():
        route = f'{method} {listed}'
        if '/proxy/' in listed or listed in ('/health', '/version'):
            continue
        ask(route, 401, headers={})
        ask(route, 401, headers={'OPEN-SANDBOX-API-KEY': 'wrong'})


def policy_body(route):
    rules = {'PUT': {'defaultAction': 'deny'}, 'PATCH': [{'action': 'allow', 'target': 'a.test'}], 'DELETE': ['a.test']}
    return rules.get(route.split()[0]) if 'networkpolicy' in route else None


def part_policy(name):
    for method in ('GET', 'PATCH', 'GET', 'DELETE', 'PUT', 'GET'):
        route = f'{method} {ONE}/networkpolicy'
        answer = json.loads(ask(route, 200, policy_body(route), sandbox=name))
    check('the policy that was put', answer['policy'], {'defaultAction': 'deny', 'egress': []})
    ask(f'GET {ONE}/endpoints/{{port}}', 200, sandbox=name, port=18080)


def part_absent():
    for route, answers in SCHEMA['answers'].items():
        if '501' in answers:
            ask(route, 501, body={} if route.split()[0] in ('POST', 'PUT', 'PATCH') else None)
        if '404' in answers:
            body = {'expiresAt': '2099-01-01T00:00:00Z'} if 'renew' in route else {'a': 'b'} if 'metadata' in route else policy_body(route)
            ask(route, 404, body)
            ask(route, 404, body, sandbox='x')
        if '413' in answers:
            ask(route, 413, body=b'{"a":"' + b'x' * (5 << 20) + b'"}')
        if '422' in answers and 'GET' not in route:
            for body in (None, b'{', b'[]', b'7', b'null', b'"\xff"'):
                ask(route, 422, body)


def part_server():
    ask('GET /health', 200)
    ask('GET /version', 200)
    ask('GET /metrics', 200)
    ask('POST /v1/metrics/events', 204, {'eventType': 'sandbox.create', 'createDurationMs': 1, 'success': True})
    for bad in ({}, {'eventType': 'x'}, {'eventType': 'x', 'createDurationMs': -1, 'success': True},
                {'eventType': 'x', 'createDurationMs': 1, 'success': 'yes'}, {'eventType': 'x', 'createDurationMs': 1, 'success': True, 'image': 1}):
        ask('POST /v1/metrics/events', 422, bad)


def part_refused():
    host = {'name': 'v', 'mountPath': '/v', 'host': {'path': '/etc'}}
    refused = [(422, {'image': 7}), (422, {'timeout': 1}), (400, {'metadata': {'-': 'x'}}), (400, {'resourceLimits': {'cpu': '0'}}), (400, {'entrypoint': ['no-such-program']}),
               (400, {'extensions': {'poolRef': 'p'}}), (400, {'secureAccess': True}), (422, {'networkPolicy': {'egress': [{'target': ''}]}}),
               (400, {'platform': {'os': 'linux', 'arch': 'amd64'}}), (400, {'snapshotId': 's', 'image': None}), (400, {'volumes': [host]})]
    refused += [(400, {'volumes': [{**host, **more}]}) for more in ({'name': '-'}, {'mountPath': 'v'}, {'subPath': '..'}, {'host': {'path': 'x'}}, {'host': None})]
    refused += [(400, {'volumes': [host, host]}), (400, {'volumes': [{'name': 'v', 'mountPath': '/v', 'pvc': {'claimName': 'x'}}]})]
    for status, more in refused:
        ask('POST /sandboxes', status, wish(**more))


def part_life():
    name = json.loads(ask('POST /sandboxes', 202, wish(metadata={'a': 'b'}, extensions={'opensandbox.extensions.x': 'y'})))['id']
    forever = json.loads(ask('POST /sandboxes', 202, wish(timeout=None, entrypoint=['sh', '-c', 'echo out; exec sleep 1000'])))['id']
    ask('POST /sandboxes', 429, wish())
    ask(f'GET {ONE}', 200, sandbox=name)
    ask(f'GET {ONE}', 200, sandbox=forever)
    for status, query in ((200, ''), (200, '?page=2&pageSize=1'), (200, '?state=Paused'), (422, '?page=0'), (422, '?pageSize=x'), (400, '?metadata=x')):
        ask('GET /sandboxes', status, query=query)
    for status, body in ((200, {'c': 'd', 'a': None}), (200, {}), (400, {'opensandbox.io/x': 'y'}), (422, {'a': 7})):
        ask(f'PATCH {ONE}/metadata', status, body, sandbox=name)
    renew = f'POST {ONE}/renew-expiration'
    for status, body in ((200, {'expiresAt': '2030-01-01T00:00:00.123456789+02:00'}), (400, {'expiresAt': '2020-01-01T00:00:00Z'}), (422, {'expiresAt': 'x'}), (422, {})):
        ask(renew, status, body, sandbox=name)
    ask(renew, 409, {'expiresAt': '2030-01-01T00:00:00Z'}, sandbox=forever)
    for status, port in ((200, 80), ((400, 422), 0), ((400, 422), 65536), ((400, 422), 'x')):
        ask(f'GET {ONE}/endpoints/{{port}}', status, sandbox=name, port=port)
    for kind, own, number in (('logs', 'container', 'tail'), ('events', 'runtime', 'limit')):
        route = f'GET {ONE}/diagnostics/{kind}'
        for status, query in ((200, ''), (200, f'?scope={own}'), (200, '?scope=ALL'), (400, '?scope=x'), (422, f'?{number}=x')):
            ask(route, status, sandbox=forever, query=query)
    ask(f'GET {ONE}/diagnostics/inspect', 200, sandbox=name)
    ask(f'GET {ONE}/diagnostics/summary', 200, sandbox=name)
    ask(f'GET {ONE}/diagnostics/summary', 422, sandbox=name, query='?tail=x')
    for route in (f'ANY {ONE}/proxy/{{port}}', f'ANY {ONE}/proxy/{{port}}/{{path*}}'):
        ask(route, 502, sandbox=name, port=9)
        ask(route, 400, sandbox=name, port=0)
    part_policy(name)
    part_pause(name, forever)
    return name, forever


def part_pause(name, other):
    ask(f'POST {ONE}/resume', 409, sandbox=name)
    status, data, fields = server.request('POST', f'/sandboxes/{name}/pause', None, KEY)
    route = f'POST {ONE}/pause'
    seen.add((route, str(status)))
    check('pause', (status in (202, 501), judge(route, status, data, fields, False)), (True, ''))
    if status == 202:
        ask(f'GET {ONE}', 200, sandbox=name)
        ask(route, 409, sandbox=name)
        status, data, fields = server.request('POST', f'/sandboxes/{name}/resume', None, KEY)
        check('resume', (status, judge(f'POST {ONE}/resume', status, data, fields, False)), (202, ''))
    server.request('DELETE', f'/sandboxes/{other}', None, KEY)


def part_end(name):
    server.request('DELETE', f'/sandboxes/{name}', None, KEY)
    ended = json.loads(ask('POST /sandboxes', 202, wish(entrypoint=['true'])))['id']
    wait_for(lambda: json.loads(server.request('GET', f'/sandboxes/{ended}', None, KEY)[1])['status']['state'] == 'Terminated')
    ask(f'GET {ONE}', 200, sandbox=ended)
    ask(f'POST {ONE}/renew-expiration', 409, {'expiresAt': '2030-01-01T00:00:00Z'}, sandbox=ended)
    ask(f'POST {ONE}/pause', 409, sandbox=ended)
    for method in ('GET', 'PUT', 'PATCH', 'DELETE'):
        route = f'{method} {ONE}/networkpolicy'
        ask(route, 409, policy_body(route), sandbox=ended)
    ask(f'ANY {ONE}/proxy/{{port}}/{{path*}}', 409, sandbox=ended)
    for one in json.loads(server.request('GET', '/sandboxes', None, KEY)[1])['items']:
        status, data, fields = server.request('DELETE', f'/sandboxes/{one["id"]}', None, KEY)
        seen.add((f'DELETE {ONE}', str(status)))
        check('delete', (status, judge(f'DELETE {ONE}', status, data, fields, False)), (204, ''))
    # Those that are refused count, too.
    for _ in range(60):
        server.request('POST', '/sandboxes', {}, RATED)
    ask('POST /sandboxes', 429, {}, headers=RATED)


def run():
    listed = {f'{method} {path}' for method, path in routes()}
    check('the schema has the routes of the list', sorted(listed ^ set(SCHEMA['answers'])), [])
    part_keys()
    part_absent()
    part_server()
    part_refused()
    name, _ = part_life()
    part_end(name)
    check('every route was asked', sorted(listed - {route for route, _ in seen}), [])
    missing = [f'{route} {status}' for route, answers in SCHEMA['answers'].items() for status in answers if not status.endswith('?') and (route, status) not in seen]
    check('every answer was seen', missing, [])
    unseen = [f'{route} {code}' for route, answers in SCHEMA['answers'].items() for status, form in answers.items()
              if isinstance(form, list) and not status.endswith('?') for code in form if (route, code) not in codes]
    check('every code was seen', unseen, [])


run()
