#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single
# Sessions over the execution API: what persists, what a command may do to its shell, their end.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
osbx run -q --network none "$image" true
# api METHOD TARGET [CURL OPTIONS]: body in $out, status in $code
api() {
	method=$1
	target=$2
	shift 2
	code=$(curl -sS -N -m 60 -o "$tmp/body" -w '%{http_code}' --unix-socket "$sock" -X "$method" "$@" "http://x$target" 2>"$tmp/err")
	out=$(cat "$tmp/body")
	: >"$tmp/body"
}
session() {
	api POST /session ${1:+-d "$1"}
	printf %s "$out" | jq -r .session_id
}
# s SESSION COMMAND [JSON OF OTHER MEMBERS]: output in $out, then the end
s() {
	api POST "/session/$1/run" -d "$(jq -nc --arg c "$2" --argjson m "${3:-{\}}" '{command: $c} + $m')"
	[ "$code" = 200 ] || return
	out=$(printf '%s\n' "$out" | jq -r 'if .type == "stdout" then .text elif .type == "error" then "error \(.error.evalue)"
		elif .type == "init" or .type == "ping" then empty else .type end')
}
# said SESSION COMMAND EXPECTED DESCRIPTION
said() {
	s "$1" "$2"
	is "$out" "$3" "$4"
}
in_w() {
	"$OSBX" exec "$name" "$@" </dev/null
}

# all NAME: with the shell of its image
all() {
	name=$1
	sock=$("$OSBX" inspect "$name" | jq -r .execd.socket)
	api POST /session -H 'Content-Type: application/json'
	like "$code $(printf %s "$out" | jq -r .session_id)" '^200 [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' "$name: a session, by an empty body"
	id=$(printf %s "$out" | jq -r .session_id)
	api POST "/session/$id/run" -d '{"command":"echo x"}'
	is "$(printf '%s\n' "$out" | jq -r .type | tr '\n' ' ')$(printf '%s\n' "$out" | jq -r 'select(.type == "init").text')" \
		"init ping stdout execution_complete $id" "$name: events"
	s "$id" 'export A=1 B="it'\''s \"q\" \$x \\ \`
two "; cd /tmp; echo out; echo err >&2; local_one=5'
	is "$out" "out
err
execution_complete" "$name: both streams are one"
	said "$id" 'echo "$A|$B|$PWD|${local_one-none}"; pwd' "1|it's \"q\" \$x \\ \`
two |/tmp|none
/tmp
execution_complete" "$name: exported variables and the directory persist"
	s "$id" 'mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone'
	said "$id" 'pwd; echo $A' 'osbx: working directory "/tmp/gone" is gone, "/" is used
/
1
execution_complete' "$name: a directory that is gone does not end the session"
	s "$id" true '{"cwd":"/tmp/gone"}'
	is "$code|$(printf %s "$out" | jq -r .code)" "400|INVALID_REQUEST_BODY" "$name: one that is asked for must be there"
	said "$id" 'export C=3; cd /; exit 4' "error 4" "$name: exit"
	said "$id" 'echo $C $PWD' "3 /
execution_complete" "$name: what was set before it persists"
	said "$id" 'trap "echo bye" EXIT; export D=4; echo $C' "3
bye
execution_complete" "$name: a trap"
	said "$id" 'cat <<E
$D-$A
  E
E
echo after' "4-1
  E
after
execution_complete" "$name: a here-document"
	said "$id" 'export E=5; exec echo replaced' "replaced
execution_complete" "$name: exec"
	said "$id" 'echo ${E-none} $D' "none 4
execution_complete" "$name: leaves the session as it was"
	said "$id" 'set -e; export E=6; false; echo not here' "error 1" "$name: set -e"
	said "$id" 'set -u; echo $E; export F=7; f() { return 3; }; f' "6
error 3" "$name: set -u, functions"
	s "$id" 'set -x; echo $F'
	unlike "$out" osbx "$name: set -x shows nothing of ours"
	said "$id" 'echo "$0 $#"; set -- a b; echo $#' "${2} 0
2
execution_complete" "$name: words of the shell"
	said "$id" 'kill -9 $$' "error -1" "$name: a signal"
	s "$id" 'echo $F; if then'
	like "$(printf '%s\n' "$out" | tail -n 1)" '^error 2$' "$name: what is no shell text"
	unlike "$out" osbx "$name: is told in its own words"
	said "$id" 'echo $F' "7
execution_complete" "$name: they leave the session as it was"
	said "$id" 'unset F; export -p | grep -c " F="; true' "0
execution_complete" "$name: unset"
	said "$id" 'echo ${F-gone}' "gone
execution_complete" "$name: persists"
	said "$id" 'export BIG=$(head -c 90000 /dev/zero | tr "\0" x); echo ${#BIG}' "90000
execution_complete" "$name: a large value"
	said "$id" 'echo ${#BIG}; unset BIG' "90000
execution_complete" "$name: persists"
	said "$id" 'i=0; while [ $i -lt 40 ]; do export V$i=$(head -c 9000 /dev/zero | tr "\0" x); i=$((i + 1)); done; cd /etc; echo set' "set
execution_complete" "$name: more than a session keeps"
	said "$id" 'echo ${V0-none} $PWD $A' "none / 1
execution_complete" "$name: is not kept, the state before is"
	said "$id" 'sleep 881 & echo up' "up
execution_complete" "$name: a child in the background does not hold the run"
	s "$id" 'sleep 882' '{"timeout":300}'
	is "$out" "error -1" "$name: timeout"
	s "$id" 'pwd' '{"cwd":"/etc"}'
	is "$out" "/etc
execution_complete" "$name: cwd of a run"
	said "$id" 'pwd; cd -' "/etc
/
execution_complete" "$name: is the session's from then on"
	s "$id" 'pwd' '{"cwd":"/nope"}'
	is "$code|$(printf %s "$out" | jq -r .code)" "400|INVALID_REQUEST_BODY" "$name: one that is missing"
	in_w sh -c 'mkdir -p /opt/opensandbox; echo LATER=1 >>/opt/opensandbox/.env'
	said "$id" 'echo $LATER' "1
execution_complete" "$name: the file of variables is read at each run"
	# What the shell leaves is the workload's: nothing of it may harm.
	for forged in 'head -c 10000000 /dev/zero' 'printf "no path\000x\000"' 'printf "/tmp\000"' 'printf "/\000a\000b\000"' true 'cat'; do
		said "$id" "$forged >/proc/self/fd/98; exec true" "execution_complete" "$name: a forged state ($forged)"
	done
	said "$id" 'echo $A $PWD' "1 /
execution_complete" "$name: changes nothing that it should not"
	one=$(session '{"cwd":"~/made/deep"}')
	is "$(in_w ls -d /root/made/deep)" /root/made/deep "$name: cwd of a session is made"
	s "$one" 'pwd; echo ${A-none}'
	is "$out" "/root/made/deep
none
execution_complete" "$name: and is where it begins; sessions are apart"
	s "$one" 'mkdir "/tmp/\$A x"; cd "/tmp/\$A x"'
	said "$one" 'pwd; rm -r "$PWD"; cd /' '/tmp/$A x
execution_complete' "$name: a directory of any name"
	# Its end takes what runs.
	: >"$tmp/stream"
	curl -sS -N -m 60 --unix-socket "$sock" "http://x/session/$one/run" -d '{"command":"echo ready; sleep 883"}' >"$tmp/stream" &
	stream=$!
	for _ in $(seq 200); do
		grep -q ready "$tmp/stream" && break
		sleep 0.05
	done
	api DELETE "/session/$one"
	is "$code|$out" "200|" "$name: delete"
	wait "$stream"
	is "$(jq -r 'select(.type == "error") | .error.evalue' "$tmp/stream")" -1 "$name: ends a run"
	api DELETE "/session/$one"
	is "$code|$(printf %s "$out" | jq -r .code)" "404|CONTEXT_NOT_FOUND" "$name: there is no second end"
	api POST "/session/$one/run" -d '{"command":"true"}'
	is "$code|$(printf %s "$out" | jq -r .code)" "500|RUNTIME_ERROR" "$name: nor a run"
	api DELETE "/command?id=$id"
	is "$code" 200 "$name: an interrupt by a session's id ends it"
	api GET /command
	is "$(printf %s "$out" | jq '.commands | length')" 0 "$name: runs are no commands of the list"
	for body in '{' '{}' '{"command":" "}' '{"command":1}'; do
		id=$(session)
		api POST "/session/$id/run" -d "$body"
		is "$code|$(printf %s "$out" | jq -r .code)" "400|INVALID_REQUEST_BODY" "$name: the run $body"
	done
	for _ in $(seq 300); do
		id=$(session)
	done
	said "$id" 'echo new' "new
execution_complete" "$name: old sessions make room for new ones"
	"$OSBX" rm -f "$name" >/dev/null 2>&1
}

"$OSBX" run -d --network none --name sh "$image" sleep 100000 >/dev/null </dev/null
all sh sh
if "$OSBX" run -d --network none --name bash @host sleep 100000 >/dev/null 2>"$tmp/err" </dev/null; then
	all bash bash
else
	skip "bash" "no sandbox of the machine's own programs: $(head -n 1 "$tmp/err")"
fi

done_testing
