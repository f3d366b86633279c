#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single nested
# Keepers that are killed, a machine that restarts, processes that are not ours: nothing is left, and nobody else hurt.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
osbx run -q --network none "$image" true
run_d() {
	"$OSBX" run -d --network none "$@" </dev/null
}
left() {
	find "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" "$OSBX_RUNTIME/names" "$OSBX_ROOT/ids" -mindepth 1 ! -name .lock 2>/dev/null
}
field() {
	"$OSBX" inspect "$1" | jq -r "$2"
}
# Gone, or waiting for a parent that does not look.
is_dead() {
	! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}
# kill -9 the keeper of a sandbox and wait for its end
lose() {
	lost=$(field "$1" .keeperPid)
	kill -9 "$lost"
	wait_dead "$lost"
}
wait_dead() {
	for _ in $(seq 200); do
		is_dead "$1" && return 0
		sleep 0.02
	done
	return 1
}

# The keeper is killed.
id=$(run_d --name k "$image" sh -c 'echo said; sleep 100000')
keeper=$(field k .keeperPid)
pid=$(field k .pid)
like "$(cat "/proc/$keeper/cmdline" | tr '\0' ' ')" '^osbx keeper' "it has a keeper"
lose k
wait_dead "$pid"
is "$(is_dead "$pid" && echo dead)" dead "PID 1 dies with its keeper"
like "$("$OSBX" ps)" 'Failed \(keeper_lost\)' "the next ps says Failed (keeper lost)"
is "$(field k '"\(.status.state) \(.status.reason) \(.status.message)"')" "Failed keeper_lost its keeper was lost" "as does inspect"
is "$("$OSBX" logs k)" said "its log is there"
is "$(ls "$OSBX_ROOT/sandboxes/$id")" request.json "its files are gone"
is "$(ls "$OSBX_ROOT/ids" 2>/dev/null | wc -l)" 0 "its ids are free"
osbx wait k
is "$status" 125 "wait has no status to give"
osbx exec k true
is "$status" 125 "nothing can be started"
run_d --name k "$image" sleep 100000 >/dev/null
is "$(field k .status.state)" Running "its name is free"
"$OSBX" rm -qf k
osbx gc
is "$(left)" "" "gc leaves nothing"

# rm needs no sweep before.
run_d --name k "$image" sleep 100000 >/dev/null
lose k
osbx rm k
is "$status$(left)" 0 "rm of a lost one"
run_d --name k "$image" sleep 100000 >/dev/null
keeper=$(field k .keeperPid)
kill -STOP "$keeper"
before=$(date +%s)
osbx rm -f k
is "$status$(left)" 0 "rm -f of one whose keeper does not answer ($(($(date +%s) - before)) s)"
is "$(is_dead "$keeper" && echo dead)" dead "that keeper is gone"

# SIGTERM to a keeper ends its sandbox in order.
run_d --name k "$image" sh -c 'trap "exit 6" TERM; echo up; while :; do sleep 0.05; done' >/dev/null
for _ in $(seq 100); do
	"$OSBX" logs k | grep -q up && break
	sleep 0.05
done
kill -TERM "$(field k .keeperPid)"
osbx wait k
is "$status" 6 "SIGTERM to the keeper stops the sandbox"
"$OSBX" rm -q k

# PID 1 is killed from outside.
run_d --name k "$image" sleep 100000 >/dev/null
kill -9 "$(field k .pid)" 2>/dev/null || "$OSBX" exec k kill -9 1
for _ in $(seq 100); do
	[ "$(field k .status.state)" != Running ] && break
	sleep 0.05
done
is "$(field k '"\(.status.state) \(.status.reason)"')" "Failed error" "the death of PID 1 is told"
"$OSBX" rm -q k

# Paused, and lost.
run_d --name k "$image" sleep 100000 >/dev/null
if "$OSBX" pause -q k 2>/dev/null; then
	pid=$(field k .pid)
	lose k
	wait_dead "$pid"
	is "$(is_dead "$pid" && echo dead)" dead "PID 1 of a paused one dies with its keeper"
	is "$(field k .status.state)" Failed "and the record says so"
