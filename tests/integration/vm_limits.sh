#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: vm
# Limits where every controller is: read back, enforced, told; nothing is left of what they ended.
. "$(dirname "$0")/lib.sh"

# state ID: its record. field ID NAME: a number or word of it
state() {
	cat "$OSBX_RUNTIME/sandboxes/$1/state.json" 2>/dev/null
}

field() {
	state "$1" | jq -r ".$2"
}

# group ID: its cgroup
group() {
	echo "/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$(field "$1" pid)/cgroup")"
}

# until SECONDS WORDS…: wait for a condition
until_true() {
	n=$(($1 * 10))
	shift
	while [ "$n" -gt 0 ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
		n=$((n - 1))
	done
	return 1
}

hog='b = bytearray(300 << 20)
for i in range(0, len(b), 4096): b[i] = 1'

# What was asked for is what the kernel has.
osbx run -d --name all --network none --cpus 0.5 --memory 64m --pids-limit 20 @host sleep 1000
all=$out
is "$status" 0 "a sandbox with all limits starts"
dir=$(group "$all")
is "$(cat "$dir/cpu.max")" '50000 100000' "half a CPU is in force"
is "$(cat "$dir/memory.max")" 67108864 "so are 64 MiB"
is "$(cat "$dir/memory.swap.max" 2>/dev/null || echo 0)" 0 "without swap"
is "$(cat "$dir/pids.max")" 21 "so are 20 processes, beside PID 1"
unlike "$(state "$all")" limitsMissing "the record misses nothing"
is "$(jq -r .cgroup "$OSBX_RUNTIME/sandboxes/$all/state.json")" "$dir" "the record names the cgroup"
like "$dir" "/osbx-$all\.scope/osbx/$all\$" "which is in a scope of its own"
osbx stats --json all
is "$(printf '%s' "$out" | jq -r .memoryMaxBytes 2>/dev/null)" 67108864 "stats knows the limit"
osbx exec all sh -c 'echo 1 >/sys/fs/cgroup/pids.max; echo max >/sys/fs/cgroup/memory.max; cat /sys/fs/cgroup/pids.max 2>/dev/null'
is "$(cat "$dir/pids.max"):$(cat "$dir/memory.max")" 21:67108864 "from inside it cannot be lifted"

# A hog in the foreground: killed, and told so.
osbx run --network none --memory 64m @host python3 -c "$hog"
is "$status" 137 "a memory hog is killed"
like "$err" 'killed.*memory.*(64 MiB|64\.0 MiB|67108864)' "and it is said why"
osbx run --network none --memory 256m @host sh -c 'kill -9 $$'
is "$status:$err" 137: "who is killed otherwise was not short of memory"

# A detached one: the record says it, and so do the events.
osbx run -d --name hog --network none --memory 64m @host python3 -c "$hog"
osbx wait hog
is "$status" 137 "a detached hog is killed"
osbx inspect hog
is "$(printf '%s' "$out" | jq -r '.status.state + " " + .status.reason')" 'Terminated oom' "its state says why"
like "$("$OSBX" events)" '"reason":"oom"' "so do the events"
osbx rm hog
is "$status" 0 "it can be removed"

# A hog beside the main process: only the hog dies, PID 1 never does.
osbx run -d --name parent --network none --memory 96m @host sleep 1000
parent=$out
osbx exec parent python3 -c "$hog"
is "$status" 137 "a hog that was executed is killed"
is "$(field "$parent" state)" Running "the sandbox is not"
osbx exec parent echo alive
is "$out" alive "and takes commands"
osbx inspect parent
is "$(printf '%s' "$out" | jq -r .status.state)" Running "it is still said to run"
osbx rm -f parent

# A fork bomb.
osbx run -d --name bomb --network none --pids-limit 30 --cpus 1 @host sh -c 'bomb() { bomb | bomb & wait; }; bomb; sleep 1000'
bomb=$out
dir=$(group "$bomb")
bounded() {
	grep -Eq 'max [1-9]' "$dir/pids.events"
}
until_true 30 bounded
is $? 0 "a fork bomb meets its limit"
most=0
for _ in 1 2 3 4 5; do
	now=$(cat "$dir/pids.current")
	[ "$now" -le "$most" ] || most=$now
done
[ "$most" -le 31 ]
is $? 0 "and stays below it ($most)"
osbx run --network none @host echo fine
is "$out" fine "others do not notice"
osbx rm -f bomb
is "$status" 0 "it is removed while it burns"
until_true 10 test ! -d "$dir"
is $? 0 "with its cgroup"

# CPU time. The machine is an emulated one: wide bounds, and the kernel's own count.
spin='import time
w, c = time.monotonic(), time.process_time()
while time.monotonic() - w < 3: pass
print(int((time.process_time() - c) * 100 / (time.monotonic() - w)))'
osbx run --network none --cpus 0.25 @host python3 -c "$spin"
like "$out" '^(1[0-9]|2[0-9]|3[0-4])$' "a quarter of a CPU is what it gets ($out %)"
osbx run -d --name spin --network none --cpus 0.25 @host python3 -c 'while True: pass'
dir=$(group "$out")
throttled() {
	[ "$(sed -n 's/^nr_throttled //p' "$dir/cpu.stat")" -gt 2 ]
}
until_true 30 throttled
is $? 0 "the kernel says it was throttled"
osbx exec spin cat /sys/fs/cgroup/cpu.max
is "$out" '25000 100000' "inside it can be read"
osbx rm -f spin

# Nothing is left.
osbx rm -f all
osbx ps -aq
is "$out" '' "no sandbox is left"
gone() {
	! find /sys/fs/cgroup -name 'osbx-*.scope' | grep -q .
}
until_true 20 gone
is $? 0 "no scope is left"
is "$(ls "$OSBX_RUNTIME/sandboxes" "$OSBX_RUNTIME/names" 2>/dev/null | grep -v :)" '' "no file is left"

done_testing
