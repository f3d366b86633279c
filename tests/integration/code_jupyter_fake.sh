#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root root-asan single
# Contexts of a Jupyter server in the sandbox that is late, refuses, lies, floods, or goes away.
. "$(dirname "$0")/lib.sh"
. "$here/../helpers/jupyter_lib.sh"

# fake FAULT
fake() {
	"$OSBX" rm -f fake >/dev/null 2>&1
	sandbox fake /helpers/jupyter_fake.py $port "$1"
	code '{"language":"python"}' 'x'
	[ "$code" = 200 ] || out="$code $(printf '%s' "$out" | jq -r .message)"
}
lost="its variables are lost, the next run starts anew"
server="the Jupyter server of the sandbox"
fake late
is "$out" execution_complete "a server that comes late"
fake refused
is "$out" "403 $server refuses JUPYTER_TOKEN" "a server that refuses the token"
fake no-kernel
is "$out" '400 language "python": the Jupyter server has no kernel; it has: java, R' "a server without the kernel"
fake bad-ids
is "$out" "503 $server does not tell the ids of a session" "ids that are none"
fake bad-accept
is "$out" "503 $server does not open the channels of a kernel" "an upgrade that is none"
fake no-channels
is "$out" "503 $server has started a kernel that ended at once" "a kernel that is gone"
fake vanishes
is "$out" "error KernelDied the connection to the kernel has ended; $lost
status" "a connection that ends"
fake dies
is "$out" "error KernelDied the kernel has ended; $lost
status" "a kernel that is started anew by its server"
fake floods
is "$out" "error KernelProtocolError the kernel has sent more than 16 MiB in one message; $lost
status" "a message without bounds"
fake strange
is "$(printf '%s\n' "$out" | sed 's/left out: .*/left out/')" "stderr a message of the kernel is left out
stderr a message of the kernel is left out
error Error 
status
stdout ours � �" "strange messages"
# Whoever is interrupted and goes on is left.
"$OSBX" rm -f fake >/dev/null
sandbox fake /helpers/jupyter_fake.py $port mute
context '{"language":"python"}'
api POST /code -d "{\"context\":$context,\"code\":\"x\",\"timeout\":200}"
out=$(told)
like "$out" '^error KernelTimeout the code went on after an interrupt, and the interpreter was killed' "a kernel that does not answer"
"$OSBX" rm -f fake >/dev/null
done_testing
