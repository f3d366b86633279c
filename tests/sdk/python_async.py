# SPDX-License-Identifier: Apache-2.0
"""The asynchronous Python client against a server: a sandbox's life, commands, files, sessions.

usage: python_async.py HOST:PORT IMAGE [--server-proxy] [--no-pause]
"""
import asyncio
import sys
from datetime import timedelta

from opensandbox import Sandbox, SandboxManager
from opensandbox.config import ConnectionConfig
from opensandbox.exceptions import SandboxException
from opensandbox.models import WriteEntry
from opensandbox.models.execd import RunCommandOpts
from opensandbox.models.filesystem import MoveEntry, SearchEntry, SetPermissionEntry
from opensandbox.models.sandboxes import SandboxFilter


async def commands(sandbox, sandbox_id):
    execution = await sandbox.commands.run('echo out $FOO; echo err >&2; echo $OPENSANDBOX_ID; exit 3')
    assert execution.exit_code == 3, execution
    assert [m.text for m in execution.logs.stdout] == ['out bar', sandbox_id], execution
    assert [m.text for m in execution.logs.stderr] == ['err'], execution
    execution = await sandbox.commands.run('true')
    assert execution.exit_code == 0
    background = await sandbox.commands.run('echo begun; sleep 1000', opts=RunCommandOpts(background=True))
    status = await sandbox.commands.get_command_status(background.id)
    assert status.running, status
    for _ in range(100):
        logs = await sandbox.commands.get_background_command_logs(background.id)
        if 'begun' in logs.content:
            break
        await asyncio.sleep(0.1)
    assert 'begun' in logs.content, logs
    await sandbox.commands.interrupt(background.id)
    for _ in range(100):
        status = await sandbox.commands.get_command_status(background.id)
        if not status.running:
            break
        await asyncio.sleep(0.1)
    assert not status.running, status
    results = await asyncio.gather(*(sandbox.commands.run(f'echo {i}') for i in range(20)))
    assert [r.logs.stdout[0].text for r in results] == [str(i) for i in range(20)]


async def files(sandbox):
    await sandbox.files.write_files([WriteEntry(path='/tmp/s d/h ä.txt', data='hi\nthere\n', mode=640),
                                     WriteEntry(path='/tmp/b.bin', data=bytes(range(256)) * 1000, mode=600)])
    assert await sandbox.files.read_file('/tmp/s d/h ä.txt') == 'hi\nthere\n'
    assert await sandbox.files.read_bytes('/tmp/b.bin') == bytes(range(256)) * 1000
    assert await sandbox.files.read_bytes('/tmp/b.bin', range_header='bytes=1-3') == b'\1\2\3'
    info = (await sandbox.files.get_file_info(['/tmp/s d/h ä.txt']))['/tmp/s d/h ä.txt']
    assert (info.size, info.mode) == (9, 640), info
    found = await sandbox.files.search(SearchEntry(path='/tmp', pattern='*.txt'))
    assert [f.path for f in found] == ['/tmp/s d/h ä.txt'], found
    await sandbox.files.set_permissions([SetPermissionEntry(path='/tmp/b.bin', mode=755)])
    assert (await sandbox.files.get_file_info(['/tmp/b.bin']))['/tmp/b.bin'].mode == 755
    await sandbox.files.move_files([MoveEntry(src='/tmp/b.bin', dest='/tmp/c/d.bin')])
    await sandbox.files.create_directories([WriteEntry(path='/tmp/e/f', mode=700)])
    await sandbox.files.delete_directories(['/tmp/e'])
    await sandbox.files.delete_files(['/tmp/c/d.bin'])
    try:
        await sandbox.files.read_file('/tmp/c/d.bin')
        raise AssertionError('a file that was deleted is read')
    except SandboxException:
        pass


async def sessions(sandbox):
    session = await sandbox.commands.create_session()
    await sandbox.commands.run_in_session(session, 'export KEPT=5; cd /usr')
    execution = await sandbox.commands.run_in_session(session, 'echo $KEPT; pwd')
    assert [m.text for m in execution.logs.stdout] == ['5', '/usr'], execution
    await sandbox.commands.delete_session(session)


async def life(config, sandbox):
    assert (await sandbox.get_info()).status.state == 'Running'
    assert await sandbox.is_healthy()
    metrics = await sandbox.get_metrics()
    assert metrics.cpu_count > 0 and metrics.memory_used_in_mib <= metrics.memory_total_in_mib, metrics
    endpoint = await sandbox.get_endpoint(8080)
    assert endpoint.endpoint.endswith('/proxy/8080'), endpoint
    before = (await sandbox.get_info()).expires_at
    await sandbox.renew(timedelta(hours=2))
    assert (await sandbox.get_info()).expires_at > before
    if '--no-pause' not in sys.argv:
        await sandbox.pause()
        assert (await sandbox.get_info()).status.state == 'Paused'
        resumed = await Sandbox.resume(sandbox.id, connection_config=config)
        assert (await resumed.get_info()).status.state == 'Running'
    async with await SandboxManager.create(connection_config=config) as manager:
        listed = await manager.list_sandbox_infos(SandboxFilter(states=['Running'], metadata={'team': 'a-b'}))
        assert [s.id for s in listed.sandbox_infos] == [sandbox.id], listed


async def main(domain, image, use_server_proxy):
    config = ConnectionConfig(domain=domain, use_server_proxy=use_server_proxy)
    sandbox = await Sandbox.create(image, entrypoint=['sleep', '1000'], timeout=timedelta(minutes=10), env={'FOO': 'bar'},
                                   metadata={'team': 'a-b'}, connection_config=config)
    async with sandbox:
        await commands(sandbox, sandbox.id)
        await files(sandbox)
        await sessions(sandbox)
        await life(config, sandbox)
        await sandbox.kill()
    try:
        await Sandbox.connect(sandbox.id, connection_config=config)
        raise AssertionError('a sandbox that was killed is connected to')
    except SandboxException:
        pass


asyncio.run(main(sys.argv[1], sys.argv[2], '--server-proxy' in sys.argv))
