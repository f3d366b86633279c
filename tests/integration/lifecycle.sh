#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single nested
# Sandboxes that live without a daemon: run -d, records, logs, stop, time to live, pause.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
run_d() {
	"$OSBX" run -d --network none "$@" </dev/null
}
state() {
	"$OSBX" inspect "$1" 2>/dev/null | jq -r .status.state
}
# everything that sandboxes have on disk
left() {
	find "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" "$OSBX_RUNTIME/names" "$OSBX_ROOT/ids" -mindepth 1 ! -name .lock 2>/dev/null
}

is_clear() {
	[ -z "$(left)" ]
}

# A whole life.
osbx run -q --network none "$image" true
osbx run -d --network none --name w --label role=a --label b=c --label alone "$image" sh -c 'echo out; echo err >&2; printf part; while ! [ -e /go ]; do sleep 0.05; done; echo end; exit 3'
id=$out
like "$id" '^[0-9a-f]{8}-[0-9a-f-]{27}$' "run -d prints an id"
is "$status$err" 0 "and nothing else"
is "$(state w)" Running "it runs"
osbx ps -q
is "$out" "$id" "ps lists it"
is "$("$OSBX" ps --json | jq -r '.[0] | "\(.name) \(.labels.role) \(.labels.b) \(.labels.alone)- \(.status.state) \(.detached)"')" "w a c - Running true" "with its name, labels and state"
for filter in label=role label=role=a status=running name=w; do
	is "$("$OSBX" ps -q --filter $filter)" "$id" "filter $filter finds it"
done
for filter in label=rol label=role=b status=paused name=v; do
	is "$("$OSBX" ps -q --filter $filter)" "" "filter $filter does not"
done
osbx ps --filter colour=red
is "$status" 125 "an unknown filter is an error"
like "$("$OSBX" inspect w | jq -r '"\(.request.image) \(.pid > 1) \(.keeperPid > 1)"')" 'busybox:1 true true' "inspect shows request and processes"
is "$("$OSBX" inspect "$(echo "$id" | cut -c 1-8)" | jq -r .id)" "$id" "found by the beginning of its id"
osbx inspect "$(echo "$id" | cut -c 1-3)"
is "$status" 125 "three digits are too few"
osbx inspect nobody
is "$status" 125 "who does not exist is not found"
like "$err" 'no sandbox nobody' "and the error says so"
osbx rm w
is "$status" 125 "one that runs is not removed"
like "$err" 'is running' "and the error says so"
osbx run -d --network none --name w "$image" true
is "$status" 125 "its name is taken"
"$OSBX" exec w touch /go
osbx wait w
is "$status" 3 "wait gives the exit status"
is "$(state w)" Terminated "the record says that it has ended"
is "$("$OSBX" inspect w | jq -r '"\(.status.reason) \(.status.exitStatus) \(.pid)"')" "exited 3 0" "why, and how"
is "$("$OSBX" ps -q)" "" "ps leaves it out"
is "$("$OSBX" ps -aq)" "$id" "ps -a does not"
osbx wait w
is "$status" 3 "wait gives it again"
osbx stop w
is "$status" 0 "stop of an ended one is done"
osbx kill w
is "$status" 125 "kill is not"
osbx exec w true
is "$status" 125 "nor is exec"
osbx gc
is "$("$OSBX" ps -aq)" "$id" "gc leaves the record"

# Logs.
osbx logs w
is "$out|$err" "out
partend|err" "logs gives the output, bytes and streams as they were"
is "$("$OSBX" logs --tail 2 w 2>&1 >/dev/null)$("$OSBX" logs -n 2 w 2>/dev/null)" errpartend "the last two lines, in the order they began"
is "$("$OSBX" logs --json w | jq -r 'select(.stream == "stderr") | .text')" err "as JSON"
like "$("$OSBX" logs -t w 2>/dev/null | head -1)" '^20[0-9-]+T[0-9:]+\.[0-9]{9}Z out$' "with times"
is "$("$OSBX" logs --since 1h w 2>/dev/null | wc -l)" 2 "since an hour"
is "$("$OSBX" logs --since 2100-01-01 w 2>/dev/null)" "" "since a time to come"
osbx rm w
is "$status$out" 0w "rm removes it"
is "$(left)" "" "and everything it had"
osbx rm w
is "$status" 125 "who is gone cannot be removed"
osbx rm -f w
is "$status" 0 "but for -f that is done"

# A command that cannot be started leaves nothing.
osbx run -d --network none --name no "$image" /does/not/exist
is "$status$out" 127 "a missing command fails at once"
like "$err" '/does/not/exist' "with its name"
osbx run -d --network none --name no "$image" /etc/passwd
is "$status" 126 "one that cannot be executed too"
is "$(left)" "" "and nothing is left"
osbx run -d --network none --rm --name rm "$image" true
wait_until 10 is_clear
is "$(left)" "" "run -d --rm leaves nothing"

