#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root root-asan user
# A hostile workload against the execution API, and clients that ask for what is hard: what is another user's stays
# so, the owner is never kept out, PID 1 waits for nobody.
. "$(dirname "$0")/lib.sh"

command -v curl >/dev/null || { echo "1..0 # SKIP no curl"; exit 0; }
command -v jq >/dev/null || { echo "1..0 # SKIP no jq"; exit 0; }
command -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
call() {
	(cd "$(dirname "$sock")" && curl -sS -m 60 --unix-socket execd.sock "$@")
}
inside() {
	"$OSBX" exec w curl -sS -m 60 "$@"
}
here_inside=http://127.0.0.1:44772
# text TYPE: texts of the events of that type on standard input, a line each
text() {
	jq -r "select(.type == \"$1\") | .text"
}
evalue() {
	jq -r 'select(.type == "error") | .error.evalue'
}

"$OSBX" run -d --name w -u 1000 @host sleep 10000 >/dev/null
sock=$("$OSBX" inspect w | jq -r .execd.socket)

# What is started outside as another user is not to be seen, read, resumed or ended from inside.
id=$(call http://x/command -d '{"command":"echo secret; exec sleep 1000","uid":0,"background":true}' | text init)
own=$(call http://x/command -d '{"command":"exec sleep 1000","background":true}' | text init)
like "$id" '^[0-9a-f]{32}$' "a command of root, from outside"
is "$(call http://x/command | jq -r '.commands[].session' | grep -c "$id")" 1 "listed outside"
is "$(inside $here_inside/command | jq -r '.commands[].session')" "$own" "inside only the other one is"
is "$(inside "$here_inside/command/$id/logs")" '{"code":"INVALID_REQUEST_BODY","message":"command not found"}' "nor is there a log"
is "$(inside "$here_inside/command/status/$id" | jq -r .message)" "command not found" "nor a status"
is "$(inside "$here_inside/command/$id/resume" | jq -r .message)" "command not found" "nor events"
is "$(inside -X DELETE "$here_inside/command?id=$id" | jq -r .message)" "command not found" "nor anything to end"
is "$(inside "$here_inside/proxy/44772/command/status/$id" | jq -r .message)" "command not found" "nor by a detour"
is "$(call "http://x/command/status/$id" | jq -r .running)" true "it runs on"
is "$(inside "$here_inside/command/status/$own" | jq -r .running)" true "the own user's is there"
inside -X DELETE "$here_inside/command?id=$own" >/dev/null
is "$(call "http://x/command/status/$own" | jq -r .running)" false "and may be ended"

# As many as it can: those outside still have room, and what they may ask for is not pushed out.
kept=$(call http://x/command -d '{"command":"echo kept","background":true}' | text init)
cat >"$tmp/many.py" <<'EOF'
import http.client, json, sys
argv, n, first = sys.argv[2:], int(sys.argv[1]), None
for i in range(n):
    c = http.client.HTTPConnection('127.0.0.1', 44772, timeout=60)
    c.request('POST', '/command', json.dumps({'argv': argv, 'background': True}))
    r = c.getresponse()
    r.read()
    c.close()
    if r.status != 200:
        print(r.status)
        break
EOF
is "$("$OSBX" exec -i w python3 - 600 true <"$tmp/many.py")" "" "600 commands that end"
is "$(call "http://x/command/$kept/logs")" kept "push out nothing of others"
is "$("$OSBX" exec -i w python3 - 1200 sleep 1000 <"$tmp/many.py")" 503 "commands that do not end are refused at last"
failed=0
for _ in 1 2 3 4 5 6 7 8; do
	call http://x/command -d '{"argv":["sleep","1000"],"background":true}' | text init | grep -q . || failed=$((failed + 1))
	"$OSBX" exec w true || failed=$((failed + 1))
done
is "$failed" 0 "but not those of the owner"
is "$(call http://x/session -d '' -X POST | jq -r '.session_id | length')" 36 "nor a session"
"$OSBX" rm -f w >/dev/null

# The directory of the file of variables is made with more rights than the user has: not below a link of the user's.
"$OSBX" run -d --name v -u 1000 -e EXECD_ENVS=/tmp/a/b/c/.env @host sleep 10000 >/dev/null
sock=$("$OSBX" inspect v | jq -r .execd.socket)
call http://x/command -d '{"argv":["ln","-s","/root","/tmp/a"]}' >/dev/null
call http://x/command -d '{"command":"true $EXECD_ENVS"}' >/dev/null
is "$("$OSBX" exec -u 0 v sh -c 'ls -A /root | grep -c "^b$"')" 0 "no directory by a link that leads to what is not the user's"
call http://x/command -d '{"argv":["rm","/tmp/a"]}' >/dev/null
is "$(call http://x/command -d '{"command":"stat -c %u $(dirname $EXECD_ENVS)"}' | text stdout)" 1000 "without one it is made"
"$OSBX" rm -f v >/dev/null

# A session with a directory of its own, as an ordinary user.
"$OSBX" run -d --name w -u 1000 @host sleep 10000 >/dev/null
sock=$("$OSBX" inspect w | jq -r .execd.socket)
id=$(call http://x/session -d '{"cwd":"/tmp/new/dir"}' | jq -r .session_id)
is "$(call "http://x/session/$id/run" -d '{"command":"stat -c %u:%n $PWD"}' | text stdout)" "1000:/tmp/new/dir" "a session's directory is made by its user"
like "$(call http://x/session -d '{"cwd":"/root/new"}' | jq -r .message)" 'Permission denied' "not where that one may not"

# A quote that is left open is the command's fault: nothing of our own is told, and the session lives on.
for command in "export A=1; echo 'open" 'echo \"open' 'echo $(open' 'if true' '}' 'case x in'; do
	call "http://x/session/$id/run" -d "{\"command\":\"$command\"}" >"$tmp/events"
	is "$(evalue <"$tmp/events")" 2 "session: $command"
	unlike "$(cat "$tmp/events")" osbx "without a word of ours"
done
is "$(call "http://x/session/$id/run" -d '{"command":"echo on"}' | text stdout)" on "and goes on"

# PID 1 does not wait for what it starts.
slow=0
for _ in $(seq 40); do
	call http://x/command -d '{"argv":["sleep","1000"],"background":true}' >/dev/null
	(cd "$(dirname "$sock")" && curl -sS -m 20 --unix-socket execd.sock http://x/ping) || slow=$((slow + 1))
done
is "$slow" 0 "PID 1 answers while commands run"
done_testing