else
	skip "paused and lost" "no writable control group"
fi
"$OSBX" rm -qf k

# A number that belongs to somebody else by now.
run_d --name k "$image" sleep 100000 >/dev/null
id=$(field k .id)
pid=$(field k .pid)
lose k
wait_dead "$pid"
sleep 300 &
decoy=$!
sed -i "s/\"pid\":$pid,/\"pid\":$decoy,/" "$OSBX_RUNTIME/sandboxes/$id/state.json"
"$OSBX" ps -q >/dev/null
"$OSBX" rm -qf k
is "$(kill -0 "$decoy" && echo alive)" alive "a process that has taken its number is not touched"
kill "$decoy"
wait "$decoy" 2>/dev/null

# The starter is killed before it knows.
i=0
while [ "$i" -lt 12 ]; do
	"$OSBX" run -d --network none --name "e$i" "$image" sleep 100000 >/dev/null 2>&1 </dev/null &
	pid=$!
	sleep "0.00$i"
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	i=$((i + 1))
done
# Some keepers have not heard of it yet.
for _ in $(seq 30); do
	sleep 1
	"$OSBX" ps -q >"$tmp/alive"
	bad=0
	while read -r id; do
		[ "$(field "$id" .status.state)" = Running ] && "$OSBX" exec "$id" true </dev/null || bad=$((bad + 1))
	done <"$tmp/alive"
	[ "$bad" != 0 ] || break
done
is "$bad" 0 "what a killed starter has left runs, or is gone ($(wc -l <"$tmp/alive") of 12 run)"
xargs -r "$OSBX" rm -qf <"$tmp/alive"
osbx gc
is "$(left)" "" "and nothing else is left"

# Foreground runs that were killed leave no record.
"$OSBX" run --network none --name fg "$image" sleep 100000 >/dev/null 2>&1 </dev/null &
pid=$!
for _ in $(seq 100); do
	"$OSBX" exec fg true 2>/dev/null && break
	sleep 0.05
done
kill -9 "$pid"
wait "$pid" 2>/dev/null
sleep 0.3
is "$("$OSBX" ps -aq)$(left)" "" "a foreground run that was killed is swept by the next command"

# The machine restarts: the runtime directory is gone.
run_d --name kept --keep --label x=y "$image" sh -c 'echo data >/file; sleep 100000' >/dev/null
run_d --name lost "$image" sleep 100000 >/dev/null
for _ in $(seq 100); do
	"$OSBX" exec kept test -e /file && break
	sleep 0.05
done
for name in kept lost; do
	pid=$(field "$name" .pid)
	lose "$name"
	wait_dead "$pid"
done
rm -rf "${OSBX_RUNTIME:?}"/*
is "$("$OSBX" ps -a --json | jq -r '.[] | "\(.name) \(.status.state) \(.status.reason) \(.labels.x)"')" "kept Failed keeper_lost y" "after a restart what was kept is Failed, the rest is gone"
id=$("$OSBX" ps -aq)
is "$(find "$OSBX_ROOT/sandboxes/$id/upper" -name file 2>/dev/null | wc -l)" 1 "it has its files"
osbx gc
is "$("$OSBX" ps -aq)" "$id" "gc leaves them"
osbx rm "$id"
is "$(left)" "" "rm removes them"

# A store that cannot be written: what is there can still be looked at.
run_d --name ro "$image" sleep 100000 >/dev/null
if [ "$(id -u)" != 0 ]; then
	chmod a-w "$OSBX_ROOT" "$OSBX_ROOT/sandboxes"
	osbx ps
	like "$out" 'ro .* Running' "ps works on a read-only store"
	is "$("$OSBX" exec ro echo fine)" fine "so does exec"
	chmod u+w "$OSBX_ROOT" "$OSBX_ROOT/sandboxes"
fi
"$OSBX" rm -qf ro
is "$(left)" "" "nothing is left"

done_testing
