# SPDX-License-Identifier: Apache-2.0
# modes: root user single
# Servers that end while they work: kill -9 and SIGTERM with creations in flight, a restart under load, two servers. A creation is
# finished or leaves nothing, and no sandbox that runs notices.
. "$(dirname "$0")/lib.sh"

sock=$tmp/api.sock
server=
other=
serve() {
	"$OSBX" serve --limits best-effort --listen "unix:${1:-$sock}" 2>>"$tmp/serve.err" &
	server=$!
	until_true curl -sf -o /dev/null --unix-socket "${1:-$sock}" http://x/health
}
kill_cleanup() {
	kill -9 $server $other 2>/dev/null
	"$OSBX" ps -aq 2>/dev/null | xargs -r "$OSBX" rm -f >/dev/null 2>&1
	cleanup
}
trap kill_cleanup EXIT

# until_true COMMAND…: wait for a condition, for a minute at most
until_true() {
	tries=600
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.1
	done
}

wish='{"image":{"uri":"@host"},"timeout":600,"resourceLimits":{"cpu":"1","memory":"2Gi"},"entrypoint":["sleep","1000"]}'

# burst N [SOCKET]: N creations at once; their answers in $answers, one file each, empty or missing when there was none
burst() {
	answers=$(mktemp -d "$tmp/answers.XXXXXX")
	clients=
	for i in $(seq "$1"); do
		curl -s -o "$answers/$i" --max-time 120 --unix-socket "${2:-$sock}" -d "$wish" http://x/v1/sandboxes &
		clients="$clients $!"
	done
}
burst_wait() {
	for client in $clients; do
		wait "$client"
	done
}

# ids: of what was answered
answered() {
	find "$answers" -type f -exec jq -r '.id // empty' {} + | sort
}
running() {
	"$OSBX" ps -q | sort
}
has_one() {
	[ -n "$("$OSBX" ps -q)" ]
}

# keepers that belong here; a keeper that nobody knows of is found by its environment
keepers() {
	for dir in /proc/[0-9]*; do
		[ "$(cat "$dir/comm" 2>/dev/null)" = osbx-keeper ] || continue
		tr '\0' '\n' <"$dir/environ" 2>/dev/null | grep -qx "OSBX_RUNTIME=$OSBX_RUNTIME" && echo "${dir#/proc/}"
	done | wc -l
}
settled() {
	[ "$(keepers)" = "$("$OSBX" ps -q | wc -l)" ]
}

# whole: every sandbox that is on record runs and takes commands, and what is there is on record
whole() {
	for id in $("$OSBX" ps -aq); do
		[ "$("$OSBX" exec "$id" echo in 2>&1)" = in ] || echo "$id does not run"
	done
	ls "$OSBX_RUNTIME/sandboxes" | sort >"$tmp/live"
	"$OSBX" ps -aq | sort | comm -3 - "$tmp/live"
}

