#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user
# Limits: what is in force is enforced, what is not is an error with a name, or said in the record.
. "$(dirname "$0")/lib.sh"

# What this place can do: a sandbox with one limit runs where its controller is.
has() {
	"$OSBX" run --network none "$@" @host true >/dev/null 2>&1
}

# Options.
for bad in 0 -1 0.001 lots 1.2345 ''; do
	osbx run --cpus "$bad" @host true
	is "$status" 125 "--cpus '$bad' is refused"
done
for bad in 0 5m 4096 -1 lots ''; do
	osbx run --memory "$bad" @host true
	is "$status" 125 "--memory '$bad' is refused"
done
for bad in 0 -1 lots 4194305 ''; do
	osbx run --pids-limit "$bad" @host true
	is "$status" 125 "--pids-limit '$bad' is refused"
done
osbx run --memory 0 @host true
like "$err" 'leave the option out for no limit' "zero is explained"
osbx run --limits sometimes @host true
like "$err" 'enforce or best-effort' "--limits knows two words"

# Enforce, or fail before anything runs.
for limit in '--cpus 0.5' '--memory 64m' '--pids-limit 20'; do
	# shellcheck disable=SC2086
	osbx run --network none $limit @host echo ran
	if [ "$status" = 0 ]; then
		is "$out" ran "$limit runs"
	else
		is "$status:$out" 125: "$limit that cannot be enforced fails, nothing has run"
		like "$err" "the limit ${limit%% *} cannot be enforced" "$limit: the error names it"
		like "$err" '^hint: .*best-effort' "$limit: the error names a remedy"
		is "$(printf '%s\n' "$err" | wc -l)" 2 "$limit: one error and one hint"
	fi
	# shellcheck disable=SC2086
	osbx run --network none $limit --limits best-effort @host echo ran
	is "$status:$out" 0:ran "$limit with best effort runs"
done
printf '[sandbox]\nlimits=best-effort\n' >"$tmp/conf"
OSBX_CONFIG="$tmp/conf" osbx run --network none --memory 64m @host echo ran
is "$status:$out" 0:ran "best effort by configuration runs"
is "$(ls "$OSBX_RUNTIME/sandboxes" 2>/dev/null | wc -l)" 0 "no sandbox is left"

# The record says what is missing.
missing=
has --cpus 1 || missing=$missing'"cpu",'
has --memory 64m || missing=$missing'"memory",'
has --pids-limit 20 || missing=$missing'"pids",'
osbx run -d --network none --cpus 1 --memory 64m --pids-limit 20 --limits best-effort @host sleep 1000
id=$out
state=$(cat "$OSBX_RUNTIME/sandboxes/$id/state.json")
if [ -n "$missing" ]; then
	like "$state" "\"limitsMissing\":\[${missing%,}\]" "the record names what is not in force"
else
	unlike "$state" limitsMissing "the record names nothing: all limits are in force"
fi
keeper=$(printf '%s' "$state" | sed 's/.*"keeperPid":\([0-9]*\).*/\1/')
kill -9 "$keeper"
for _ in $(seq 50); do
	kill -0 "$keeper" 2>/dev/null || break
	sleep 0.1
done
"$OSBX" gc -q

# Where limits are in force they hold.
if has --memory 64m; then
	osbx run --network none --memory 64m @host python3 -c 'b = bytearray(200 << 20)
for i in range(0, len(b), 4096): b[i] = 1'
	is "$status" 137 "a memory hog is killed"
else
	skip "a memory hog is killed" "no memory controller here"
fi
if has --pids-limit 20; then
	osbx run --network none --pids-limit 20 @host sh -c 'i=0; while [ $i -lt 60 ]; do sleep 5 & i=$((i + 1)); done; echo all'
	unlike "$out" all "a fork bomb is bounded"
else
	skip "a fork bomb is bounded" "no pids controller here"
fi
if has --cpus 0.2; then
	osbx run --network none --cpus 0.2 @host python3 -c 'import time
w, c = time.monotonic(), time.process_time()
while time.monotonic() - w < 2: pass
print(int((time.process_time() - c) * 100 / (time.monotonic() - w)))'
	like "$out" '^(1[0-9]|2[0-9])$' "a fifth of a CPU is what it gets"
else
	skip "a fifth of a CPU is what it gets" "no cpu controller here"
fi

# The kernel's choice when memory is short is a workload.
osbx run --network none @host cat /proc/self/oom_score_adj
like "$out" '^(5|6|7|8|9|10)[0-9][0-9]$' "workloads are what the kernel kills first"

done_testing
