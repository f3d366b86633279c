#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single nested
# Sandboxes made, used, paused, killed and removed at random by several processes at once, while another kills keepers
# and clients: afterwards there is nothing left, and nobody else was hurt. OSBX_TEST_SOAK sandboxes in all (200).
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
total=${OSBX_TEST_SOAK:-200}
workers=4
marker=osbx-soak-$$
osbx run -q --network none "$image" true

# A number below $1 in $r, from a generator of our own: sh has none.
seed=$$
random() {
	seed=$(((seed * 1103515245 + 12345) % 2147483648))
	r=$((seed / 65536 % $1))
}

# kill -9 the keeper of $1; one that has ended has none
lose() {
	keeper=$("$OSBX" inspect "$1" | jq -r .keeperPid)
	[ "${keeper:-0}" -gt 1 ] && kill -9 "$keeper"
}

# one step of the life of sandbox $1; whatever fails, somebody else was there first
step() {
	case $2 in
	0) "$OSBX" exec "$1" sh -c 'echo x; exit 3' ;;
	1) echo in | "$OSBX" exec -i "$1" cat ;;
	2) "$OSBX" pause -q "$1" && "$OSBX" resume -q "$1" ;;
	3) "$OSBX" kill -q -s USR1 "$1" ;;
	4) "$OSBX" logs "$1" ;;
	5) "$OSBX" stats "$1" ;;
	6) "$OSBX" renew -q --timeout 20s "$1" ;;
	7) timeout -s KILL 0.0$((seed % 10)) "$OSBX" exec "$1" sh -c "sleep 1000 & sleep 1000 # $marker" ;;
	8) "$OSBX" ps -a --json ;;
	9) "$OSBX" exec -d "$1" sleep 2 ;;
	10) "$OSBX" cp "$tmp/tree" "$1:/" && "$OSBX" cp "$1:/tree" - | tar tf - ;;
	11) timeout -s KILL 0.0$((seed % 10)) "$OSBX" cp "$tmp/large" "$1:/large" ;;
	esac
	echo "step $2" >>"$tmp/acts.$worker"
}

# the ends of a sandbox
finish() {
	case $2 in
	0) "$OSBX" rm -qf "$1" ;;
	1) "$OSBX" stop -q -t 50ms "$1" && "$OSBX" rm -qf "$1" ;;
	2) "$OSBX" kill -q "$1" && "$OSBX" wait "$1" ; "$OSBX" rm -qf "$1" ;;
	3) lose "$1" ; "$OSBX" rm -qf "$1" ;;
	4) "$OSBX" pause -q "$1" ; "$OSBX" rm -qf "$1" ;;
	5) : ;; # expires, or is left to the end
	esac
}

worker() {
	worker=$1
	seed=$((seed + $1 * 7919))
	n=0
	while [ "$n" -lt $((total / workers)) ]; do
		n=$((n + 1))
		random 10
		if [ "$r" = 0 ]; then
			# The starter is killed at any moment.
			random 30
			echo "starter killed" >>"$tmp/acts.$worker"
			timeout -s KILL "$(printf '0.%03d' "$r")" "$OSBX" run -d --network none --timeout 3s "$image" sleep 1000
			continue
		fi
		random 3
		id=$("$OSBX" run -d --network none --name "w$1-$n" --timeout $((1 + r))s "$image" \
			sh -c "trap 'echo usr' USR1; while :; do sleep 0.1; done # $marker") || {
			echo "run failed" >>"$tmp/failures"
			continue
		}
		echo "$id" >>"$tmp/ids"
		for _ in 1 2 3; do
			random 12
			step "$id" "$r"
		done
		random 6
		echo "end $r" >>"$tmp/acts.$worker"
		finish "$id" "$r"
	done
}

# Somebody kills keepers at random.
killer() {
	while [ ! -e "$tmp/done" ]; do
		random 9
		sleep 0.$((1 + r))
		random 8
		victim=$("$OSBX" ps -q | sed -n "$((1 + r))p")
		[ -n "$victim" ] && lose "$victim" && echo "keeper killed" >>"$tmp/acts.killer"
	done
}

mkdir "$tmp/tree"
echo file >"$tmp/tree/file"
ln -s file "$tmp/tree/link"
truncate -s 1G "$tmp/large"
sleep 1000 &
decoy=$!
start=$(date +%s)
for w in $(seq $workers); do
	worker "$w" >"$tmp/worker.$w" 2>&1 </dev/null &
	eval "worker$w=\$!"
done
killer >/dev/null 2>&1 </dev/null &
killer=$!
for w in $(seq $workers); do
	eval "wait \$worker$w"
done
touch "$tmp/done"
wait "$killer"
note "$total sandboxes by $workers processes in $(($(date +%s) - start)) s, $(grep -c . "$tmp/ids") of them lived; what was done to them:"
note "$(cat "$tmp"/acts.* | sed 's/ [0-9]*$//' | sort | uniq -c | tr -s ' ')"
is "$(grep -c . "$tmp/failures" 2>/dev/null || :)" "$([ -e "$tmp/failures" ] && echo 0)" "every run that was let run began"
is "$(cat "$tmp"/worker.* | grep -cE 'runtime error|AddressSanitizer|Assertion|internal')" 0 "no program broke"

# What has not expired goes. What has not begun when its starter was killed ends by itself.
left() {
	find "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" "$OSBX_RUNTIME/names" "$OSBX_ROOT/ids" -mindepth 1 -maxdepth 1 ! -name .lock ! -name '.new-*' 2>/dev/null
}
for _ in $(seq 100); do
	"$OSBX" ps -aq | xargs -r "$OSBX" rm -qf
	[ -z "$(left)" ] && break
	sleep 0.1
done
osbx gc
is "$status" 0 "gc"
is "$(left)" "" "no file, lock, name or id range is left"
is "$(ps -eo stat,args | grep "$marker" | grep -v grep | grep -cv '^Z')" 0 "no process is left"
is "$(grep -c "$tmp" /proc/self/mountinfo)" 0 "nothing is mounted"
is "$(find /sys/fs/cgroup -path '*/osbx/*' -name '*-*-*-*-*' 2>/dev/null | grep -cFf "$tmp/ids")" 0 "no control group is left"
is "$(kill -0 "$decoy" && echo alive)" alive "another process lives on"
kill "$decoy"
wait "$decoy" 2>/dev/null
osbx run --network none "$image" echo fine
is "$out" fine "the store works"

done_testing
