#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root
# A scope of systemd's, from a stand-in for its manager: what is asked for, when, and what becomes of refusals.
. "$(dirname "$0")/lib.sh"

# Again in a mount namespace where /run belongs to the test.
if [ -z "${OSBX_TEST_SCOPE:-}" ]; then
	rm -rf "$tmp"
	hierarchy=
	for dir in /sys/fs/cgroup /sys/fs/cgroup/unified; do
		[ -e "$dir/cgroup.procs" ] && [ "$(stat -f -c %T "$dir")" = cgroup2fs ] && hierarchy=$dir
	done
	base=$hierarchy$(sed -n 's/^0:://p' /proc/self/cgroup)
	if [ -z "$hierarchy" ] || ! [ -w "$base/cgroup.procs" ]; then
		echo "1..0 # SKIP no cgroup of version 2 that may be written to"
		exit 0
	fi
	OSBX_TEST_SCOPE=$base exec unshare -m --propagation private sh "$0"
fi
mount -t tmpfs run /run || exit 1
mkdir -p /run/systemd/system
unset DBUS_SYSTEM_BUS_ADDRESS
server=
base=$OSBX_TEST_SCOPE/osbx-scope-test-$$
mkdir "$base"

scope_cleanup() {
	[ -z "$server" ] || kill "$server" 2>/dev/null
	for _ in $(seq 50); do
		find "$base" -depth -type d -exec rmdir {} + 2>/dev/null
		[ -d "$base" ] || break
		sleep 0.1
	done
	cleanup
}
trap scope_cleanup EXIT

# manager [MODE]: calls are lines of $tmp/calls
manager() {
	[ -z "$server" ] || kill "$server" 2>/dev/null
	rm -f /run/systemd/private "$tmp/calls"
	python3 "$here/../helpers/fake_systemd.py" /run/systemd/private "$base" "$@" >"$tmp/calls" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		grep -qs listening "$tmp/calls" && break
		sleep 0.05
	done
}

manager
osbx run --network none @host echo ran
is "$status:$out" 0:ran "a run without limits"
unlike "$(cat "$tmp/calls")" Start "asks systemd for nothing"

osbx run --network none --memory 64m --limits best-effort @host sh -c 'cat /proc/self/cgroup | grep ^0:'
is "$status:$out" "0:0::/" "a run with limits has a cgroup of its own"
like "$(cat "$tmp/calls")" '^Subscribe$' "job signals are asked for"
like "$(cat "$tmp/calls")" '^StartTransientUnit osbx-[0-9a-f-]{36}\.scope fail Description=osbx sandbox Delegate=1 CollectMode=inactive-or-failed PIDs=1$' "one delegated scope is asked for"
is "$(grep -c Start "$tmp/calls")" 1 "once"

osbx run -d --network none @host sleep 1000
id=$out
like "$(cat "$tmp/calls")" "StartTransientUnit osbx-$id.scope" "a detached sandbox is in a scope of its id"
keeper=$(sed 's/.*"keeperPid":\([0-9]*\).*/\1/' "$OSBX_RUNTIME/sandboxes/$id/state.json")
pid=$(sed 's/.*"pid":\([0-9]*\).*/\1/' "$OSBX_RUNTIME/sandboxes/$id/state.json")
like "$(cat "/proc/$keeper/cgroup")" "^0::.*/osbx-$id\.scope(/osbx/keeper)?$" "its keeper is there"
like "$(cat "/proc/$pid/cgroup")" "^0::.*/osbx-$id\.scope/osbx/$id$" "the sandbox below it"
kill -9 "$keeper"
for _ in $(seq 100); do
	kill -0 "$pid" 2>/dev/null || break
	sleep 0.05
done
"$OSBX" gc -q

# Reading the configuration may begin the program anew: before the scope, which is named by the id.
manager
printf '[sandbox]\nlimits=best-effort\n' >"$tmp/conf"
OSBX_CONFIG="$tmp/conf" osbx run -d --network none --memory 64m @host sleep 1000
like "$(cat "$tmp/calls")" "StartTransientUnit osbx-$out\.scope" "with a configuration, too, the scope has the id's name"
is "$(grep -c Start "$tmp/calls")" 1 "and is asked for once"
"$OSBX" rm -qf "$out"

# Where a scope is refused, limits may still be in force; else both reasons are told.
for mode in refuse failed; do
	manager "$mode"
	osbx run -d --network none @host true
	is "$status" 0 "$mode: a detached sandbox does without"
	osbx run --network none --memory 64m @host true
	if [ "$status" = 0 ]; then
		ok "$mode: limits are in force all the same"
	else
		like "$err" 'the limit --memory cannot be enforced' "$mode: the limit is named"
		like "$err" '^hint: .*scope of systemd' "$mode: and what systemd said"
	fi
done
kill "$server"
rm -f /run/systemd/private
server=
osbx run --network none --memory 64m --limits best-effort @host echo ran
is "$status:$out" 0:ran "without a manager best effort runs"

done_testing
