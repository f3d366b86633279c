# SPDX-License-Identifier: Apache-2.0
"""The official interpreter clients for Python against a server: a sandbox, a command, a file, code in contexts.

usage: interpreter.py HOST:PORT IMAGE [--server-proxy] [--jupyter]
--jupyter: the sandbox runs Debian's jupyter-server, whose kernels run the code
"""
import asyncio
import base64
import json
import subprocess
import sys
from datetime import timedelta

import httpx
from code_interpreter import CodeInterpreter, CodeInterpreterSync, SupportedLanguage
from opensandbox import Sandbox, SandboxSync
from opensandbox.config import ConnectionConfig, ConnectionConfigSync
from opensandbox.models import WriteEntry
from opensandbox.models.execd import ExecutionHandlers

JUPYTER = '--jupyter' in sys.argv
# What matplotlib wants beside /usr.
ENV = {'MATPLOTLIBRC': '/usr/share/matplotlib/mpl-data', 'HOME': '/tmp'}
ENTRYPOINT = ['sleep', '1000']
if JUPYTER:
    ENV |= {'JUPYTER_HOST': 'http://127.0.0.1:44771', 'JUPYTER_TOKEN': 'opensandboxcodeinterpreterjupyter'}
    ENTRYPOINT = ['/usr/bin/python3', '-m', 'jupyter_server', '--ip=127.0.0.1', '--port=44771', '--allow-root', '--no-browser',
                  '--ServerApp.root_dir=/tmp', '--ServerApp.token=opensandboxcodeinterpreterjupyter']
FIGURE = '''import matplotlib.pyplot as plt
figure = plt.figure(figsize=(3, 2), facecolor="red")
plt.plot([0, 1], [1, 0], color="blue", linewidth=5)
plt.show()
'''
# Its own interpreter has no image library, that of the system has.
LOOK = '''import sys
from PIL import Image
image = Image.open(sys.stdin.buffer)
image.load()
colours = image.convert("RGB").getcolors(1 << 24)
print(image.format, image.getpixel((2, 2))[:3], any(c == (0, 0, 255) for _, c in colours))
'''


def texts(messages):
    return ''.join(m.text for m in messages)


def look_at(png):
    return subprocess.run(['/usr/bin/python3', '-c', LOOK], input=png, stdout=subprocess.PIPE, check=True).stdout.decode().strip()


async def figure(sandbox, interpreter, context):
    execution = await interpreter.codes.run(FIGURE, context=context)
    assert not execution.error and execution.result[0].text.startswith('<Figure'), execution
    # This client keeps but the text of a result: what it was sent is looked at without it.
    endpoint = await sandbox.get_endpoint(44772)
    async with httpx.AsyncClient(timeout=60, headers=endpoint.headers or {}) as client:
        body = {'context': {'id': context.id, 'language': 'python'}, 'code': FIGURE}
        answer = await client.post(f'http://{endpoint.endpoint}/code', json=body)
    events = [json.loads(line) for line in answer.text.splitlines() if line]
    png = [base64.b64decode(e['results']['image/png']) for e in events if e['type'] == 'result']
    assert len(png) == 1 and png[0].startswith(b'\x89PNG'), events
    assert look_at(png[0]) == 'PNG (255, 0, 0) True', look_at(png[0])


async def failures(interpreter, context):
    execution = await interpreter.codes.run('ok = 1\nnot_there', context=context)
    assert execution.error.name == 'NameError', execution.error
    assert 'not_there' in execution.error.value and execution.error.traceback, execution.error
    events = []

    async def on_init(init):
        events.append(init.id)

    async def on_stdout(message):
        events.append(message.text)
        await interpreter.codes.interrupt(events[0])

    handlers = ExecutionHandlers(on_init=on_init, on_stdout=on_stdout)
    execution = await interpreter.codes.run('import time\nprint("begun", flush=True)\nwhile True: time.sleep(0.01)',
                                            context=context, handlers=handlers)
    assert events[1].strip() == 'begun', events
    assert execution.error.name == 'KeyboardInterrupt', execution
    execution = await interpreter.codes.run('ok', context=context)
    assert execution.result[0].text == '1', execution


async def contexts(interpreter):
    made = await asyncio.gather(*(interpreter.codes.create_context(SupportedLanguage.PYTHON) for _ in range(4)))
    await asyncio.gather(*(interpreter.codes.run(f'x = {i}', context=c) for i, c in enumerate(made)))
    results = await asyncio.gather(*(interpreter.codes.run('x', context=c) for c in made))
    assert [r.result[0].text for r in results] == ['0', '1', '2', '3'], results
    listed = await interpreter.codes.list_contexts(SupportedLanguage.PYTHON)
    assert {c.id for c in made} <= {c.id for c in listed}, listed
    got = await interpreter.codes.get_context(made[0].id)
    assert got.language == 'python', got
    await interpreter.codes.delete_context(made[0].id)
    await interpreter.codes.delete_contexts(SupportedLanguage.PYTHON)
    assert await interpreter.codes.list_contexts(SupportedLanguage.PYTHON) == []



async def bash(interpreter):
    context = await interpreter.codes.create_context(SupportedLanguage.BASH)
    await interpreter.codes.run('cd /usr; f() { echo "in $PWD"; }', context=context)
    execution = await interpreter.codes.run('f', context=context)
    assert texts(execution.logs.stdout).strip() == 'in /usr', execution


async def main(domain, image):
    config = ConnectionConfig(domain=domain, use_server_proxy='--server-proxy' in sys.argv)
    sandbox = await Sandbox.create(image, entrypoint=ENTRYPOINT, env=ENV, timeout=timedelta(minutes=10), connection_config=config)
    async with sandbox:
        execution = await sandbox.commands.run('echo "Hello"')
        assert texts(execution.logs.stdout) == 'Hello', execution
        await sandbox.files.write_files([WriteEntry(path='/tmp/hello.txt', data='from a file', mode=644)])
        interpreter = await CodeInterpreter.create(sandbox=sandbox)
        context = await interpreter.codes.create_context(SupportedLanguage.PYTHON)
        execution = await interpreter.codes.run('import sys\nprint(sys.version)\nresult = 2 + 2\nresult', context=context)
        assert execution.result[0].text == '4' and texts(execution.logs.stdout).startswith('3.'), execution
        assert execution.execution_count == 1 and execution.complete, execution
        print(execution.result[0].text)
        execution = await interpreter.codes.run('open("/tmp/hello.txt").read()', language=SupportedLanguage.PYTHON)
        assert execution.result[0].text == "'from a file'", execution
        await figure(sandbox, interpreter, context)
        await failures(interpreter, context)
        await contexts(interpreter)
        if not JUPYTER:
            await bash(interpreter)
        await sandbox.kill()


def main_sync(domain, image):
    config = ConnectionConfigSync(domain=domain)
    sandbox = SandboxSync.create(image, entrypoint=ENTRYPOINT, env=ENV, timeout=timedelta(minutes=10), connection_config=config)
    with sandbox:
        interpreter = CodeInterpreterSync.create(sandbox=sandbox)
        interpreter.codes.run('x = 40', language=SupportedLanguage.PYTHON)
        execution = interpreter.codes.run('result = x + 2\nresult', language=SupportedLanguage.PYTHON)
        assert execution.result[0].text == '42', execution
        sandbox.kill()


asyncio.run(main(sys.argv[1], sys.argv[2]))
main_sync(sys.argv[1], sys.argv[2])
