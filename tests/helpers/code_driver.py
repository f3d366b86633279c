#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The code interpreter over the execution API, with python in the sandbox. usage: code_driver.py SOCKET PID MIB KIB
       code_driver.py SOCKET METHOD PATH [BODY]

PID is PID 1 of the sandbox as this machine counts it, MIB the memory that it may use, 0 for no limit, KIB by which PID 1
may grow in a hundred runs. A line a check: "ok TEXT" or "not ok TEXT: what was there", and "done" at the end. The second
form makes one request and prints the body and the status.
"""
import concurrent.futures
import http.client
import json
import socket
import sys
import time

SOCKET = sys.argv[1]
LIMIT_S = 60


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(LIMIT_S)
        self.sock.connect(SOCKET)


def call(method, path, body=None):
    connection = Connection('x')
    connection.request(method, path, None if body is None else json.dumps(body))
    response = connection.getresponse()
    return response.status, response.read()


if not sys.argv[2].isdigit():
    answer = call(*sys.argv[2:4], json.loads(sys.argv[4]) if len(sys.argv) > 4 else None)
    print(answer[1].decode().rstrip(), answer[0])
    sys.exit(0)
PID, MIB, KIB = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def events_of(data):
    """The contract: JSON objects in one line, an empty line behind each."""
    frames = data.split(b'\n\n')
    assert frames[-1] == b'', frames[-1][:100]
    assert not any(b'\n' in f for f in frames)
    return [json.loads(f) for f in frames[:-1]]


class Run:
    def __init__(self, code, context=None, **more):
        status, data = call('POST', '/code', {'code': code, 'context': {'language': 'python'} if context is None else context, **more})
        self.status, self.data = status, data
        self.events = events_of(data) if status == 200 else []
        self.kinds = [e.get('type') for e in self.events if e.get('type') != 'ping']
        self.out = ''.join(e['text'] for e in self.events if e.get('type') == 'stdout')
        self.err = ''.join(e['text'] for e in self.events if e.get('type') == 'stderr')
        self.results = [e['results'] for e in self.events if e.get('type') == 'result']
        self.result = self.results[-1].get('text') if self.results else None
        self.count = next((e['execution_count'] for e in self.events if e.get('type') == 'execution_count'), None)
        errors = [e['error'] for e in self.events if e.get('type') == 'error']
        self.error = errors[0] if len(errors) == 1 else None
        self.ename = self.error['ename'] if self.error else None
        self.evalue = self.error['evalue'] if self.error else ''
        self.trace = '\n'.join(self.error['traceback']) if self.error else ''


def check(what, got, expected):
    if got == expected:
        print('ok', what)
    else:
        print(f'not ok {what}: {repr(got)[:600]} for {repr(expected)[:300]}')


def has(what, text, *parts):
    missing = [p for p in parts if p not in text]
    check(what, f'{missing} not in {text[:500]}' if missing else [], [])


def context(language='python', **more):
    status, data = call('POST', '/code/context', {'language': language, **more})
    assert status == 200, data
    return json.loads(data)


def memory_kib():
    with open(f'/proc/{PID}/status', encoding='ascii') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS'))


def case_events():
    r = Run('x = 20\nprint("out")\nx + 1')
    check('events of a run', r.kinds, ['init', 'stdout', 'execution_count', 'result', 'execution_complete'])
    check('what they say', (r.out, r.count, r.result), ('out\n', 1, '21'))
    check('the state is kept', Run('x + 2').result, '22')
    check('a semicolon hides the result', Run('x;').kinds, ['init', 'execution_complete'])
    check('nothing but a comment', Run('# nothing').kinds, ['init', 'execution_complete'])
    check('None is no result', Run('None').kinds, ['init', 'execution_complete'])
    r = Run('import sys\nfor i in range(3):\n    print("o", i)\n    print("e", i, file=sys.stderr)')
    check('stdout and stderr in order', [e['text'] for e in r.events if e['type'] in ('stdout', 'stderr')],
          ['o 0\n', 'e 0\n', 'o 1\n', 'e 1\n', 'o 2\n', 'e 2\n'])
    r = Run('import subprocess\nprint("a", end="")\nsubprocess.run(["/bin/echo", "b"]).returncode')
    check('text of a child', (r.out, r.result), ('b\na', '0') if r.out == 'b\na' else ('ab\n', '0'))


def case_errors():
    r = Run('def f():\n    return 1 / 0\n\nf()')
    check('an error', (r.kinds, r.ename, r.evalue), (['init', 'error', 'status'], 'ZeroDivisionError', 'division by zero'))
    has('its lines', r.trace, 'line 4, in <module>', 'line 2, in f', 'return 1 / 0')
    check('nothing of our own', 'osbx' in r.trace, False)
    has('a function of an earlier run', Run('\n\nf()').trace, 'line 3, in <module>', 'line 2, in f')
    check('a name that is not there', Run('nothing_there').ename, 'NameError')
    r = Run('a = 1\nb = (')
    check('a syntax error', r.ename, 'SyntaxError')
    has('its line', r.trace, 'line 2', 'b = (')
    has('one in a function', Run('def g():\n    x = 1\n    return return').trace, 'line 3')
    has('one error for another', Run('try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError("k") from e').trace,
        'ZeroDivisionError', 'direct cause', 'KeyError')
    r = Run('def r(n):\n    return r(n + 1)\nr(0)')
    check('deep recursion', r.ename, 'RecursionError')
    check('that is not told in full', len(r.trace) < 300000, True)
    r = Run('import sys\nsys.exit(3)')
    check('sys.exit', (r.ename, r.evalue), ('SystemExit', '3'))
    check('input', (Run('input("?")').ename), 'StdinNotImplementedError')
    r = Run('class B:\n    def __repr__(self):\n        raise ValueError("no")\nB()')
    check('a result that cannot be shown', (r.ename, r.evalue), ('ValueError', 'no'))
    r = Run('class E(Exception):\n    def __str__(self):\n        raise ValueError("no")\nraise E')
    check('an error that cannot be shown', r.ename, 'E')
    check('a long error', len(Run('raise ValueError("x" * 5000000)').evalue) < 100000, True)
    check('the context goes on', Run('f.__name__').result, "'f'")


def case_text():
    r = Run('print("\\u00e9\\u2028\\u0085\\U0001f600\\ud800|")\n"\\u00e9\\u2028\\ud800"')
    check('characters', (r.out, r.result), ('\u00e9\u2028\u0085\U0001f600\\ud800|\n', "'\u00e9\\u2028\\ud800'"))
    check('none at which lines break', any(c in r.data.decode() for c in '\u2028\u2029\u0085'), False)
    r = Run('class S:\n    def __repr__(self):\n        return "\\ud800\\u2028\\0\\x01<&>"\nS()')
    check('of a result', r.result, '?\u2028\ufffd\x01<&>')
    check('bytes that are no text', Run('import os\nos.write(1, b"\\xff\\xc3") and None').out, '\ufffd\ufffd')
    check('the code has them too', Run('"\U0001f600" == "\\U0001f600"').result, 'True')


def case_display():
    r = Run('class H:\n    def _repr_html_(self):\n        return "<b>\u00e9</b>"\n    def __repr__(self):\n        return "H"\nH()')
    check('HTML', r.results, [{'text': 'H', 'text/html': '<b>\u00e9</b>'}])
    r = Run('class M:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n'
            '        return {"text/plain": "m", "application/json": {"a": [1, 2.5, None, True]}, "image/png": b"\\x89P"}\nM()')
    check('a bundle', r.results, [{'text': 'm', 'application/json': {'a': [1, 2.5, None, True]}, 'image/png': 'iVA='}])
    r = Run('print("1")\ndisplay(H())\nprint("2")\ndisplay(7)\n8')
    check('display', [e.get('text') or e.get('results') for e in r.events if e['type'] in ('stdout', 'result')],
          ['1\n', {'text': 'H', 'text/html': '<b>\u00e9</b>'}, '2\n', {'text': '7'}, {'text': '8'}])
    check('one count', r.kinds.count('execution_count'), 1)
    r = Run('class Y:\n    def __getattr__(self, name):\n        return lambda *a, **k: 5\n    def __repr__(self):\n        return "Y"\nY()')
    check('who answers to every name', r.results, [{'text': 'Y'}])
    r = Run('class L:\n    def _repr_html_(self):\n        return "x" * 20000000\n    def __repr__(self):\n        return "l"\nL()')
    check('a large part is left out', (list(r.results[0]), len(r.result) < 300), (['text'], True))
    has('and said', r.result, 'text/html', 'left out')
    r = Run('"y" * 50000000')
    check('a large text is cut', (1000000 < len(r.result) < 17000000, 'characters more' in r.result), (True, True))
    r = Run('v = []\nfor i in range(500):\n    v = [v]\nclass J:\n    def _repr_json_(self):\n        return v\nJ()')
    check('a deep one', (r.kinds[-1], 'application/json' in r.results[0]), ('execution_complete', True))
    r = Run('class P:\n    def _repr_json_(self):\n        return list(range(300000))\n    def __repr__(self):\n        return "P"\nP()')
    check('one of many parts', (list(r.results[0]), 'too many parts' in r.result), (['text'], True))


def case_await():
    r = Run('import asyncio\nawait asyncio.sleep(0.01)\nawait asyncio.sleep(0, 9)')
    check('await', r.result, '9')
    check('one loop for all', Run('l = asyncio.get_running_loop() if False else await asyncio.sleep(0, 1)\nl').result, '1')
    check('async for', Run('async def n():\n    for i in range(3):\n        yield i\n[i async for i in n()]').result, '[0, 1, 2]')
    r = Run('async def bad():\n    raise ValueError("b")\nawait bad()')
    check('an error in it', (r.ename, 'line 3' in r.trace), ('ValueError', True))
    check('asyncio.run', Run('asyncio.run(asyncio.sleep(0, 4))').result, '4')


def case_monkeys():
    c = context()
    r = Run('import sys, os, json, builtins\nclass W:\n    def write(self, s):\n        raise ValueError\nsys.stdout = W()\n'
            'json.dumps = json.JSONEncoder = os.read = os.write = None\nimport posix\nposix.read = posix.write = None\n'
            'for n in "isinstance len str print type exec eval compile getattr RuntimeError".split():\n'
            '    setattr(builtins, n, None)\n3', c)
    check('what the code replaces is not what we use', (r.kinds[-1], r.result), ('execution_complete', '3'))
    r = Run('1 / 0', c)
    check('nor for errors', (r.ename, 'line 1' in r.trace), ('ZeroDivisionError', True))
    check('nor afterwards', Run('x = 5\nx', c).result, '5')
    call('DELETE', f'/code/contexts/{c["id"]}')


def case_children():
    r = Run('import os\npid = os.fork()\nif pid == 0:\n    print("child")\nelse:\n    os.waitpid(pid, 0)\n    print("parent")\n5')
    check('fork', (sorted(r.out.split()), r.kinds.count('execution_complete'), r.result), (['child', 'parent'], 1, '5'))
    check('one interpreter is left', Run('os.getpid() != pid').result, 'True')
    for method in ('spawn', 'forkserver', 'fork'):
        r = Run(f'import multiprocessing as m, math\nwith m.get_context("{method}").Pool(2) as p:\n    r = p.map(math.sqrt, [4, 9])\nr')
        check(f'multiprocessing by {method}', (r.result, r.kinds[-1]), ('[2.0, 3.0]', 'execution_complete'))
    r = Run('import threading\ndef w(n):\n    for i in range(40):\n        print("o", n, i)\n        print("e", n, i, file=sys.stderr)\n'
            'import sys\nt = [threading.Thread(target=w, args=(n,)) for n in range(4)]\n[a.start() for a in t]\n[a.join() for a in t]\nNone')
    check('threads', (sorted(r.out.split('\n')), len(r.err.split('\n'))),
          (sorted([''] + [f'o {n} {i}' for n in range(4) for i in range(40)]), 161))
    r = Run('e = threading.Event()\nt = threading.Thread(target=lambda: (e.wait(), print("late")))\nt.start()\n1')
    check('a thread that goes on', r.kinds, ['init', 'execution_count', 'result', 'execution_complete'])
    check('has its say in the next run', Run('e.set()\nt.join()').out, 'late\n')
    Run('t = threading.Timer(0.05, lambda: print("between"))\nt.start()')
    time.sleep(0.2)
    check('what is written between two runs comes with the next one', Run('t.join()').out, 'between\n')


def case_lots():
    before = memory_kib()
    connection = Connection('x')
    connection.request('POST', '/code', json.dumps({'code': 'for i in range(100):\n    print("z" * 1048575)',
                                                    'context': {'language': 'python'}}))
    response = connection.getresponse()
    z = 0
    tail = b''
    while True:
        data = response.read(1 << 20)
        if not data:
            break
        z += data.count(b'z')
        tail = (tail + data)[-300:]
    check('100 MiB of print', (z, b'execution_complete' in tail), (100 * 1048575, True))
    check('without keeping it', memory_kib() - before < 30 * KIB, True)


def case_many_runs():
    c = context()
    Run('n = 0', c)
    Run('n += 1', c)
    before = None
    for i in range(100):
        r = Run('n += 1\nn', c)
        if i == 20:
            before = memory_kib()
    check('100 runs', (r.result, r.count), ('101', 102))
    check('no growth', memory_kib() - before < KIB, True)
    call('DELETE', f'/code/contexts/{c["id"]}')


def case_contexts():
    a, b = context(), context(cwd='/tmp', envs={'V': 'value'})
    check('a context', (a['language'], len(a['id']), 'cwd' in a), ('python', 36, False))
    check('with a directory', b.get('cwd'), '/tmp')
    Run('own = "a"', a)
    Run('own = "b"', b)
    check('two do not know each other', (Run('own', a).result, Run('own', b).result), ("'a'", "'b'"))
    check('directory and variables', Run('import os\n(os.getcwd(), os.environ["V"])', b).result, "('/tmp', 'value')")
    check('the default one neither', Run('"own" in globals()').result, 'False')
    listed = json.loads(call('GET', '/code/contexts')[1])
    check('the list', {a['id'], b['id']} <= {c['id'] for c in listed}, True)
    check('by language', json.loads(call('GET', '/code/contexts?language=bash')[1]), [])
    check('one of them', json.loads(call('GET', f'/code/contexts/{b["id"]}')[1]), b)
    check('its end', call('DELETE', f'/code/contexts/{a["id"]}'), (200, b''))
    check('and no more', call('DELETE', f'/code/contexts/{a["id"]}')[0], 404)
    check('CONTEXT_NOT_FOUND', json.loads(call('GET', f'/code/contexts/{a["id"]}')[1])['code'], 'CONTEXT_NOT_FOUND')
    r = Run('1', a)
    check('a run in it', (r.status, json.loads(r.data)['code'], b'context not found' in r.data), (500, 'RUNTIME_ERROR', True))
    check('all of a language need one', (call('DELETE', '/code/contexts')[0]), 400)
    check('all of a language', (call('DELETE', '/code/contexts?language=python')[0], json.loads(call('GET', '/code/contexts')[1])), (200, []))
    check('a language that nobody knows', (call('POST', '/code/context', {'language': 'cobol'})[0], Run('1', {'language': 'cobol'}).status), (500, 500))
    has('and those that are', call('POST', '/code/context', {'language': 'cobol'})[1].decode(), 'python')
    check('a directory that is not there', call('POST', '/code/context', {'language': 'python', 'cwd': '/none'})[0], 400)
    check('sql', call('GET', '/code/contexts?language=sql')[0], 500)
    check('no code', (call('POST', '/code', {'context': {'language': 'python'}})[0], Run('').status), (400, 400))
    r = Run('echo "$((1 + 1))"; exit 3', {})
    check('without a context it is a command', (r.kinds, r.out, r.ename, r.evalue), (['init', 'stdout', 'error'], '2', 'CommandExecError', '3'))


def case_parallel():
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        contexts = list(pool.map(lambda _: context(), range(20)))
        list(pool.map(lambda p: Run(f'v = {p[0]}', p[1]), enumerate(contexts)))
        got = list(pool.map(lambda c: Run('import time\ntime.sleep(0.2)\nv', c).result, contexts))
    check('20 contexts at once', got, [str(i) for i in range(20)])
    for c in contexts:
        call('DELETE', f'/code/contexts/{c["id"]}')


class Started:
    """A run whose first output has come."""

    def __init__(self, code, c, before=''):
        self.connection = Connection('x')
        self.connection.request('POST', '/code', json.dumps({'code': f'{before}\nprint("begun")\n{code}', 'context': c}))
        self.response = self.connection.getresponse()
        self.data = b''
        while b'begun' not in self.data:
            data = self.response.read1(65536)
            assert data, self.data
            self.data += data

    def end(self):
        self.data += self.response.read()
        return events_of(self.data)


def error_of(events):
    return next((e['error'] for e in events if e.get('type') == 'error'), {'ename': None, 'evalue': ''})


def case_interrupt():
    c = context()
    Run('kept = 1', c)
    for text, code in (('a loop', 'while True:\n    pass'), ('a sleep', 'import time\ntime.sleep(100)'),
                       ('await', 'import asyncio\nawait asyncio.sleep(100)'), ('a child', 'import subprocess\nsubprocess.run(["sleep", "100"])')):
        s = Started(code, c)
        check(f'interrupt of {text}', call('DELETE', f'/code?id={c["id"]}'), (200, b''))
        check('its error', error_of(s.end())['ename'], 'KeyboardInterrupt')
        check('the state is kept', Run('kept', c).result, '1')
    s = Started('import time\ntime.sleep(100)', c)
    busy = Run('1', c)
    check('busy', (busy.status, [e.get('type') or (e['code'], e['message']) for e in busy.events]),
          (200, ['init', ('RUNTIME_ERROR', 'error running codes session is busy')]))
    check('DELETE /command does the same', call('DELETE', f'/command?id={c["id"]}')[0], 200)
    s.end()
    s = Started('import time\ntime.sleep(100)', c)
    s.connection.sock.shutdown(socket.SHUT_RDWR)
    s.connection.close()
    s.response.close()
    for _ in range(400):
        r = Run('kept', c)
        if r.result:
            break
        time.sleep(0.05)
    check('a client that goes away interrupts', r.result, '1')
    r = Run('import time\ntime.sleep(100)', c, timeout=200)
    check('a time limit', (r.ename, 'variables are kept' in r.evalue, Run('kept', c).result), ('KernelTimeout', True, '1'))
    check('nothing to interrupt', call('DELETE', f'/code?id={c["id"]}')[0], 200)
    check('no such context', call('DELETE', '/code?id=nothing')[0], 500)
    check('no id', json.loads(call('DELETE', '/code')[1])['code'], 'MISSING_QUERY')
    connection = Connection('x')
    connection.request('POST', '/code', json.dumps({'code': 'while True:\n    print("q" * 100000)', 'context': c}))
    response = connection.getresponse()
    response.read1(10)
    time.sleep(0.5)
    check('a client that does not read is no hindrance', call('DELETE', f'/code?id={c["id"]}')[0], 200)
    check('its error comes', b'KeyboardInterrupt' in response.read(), True)
    check('and the state is kept', Run('kept', c).result, '1')
    s = Started('import itertools\nsum(itertools.repeat(1))', c)
    check('a loop that does not look for interrupts', call('DELETE', f'/code?id={c["id"]}')[0], 200)
    check('is killed', error_of(s.end())['ename'], 'KernelInterrupted')
    s = Started('while True:\n    time.sleep(1)', c, 'import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)')
    check('who ignores the interrupt', call('DELETE', f'/code?id={c["id"]}')[0], 200)
    error = error_of(s.end())
    check('is killed', (error['ename'], 'variables are lost' in error['evalue']), ('KernelInterrupted', True))
    r = Run('"kept" in globals()', c)
    check('the next run starts anew', (r.result, r.count), ('False', 1))
    call('DELETE', f'/code/contexts/{c["id"]}')


def case_death():
    c = context()
    for text, code, words in (('os._exit', 'import os\nos._exit(7)', ('exit status 7',)),
                              ('a signal', 'import os\nos.kill(os.getpid(), 15)', ('signal 15', 'SIGTERM')),
                              ('a segmentation fault', 'import ctypes\nctypes.string_at(0)', ('signal 11', 'SIGSEGV'))):
        r = Run('print("before")\n' + code, c)
        check(f'{text} is told', (r.ename, r.out, 'variables are lost' in r.evalue), ('KernelDied', 'before\n', True))
        has('with its reason', r.evalue, *words)
        check('the next run starts anew', Run('1', c).count, 1)
    Run('import os, threading\nthreading.Timer(0.05, lambda: os._exit(5)).start()', c)
    time.sleep(0.3)
    r = Run('print("not executed")', c)
    check('a death between two runs', (r.ename, r.out), ('KernelDied', ''))
    has('is told to the next one', r.evalue, 'since the last run', 'exit status 5', 'not executed')
    check('once', Run('2', c).result, '2')
    if MIB:
        r = Run(f'b = b"x" * ({2 * MIB} << 20)', c)
        check('out of memory', (r.ename, 'out of memory' in r.evalue), ('KernelDied', True))
        check('and on', Run('3', c).result, '3')
    r = Run('b = []\nwhile len(b) < 500:\n    b.append(b"x" * (1 << 20))\n    import time\n    time.sleep(0.01)', c, memory=200 << 20)
    check('a memory limit', (r.ename, str(200 << 20) in r.evalue, Run('4', c).count), ('KernelDied', True, 1))
    s = Started('import time\ntime.sleep(100)', c)
    check('a context that is deleted', call('DELETE', f'/code/contexts/{c["id"]}')[0], 200)
    check('ends its run', error_of(s.end())['ename'], 'KernelDied')
    c = context()
    r = Run('import os, socket\ns = socket.socket(fileno=os.dup(3))\ns.send(b"nonsense\\n")\nimport time\ntime.sleep(100)', c)
    check('a channel that is misused', r.ename, 'KernelProtocolError')
    check('is no harm', Run('4', c).result, '4')
    r = Run('import os\nos.close(3)\n1', c)
    check('a channel that is closed', (r.ename, Run('5', c).result), ('KernelDied', '5'))
    r = Run('import os\nos.close(0)\nos.close(1)\nos.close(2)\n6', c)
    check('streams that are closed', r.result, '6')
    call('DELETE', f'/code/contexts/{c["id"]}')


for name, case in list(globals().items()):
    if name.startswith('case_'):
        try:
            case()
        except Exception as e:
            print(f'not ok {name}: {type(e).__name__} {e}')
        sys.stdout.flush()
print('done')
