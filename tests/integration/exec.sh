#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single nested
# exec: input, output, status, user, directory, signals, and the end of a whole tree.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
osbx run -q --network none "$image" true
"$OSBX" run -d --network none --name w -e MAIN=1 -w /tmp "$image" sleep 100000 >/dev/null </dev/null
# processes with this argument, as the sandbox sees them
count() {
	# Brackets, so that the search does not find itself.
	"$OSBX" exec w sh -c "grep -sl '[${1%"${1#?}"}]${1#?}' /proc/[0-9]*/cmdline | wc -l"
}
# wait_count N ARGUMENT
wait_count() {
	for _ in $(seq 100); do
		[ "$(count "$2")" = "$1" ] && break
		sleep 0.05
	done
	count "$2"
}

osbx exec w sh -c 'echo out; echo err >&2; exit 3'
is "$status|$out|$err" "3|out|err" "status and both streams"
osbx exec w sh -c 'kill -9 $$'
is "$status" 137 "128 + signal"
osbx exec w /does/not/exist
is "$status" 127 "a missing command is 127"
osbx exec w /etc/passwd
is "$status" 126 "one that cannot be executed 126"
osbx exec w ''
is "$status" 125 "an empty one 125"
osbx exec w
is "$status" 125 "none too"
osbx exec nobody true
is "$status" 125 "as is a sandbox that does not exist"
osbx exec w -- echo -- -x
is "$out" "-- -x" "-- ends the options once"
osbx exec w echo -e x
is "$out" "x" "options of the command are its own"
is "$(echo piped | "$OSBX" exec -i w cat)" piped "-i forwards input"
is "$(echo piped | "$OSBX" exec w cat)" "" "without it there is none"
is "$(printf x | "$OSBX" exec -i w sh -c 'cat; echo y')" xy "the end of the input arrives"

# What it is by default, and what can be said.
is "$("$OSBX" exec w sh -c 'echo $MAIN; pwd; id -u; echo $HOME')" "1
/tmp
0
/root" "variables, directory and user of the main process"
is "$("$OSBX" exec -e MAIN=2 -e OTHER=3 w sh -c 'echo $MAIN $OTHER')" "2 3" "-e adds and replaces"
is "$("$OSBX" exec -w /etc w pwd)" /etc "-w"
osbx exec -w /nowhere w pwd
like "$status" '^12[567]$' "a directory that does not exist is an error"
osbx exec -w etc w pwd
is "$status" 125 "one that is not absolute too"
for dir in /proc/self/fd/3 /proc/self/fd/7 /proc/1/cwd /proc/1/root; do
	osbx exec -w "$dir" w ls
	unlike "$out" 'sandboxes|state.json|ctl.sock' "no way out by the working directory $dir (CVE-2024-21626)"
done
osbx exec -u 1234567890123 w true
like "$status" '^12[567]$' "a user that cannot be is an error"
if [ "$OSBX_TEST_MODE" != single ] && [ "$OSBX_TEST_MODE" != nested ]; then
	is "$("$OSBX" exec -u 1000:1001 w sh -c 'id -u; id -g' | tr '\n' ' ')" "1000 1001 " "-u"
	is "$("$OSBX" exec -u 1000 w sh -c 'echo fine >/dev/stdout; echo x >/dev/stderr; grep CapEff /proc/self/status' 2>/dev/null)" "fine
CapEff:	0000000000000000" "it may open its own output, and holds no capabilities"
fi
is "$("$OSBX" exec w sh -c 'grep -E "CapBnd|NoNewPrivs|Seccomp:" /proc/self/status')" "$("$OSBX" run --network none "$image" sh -c 'grep -E "CapBnd|NoNewPrivs|Seccomp:" /proc/self/status')" "capabilities and filter of any process of a sandbox"
is "$("$OSBX" exec w sh -c 'ls /proc/self/fd | wc -l')" 4 "no descriptor but its own"
exec 9<"$OSBX_RUNTIME"
is "$("$OSBX" exec w sh -c 'ls /proc/self/fd | wc -l' 9<"$OSBX_RUNTIME")" 4 "nor one of the caller's"
exec 9<&-
bytes=$(printf 'a\303\251\377 "\\\n$x')
is "$("$OSBX" exec -e "V=$bytes" w sh -c 'printf "%s|%s" "$1" "$V"' sh "$bytes")" "$bytes|$bytes" "bytes that are no text survive"

# A lot of output, and nobody who reads it.
is "$("$OSBX" exec w sh -c 'yes 0123456789 | head -c 20000000' | wc -c)" 20000000 "20 MB"
"$OSBX" exec w yes 2>/dev/null | head -n 1 >/dev/null
is "$(wait_count 0 yes)" 0 "a reader that went away ends the writer"
is "$("$OSBX" exec w sh -c 'sleep 100002 & echo early')" early "a process left behind does not hold its starter"
is "$(count 100002)" 1 "and lives"

# The client is killed: so is everything it started.
for signal in KILL HUP; do
	"$OSBX" exec w sh -c 'sleep 100003 & setsid sleep 100003 & sleep 100003' >/dev/null 2>&1 </dev/null &
	pid=$!
	is "$(wait_count 3 100003)" 3 "a tree of processes runs"
	kill -"$signal" "$pid"
	wait "$pid" 2>/dev/null
	is "$(wait_count 0 100003)" 0 "SIG$signal to the client ends all of it"
done
"$OSBX" exec w sh -c 'trap "echo got; exit 9" TERM; echo up; while :; do sleep 0.05; done' >"$tmp/term" 2>&1 </dev/null &
pid=$!
for _ in $(seq 100); do
	grep -q up "$tmp/term" && break
	sleep 0.05
done
kill -TERM "$pid"
wait "$pid"
is "$?$(tail -n 1 "$tmp/term")" "9got" "SIGTERM is forwarded, and the status is the command's"
(
	"$OSBX" exec w sh -c 'head -c 200000 /dev/zero; exit 6' &
	pid=$!
	sleep 0.5
	# The first ends the command, the second what is left of its output.
	kill -TERM "$pid"
	sleep 0.5
	kill -TERM "$pid"
	wait "$pid"
	echo "$?" >"$tmp/stuck"
) | sleep 3 &
reader=$!
for _ in $(seq 50); do
	[ -s "$tmp/stuck" ] && break
	sleep 0.05
done
is "$(cat "$tmp/stuck")" 143 "a client whose reader does not read can be ended"
wait "$reader"
osbx exec -d w sleep 100004
is "$status$out" 0 "exec -d returns at once"
is "$(wait_count 1 100004)" 1 "and its process lives on"

# Many at once.
for i in $(seq 20); do
	"$OSBX" exec w sh -c "echo $i; exit $i" >"$tmp/many.$i" 2>&1 </dev/null &
	eval "pid$i=\$!"
done
bad=0
for i in $(seq 20); do
	eval "wait \$pid$i"
	[ "$?" = "$i" ] && [ "$(cat "$tmp/many.$i")" = "$i" ] || bad=$((bad + 1))
done
is "$bad" 0 "twenty at once, each with its own status and output"

# The sandbox ends under it.
"$OSBX" exec w sleep 100005 >/dev/null 2>&1 </dev/null &
pid=$!
is "$(wait_count 1 100005)" 1 "one more runs"
"$OSBX" stop -q -t 100ms w
wait "$pid"
is "$?" 137 "the end of the sandbox is the end of exec"
osbx exec w true
is "$status" 125 "then nothing more can be started"
like "$err" 'not running' "and the error says so"
"$OSBX" rm -q w

# Into a sandbox of the foreground.
"$OSBX" run --network none --name fg "$image" sh -c 'while ! [ -e /go ]; do sleep 0.05; done; exit 4' </dev/null >/dev/null 2>&1 &
pid=$!
for _ in $(seq 100); do
	"$OSBX" exec fg true 2>/dev/null && break
	sleep 0.05
done
"$OSBX" exec fg touch /go
wait "$pid"
is "$?" 4 "exec into a sandbox of the foreground"

done_testing
