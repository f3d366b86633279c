#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single nested
# What goes wrong at the worst moment: renewals and removals that race, no descriptors, full and read-only disks, numbers of
# processes that others have by now.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
osbx run -q --network none "$image" true
run_d() {
	"$OSBX" run -d --network none "$@" </dev/null
}
state() {
	"$OSBX" inspect "$1" 2>/dev/null | jq -r .status.state
}
left() {
	find "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" "$OSBX_RUNTIME/names" "$OSBX_ROOT/ids" -mindepth 1 ! -name .lock 2>/dev/null
}
is_gone() {
	[ -z "$(state "$1")" ]
}
is_clear() {
	[ -z "$(left)" ]
}

# A renewal at the moment of expiry: it was in time and the sandbox lives, or it was refused and the sandbox goes.
broken=0
renewed=0
for i in $(seq 20); do
	run_d --name t --timeout 250ms "$image" sleep 1000 >/dev/null
	sleep "0.$((10 + i))"
	if "$OSBX" renew -q --timeout 1h t 2>/dev/null; then
		renewed=$((renewed + 1))
		sleep 0.2
		[ "$(state t)" = Running ] || broken=$((broken + 1))
		"$OSBX" rm -qf t
	else
		wait_until 20 is_gone t || broken=$((broken + 1))
	fi
done
is "$broken" 0 "renewals that race with the expiry ($renewed of 20 in time)"
wait_until 20 is_clear
is "$(left)" "" "what was not renewed is gone"

# Removed while commands begin in it.
for round in 1 2 3 4 5 6; do
	run_d --name x "$image" sleep 1000 >/dev/null
	for i in 1 2 3 4; do
		(
			timeout 60 "$OSBX" exec x sh -c 'sleep 0.0'$i'; exit 3' >/dev/null 2>&1 </dev/null
			echo $? >>"$tmp/statuses"
		) &
	done
	sleep "0.0$round"
	timeout 60 "$OSBX" rm -qf x || echo "rm $?" >>"$tmp/statuses"
	wait
done
is "$(grep -vxE '3|125|137' "$tmp/statuses" | sort | uniq -c)" "" "exec beside rm ends, with its status or an error"
is "$(left)" "" "rm beside exec leaves nothing"

# Names and places.
run_d --name "$(printf 'n%063d' 0)" --label "k=w\303\244rt" "$image" sleep 1000 >/dev/null
is "$status" 0 "a name of 64 bytes"
"$OSBX" ps -q | xargs "$OSBX" rm -qf
osbx run -d --network none --name "$(printf 'n%064d' 0)" "$image" sleep 1000
like "$status$err" '125.*longer than 64 bytes' "one of 65 is refused"
osbx run -d --network none --name "$(printf 'n\303\244me')" "$image" sleep 1000
like "$status$err" '125.*not a name' "one that is not ASCII too"
osbx exec "$(printf 'n\303\244me')" true
like "$status$err" '125.*no sandbox' "and is not found"
label=$(printf 'k=w\303\244rt')
run_d --name l --label "$label" "$image" sleep 1000 >/dev/null
is "$("$OSBX" ps --json | jq -r '.[0].labels.k')" "$(printf 'w\303\244rt')" "a label that is not ASCII"
is "$("$OSBX" ps -q --filter "label=$label" | wc -l)" 1 "is found by it"
"$OSBX" rm -qf l
odd=$tmp/$(printf 'r\303\244um mit "\047')
mkdir "$odd"
OSBX_RUNTIME=$odd run_d --name l "$image" sleep 1000 >/dev/null
is "$(OSBX_RUNTIME=$odd "$OSBX" exec l echo fine)" fine "a runtime directory with an odd name"
OSBX_RUNTIME=$odd "$OSBX" rm -qf l

