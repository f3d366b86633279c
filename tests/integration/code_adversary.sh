#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user
# Code that harms its own interpreter: it is told, and the next run works.
. "$(dirname "$0")/lib.sh"

sock_of() {
	"$OSBX" inspect "$1" | jq -r .execd.socket
}
# code LANGUAGE CODE: the events
code() {
	python3 "$here/../helpers/code_driver.py" "$sock" POST /code \
		"$(jq -nc --arg l "$1" --arg c "$2" '{context: {language: $l}, code: $c}')"
}
# again LANGUAGE WHAT
again() {
	like "$(code "$1" 'echo 42')$(code "$1" '40 + 2')" '42' "$1 goes on behind $2"
}

"$OSBX" run -d --name w @host sleep 100000 >/dev/null </dev/null
sock=$(sock_of w)
pid=$("$OSBX" inspect w | jq -r .pid)
before=$(ls "/proc/$pid/fd" | wc -l)

# The channel closed by the code: nobody waits for an answer that cannot come.
like "$(code javascript "require('fs').closeSync(3); 1")" 'KernelProtocolError.*it has closed its channel' "node without a channel"
again javascript that
like "$(code python 'import os, time
os.close(3)
while True:
    try:
        time.sleep(100)
    except BaseException:
        pass')" 'KernelProtocolError.*it has closed its channel' "python without a channel"
again python that
like "$(code python 'import os
os.write(3, b"nonsense")')" 'KernelProtocolError.*a frame that is none' "python writes to the channel"
again python that
code python 'import os
for i in range(10):
    try:
        os.close(i)
    except OSError:
        pass' >"$tmp/closed"
like "$(cat "$tmp/closed")" '"ename":"Kernel(Died|ProtocolError)"' "python closes all it has"
again python that

# IPython's shell, which the first magic makes.
code python 'In = 5
exit_ = exit' >/dev/null
like "$(code python '%time 6 * 7')" '"text":"42"' "a magic"
like "$(code python 'In')" '"text":"5"' "takes no name away"
like "$(code python 'exit(3)')" '"ename":"SystemExit","evalue":"3"' "nor exit()"
like "$(code python 'In, exit is exit_')" '"text":"\(5, True\)"' "and all goes on"

# What the code replaces of the language.
like "$(code javascript 'Object.prototype.toJSON = () => "no"; Array.prototype.toJSON = () => 1; ({a: [1]})')" \
	'"text":"\{ a: ' "toJSON() of all objects"
like "$(code javascript 'throw new TypeError("so")')" '"ename":"TypeError".*"traceback":\["TypeError: so"' "an error with it"
like "$(code javascript 'delete Object.prototype.toJSON; delete Array.prototype.toJSON; Promise = Buffer = String = Number = Object = null; 1')" \
	'"text":"1"' "no Promise, no Buffer"
like "$(code javascript '6 * 7')" '"text":"42"' "a run without them"

python3 "$here/../helpers/code_driver.py" "$sock" DELETE '/code/contexts?language=javascript' >/dev/null
python3 "$here/../helpers/code_driver.py" "$sock" DELETE '/code/contexts?language=python' >/dev/null
is_clean() {
	[ "$(ls "/proc/$pid/fd" | wc -l)" -le $((before + 3)) ] &&
		! "$OSBX" exec w sh -c 'cat /proc/[0-9]*/stat' </dev/null 2>/dev/null | grep -q ') Z 1 '
}
wait_until 20 is_clean && ok "nothing is left of them" || not_ok "nothing is left of them"
"$OSBX" rm -f w >/dev/null
done_testing
