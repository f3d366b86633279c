#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill -9 at random points of load and run, then gc: a consistent store, no process, mount or control group left.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
rounds=${OSBX_TEST_ROUNDS:-25}
marker=osbx-kill-$$

# processes of sandboxes of this test: their workloads carry the marker in their arguments
left_processes() {
	ps -eo pid,args | awk -v m="$marker" '$0 ~ m && $0 !~ /awk/ && $0 !~ / run --network/' | wc -l
}

pause_ms() {
	sleep "$(awk -v ms="$1" 'BEGIN { printf "%.3f", ms / 1000 }')"
}

# kill -9 of the foreground osbx leaves no process.
"$OSBX" run --network none "$image" sh -c 'sleep 300 & wait' "$marker" >/dev/null 2>&1 </dev/null &
pid=$!
for _ in $(seq 100); do
	[ "$(left_processes)" -ge 1 ] && break
	pause_ms 100
done
like "$(left_processes)" '^[1-9]' "the sandbox runs"
kill -9 "$pid"
wait "$pid" 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	[ "$(left_processes)" = 0 ] && break
	pause_ms 100
done
is "$(left_processes)" 0 "kill -9 of osbx ends every process of its sandbox"
osbx gc
is "$status" 0 "gc runs"
is "$(ls "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" 2>/dev/null | grep -c '^[0-9a-f]')" 0 "and removes the sandbox"

# run, killed at random points of its life
i=0
while [ "$i" -lt "$rounds" ]; do
	"$OSBX" run --network none -v "$tmp:/mnt" "$image" sh -c 'echo a >/file; sleep 0.05; :' "$marker" >/dev/null 2>&1 </dev/null &
	pid=$!
	pause_ms $((i * 3 % 60))
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	i=$((i + 1))
done
pause_ms 500
osbx gc
is "$status" 0 "gc after $rounds killed runs"
is "$(left_processes)" 0 "no process is left"
is "$(ls "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" 2>/dev/null | grep -c '^[0-9a-f.]*-')" 0 "no sandbox is left"
is "$(ls "$OSBX_ROOT/ids" 2>/dev/null | wc -l)" 0 "no id range is taken"
is "$(grep -c "$tmp" /proc/self/mountinfo)" 0 "nothing is mounted"
osbx run -q --network none "$image" echo fine
is "$out$err" fine "the store works"

# load, killed at random points
i=0
while [ "$i" -lt "$rounds" ]; do
	"$OSBX" load -q --name "kill:$i" "$image" >/dev/null 2>&1 </dev/null &
	pid=$!
	pause_ms $((i * 2 % 40))
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	[ $((i % 5)) = 4 ] && "$OSBX" images -q | sort -u | xargs -r "$OSBX" rmi -f -q
	i=$((i + 1))
done
pause_ms 300
osbx gc
is "$status" 0 "gc after $rounds killed loads"
is "$(find "$OSBX_ROOT/staging" -mindepth 1 2>/dev/null | wc -l)" 0 "no staging is left"
is "$(find "$OSBX_ROOT/layers" -maxdepth 2 -name '.staging*' | wc -l)" 0 "no unfinished layer is left"
# Every blob that the index leads to is there and is what its name says.
bad=0
for blob in "$OSBX_ROOT"/blobs/sha256/*; do
	[ -e "$blob" ] || continue
	[ "$(sha256sum <"$blob" | cut -d ' ' -f 1)" = "${blob##*/}" ] || bad=$((bad + 1))
done
is "$bad" 0 "every blob is what its name says"
osbx load -q --name "kill:last" "$image"
osbx run --network none kill:last cat /etc/passwd
like "$out" '^root:' "an image loads and runs afterwards"

# What a sandbox uses is not removed under it.
"$OSBX" run --network none "$image" sh -c 'while ! [ -e /go ]; do sleep 0.05; done' "$marker" >"$tmp/used" 2>&1 </dev/null &
pid=$!
for _ in $(seq 100); do
	[ "$(left_processes)" -ge 1 ] && break
	pause_ms 100
done
"$OSBX" images -q | sort -u | xargs -r "$OSBX" rmi -f -q
osbx gc
is "$(find "$OSBX_ROOT/layers" -mindepth 2 -maxdepth 2 -type d | grep -c '/[0-9a-f]*$')" 1 "rmi and gc keep the layer that a sandbox uses"
kill -TERM "$pid"
wait "$pid" 2>/dev/null
osbx gc
is "$(find "$OSBX_ROOT/layers" -mindepth 2 -maxdepth 2 -type d | grep -c '/[0-9a-f]*$')" 0 "and free it when the sandbox is gone"

done_testing
