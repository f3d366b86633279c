#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single no_clone3
# Commands over the execution API: events, errors, identities, the end of whole trees, logs, floods.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
driver="python3 $here/../helpers/command_driver.py"
osbx run -q --network none "$image" true
"$OSBX" run -d --network none --name w -e MAIN=1 -w /tmp "$image" sleep 100000 >/dev/null </dev/null
sock=$("$OSBX" inspect w | jq -r .execd.socket)
pid=$("$OSBX" inspect w | jq -r .pid)
many_ids=$([ "$("$OSBX" inspect w | jq -r .resolved.idMode)" = single ] || echo yes)
in_w() {
	"$OSBX" exec w "$@" </dev/null
}
# api METHOD TARGET [CURL OPTIONS]: body in $out, status in $code, fields in $tmp/fields
api() {
	method=$1
	target=$2
	shift 2
	code=$(curl -sS -N -m 60 -D "$tmp/fields" -o "$tmp/body" -w '%{http_code}' --unix-socket "$sock" -X "$method" "$@" "http://x$target" 2>"$tmp/err")
	out=$(cat "$tmp/body")
	: >"$tmp/body"
}
# post JSON: what happened in $out, one event a line
post() {
	api POST /command -d "$1"
	[ "$code" = 200 ] || return
	out=$(printf '%s\n' "$out" | jq -rc 'if .type == "stdout" or .type == "stderr" then "\(.type) \(.text)"
		elif .type == "error" then "error \(.error.ename) \(.error.evalue) \(.error.traceback[0])" else .type end' | grep -v '^ping$')
}
# sh_run TEXT [JSON OF OTHER MEMBERS]
sh_run() {
	post "$(jq -nc --arg c "$1" --argjson m "${2:-{\}}" '{command: $c} + $m')"
}
# texts: of stdout alone
texts() {
	printf '%s\n' "$out" | sed -n 's/^stdout //p'
}
# processes with this argument, as the sandbox sees them
count() {
	# Brackets, so that the search does not find itself.
	in_w sh -c "grep -sl '[${1%"${1#?}"}]${1#?}' /proc/[0-9]*/cmdline | wc -l"
}
# wait_count N ARGUMENT
wait_count() {
	for _ in $(seq 200); do
		[ "$(count "$2")" = "$1" ] && break
		sleep 0.05
	done
	count "$2"
}
# background TEXT [JSON]: its id in $id
background() {
	api POST /command -d "$(jq -nc --arg c "$1" --argjson m "${2:-{\}}" '{command: $c, background: true} + $m')"
	id=$(printf '%s\n' "$out" | jq -r 'select(.type == "init").text')
}
# wait_status ID: until it does not run
wait_status() {
	for _ in $(seq 200); do
		api GET "/command/status/$1"
		[ "$(printf %s "$out" | jq .running)" = true ] || break
		sleep 0.05
	done
}

# The frames.
api POST /command -d '{"command":"echo a; echo b >&2; exit 7"}'
is "$code|$(printf '%s\n' "$out" | jq -r .type | tr '\n' ' ')" "200|init ping stdout stderr error " "types in their order"
like "$(cat "$tmp/fields")" '^Content-Type: text/event-stream' "media type of events"
is "$(curl -sS -N --unix-socket "$sock" http://x/command -d '{"command":"true"}' | tr -d '\n' | sed 's/[0-9a-f]\{32\}/ID/; s/"timestamp":[0-9]*/T/g; s/"execution_time":[0-9]*/E/')" \
	'{"type":"init","text":"ID",T,"eid":1}{"type":"ping","text":"pong",T,"eid":2}{"type":"execution_complete",E,T,"eid":3}' "bytes of events"
sh_run 'echo a; echo b >&2; exit 7'
is "$out" 'init
stdout a
stderr b
error CommandExecError 7 exit status 7' "output and status"
sh_run 'printf "a\r\nb\rc\n\n  d\n"; printf "no end"'
is "$out" "init
stdout a
stdout b
stdout c
stdout 

stdout   d
stdout no end
execution_complete" "one event a line; an empty one is a line feed"
api POST /command -d '{"command":"printf \"\\303\"; sleep 0.3; printf \"\\251\\377<\\342\\200\\250>\\n\""}'
is "$(printf '%s\n' "$out" | grep -o '"text":"[^"]*"' | tail -n 1)" '"text":"é�\u003c\u2028\u003e"' "a character in two reads, a byte that is none, escapes"
sh_run 'kill -9 $$'
is "$(printf '%s\n' "$out" | tail -n 1)" "error CommandExecError -1 signal: killed" "a signal is -1"
sh_run nosuchcommand
like "$out" '^stderr .*nosuchcommand.*not found' "the shell names what is not there"
like "$out" '^error CommandExecError 127 ' "127"
post '{"argv":["printf","%s|","a b","","$MAIN","*","\""]}'
is "$(texts)" 'a b||$MAIN|*|"|' "argv: no shell"
post '{"argv":["/does/not/exist"]}'
like "$(printf '%s\n' "$out" | tr '\n' ' ')" '^init error CommandExecError 127 exec: "/does/not/exist": no such file' "a missing program is told after init"
post '{"argv":["/etc/passwd"]}'
like "$out" '^error CommandExecError 126 ' "one that cannot be executed is 126"

# What it is by default, and what can be said.
sh_run 'for i in $(seq 500); do echo $i; echo $i >&2; done'
is "$(printf '%s\n' "$out" | awk '$1 == "stdout" { seen[$2] = 1 } $1 == "stderr" { n++; late += !seen[$2] } END { print n, late + 0 }')" \
	"500 0" "what was written to stdout before is told before"
sh_run 'echo $MAIN; pwd; id -u; echo $HOME; wc -c; ls /proc/self/fd | wc -l; umask; echo x >/dev/stdout; echo y >/dev/stderr'
# The other way round there is no order between two pipes.
is "$(printf '%s\n' "$out" | grep -v stderr | tr '\n' ' ')$(printf '%s\n' "$out" | grep stderr)" \
	"init stdout 1 stdout /tmp stdout 0 stdout /root stdout 0 stdout 4 stdout 0022 stdout x execution_complete stderr y" \
	"variables, directory, user, input, descriptors and mask of the main process"
sh_run 'echo $MAIN $A "$B"' '{"envs":{"MAIN":"2","A":"x","B":"y  z"}}'
is "$(texts)" "2 x y  z" "envs"
sh_run pwd '{"cwd":"/etc"}'
is "$(texts)" /etc "cwd"
sh_run pwd '{"cwd":"~"}'
is "$(texts)" /root "cwd ~"
sh_run pwd '{"cwd":"$A/${B}","envs":{"A":"/var","B":"spool"}}'
[ "$code" = 200 ] || in_w ls -d /var/spool >/dev/null 2>&1 || in_w mkdir -p /var/spool
sh_run pwd '{"cwd":"$A/${B}","envs":{"A":"/var","B":"spool"}}'
is "$(texts)" /var/spool 'cwd $VAR and ${VAR}, by envs'
in_w sh -c 'mkdir -p /opt/opensandbox && printf "%s\n" "export FILE=1" "Q='"'"'\$MAIN x'"'"'" "E=\$MAIN-e" "MAIN=file" >/opt/opensandbox/.env'
sh_run 'echo $FILE "$Q" $E $MAIN $EXECD_ENVS'
is "$(texts)" '1 $MAIN x 1-e file /opt/opensandbox/.env' "the file of variables"
sh_run 'echo $MAIN' '{"envs":{"MAIN":"request"}}'
is "$(texts)" request "the request's win"
in_w sh -c 'rm /opt/opensandbox/.env; mkfifo /opt/opensandbox/.env'
sh_run 'echo $MAIN'
is "$(texts)" 1 "a file of variables that would block is none"
in_w rm -r /opt/opensandbox
sh_run 'set -eu; : "${EXECD_ENVS:?}"; mkdir -p "$(dirname "$EXECD_ENVS")"; echo "K='"'"'a b'"'"'" >>"$EXECD_ENVS"'
like "$out" '^execution_complete$' "as a client's set_env writes it"
sh_run 'echo "$K"'
is "$(texts)" "a b" "and the next command has it"

# Requests that are wrong.
# refused JSON STATUS PATTERN DESCRIPTION
refused() {
	api POST /command -d "$1"
	is "$code" "$2" "$4: status"
	like "$(printf %s "$out" | jq -r '"\(.code) \(.message)"')" "$3" "$4"
}
refused '{' 400 '^INVALID_REQUEST_BODY ' "no JSON"
refused '{}' 400 '^INVALID_REQUEST_BODY ' "no command"
refused '{"command":"  "}' 400 '^INVALID_REQUEST_BODY ' "a blank command"
refused '{"command":"x","argv":["x"]}' 400 '^INVALID_REQUEST_BODY ' "command and argv"
refused '{"argv":[]}' 400 '^INVALID_REQUEST_BODY ' "an empty argv"
refused '{"command":"x","gid":1}' 400 '^INVALID_REQUEST_BODY .*uid' "gid without uid"
refused '{"command":"x","uid":-1}' 400 '^INVALID_REQUEST_BODY .*uid' "a negative uid"
refused '{"command":"x","uid":4294967295}' 400 '^INVALID_REQUEST_BODY .*uid' "the uid that is none"
refused '{"command":"x","timeout":-1}' 400 '^INVALID_REQUEST_BODY .*timeout' "a negative timeout"
refused '{"command":"x","cwd":"/nope"}' 400 '^INVALID_REQUEST_BODY .*/nope.*No such file' "cwd that is missing"
refused '{"command":"x","cwd":"/etc/passwd"}' 400 '^INVALID_REQUEST_BODY .*/etc/passwd.*Not a directory' "cwd that is none"
refused '{"command":"x","cwd":"$NOPE/a"}' 400 '^INVALID_REQUEST_BODY .*NOPE' "an undefined variable in cwd"
refused '{"command":"x","envs":{"A=B":"1"}}' 400 '^INVALID_REQUEST_BODY .*envs' "a name with ="
refused '{"command":"x","envs":{"A":1}}' 400 '^INVALID_REQUEST_BODY .*envs' "a value that is no string"
refused '{"command":"x","uid":4000000000}' 400 '^INVALID_REQUEST_BODY .*4000000000' "a uid that the sandbox has not"
for target in /command/status/nope /command/nope/resume; do
	api GET $target
	is "$code" 404 "$target"
done
api GET /command/nope/logs
is "$code" 400 "logs of an unknown one"
api DELETE /command
is "$code|$(printf %s "$out" | jq -r .code)" "400|MISSING_QUERY" "interrupt without id"
api DELETE '/command?id=nope'
is "$code|$(printf %s "$out" | jq -r .code)" "500|RUNTIME_ERROR" "interrupt of an unknown one"
head -c 140000 /dev/zero | tr '\0' x | jq -Rc '{command: .}' >"$tmp/long"
api POST /command -d @"$tmp/long"
is "$code" 400 "a text that the kernel would not take"

# Identities.
if [ "$many_ids" ]; then
	sh_run 'id -u; id -g; id -G; echo $HOME; echo z >/dev/stdout' '{"uid":1000}'
	is "$(texts | tr '\n' ' ')" "1000 1000 1000 2000 /home/app z " "uid: its group, its groups, its home"
	sh_run 'id -G' '{"uid":1000,"gid":5}'
	is "$(texts)" 5 "gid instead of them"
	sh_run 'id -u; id -G; grep CapEff /proc/self/status' '{"uid":4242}'
	like "$(texts | tr '\n' ' ')" '^4242 0 CapEff:.0000000000000000 $' "an account without a name has no capabilities"
	"$OSBX" run -d --network none --name u -u 1000 "$image" sleep 100000 >/dev/null </dev/null
	main_sock=$sock
	sock=$("$OSBX" inspect u | jq -r .execd.socket)
	sh_run 'id -u; echo $HOME'
	is "$(texts | tr '\n' ' ')" "1000 /home/app " "by default the main process's user"
	sh_run ': "${EXECD_ENVS:?}"; mkdir -p "$(dirname "$EXECD_ENVS")"; echo K=1 >>"$EXECD_ENVS"'
	sh_run 'echo $K; ls -ld /opt/opensandbox | cut -c 1-30'
	like "$(texts | tr '\n' ' ')" '^1 d.* app' "an ordinary user has a file of variables too"
	sh_run 'id -u' '{"uid":0}'
	is "$(texts)" 0 "the owner of the sandbox may be root in it"
	# asks from inside: the body's members beside command
	inside='wget -qO- --post-data "{\"command\":\"id -u\"$1}" http://127.0.0.1:44772/command 2>&1'
	post "$(jq -nc --arg s "$inside" '{argv: ["sh", "-c", $s, "x", ""]}')"
	like "$out" 'stdout.*\\"text\\":\\"1000\\"|"text":"1000"' "from inside: its own user"
	for who in ',\"uid\":0' ',\"uid\":1000,\"gid\":0' ',\"uid\":1001'; do
		post "$(jq -nc --arg s "$inside" --arg w "$(printf '%s' "$who" | tr -d '\\')" '{argv: ["sh", "-c", $s, "x", $w]}')"
		like "$out" '403' "from inside: nobody else ($who)"
	done
	sock=$main_sock
	"$OSBX" rm -f u >/dev/null 2>&1
else
	refused '{"command":"x","uid":1}' 400 '^INVALID_REQUEST_BODY ' "a sandbox of one id has no other"
fi

# Ends.
started=$(date +%s)
sh_run 'sleep 777 & echo up; sleep 777' '{"timeout":500}'
is "$(printf '%s\n' "$out" | tail -n 1)" "error CommandExecError -1 timed out after 500 ms" "timeout"
is "$(wait_count 0 777)" 0 "with its children"
sh_run 'echo quick' '{"timeout":0}'
is "$(texts)" quick "timeout 0 is none"
sh_run "trap '' TERM; setsid sh -c \"trap '' TERM; sleep 778\" & (setsid setsid sleep 778 &) ; sleep 778" '{"timeout":700}'
is "$(wait_count 0 778)" 0 "timeout: children in sessions of their own, deaf ones, orphans"
# interrupted TEXT: its events in $tmp/stream, the answer of DELETE in $code and $out
interrupted() {
	: >"$tmp/stream"
	curl -sS -N -m 60 --unix-socket "$sock" http://x/command -d "$(jq -nc --arg c "$1" '{command: $c}')" >"$tmp/stream" &
	stream=$!
	for _ in $(seq 200); do
		grep -q ready "$tmp/stream" && break
		sleep 0.05
	done
	id=$(jq -r 'select(.type == "init").text' "$tmp/stream")
	api DELETE "/command?id=$id"
	wait "$stream"
}
interrupted 'echo ready; sleep 779'
is "$code|$out" "200|" "interrupt"
is "$(jq -r 'select(.type == "error") | .error.evalue' "$tmp/stream")" -1 "its stream ends with an error"
is "$(jq -r .type "$tmp/stream" | grep -Ec 'error|complete')" 1 "one"
api GET "/command/status/$id"
is "$(printf %s "$out" | jq -c '[.running, .exit_code, .error]')" '[false,-1,"signal: terminated"]' "its record says so"
api DELETE "/command?id=$id"
is "$code" 500 "a second interrupt finds nothing"
interrupted "trap '' TERM; setsid sh -c \"trap '' TERM; sleep 780\" & echo ready; while :; do sleep 0.1; done"
is "$code|$(jq -r 'select(.type == "error") | .error.evalue' "$tmp/stream")" "200|-1" "one that is deaf is killed after a while"
is "$(wait_count 0 780)" 0 "with all that it has started"
interrupted "trap 'echo bye; exit 5' TERM; setsid sleep 781 & echo ready; while :; do sleep 0.05; done"
is "$(jq -r 'select(.type == "error") | .error.evalue' "$tmp/stream")" 5 "one that ends itself has its own status"
is "$(wait_count 0 781)" 0 "what it has left ends too"
elapsed=$(($(date +%s) - started))
note "ends took $elapsed s"

# What holds the pipe does not hold the stream.
sh_run 'sleep 782 & setsid sh -c "while :; do echo more; sleep 0.05; done" & echo up'
is "$(printf '%s\n' "$out" | grep -v 'stdout more' | tr '\n' ' ')" "init stdout up execution_complete " "a server in the background"
# It may be two at the moment of a fork.
like "$(count 'echo more')" '^[12]$' "goes on, its output is taken"
sleep 0.5
like "$(count 'echo more')" '^[12]$' "and goes on"
in_w sh -c 'kill -9 $(grep -sl "[e]cho more" /proc/[0-9]*/cmdline | cut -d / -f 3)'
sh_run 'head -c 1000 /dev/zero | tr "\0" y; sleep 783 &'
is "$(texts | tr -d '\n' | wc -c)" 1000 "what was written before the end is all there"

# Commands in the background.
background 'for i in 1 2 3 4 5; do echo $i; echo e$i >&2; done; until [ -e /tmp/go-on ]; do sleep 0.05; done; printf "last \377"'
is "$(printf '%s\n' "$out" | jq -r .type | tr '\n' ' ')" "init execution_complete " "background: two events"
api GET "/command/status/$id"
is "$(printf %s "$out" | jq -c '[.id == "'"$id"'", (.content | length > 10), .running, has("exit_code"), (.started_at | endswith("Z"))]')" '[true,true,true,false,true]' "status of a running one"
in_w touch /tmp/go-on
wait_status "$id"
is "$(printf %s "$out" | jq -c '[.running, .exit_code, has("error"), (.finished_at | endswith("Z"))]')" '[false,0,false,true]' "and of one that has ended"
api GET "/command/$id/logs"
is "$(curl -sS --unix-socket "$sock" "http://x/command/$id/logs" | od -An -c | tr -d ' \n')" \
	"$(printf '1\ne1\n2\ne2\n3\ne3\n4\ne4\n5\ne5\nlast \377' | od -An -c | tr -d ' \n')" "both streams, byte by byte"
like "$(cat "$tmp/fields")" '^EXECD-COMMANDS-TAIL-CURSOR: 31' "the next cursor"
like "$(cat "$tmp/fields")" '^Content-Type: text/plain; charset=utf-8' "as text"
is "$(curl -sS --unix-socket "$sock" "http://x/command/$id/logs?cursor=25" | tr -d '\377')" "last " "from a cursor on"
api GET "/command/$id/logs?cursor=31"
is "$code|$out" "200|" "at the end there is nothing"
api GET "/command/$id/logs?cursor=x"
is "$code" 400 "a cursor that is none"
api GET '/command?running=false&limit=1'
is "$(printf %s "$out" | jq -c '[.commands[0].session == "'"$id"'", .commands[0].background, .commands[0].exit_code, .pagination.limit]')" '[true,true,0,1]' "list"
cursor=$(printf %s "$out" | jq -r .pagination.nextCursor)
api GET "/command?limit=1&cursor=$cursor"
is "$(printf %s "$out" | jq -c '[(.commands | length), .commands[0].session == "'"$id"'"]')" '[1,false]' "its next page"
for query in limit=0 limit=101 running=maybe cursor=x; do
	api GET "/command?$query"
	is "$code|$(printf %s "$out" | jq -r .code)" "400|INVALID_QUERY" "list with $query"
done
background 'sleep 784' '{"timeout":300}'
wait_status "$id"
is "$(printf %s "$out" | jq -c '[.running, .exit_code]')" '[false,-1]' "timeout in the background"
background 'yes 0123456789 | head -c 20000000; sleep 785 & echo end'
wait_status "$id"
api GET "/command/$id/logs"
is "$(tail -n 1 "$tmp/fields" | wc -c; grep -i cursor "$tmp/fields" | tr -dc 0-9)" "2
20000004" "a long log is counted whole"
is "$(curl -sS --unix-socket "$sock" "http://x/command/$id/logs" | wc -c)" 16777216 "its last 16 MiB are kept"
is "$(curl -sS --unix-socket "$sock" "http://x/command/$id/logs?cursor=19999993" | tr '\n' ,)" "2345678end," "and are the last"

# A client that comes back.
curl -sS -N -m 1 --unix-socket "$sock" http://x/command -d '{"command":"for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.3; done"}' >"$tmp/stream" 2>/dev/null
id=$(jq -r 'select(.type == "init").text' "$tmp/stream")
seen=$(jq .eid "$tmp/stream" | tail -n 1)
api GET "/command/$id/resume?after_eid=$seen"
is "$code|$(jq -r 'select(.type == "stdout").text' "$tmp/stream" | tr '\n' ' ')$(printf '%s\n' "$out" | jq -r 'select(.type == "stdout").text' | tr '\n' ' ')" \
	"200|1 2 3 4 5 6 7 8 " "resume: each line once"
is "$(printf '%s\n' "$out" | jq -r .type | tail -n 1)" execution_complete "and the end"
api GET "/command/$id/resume?after_eid=4"
is "$(printf '%s\n' "$out" | jq -r 'select(.type == "stdout").text' | head -n 1)" 3 "also when it has ended"
: >"$tmp/stream"
curl -sS -N -m 20 --unix-socket "$sock" http://x/command -d '{"command":"echo ready; sleep 1"}' >"$tmp/stream" &
stream=$!
for _ in $(seq 200); do
	grep -q ready "$tmp/stream" && break
	sleep 0.05
done
api GET "/command/$(jq -r 'select(.type == "init").text' "$tmp/stream")/resume"
is "$code" 409 "not while somebody reads"
wait "$stream"

# Crowds and floods.
is "$($driver "$sock" many 100)" 100 "100 at once"
is "$($driver "$sock" throughput)" whole "64 MiB of lines"
is "$($driver "$sock" count '{"command":"head -c 4194304 /dev/zero | tr \"\\0\" x; echo; echo done; echo err >&2"}')" \
	"execution_complete=1 init=1 ping=1 stderr=1 stdout=2
exact" "a line of 4 MiB is one event"
sh_run 'head -c 1000000 /dev/zero | tr "\0" x; head -c 300000 /dev/zero | tr "\0" y >&2; echo z'
is "$(printf '%s\n' "$out" | tail -n 1)" execution_complete "two streams do not wait for each other for ever"
is "$(printf '%s\n' "$out" | tr -cd 'xyz' | wc -c)" 1300002 "and nothing is lost"
in_w rm -f /tmp/done
if [ "$OSBX_TEST_MODE" = root ]; then
	like "$($driver "$sock" slow "$pid")" '^whole, [0-3] MiB$' "1 GiB through a slow reader costs less than 4 MiB"
fi
grown=$($driver "$sock" unread '{"command":"head -c 200000000 /dev/zero | tr \"\\0\" \"\\n\"; echo >/tmp/done"}' "$pid")
like "$grown" '^[0-9]$' "a client that does not read costs less than 10 MiB"
for _ in $(seq 600); do
	in_w test -e /tmp/done && break
	sleep 0.1
done
is "$(in_w ls /tmp/done)" /tmp/done "and the command goes on when it is gone"
before=$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status")
for _ in $(seq 300); do
	curl -sS --unix-socket "$sock" http://x/command -d '{"command":"echo x"}' >/dev/null
done
after=$(awk '/VmRSS/ { print $2 }' "/proc/$pid/status")
is "$([ $((after - before)) -lt 4096 ] && echo small)" small "300 more commands cost no memory"
api GET '/command?limit=100'
is "$(printf %s "$out" | jq '.commands | length')" 100 "their records are there"
is "$(curl -sS --unix-socket "$sock" -o /dev/null -w '%{http_code}' http://x/ping)" 200 "and the service is"
"$OSBX" rm -f w >/dev/null 2>&1

done_testing