serve
status=$(curl -s -o "$tmp/body" -w '%{http_code}' --unix-socket "$sock" -d "$wish" http://x/v1/sandboxes)
old=$(jq -r .id "$tmp/body")
is "$status" 202 "a sandbox runs"

# kill -9 with 20 creations in flight, early, in the middle, and when some have been answered.
for when in has_one 'sleep 0.02' 'sleep 0.3'; do
	burst 20
	until_true $when
	kill -9 "$server"
	wait "$server" 2>/dev/null
	burst_wait
	until_true settled
	is "$?" 0 "kill -9 ($when): every keeper that is left has its sandbox"
	answered >"$tmp/told"
	is "$(running | comm -13 - "$tmp/told")" "" "every sandbox that was answered runs"
	is "$(whole)" "" "all of them are whole, and nothing else is left"
	is "$("$OSBX" exec "$old" echo still)" still "the one from before has not noticed"
	serve
	is "$(curl -s --unix-socket "$sock" 'http://x/v1/sandboxes?pageSize=200' | jq -r '.items[].id' | sort | tr '\n' ' ')" "$(running | tr '\n' ' ')" "the next server lists the same"
	note "$(answered | wc -l) of 20 were answered, $(($("$OSBX" ps -q | wc -l) - 1)) run"
	running | grep -v "$old" | xargs -r "$OSBX" rm -f >/dev/null
done

# SIGTERM: what is being answered is finished, what comes later is not taken.
burst 20
until_true has_one
sleep 0.05
kill "$server"
wait "$server"
is "$?" 0 "SIGTERM under load ends the server"
burst_wait
until_true settled
is "$?:$(whole)" 0: "nothing half made is left"
is "$(answered | grep -c . )" "$(($(running | grep -c .) - 1))" "what it made was answered"
running | grep -v "$old" | xargs -r "$OSBX" rm -f >/dev/null

# SIGINT as a terminal sends it, to the server and its workers: the same.
setsid -w sh -c 'trap "" INT; echo $$ >"$1"; shift; "$@"' sh "$tmp/group" env --default-signal=INT "$OSBX" serve --limits best-effort --listen "unix:$sock" 2>>"$tmp/serve.err" &
server=$!
until_true curl -sf -o /dev/null --unix-socket "$sock" http://x/health
burst 10
until_true test "$(running | grep -c .)" -gt 1
kill -INT "-$(cat "$tmp/group")"
wait "$server"
burst_wait
until_true settled
is "$(answered | grep -c . )" "$(($(running | grep -c .) - 1))" "an interrupt from a terminal lets what was begun be finished"
running | grep -v "$old" | xargs -r "$OSBX" rm -f >/dev/null

# Restarts under load: clients that ask again always get what they want in the end.
serve
(
	for i in $(seq 40); do
		curl -s -o /dev/null --retry 20 --retry-delay 0 --retry-connrefused --retry-all-errors --max-time 60 --unix-socket "$sock" -w '%{http_code}\n' "http://x/v1/sandboxes/$old"
	done >"$tmp/codes"
) &
load=$!
for _ in 1 2 3; do
	sleep 0.2
	kill -9 "$server"
	wait "$server" 2>/dev/null
	serve
done
wait "$load"
is "$(sort "$tmp/codes" | uniq -c | tr -s ' ')" " 40 200" "restarts under load"

# Two servers, creations through both, each deletes what the other made.
other=$server
serve "$tmp/second.sock"
burst 8
first=$clients
first_answers=$answers
burst 8 "$tmp/second.sock"
for client in $first $clients; do
	wait "$client"
done
find "$first_answers" "$answers" -type f -exec jq -r '.id // empty' {} + | sort >"$tmp/both"
is "$(grep -c . <"$tmp/both"):$(running | grep -v "$old" | comm -3 - "$tmp/both")" 16: "two servers create at the same time"
is "$(curl -s --unix-socket "$sock" 'http://x/v1/sandboxes?pageSize=200' | jq -r '[.items[].id] | join(" ")')" \
	"$(curl -s --unix-socket "$tmp/second.sock" 'http://x/v1/sandboxes?pageSize=200' | jq -r '[.items[].id] | join(" ")')" "and list the same in the same order"
n=0
while read -r id; do
	n=$((1 - n))
	[ "$n" = 0 ] && through=$sock || through=$tmp/second.sock
	curl -s -o /dev/null -w '%{http_code}\n' -X DELETE --unix-socket "$through" "http://x/v1/sandboxes/$id"
done <"$tmp/both" | sort | uniq -c | tr -s ' ' >"$tmp/codes"
is "$(cat "$tmp/codes")" " 16 204" "each deletes what the other has made"
is "$("$OSBX" exec "$old" echo still)" still "the one from before runs on"
curl -s -o /dev/null -X DELETE --unix-socket "$sock" "http://x/v1/sandboxes/$old"
is "$("$OSBX" ps -aq):$(ls "$OSBX_RUNTIME/sandboxes" "$OSBX_ROOT/sandboxes" | grep -v -e : -e '^$')" ":" "nothing is left"

done_testing
