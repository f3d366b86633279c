#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root root-asan user single
# The code interpreter with python alone in the image: results, errors, contexts, interrupts, deaths; its port.
. "$(dirname "$0")/lib.sh"

python=oci:${OSBX_TEST_DATA:?}/python:1
busybox=oci:$OSBX_TEST_DATA/busybox:1

# sock_of NAME
sock_of() {
	"$OSBX" inspect "$1" | jq -r .execd.socket
}
# api NAME METHOD PATH [BODY]: its status and body
api() {
	python3 "$here/../helpers/code_driver.py" "$(sock_of "$1")" "$2" "$3" ${4:+"$4"}
}
# is_open NAME: does something listen at the port that says so?
is_open() {
	"$OSBX" exec "$1" python3 -c 'import socket; socket.create_connection(("127.0.0.1", 44771), 5)' >/dev/null 2>&1 </dev/null
}

# Many ids are needed to unpack an image of Debian; where there is one alone, this machine is the image.
image=$python
"$OSBX" run -q --rm "$image" true >/dev/null 2>&1 </dev/null || image=@host
memory=0
# Where the limit can be enforced the kernel's killer can be seen at work.
"$OSBX" run -q --memory 256m "$image" true >/dev/null 2>&1 </dev/null && memory=256
if [ "$memory" = 0 ]; then
	"$OSBX" run -d --name w "$image" sleep 100000 >/dev/null </dev/null
else
	"$OSBX" run -d --name w --memory ${memory}m "$image" sleep 100000 >/dev/null </dev/null
fi
wait_until 20 is_open w && ok "the port of readiness is held" || not_ok "the port of readiness is held"
# What a sanitizer keeps is no leak.
grows=600
ldd "$OSBX" 2>/dev/null | grep -q libasan && grows=100000
python3 "$here/../helpers/code_driver.py" "$(sock_of w)" "$("$OSBX" inspect w | jq -r .pid)" "$memory" "$grows" >"$tmp/driven" 2>&1
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	done) ;;
	*) not_ok "${line#not ok }" ;;
	esac
done <"$tmp/driven"
is "$(tail -1 "$tmp/driven")" done "all of them were looked at"
api w POST /code/context '{"language":"python"}' >/dev/null
is "$("$OSBX" exec w sh -c 'grep -l [o]sbx_driver /proc/[0-9]*/cmdline' </dev/null | wc -l)" \
	1 "as many interpreters as contexts"

# The exact bytes. A path may be too long for a socket's address: from within its directory.
wire=$(cd "$here/../wire" && pwd)
(cd "$(dirname "$(sock_of w)")" && python3 "$wire/run" execd.sock "$wire"/code/*.txt) >"$tmp/wire"
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#ok * - }" ;;
	"not ok "*) not_ok "${line#not ok * - }" ;;
	esac
done <"$tmp/wire"
is "$(grep -c '^ok' "$tmp/wire")" "$(($(ls "$wire"/code/*.txt | wc -l) * 2))" "all transcripts were played"
"$OSBX" rm -f w >/dev/null

# An interpreter that waits for the first run.
"$OSBX" run -d --name p -e OSBX_CODE_PRESTART=python,nothing "$image" sleep 100000 >/dev/null </dev/null
is_warm() {
	"$OSBX" exec p sh -c 'grep -q [o]sbx_driver /proc/[0-9]*/cmdline' </dev/null
}
wait_until 20 is_warm && ok "started before it is asked for" || not_ok "started before it is asked for"
like "$(api p GET /code/contexts)" '^\[\] 200' "nobody knows it"
like "$(api p POST /code '{"context":{"language":"python"},"code":"6*7"}')" '"text":"42"' "the first run"
is "$(api p GET /code/contexts | grep -o '"id"' | wc -l)" 1 "is the default context's"
"$OSBX" rm -f p >/dev/null

# Nothing is held where there is something else to hold it, or nothing to run.
"$OSBX" run -d --name j -e JUPYTER_PORT=44771 "$image" sleep 100000 >/dev/null </dev/null
api j GET /ping >/dev/null
is_open j && not_ok "a sandbox with a Jupyter server of its own" || ok "a sandbox with a Jupyter server of its own"
"$OSBX" rm -f j >/dev/null
"$OSBX" run -d --name b "$busybox" sleep 100000 >/dev/null </dev/null
like "$(api b POST /code '{"context":{"language":"python"},"code":"1"}')" 'python: no interpreter for it is in the PATH.* 500$' "no interpreter"
like "$(api b POST /code/context '{"language":"python"}')" '"RUNTIME_ERROR".* 500$' "nor a context"
like "$(api b GET /code/contexts)" '^\[\] 200' "nothing is left of it"
is "$("$OSBX" exec b sh -c 'nc -w 2 127.0.0.1 44771 </dev/null && echo open || echo closed' </dev/null 2>/dev/null)" closed "nor the port"
"$OSBX" rm -f b >/dev/null
done_testing
