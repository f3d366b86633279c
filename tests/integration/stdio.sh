#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Standard descriptors without a terminal: any size, any byte, early ends on either side, signals, never the caller's
# own descriptors.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
"$OSBX" load -q "$image" >/dev/null
big=$((64 * 1024 * 1024))

# Input
is "$(printf 'x%.0s' $(seq 1000) | "$OSBX" run -i "$image" wc -c)" 1000 "-i: piped input"
head -c 1000000 /dev/zero >"$tmp/million"
is "$("$OSBX" run -i "$image" wc -c <"$tmp/million")" 1000000 "a file"
is "$("$OSBX" run -i "$image" wc -c </dev/null)" 0 "nothing"
is "$(head -c $big /dev/zero | "$OSBX" run -i "$image" wc -c)" $big "64 MiB"
is "$(echo ignored | "$OSBX" run "$image" wc -c)" 0 "without -i there is none"
{ "$OSBX" run "$image" true; cat; } <"$tmp/million" >"$tmp/rest"
is "$(wc -c <"$tmp/rest")" 1000000 "and the caller's is not touched"
is "$(head -c $big /dev/zero | "$OSBX" run -i "$image" head -c 10 | wc -c)" 10 "a command that does not read all of it"
is "$(mkfifo "$tmp/fifo"; (sleep 1; echo late) >"$tmp/fifo" & "$OSBX" run -i "$image" cat <"$tmp/fifo")" late "input that comes late"
# The command's end does not wait for an input that never ends.
mkfifo "$tmp/open"
sleep 30 >"$tmp/open" &
holder=$!
timeout 20 "$OSBX" run -i "$image" echo done <"$tmp/open" >"$tmp/out"
is "$?/$(cat "$tmp/out")" 0/done "an input that never ends"
kill $holder 2>/dev/null
wait $holder 2>/dev/null
"$OSBX" run -i "$image" cat <"$tmp" >/dev/null 2>"$tmp/err"
like "$? $(cat "$tmp/err")" '^125 .*standard input.*directory' "an input that cannot be read"

# Output
head -c 5000000 /dev/urandom >"$tmp/random"
"$OSBX" run -i "$image" cat <"$tmp/random" >"$tmp/copy"
is "$(cmp "$tmp/random" "$tmp/copy" && echo same)" same "every byte, to a file"
is "$("$OSBX" run -i "$image" cat <"$tmp/random" | cksum)" "$(cksum <"$tmp/random")" "to a pipe"
"$OSBX" run "$image" head -c $big /dev/zero | wc -c >"$tmp/n"
is "$(cat "$tmp/n")" $big "64 MiB out"
echo first >"$tmp/append"
"$OSBX" run "$image" echo second >>"$tmp/append"
is "$(echo $(cat "$tmp/append"))" "first second" "appended to a file"
osbx run "$image" sh -c 'echo out; echo err >&2'
is "$out/$err" out/err "two streams"
"$OSBX" run "$image" sh -c 'echo a; echo b >&2' >"$tmp/both" 2>&1
is "$(sort "$tmp/both" | tr -d '\n')" ab "into one file"
osbx run "$image" sh -c 'printf "no newline"'
is "$out" "no newline" "a line without its end"
"$OSBX" run "$image" sh -c 'yes; echo $? >&2' 2>"$tmp/err" | head -1 >"$tmp/out"
is "$(cat "$tmp/out") $(cat "$tmp/err")" "y 141" "a reader that leaves: the writer has SIGPIPE"
"$OSBX" run "$image" sh -c 'trap "" PIPE; echo a; sleep 0.2; echo b; echo $? >&2; exit 5' 2>"$tmp/err" | true
like "$(cat "$tmp/err")" '[01]$' "or an error"
if [ -c /dev/full ]; then
	"$OSBX" run "$image" echo lost >/dev/full 2>"$tmp/err"
	like "$? $(cat "$tmp/err")" '^125 .*standard output: No space' "output that cannot be written is an error"