# Arguments and variables arrive as they are.
bytes=$(printf 'a\303\251\377 "\\\n$x')
run_d --name bytes -e "V=$bytes" "$image" sh -c 'printf "%s|%s" "$1" "$V"' sh "$bytes" >/dev/null
"$OSBX" wait bytes
is "$("$OSBX" logs bytes)" "$bytes|$bytes" "bytes that are no text survive"
"$OSBX" rm -q bytes
name64=$(printf 'n%063d' 0)
run_d --name "$name64" "$image" sleep 100 >/dev/null
is "$("$OSBX" exec "$name64" echo fine)" fine "a name of 64 bytes"
"$OSBX" rm -qf "$name64"

# Stop: the main process gets a signal, and 10 seconds.
run_d --name s "$image" sh -c 'trap "echo bye; exit 5" TERM; echo up; while :; do sleep 0.05; done' >/dev/null
wait_until 10 sh -c "'$OSBX' logs s | grep -q up"
osbx stop s
is "$status$out" 0s "stop"
is "$("$OSBX" inspect s | jq -r '"\(.status.state) \(.status.reason) \(.status.exitStatus)"')" "Terminated stopped 5" "it ended as it was asked"
like "$("$OSBX" logs s)" bye "it had time for a last word"
"$OSBX" rm -q s
run_d --name s "$image" sh -c 'trap "" TERM; echo up; while :; do sleep 0.05; done' >/dev/null
wait_until 10 sh -c "'$OSBX' logs s | grep -q up"
before=$(date +%s%N)
osbx stop -t 300ms s
took=$((($(date +%s%N) - before) / 1000000))
is "$([ "$took" -ge 290 ] && [ "$took" -lt 5000 ] && echo fine)" fine "one that does not listen is killed after the time given ($took ms)"
is "$("$OSBX" inspect s | jq -r .status.exitStatus)" 137 "and its status says so"
"$OSBX" rm -q s
run_d --name s "$image" sh -c 'trap "exit 7" USR1; echo up; while :; do sleep 0.05; done' >/dev/null
wait_until 10 sh -c "'$OSBX' logs s | grep -q up"
osbx kill -s USR1 s
osbx wait s
is "$status" 7 "kill -s sends a signal"
"$OSBX" rm -q s
osbx kill -s NOSUCH s
is "$status" 125 "an unknown signal is an error"
run_d --name s "$image" sleep 1000 >/dev/null
osbx rm -f s
is "$status$(left)" 0 "rm -f ends what runs"

# Time to live.
run_d --name t --timeout 700ms "$image" sleep 1000 >/dev/null
like "$("$OSBX" inspect t | jq -r .expiresAt)" '^20.*Z$' "the expiry is on record"
wait_until 10 is_clear
is "$(left)" "" "what has expired is gone"
run_d --name t --keep --timeout 300ms "$image" sleep 1000 >/dev/null
wait_until 10 sh -c "'$OSBX' inspect t | grep -q Terminated"
is "$("$OSBX" inspect t | jq -r '"\(.status.state) \(.status.reason) \(.kept)"')" "Terminated ttl_expiry true" "a kept one says why"
osbx rm t
is "$(left)" "" "and is removed with its files"
run_d --name t --timeout 1s "$image" sleep 1000 >/dev/null
osbx renew --timeout 1h t
is "$status" 0 "renew"
sleep 1.3
is "$(state t)" Running "a renewed one lives on"
osbx renew --timeout never t
is "$("$OSBX" inspect t | jq -r .expiresAt)" null "for ever"
osbx renew t
is "$status" 125 "renew needs a time"
"$OSBX" rm -qf t
run_d --name t --timeout 300ms "$image" sh -c 'trap "" TERM; while :; do sleep 0.05; done' >/dev/null
sleep 0.6
osbx renew --timeout 1h t
is "$status" 125 "one that has expired cannot be renewed"
"$OSBX" rm -qf t
osbx run --network none --timeout 300ms "$image" sleep 1000
is "$status" 143 "in the foreground it is stopped too"
like "$err" 'time was over' "and says why"
is "$(left)" "" "nothing is left"

like "$("$OSBX" events | jq -r 'select(.type == "end") | .reason' | sort -u | tr '\n' ' ')" 'exited .*stopped ttl_expiry' "events say how they ended"
is "$("$OSBX" events | jq -r 'select(.name == "w") | .type' | tr '\n' ' ')" "start end remove " "and what happened before and after"
"$OSBX" events -fn >"$tmp/events" &
events=$!
sleep 0.3
osbx run --network none --name ev "$image" sh -c 'exit 7'
for _ in $(seq 100); do
	[ "$(wc -l <"$tmp/events")" -ge 2 ] && break
	sleep 0.05
