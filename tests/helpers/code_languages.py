#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The languages of the code interpreter but python, over the execution API. usage: code_languages.py SOCKET LANGUAGE...

A line a check: "ok TEXT" or "not ok TEXT: what was there", and "done" at the end. "untyped" stands for TypeScript where
nothing reads it.
"""
import http.client
import json
import socket
import sys
import time

SOCKET, LANGUAGES = sys.argv[1], sys.argv[2:]
LIMIT_S = 60
LOST = ('KernelDied', 'lost')

# language: what, code, expected. Expected: out, err, result, ename as they are; evalue, trace, says (out and err) by a
# part; "interrupt": the run is interrupted once it has said "go". Nothing else may have come.
CELLS = {
    'javascript': [
        ('a result', 'let x = 20; x + 1', {'result': '21'}),
        ('the state is kept', 'x', {'result': '20'}),
        ('declared once more', 'let x = 2; const k = 3; class A {}; function f() { return x }; x + k', {'result': '5'}),
        ('and again', 'const k = 4; class A {}; f() + k', {'result': '6'}),
        ('await', 'const a = await Promise.resolve(7); a * 2', {'result': '14'}),
        ('an object', '{a: 1, b: [1, "é"]}', {'result': "{ a: 1, b: [ 1, 'é' ] }"}),
        ('a map', 'new Map([[1, {q: 2}]])', {'result': 'Map(1) { 1 => { q: 2 } }'}),
        ('a comment alone', '// nothing', {}),
        ('undefined is no result', 'void 0', {}),
        ('streams', 'console.log("a"); console.error("b"); console.log("c")', {'says': 'a\n!b\nc\n'}),
        ('an error', 'let y = 1;\nthrow new RangeError("boo")', {'ename': 'RangeError', 'evalue': 'boo', 'trace': '<cell-11>:2:7'}),
        ('no error', 'throw {a: 1}', {'ename': 'Error', 'evalue': '{ a: 1 }'}),
        ('a syntax error', 'let q = 1;\nlet r = = 2', {'ename': 'SyntaxError', 'trace': '<cell-13>:2\nlet r = = 2\n        ^'}),
        ('require', 'require("path").join("a", "b")', {'result': "'a/b'"}),
        ('import', 'import {join as j} from "path"\nj("a", "c")', {'result': "'a/c'"}),
        ('import()', '(await import("path")).join("a", "d")', {'result': "'a/d'"}),
        ('import() in a text', '"import(1)"', {'result': "'import(1)'"}),
        ('a rejection without a handler', 'Promise.reject(new TypeError("un"))', {'ename': 'TypeError', 'evalue': 'un'}),
        ('an error in a timer', 'setTimeout(() => { throw new Error("late") }, 5); await new Promise(r => setTimeout(r, 200))',
         {'ename': 'Error', 'evalue': 'late'}),
        ('broken tools', 'console = {}; JSON.stringify = null; process.stdout.write = () => {}; 5', {'result': '5'}),
        ('are no harm', 'x', {'result': '2'}),
        ('deep', '(function d() { d() })()', {'ename': 'RangeError'}),
        ('much', '"x".repeat(30000000).length', {'result': '30000000'}),
        ('a loop', 'process.stderr.write("go"); while (1) {}', {'interrupt': 1, 'err': 'go', 'ename': 'KeyboardInterrupt'}),
        ('a wait', 'await new Promise(r => setTimeout(r, 100)); process.stderr.write("go"); await new Promise(() => {})', {'interrupt': 1, 'err': 'go', 'ename': 'KeyboardInterrupt'}),
        ('the state survives', 'x', {'result': '2'}),
        ('exit', 'process.exit(3)', {'ename': LOST[0], 'evalue': 'exit status 3'}),
        ('starts anew', 'typeof x', {'result': "'undefined'"}),
        ('abort', 'process.abort()', {'ename': LOST[0], 'evalue': 'SIGABRT', 'any': 1}),
    ],
    'typescript': [
        ('types', 'interface A { a: number }\nconst x: A = {a: 1};\nx.a + 3', {'result': '4'}),
        ('an enumeration', 'enum E { P, Q }; const n: number = 5; E[1] + n', {'result': "'Q5'"}),
        ('a generic function', 'function f<T>(v: T): T { throw new Error("boo") }\nf<number>(3)', {'ename': 'Error', 'evalue': 'boo'}),
        ('an import', 'import * as path from "path";\nimport type { Stats } from "fs";\npath.join("a", "b")', {'result': "'a/b'"}),
        ('a syntax error', 'let y: number = = 2', {'ename': 'SyntaxError'}),
    ],
    'untyped': [
        ('nothing reads it', 'let x: number = 1', {'ename': 'Error', 'evalue': 'nothing here reads TypeScript'}),
    ],
    'bash': [
        ('state', 'x=1; f() { echo "f $x"; }; export Y=2; cd /tmp', {}),
        ('is kept', 'f; pwd; bash -c \'echo $Y\'', {'out': 'f 1\n/tmp\n2\n'}),
        ('a status', '(exit 7)', {'ename': 'CommandExecError', 'evalue': '7', 'trace': 'exit status 7'}),
        ('the next run sees it', 'echo $?', {'out': '7\n'}),
        ('no command', 'nosuch', {'ename': 'CommandExecError', 'evalue': '127', 'err': 'bash: nosuch: command not found\n'}),
        ('a quote without an end', 'echo "a', {'ename': 'CommandExecError', 'any': 1}),
        ('a text behind', "cat <<EOF\nhere $x é\nEOF", {'out': 'here 1 é\n'}),
        ('input is empty', 'cat; read -r l || echo none', {'out': 'none\n'}),
        ('a constant', 'readonly R=1; R=2', {'ename': 'CommandExecError', 'any': 1}),
        ('no variable', 'set -u; echo $nope', {'ename': 'CommandExecError', 'any': 1}),
        ('a loop that is left twice', 'set +u; for i in 1; do break 9; done; break; continue', {'any': 1}),
        ('goes on', 'echo $x', {'out': '1\n'}),
        ('functions named like commands', 'read() { echo bad; }; printf() { echo bad; }; IFS=x; set -f', {}),
        ('are no harm', 'echo a; unset -f read printf; unset IFS; set +f', {'out': 'a\n'}),
        ('traced', 'PS4="> "; set -x; echo a', {'out': 'a\n', 'err': '>> echo a\n'}),
        ('is traced on', 'echo b', {'out': 'b\n', 'err': '>> echo b\n'}),
        ('by a command', 'PS4=\'$(echo p)+ \'; set +x', {'any': 1}),
        ('a loop of children', 'echo go; while :; do sleep 0; done', {'interrupt': 1, 'out': 'go\n', 'ename': 'KeyboardInterrupt', 'any': 1}),
        ('a loop of pipelines', 'echo go; while :; do echo a | tail -n 1 >/dev/null; done', {'interrupt': 1, 'out': 'go\n', 'ename': 'KeyboardInterrupt', 'any': 1}),
        ('a trap', 'trap "echo bye" EXIT', {'any': 1}),  # a child that was interrupted may still say so
        ('no descriptors of ours', 'for i in /proc/self/fd/*; do echo ${i##*/}; done | tail -n 1; (cat <&63) 2>/dev/null || echo no',
         {'says': 'no\n', 'any': 1}),
        ('exec of nothing', 'exec nosuch', {'ename': 'CommandExecError', 'any': 1}),
        ('in the background', 'sleep 0.01 & wait $!; echo $?', {'out': '0\n', 'any': 1}),
        ('a wait', 'echo go; sleep 100; echo no', {'interrupt': 1, 'out': 'go\n', 'ename': 'KeyboardInterrupt', 'any': 1}),
        ('a loop', 'echo go; while :; do :; done', {'interrupt': 1, 'out': 'go\n', 'ename': 'KeyboardInterrupt', 'any': 1}),
        ('the state survives', 'f', {'out': 'f 1\n'}),
        ('exit at an error', 'set -e; trap - EXIT', {}),
        ('while all is well', 'true', {}),
        ('ends it', 'false; echo no', {'ename': LOST[0], 'evalue': 'exit status 1'}),
        ('starts anew', 'echo "-$x-"', {'out': '--\n'}),
        ('exit', 'exit 4', {'ename': LOST[0], 'evalue': 'exit status 4', 'any': 1}),
        ('another program', 'exec bash -c "echo other; exit 5"', {'out': 'other\n', 'ename': LOST[0], 'evalue': 'exit status 5'}),
    ],
    'ruby': [
        ('a result', 'x = 20\nx + 1', {'result': '21'}),
        ('the state is kept', 'def f(a) = a + 1\nf(x)', {'result': '21'}),
        ('nil is no result', 'nil', {}),
        ('streams', 'puts "a"; $stderr.puts "b"; print "é"; warn "w"; STDOUT.write("z"); nil', {'says': 'a\n!b\né!w\nz'}),
        ('an error', 'x\nf(nil)', {'ename': 'NoMethodError', 'trace': '<cell 5>:2'}),
        ('a syntax error', '1 +', {'ename': 'SyntaxError', 'evalue': '<cell 6>:1'}),
        ('exit is an error', 'exit 3', {'ename': 'SystemExit'}),
        ('a child', 'fork { puts "child" }; Process.wait; 5', {'out': 'child\n', 'result': '5'}),
        ('a child that goes on', 'fork; Process.waitall; 6', {'result': '6'}),
        ('broken tools', 'o = Object.new; def o.write(*) = raise; $stdout = o; 7', {'result': '7'}),
        ('are no harm', '$stdout = STDOUT; x', {'result': '20'}),
        ('a loop', '$stderr.print "go"; loop {}', {'interrupt': 1, 'err': 'go', 'ename': 'Interrupt'}),
        ('a wait', '$stderr.print "go"; sleep 100', {'interrupt': 1, 'err': 'go', 'ename': 'Interrupt'}),
        ('the state survives', 'x', {'result': '20'}),
        ('exit at once', 'exit!(5)', {'ename': LOST[0], 'evalue': 'exit status 5'}),
    ],
    'go': [
        ('a program', 'package main\nimport "fmt"\nfunc main() {\n\tfmt.Print("4\\n")\n}', {'out': '4\n'}),
        ('a result', 'x := 2\nx + 2', {'result': '4'}),
        ('declarations are kept', 'func sq(n int) int { return n * n }\ntype T struct{ A int }\nvar list = []int{1, 2}', {}),
        ('and used', 'sq(7)', {'result': '49'}),
        ('a value of a type', 'T{4}', {'result': '{A:4}'}),
        ('one that is made anew', 'func sq(n int) int { return n * n * n }', {}),
        ('counts', 'sq(2)', {'result': '8'}),
        ('streams', 'fmt.Println("a")\nfmt.Fprintln(os.Stderr, "b")', {'says': 'a\n!b\n'}),
        ('a compiler error', 'sq(1)\nnothing()', {'ename': 'CompileError', 'evalue': 'cell:2: undefined: nothing'}),
        ('a panic', 'panic("boom")', {'ename': 'ExitError', 'evalue': 'exit status 2', 'says': 'panic: ', 'any': 1}),
        ('exit', 'os.Exit(3)', {'ename': 'ExitError', 'evalue': 'exit status 3'}),
        ('a comment alone', '// nothing', {}),
        ('a loop', 'fmt.Fprint(os.Stderr, "go")\nfor {\n}', {'interrupt': 1, 'err': 'go', 'ename': 'Interrupted'}),
        ('the state survives', 'list', {'result': '[1 2]'}),
    ],
    'java': [
        ('a result', 'int x = 2;\nx + 2', {'result': '4'}),
        ('the state is kept', 'int f(int n) { return n / 0; }\nx', {'result': '2'}),
        ('streams', 'System.out.println("a"); System.err.println("b"); System.out.print("é");', {'says': 'a\n!b\né'}),
        ('an error', 'f(3)', {'ename': 'EvalException', 'evalue': 'java.lang.ArithmeticException: / by zero', 'trace': '.f('}),
        ('a compiler error', 'x;\nint y = "s";', {'ename': 'CompilationException', 'trace': '<cell 5>:2'}),
        ('a comment alone', '// nothing', {}),
        ('a loop', 'System.err.print("go"); System.err.flush(); while (true) {}', {'interrupt': 1, 'err': 'go', 'ename': 'KeyboardInterrupt'}),
        ('the state survives', 'x', {'result': '2'}),
        ('exit', 'System.exit(3)', {'ename': LOST[0], 'evalue': 'exit status 3'}),
    ],
    'r': [
        ('a result', 'x <- 20\nx + 1', {'result': '[1] 21'}),
        ('the state is kept', 'f <- function(a) a + 1; f(x)', {'result': '[1] 21'}),
        ('an assignment shows nothing', 'y <- 3', {}),
        ('streams', 'cat("a\\n"); message("b"); cat("\\u00e9\\n")', {'says': 'a\n!b\né\n'}),
        ('an error', 'f("a")', {'ename': 'simpleError', 'evalue': 'non-numeric'}),
        ('a syntax error', 'x <- 1\nx <- <- 2', {'ename': 'SyntaxError', 'evalue': '2:'}),
        ('a warning', 'as.integer("q")', {'result': '[1] NA', 'any': 1}),
        ('a loop', 'message("go"); while (TRUE) {}', {'interrupt': 1, 'err': 'go\n', 'ename': 'interrupt'}),
        ('the state survives', 'x', {'result': '[1] 20'}),
        ('exit', 'quit(status = 3)', {'ename': LOST[0], 'evalue': 'exit status 3'}),
    ],
}


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(LIMIT_S)
        self.sock.connect(SOCKET)


def call(method, path, body=None):
    connection = Connection('x')
    connection.request(method, path, None if body is None else json.dumps(body))
    return connection.getresponse()


class Run:
    """What came of a run, and what of it nobody expected."""

    def __init__(self, code, context, interrupted):
        self.said, self.out, self.err = '', '', ''
        self.result = self.error = None
        self.ended = False
        response = call('POST', '/code', {'code': code, 'context': context})
        self.refused = None if response.status == 200 else response.read().decode()
        until = time.monotonic() + LIMIT_S
        for line in response if self.refused is None else ():
            if time.monotonic() > until:
                break
            if line.strip():
                self.take(json.loads(line))
            if interrupted and 'go' in self.said:
                interrupted = False
                call('DELETE', f'/code?id={context["id"]}').read()

    def take(self, event):
        kind = event.get('type')
        if kind in ('stdout', 'stderr'):
            setattr(self, kind[3:], getattr(self, kind[3:]) + event['text'])
            self.said += ('!' if kind == 'stderr' else '') + event['text']
        elif kind == 'result':
            self.result = event['results'].get('text')
        elif kind == 'error':
            self.error = event['error']
        elif kind == 'execution_complete':
            self.ended = True

    def wrong(self, expected):
        error = self.error or {'ename': None, 'evalue': '', 'traceback': []}
        trace = '\n'.join(error['traceback'])
        loose = 'any' in expected or 'says' in expected
        if self.refused is not None:
            return self.refused
        if not expected.get('ename') == error['ename'] or self.ended != (error['ename'] is None):
            return f'ended {self.ended}, {self.error}, after {self.said[-500:]!r}'
        if self.result != expected.get('result'):
            return f'result {self.result!r}'
        for stream in ('out', 'err'):
            if (stream in expected or not loose) and getattr(self, stream) != expected.get(stream, ''):
                return f'{stream} {getattr(self, stream)!r}'
        for what, text in (('evalue', error['evalue']), ('trace', trace), ('says', self.said)):
            if expected.get(what, '') not in text:
                return f'{what} {text!r}'
        return None


def language(name):
    response = call('POST', '/code/context', {'language': 'typescript' if name == 'untyped' else name})
    context = json.loads(response.read())
    if response.status != 200:
        print(f'not ok {name}: {context}')
        return
    for what, code, expected in CELLS[name]:
        wrong = Run(code, context, 'interrupt' in expected).wrong(expected)
        print(f'ok {name}: {what}' if wrong is None else f'not ok {name}: {what}: {wrong[:1500]}')
        sys.stdout.flush()
    call('DELETE', f'/code/contexts/{context["id"]}').read()


for one in LANGUAGES:
    language(one)
print('done')
