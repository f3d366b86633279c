#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root
# Contexts of a Jupyter server in the sandbox: Debian's, with kernels of Python and bash.
. "$(dirname "$0")/lib.sh"
. "$here/../helpers/jupyter_lib.sh"

sandbox real -m jupyter_server --ip 127.0.0.1 --port $port --ServerApp.token=a-token --ServerApp.root_dir=/tmp --allow-root --no-browser
# The first one waits for the server.
code '{"language":"python"}' 'x = 1
print("out")
x + 1'
is "$out" 'stdout out
count 1
result {"text":"2"}
execution_complete' "python: the first run"
code '{"language":"python"}' 'x + 2'
is "$out" 'count 2
result {"text":"3"}
execution_complete' "its state is kept"
code '{"language":"python"}' '1 / 0'
is "$out" 'error ZeroDivisionError division by zero
status' "an error"
code '{"language":"python"}' 'x ='
like "$out" '^error SyntaxError invalid syntax' "a syntax error"
code '{"language":"python"}' 'from IPython.display import HTML, display
handle = display(HTML("<b>"), display_id=True)
handle.update(HTML("<i>"))
import sys
print("err", file=sys.stderr)
"日本\0" + chr(0x85) + "\u2028"'
is "$(printf '%s\n' "$out" | grep -v '^count')" 'result {"text":"<IPython.core.display.HTML object>","text/html":"<b>"}
result {"text":"<IPython.core.display.HTML object>","text/html":"<i>"}
stderr err
result {"text":"'"'日本\\\\x00\\\\x85\\\\u2028'"'"}
execution_complete' "displays, their updates, other characters"
code '{"language":"python"}' 'print("nul\0")'
is "$(printf '%s\n' "$out" | head -n 1)" "stdout nul�" "a NUL in the output"
code '{"language":"python"}' 'input()'
like "$out" '^error StdinNotImplementedError' "input is refused, not waited for"
code '{"language":"python"}' '?len'
like "$out" 'result \{"text":.*Return the number of items' "what a pager would show"
code '{"language":"python"}' '%time 1
# only a comment'
like "$out" 'execution_complete$' "a magic"
code '{"language":"bash"}' 'cd /usr; f() { echo "in $PWD"; }'
code '{"language":"bash"}' 'f; echo e >&2; false'
like "$out" '^stdout in /usr' "bash: state is kept"
code '{"language":"r"}' 'x'
is "$code $(printf '%s' "$out" | jq -r .message)" '400 language "r": the Jupyter server has no kernel; it has: bash, python' "no such kernel"

api POST /code -d '{"context":{"language":"python"},"code":"1","memory":1000000}'
out=$(told)
is "$out" 'error NotSupported a Jupyter server has no limit of memory for one run
status' "a limit that is not to be had is refused"

context '{"language":"python","cwd":"/usr/lib","envs":{"A":"b \"c\" $d"}}'
code "$context" 'import os; (os.getcwd(), os.environ["A"], "x" in dir())'
like "$out" "'/usr/lib', 'b .{2}c.{2} \\\$d', False" "a context of its own: directory, variables, names"
id=$(printf '%s' "$context" | jq -r .id)
# begin CODE: it is running
begin() {
	: >"$tmp/begun"
	curl -sS -N -m 60 -o "$tmp/begun" --unix-socket "$sock" -d "$(jq -nc --argjson x "$context" --arg c "print(\"run\" + \"ning\")
$1" '{context: $x, code: $c}')" http://x/code &
	begun=$!
	wait_until 20 grep -q running "$tmp/begun" || not_ok "it does not begin"
}
begin 'kept = 5
import time
while True: time.sleep(0.01)'
code "$context" '1'
is "$out" 'error running codes session is busy' "a context is busy"
api DELETE "/code?id=$id"
is "$code" 200 "an endless loop is interrupted"
wait "$begun"
out=$(cat "$tmp/begun")
like "$(told)" '^error KeyboardInterrupt' "it says so"
code "$context" 'kept'
like "$out" '^result \{"text":"5"\}' "its state is kept"
begin 'import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
while True: pass'
api DELETE "/code?id=$id"
wait "$begun"
out=$(cat "$tmp/begun")
like "$(told)" '^error KernelInterrupted the code went on after an interrupt, and the interpreter was killed' "one that ignores it is ended"
code "$context" 'kept'
like "$out" "NameError name 'kept'" "and starts anew"
code "$context" 'import os; os._exit(3)'
is "$out" 'error KernelDied the kernel has ended; its variables are lost, the next run starts anew
status' "the end of a kernel"
code "$context" '6 * 7'
like "$out" '^result \{"text":"42"\}' "and the next run"
api DELETE "/code/contexts/$id"
is "$code" 200 "a context is deleted"
sessions() {
	curl -sS --unix-socket "$sock" -H 'Authorization: token a-token' "http://x/proxy/$port/api/sessions" | jq length
}
two_sessions() {
	[ "$(sessions)" = 2 ]
}
wait_until 20 two_sessions
is "$(sessions)" 2 "and so is its session: those of the defaults are left"
"$OSBX" rm -f real >/dev/null

done_testing