done
kill "$events"
wait "$events" 2>/dev/null
is "$(jq -r '"\(.type) \(.name) \(.exitStatus)"' "$tmp/events" | tr '\n' ' ')" "start ev null end ev 7 " "events -f tells of them as they happen"

# Pause, where there is a control group.
run_d --name p --timeout 1h "$image" sh -c 'i=0; while :; do i=$((i + 1)); echo $i; sleep 0.02; done' >/dev/null
osbx pause p
if [ "$status" = 0 ]; then
	is "$(state p)" Paused "pause"
	a=$("$OSBX" logs p | tail -1)
	sleep 0.3
	is "$("$OSBX" logs p | tail -1)" "$a" "nothing goes on"
	for command in 'exec p true' 'kill -s USR1 p' 'pause p'; do
		# shellcheck disable=SC2086
		osbx $command
		is "$status" 125 "no $command meanwhile"
		like "$err" 'is paused' "and the error says so"
	done
	osbx stats --json p
	is "$status" 0 "stats answers"
	osbx renew --timeout 2h p
	is "$status" 0 "renew too"
	osbx resume p
	is "$status$(state p)" 0Running "resume"
	sleep 0.3
	unlike "$("$OSBX" logs p | tail -1)" "^$a\$" "it goes on"
	osbx resume p
	is "$status" 125 "what runs cannot be resumed"
	"$OSBX" pause -q p
	before=$(date +%s%N)
	osbx stop p
	took=$((($(date +%s%N) - before) / 1000000))
	is "$status$(state p)" 0Terminated "a paused one can be stopped"
	is "$([ "$took" -lt 5000 ] && echo fine)" fine "at once ($took ms)"
	"$OSBX" rm -q p
	run_d --name p --timeout 500ms "$image" sleep 1000 >/dev/null
	"$OSBX" pause -q p
	wait_until 10 is_clear
	is "$(left)" "" "a paused one expires"
else
	like "$err" 'no control group' "without a control group pause says so"
	is "$(state p)" Running "and it runs on"
	"$OSBX" rm -qf p
	skip "pause" "no writable control group"
fi

# Terminals and floods.
# The kernel forgets what a terminal has not passed on yet when its session ends (vhangup), so it ends a little later.
run_d --name tty -t "$image" sh -c 'tty; stty size; echo fine; sleep 0.3' >/dev/null
"$OSBX" wait tty
is "$("$OSBX" logs tty | tr -d '\r' | tr '\n' ' ')" "/dev/pts/0 24 80 fine " "a terminal of its own, whose output is logged"
"$OSBX" rm -q tty
run_d --name flood "$image" sh -c 'yes 0123456789012345678901234567890123456789 | head -n 700000; echo last' >/dev/null
"$OSBX" wait flood
is "$("$OSBX" logs -n 1 flood)" last "a flood is logged to its end"
live=$OSBX_RUNTIME/sandboxes/$("$OSBX" ps -aq)
is "$(ls "$live" | grep -c '^log')" 3 "in three files"
is "$(find "$live" -name 'log*' -size +10240k | wc -l)" 0 "of 10 MiB at most"
# The first may be the end of one that began in a file that is gone.
is "$("$OSBX" logs flood | sed 1d | sort -u | wc -l)" 2 "no line is torn"
"$OSBX" rm -q flood

# Follow.
run_d --name f "$image" sh -c 'for i in 1 2 3; do echo $i; sleep 0.2; done' >/dev/null
is "$("$OSBX" logs -f f | tr '\n' ' ')" "1 2 3 " "logs -f ends with the sandbox"
"$OSBX" rm -q f

# Many at once, and commands about the same one at once.
for i in 1 2 3 4 5 6; do
	run_d --name "m$i" "$image" sleep 1000 >/dev/null &
done
wait
is "$("$OSBX" ps -q | wc -l)" 6 "six at once"
for i in 1 2 3; do
	"$OSBX" rm -qf m1 m2 m3 m4 m5 m6 >/dev/null 2>&1 &
done
for i in 1 2 3 4 5 6; do
	"$OSBX" exec m$i true >/dev/null 2>&1 &
done
wait
is "$(left)" "" "removed by three at once while others exec"

# A long runtime directory.
long=$tmp/$(printf 'd%0200d' 0)
mkdir -p "$long"
OSBX_RUNTIME=$long run_d --name l "$image" sleep 1000 >/dev/null
is "$(OSBX_RUNTIME=$long "$OSBX" exec l echo fine)" fine "a runtime directory longer than a socket's path"
OSBX_RUNTIME=$long "$OSBX" rm -qf l

done_testing