fi
"$OSBX" run "$image" echo >&- 2>/dev/null
is $? 0 "a closed standard output"
"$OSBX" run -i "$image" cat <&-
is $? 0 "a closed standard input"

# A background process does not keep the sandbox, nor the pipe.
start=$(date +%s)
osbx run "$image" sh -c 'sleep 30 & echo started'
is "$status/$out" 0/started "a background process"
[ $(($(date +%s) - start)) -lt 15 ] && ok "ends with the command" || not_ok "ends with the command"

# The guest has pipes of ours, which it may open anew, and nothing of the caller's
echo content >"$tmp/precious"
"$OSBX" run "$image" sh -c ': >/proc/self/fd/1; echo x >/dev/stdout' >>"$tmp/precious"
is "$(echo $(cat "$tmp/precious"))" "content x" "truncating standard output does not reach the caller's file"
osbx run "$image" sh -c 'for fd in 0 1 2; do readlink /proc/$$/fd/$fd; done'
like "$(echo $out)" '^/dev/null pipe:\[[0-9]+\] pipe:\[[0-9]+\]$' "null device and two pipes"
osbx run "$image" sh -c 'ls /proc/self/fd | tr "\n" " "'
is "$out" "0 1 2 3 " "no other descriptor (3 is ls reading)"
exec 9<"$tmp/precious"
"$OSBX" run "$image" sh -c 'ls -l /proc/self/fd/9' >/dev/null 2>&1
is $? 1 "a descriptor that the caller leaked"
exec 9<&-
osbx run "$image" sh -c 'test -t 0 || test -t 1 || test -t 2'
is "$status" 1 "no terminal"
osbx run -i -t "$image" true
like "$status $err" '^125 .*not a terminal' "-i -t needs one on standard input"
is "$("$OSBX" run -t "$image" sh -c 'test -t 0 && test -t 1 && echo tty' </dev/null | tr -d '\r')" tty "-t alone does not"

# An input that cannot be read is refused before anything runs.
"$OSBX" run -i -v "$tmp:/t" "$image" touch /t/ran <"$tmp" >/dev/null 2>"$tmp/err"
like "$? $(cat "$tmp/err")" '^125 osbx: .*standard input is a directory' "-i with a directory as input"
"$OSBX" run -i -v "$tmp:/t" "$image" touch /t/ran 0>"$tmp/write-only" >/dev/null 2>"$tmp/err"
like "$? $(cat "$tmp/err")" '^125 osbx: .*standard input is not open for reading' "-i with an input that is write-only"
is "$(ls "$tmp/ran" 2>/dev/null)" "" "and nothing ran"
is "$("$OSBX" run "$image" echo fine <"$tmp")" fine "without -i nobody looks at it"

# Signals go to the command, once
for pair in HUP:15 INT:2 QUIT:3 TERM:15 USR1:10 USR2:12 ALRM:14; do
	name=${pair%:*}
	rm -f "$tmp/signal"
	"$OSBX" run "$image" sh -c 'for s in INT QUIT TERM USR1 USR2 ALRM; do trap "echo got $s; exit 40" $s; done; echo ready; while :; do sleep 0.05; done' \
		</dev/null >"$tmp/signal" 2>&1 &
	pid=$!
	# A shell's background job ignores INT and QUIT, and so does osbx then.
	for _ in $(seq 100); do
		grep -qs ready "$tmp/signal" && break
		sleep 0.05
	done
	kill -$name $pid
	case $name in
	INT | QUIT)
		sleep 0.3
		is "$(cat "$tmp/signal")" ready "$name is ignored as the caller ignores it"
		kill -TERM $pid
		wait $pid
		;;
	*)
		wait $pid
		is "$?/$(sed -n 2p "$tmp/signal")" "40/got $([ $name = HUP ] && echo TERM || echo $name)" "$name arrives"
		;;
	esac
done

done_testing