# Few descriptors: it works, or says what is missing and leaves nothing.
odd=0
worked=0
for n in 4 5 6 7 8 9 10 12 14 16 18 20 22 24 28 32 48 64; do
	# The shell itself wants more.
	timeout 60 prlimit --nofile=$n "$OSBX" run -d --network none --name few "$image" sleep 1000 >/dev/null 2>"$tmp/few" </dev/null
	case $? in
	0) worked=$((worked + 1)) ;;
	125 | 127 | 126) grep -q '^osbx: ' "$tmp/few" || odd=$((odd + 1)) ;;
	*) odd=$((odd + 1)) ;;
	esac
	"$OSBX" rm -qf few
	is_clear || odd=$((odd + 1))
done
is "$odd" 0 "few descriptors: run -d works or says what is missing, and leaves nothing ($worked of 18 worked)"
run_d --name few "$image" sleep 1000 >/dev/null
keeper=$("$OSBX" inspect few | jq -r .keeperPid)
open=$(find "/proc/$keeper/fd" 2>/dev/null | wc -l)
if prlimit --pid "$keeper" --nofile=$((open + 1)): 2>/dev/null; then
	odd=0
	for i in 1 2 3 4; do
		timeout 60 "$OSBX" exec few true >/dev/null 2>&1 </dev/null &
	done
	timeout 60 "$OSBX" exec few true >/dev/null 2>&1
	[ $? != 124 ] || odd=1
	wait
	prlimit --pid "$keeper" --nofile=1024:
	is "$odd$("$OSBX" exec few echo fine)" 0fine "a keeper that had no descriptor left serves again"
else
	skip "a keeper without descriptors" "its limits cannot be changed"
fi
"$OSBX" rm -qf few
is "$(left)" "" "and nothing is left"

# The rest needs mounts, and numbers of processes, of its own: nobody else may notice.
if [ "$(id -u)" != 0 ]; then
	done_testing
fi
cat >"$tmp/full.sh" <<'END'
	set -u
	say() { printf '%s\n' "$*"; }
	rt() { df --output=pcent "$OSBX_RUNTIME" | tail -1 | tr -d ' %'; }
	run_d() { "$OSBX" run -d --network none "$@" </dev/null; }
	mount -t tmpfs -o size=2m,mode=700 none "$OSBX_RUNTIME"
	mount -t tmpfs -o size=64m,mode=700 none "$OSBX_ROOT"
	"$OSBX" run -q --network none "$image" true
	run_d --name a "$image" sh -c 'while :; do echo 0123456789012345678901234567890123456789; done' >/dev/null
	for _ in $(seq 400); do [ "$(rt)" = 100 ] && break; sleep 0.05; done
	say "full $(rt)"
	say "exec $("$OSBX" exec a echo fine)"
	"$OSBX" renew -q --timeout 1h a; say "renew $?"
	timeout 60 "$OSBX" stop -q -t 0 a; say "stop $?"
	say "state $("$OSBX" inspect a | jq -r '.status.state + " " + .status.reason')"
	"$OSBX" rm -qf a; say "rm $?"
	dd if=/dev/zero of="$OSBX_RUNTIME/fill" bs=4k 2>/dev/null
	timeout 60 "$OSBX" run -d --network none --name b "$image" sleep 1000 </dev/null >/dev/null 2>"$tmp/err"; say "run -d $? $(grep -c 'No space left' "$tmp/err")"
	timeout 60 "$OSBX" run --network none "$image" true </dev/null 2>"$tmp/err"; say "run $? $(grep -c 'No space left' "$tmp/err")"
	rm "$OSBX_RUNTIME/fill"
	dd if=/dev/zero of="$OSBX_ROOT/fill" bs=64k 2>/dev/null
	dd if=/dev/zero of="$OSBX_ROOT/fill2" bs=512 2>/dev/null
	timeout 60 "$OSBX" run -d --network none --name c "$image" sleep 1000 </dev/null >/dev/null 2>"$tmp/err"; say "store $? $(grep -c 'No space left' "$tmp/err")"
	rm -f "$OSBX_ROOT/fill" "$OSBX_ROOT/fill2"
	say "left $(find "$OSBX_ROOT/sandboxes" "$OSBX_ROOT/ids" "$OSBX_RUNTIME/sandboxes" "$OSBX_RUNTIME/names" -mindepth 1 ! -name .lock 2>/dev/null | wc -l)"
	run_d --name d "$image" sleep 1000 >/dev/null
	mount -o remount,bind,ro "$OSBX_ROOT"
	say "ro $("$OSBX" ps -q | wc -l) $("$OSBX" exec d echo fine)"
	timeout 60 "$OSBX" run -d --network none "$image" true </dev/null >/dev/null 2>"$tmp/err"; say "ro run $? $(grep -c 'Read-only' "$tmp/err")"
	timeout 60 "$OSBX" rm -f d >/dev/null 2>"$tmp/err"; say "ro rm $? $(grep -c 'Read-only' "$tmp/err")"
	say "ro state $("$OSBX" inspect d | jq -r .status.state)"
	mount -o remount,bind,rw "$OSBX_ROOT"
	"$OSBX" rm -qf d; say "rw rm $?"
	say "left $(find "$OSBX_ROOT/sandboxes" "$OSBX_ROOT/ids" "$OSBX_RUNTIME/sandboxes" "$OSBX_RUNTIME/names" -mindepth 1 ! -name .lock 2>/dev/null | wc -l)"
