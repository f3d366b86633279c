# SPDX-License-Identifier: Apache-2.0
"""The synchronous Python client against a server.

usage: python_sync.py HOST:PORT IMAGE [--no-pause]
"""
import sys
from datetime import timedelta

from opensandbox import SandboxSync
from opensandbox.config import ConnectionConfigSync
from opensandbox.models import WriteEntry


def main(domain, image):
    config = ConnectionConfigSync(domain=domain)
    sandbox = SandboxSync.create(image, entrypoint=['sleep', '1000'], timeout=timedelta(minutes=10), connection_config=config)
    with sandbox:
        execution = sandbox.commands.run('echo hello; exit 2')
        assert execution.exit_code == 2 and execution.logs.stdout[0].text == 'hello', execution
        sandbox.files.write_files([WriteEntry(path='/tmp/x', data='text', mode=644)])
        assert sandbox.files.read_file('/tmp/x') == 'text'
        if '--no-pause' not in sys.argv:
            sandbox.pause()
            assert sandbox.get_info().status.state == 'Paused'
            SandboxSync.resume(sandbox.id, connection_config=config)
        sandbox.kill()


main(sys.argv[1], sys.argv[2])
