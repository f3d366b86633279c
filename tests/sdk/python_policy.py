# SPDX-License-Identifier: Apache-2.0
"""Network policies by the Python clients, with the names of tests/helpers/networld.py.

usage: python_policy.py HOST:PORT IMAGE [--server-proxy]
"""
import asyncio
import sys
from datetime import timedelta

from opensandbox import Sandbox, SandboxSync
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.models.sandboxes import NetworkPolicy, NetworkRule

ENTRYPOINT = ['sleep', '1000']


def policy(default, *rules):
    return NetworkPolicy(default_action=default, egress=[NetworkRule(action=a, target=t) for a, t in rules])


def rules_of(got):
    return [(r.action, r.target) for r in got.egress or []]


def command(name):
    return f'curl -s -o /dev/null -m 5 -w "%{{http_code}}" http://{name}; echo " $?"'


def check(execution, reached, name):
    text = ''.join(m.text for m in execution.logs.stdout).strip()
    assert text.startswith('200 0') if reached else text.startswith('000') and not text.endswith(' 28'), (name, reached, text)


def sync(domain, image, proxy):
    config = ConnectionConfigSync(domain=domain, use_server_proxy=proxy)
    first = policy('deny', ('allow', 'allowed.test'), ('deny', 'cdn.test'), ('allow', '*.allowed.test'))
    sandbox = SandboxSync.create(image, entrypoint=ENTRYPOINT, timeout=timedelta(minutes=10), connection_config=config, network_policy=first)

    def reach(name, reached):
        check(sandbox.commands.run(command(name)), reached, name)

    with sandbox:
        got = sandbox.get_egress_policy()
        assert got.default_action == 'deny' and rules_of(got) == rules_of(first), got
        for name, reached in (('allowed.test', True), ('sub.allowed.test', True), ('other.test', False), ('cdn.test', False), ('private.test', False)):
            reach(name, reached)
        # What is patched comes first, one rule a target.
        sandbox.patch_egress_rules([NetworkRule(action='allow', target='other.test'), NetworkRule(action='deny', target='allowed.test')])
        got = sandbox.get_egress_policy()
        assert rules_of(got) == [('allow', 'other.test'), ('deny', 'allowed.test'), ('deny', 'cdn.test'), ('allow', '*.allowed.test')], got
        for name, reached in (('allowed.test', False), ('other.test', True), ('sub.allowed.test', True)):
            reach(name, reached)
        sandbox.delete_egress_rules(['other.test', '*.allowed.test', 'nobody.test'])
        got = sandbox.get_egress_policy()
        assert got.default_action == 'deny' and rules_of(got) == [('deny', 'allowed.test'), ('deny', 'cdn.test')], got
        for name in ('allowed.test', 'other.test', 'sub.allowed.test'):
            reach(name, False)
        again = SandboxSync.connect(sandbox.id, connection_config=config)
        again.patch_egress_rules([NetworkRule(action='allow', target='allowed.test')])
        again.close()
        reach('allowed.test', True)
        sandbox.kill()


async def asynchronous(domain, image, proxy):
    config = ConnectionConfig(domain=domain, use_server_proxy=proxy)
    sandbox = await Sandbox.create(image, entrypoint=ENTRYPOINT, timeout=timedelta(minutes=10), connection_config=config,
                                   network_policy=policy('allow', ('deny', 'other.test')))
    async with sandbox:
        got = await sandbox.get_egress_policy()
        assert got.default_action == 'allow' and rules_of(got) == [('deny', 'other.test')], got
        for name, reached in (('allowed.test', True), ('other.test', False), ('private.test', False)):
            check(await sandbox.commands.run(command(name)), reached, name)
        await sandbox.patch_egress_rules([NetworkRule(action='deny', target='allowed.test')])
        check(await sandbox.commands.run(command('allowed.test')), False, 'allowed.test')
        await sandbox.delete_egress_rules(['allowed.test', 'other.test'])
        check(await sandbox.commands.run(command('other.test')), True, 'other.test')
        await sandbox.kill()


def main(domain, image):
    proxy = '--server-proxy' in sys.argv
    sync(domain, image, proxy)
    asyncio.run(asynchronous(domain, image, proxy))


main(sys.argv[1], sys.argv[2])