END
export image tmp
if unshare -m true 2>/dev/null && unshare -m sh -c "mount -t tmpfs none '$OSBX_RUNTIME'" 2>/dev/null; then
	out=$(timeout 300 unshare -m sh "$tmp/full.sh" 2>"$tmp/full.err")
	is "$out" "full 100
exec fine
renew 0
stop 0
state Terminated stopped
rm 0
run -d 125 1
run 125 1
store 125 1
left 0
ro 1 fine
ro run 125 1
ro rm 125 1
ro state Terminated
rw rm 0
left 0" "full and read-only disks"
	note "$(cat "$tmp/full.err")"
else
	skip "full disks" "no mounts of its own"
fi

# Other processes with the very numbers of keeper and PID 1, in a pid namespace where numbers can be chosen.
cat >"$tmp/pids.sh" <<'END'
	set -u
	id=$("$OSBX" run -d --network none --name k "$image" sleep 1000 </dev/null)
	keeper=$("$OSBX" inspect k | jq -r .keeperPid)
	pid=$("$OSBX" inspect k | jq -r .pid)
	kill -9 "$keeper"
	for _ in $(seq 200); do
		[ -d "/proc/$keeper" ] || [ -d "/proc/$pid" ] || break
		sleep 0.05
	done
	decoys=
	for wanted in "$keeper" "$pid"; do
		for _ in $(seq 50); do
			echo $((wanted - 1)) >/proc/sys/kernel/ns_last_pid
			sleep 1000 &
			[ $! = "$wanted" ] && break
			kill $!
			wait $! 2>/dev/null
		done
		decoys="$decoys $!"
	done
	echo "same$([ "$decoys" = " $keeper $pid" ] && echo ' numbers')"
	echo "state $("$OSBX" inspect k | jq -r .status.reason)"
	"$OSBX" stop -q k; "$OSBX" kill -q k 2>/dev/null; "$OSBX" rm -qf k; "$OSBX" gc -q
	# shellcheck disable=SC2086
	kill -0 $decoys && echo alive
	echo "left $(find "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" "$OSBX_RUNTIME/names" -mindepth 1 ! -name .lock 2>/dev/null | wc -l)"
	# shellcheck disable=SC2086
	kill $decoys
END
if unshare --pid --fork --mount-proc sh -c 'echo 100 >/proc/sys/kernel/ns_last_pid' 2>/dev/null; then
	out=$(timeout 120 unshare --pid --fork --mount-proc sh "$tmp/pids.sh" 2>"$tmp/pids.err")
	is "$out" "same numbers
state keeper_lost
alive
left 0" "processes that have got the numbers of a lost keeper and its PID 1 are not touched"
	note "$(cat "$tmp/pids.err")"
else
	skip "recycled numbers" "numbers of processes cannot be chosen"
fi
done_testing
