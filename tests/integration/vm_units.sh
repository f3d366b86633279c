#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: vm
# Sandboxes and systemd's units, of the system (root) or of the user's manager: whoever started them may be restarted or stopped.
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" = 0 ]; then
	user=
	units=/etc/systemd/system
	installed=/usr/local/lib/systemd/system
else
	user=--user
	units=$HOME/.config/systemd/user
	installed=/usr/local/lib/systemd/user
fi
mkdir -p "$units"

ctl() {
	systemctl $user "$@"
}

units_cleanup() {
	ctl stop osbx-vm-test.service osbx-gc.timer >/dev/null 2>&1
	rm -f "$units/osbx-vm-test.service"
	rm -rf "$units/osbx-gc.service.d"
	ctl daemon-reload
	"$OSBX" ps -q | xargs -r "$OSBX" rm -f -q
	cleanup
}
trap units_cleanup EXIT

# until_true SECONDS WORDS…: wait for a condition
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

state_of() {
	"$OSBX" inspect "$1" 2>/dev/null | jq -r .status.state
}

pid_of() {
	"$OSBX" inspect "$1" | jq -r ".$2"
}

# unit LINE: a service that starts a sandbox with a limit and one without, and goes on
unit() {
	cat >"$units/osbx-vm-test.service" <<-END
		[Service]
		Environment=OSBX_ROOT=$OSBX_ROOT OSBX_RUNTIME=$OSBX_RUNTIME
		ExecStart=/bin/sh -c '$OSBX run -d --network none @host sleep 1000 >>$tmp/ids; $OSBX run -d --network none --memory 64m @host sleep 1000 >>$tmp/ids; echo started >>$tmp/starts; exec sleep 1000'
		$1
	END
	ctl daemon-reload
	: >"$tmp/ids"
	: >"$tmp/starts"
}

started() {
	[ "$(wc -l <"$tmp/starts")" = "$1" ]
}

all_run() {
	[ "$(wc -l <"$tmp/ids")" = "$1" ] || return 1
	while read -r id; do
		[ "$(state_of "$id")" = Running ] && [ "$("$OSBX" exec "$id" echo in)" = in ] || return 1
	done <"$tmp/ids"
}

for kind in '' Delegate=yes; do
	unit "$kind"
	ctl start osbx-vm-test.service
	until_true 60 started 1
	is "$?:$(all_run 2 && echo all)" 0:all "a unit (${kind:-plain}) starts two sandboxes"
	ctl restart osbx-vm-test.service
	until_true 60 started 2
	is "$?:$(all_run 4 && echo all)" 0:all "its restart leaves them running"
	ctl stop osbx-vm-test.service
	is "$(all_run 4 && echo all)" all "so does its end"
	id=$(head -n 1 "$tmp/ids")
	like "$(cat "/proc/$(pid_of "$id" keeperPid)/cgroup")" "/osbx-$id\.scope(/osbx/keeper)?\$" "the keeper is in the sandbox's own scope"
	# shellcheck disable=SC2046
	"$OSBX" rm -f $(cat "$tmp/ids") >/dev/null
	is "$?:$("$OSBX" ps -aq)" 0: "they can be removed"
done
scopes_gone() {
	! ctl list-units --all --plain --no-legend 'osbx-*.scope' | grep -q .
}
until_true 20 scopes_gone
is $? 0 "no scope is left"

# A scope that is stopped ends its sandbox, and that is told.
osbx run -d --name scoped --network none @host sleep 1000
id=$out
ctl stop "osbx-$id.scope"
ended() {
	[ "$(state_of "$id")" != Running ]
}
until_true 20 ended
like "$(state_of "$id")" '^(Terminated|Failed)$' "a sandbox whose scope is stopped has ended"
osbx rm scoped
is "$status" 0 "and can be removed"

# The units for gc.
run systemd-analyze verify --man=no $user "$installed/osbx-gc.service" "$installed/osbx-gc.timer"
is "$status:$(printf '%s' "$err" | grep osbx)" 0: "systemd finds nothing to say of the units"
ctl enable --now osbx-gc.timer 2>/dev/null
is "$(ctl is-active osbx-gc.timer)" active "the timer can be enabled"
like "$(ctl list-timers --no-legend osbx-gc.timer)" 'osbx-gc\.service' "and will start gc"
ctl disable --now osbx-gc.timer 2>/dev/null
mkdir -p "$units/osbx-gc.service.d"
printf '[Unit]\nConditionPathExists=|%s\n[Service]\nEnvironment=OSBX_ROOT=%s OSBX_RUNTIME=%s\n' "$OSBX_RUNTIME" "$OSBX_ROOT" "$OSBX_RUNTIME" \
	>"$units/osbx-gc.service.d/test.conf"
ctl daemon-reload
"$OSBX" load -q --name keep:1 "oci:$OSBX_TEST_DATA/busybox:1" >/dev/null
osbx run -d --name lives --network none keep:1 sleep 1000
lives=$out
osbx run -d --name ended --network none keep:1 true
"$OSBX" wait ended
osbx run --keep --network none keep:1 sh -c 'echo kept >/file'
osbx run -d --name lost --network none keep:1 sleep 1000
lost=$out
pid=$(pid_of lost pid)
kill -9 "$(pid_of lost keeperPid)"
no_process() {
	! kill -0 "$pid" 2>/dev/null
}
until_true 20 no_process
ctl start osbx-gc.service
is "$?:$(ctl show -P Result osbx-gc.service)" 0:success "gc runs as a unit"
is "$(ls "$OSBX_RUNTIME/sandboxes" "$OSBX_ROOT/sandboxes" | grep -c "$lost")" 0 "what a lost keeper left is removed"
is "$(state_of lives):$("$OSBX" exec lives cat /etc/group | head -n 1)" 'Running:root:x:0:' "what runs is not touched"
is "$(state_of ended)" Terminated "nor what is on record"
is "$(find "$OSBX_ROOT/sandboxes" -name file -type f | wc -l)" 1 "nor files that were to be kept"
is "$("$OSBX" images -q | wc -l)" 1 "nor an image"
osbx rm -f lives ended
"$OSBX" gc -q --kept
is "$(ls "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" "$OSBX_RUNTIME/names" | grep -v : | grep -c .)" 0 "nothing is left after rm"
until_true 20 scopes_gone
is $? 0 "nor a scope"

# The record tells where the processes were, to those who are elsewhere.
osbx run -d --network none --pids-limit 9 keep:1 sleep 1000
dir=$("$OSBX" inspect "$out" | jq -r .cgroup)
is "$(grep -c . "$dir/cgroup.procs")" 2 "inspect names the cgroup, with PID 1 and the command"
osbx rm -f "$out"

# What doctor says of this place.
osbx doctor
note "$(printf '%s\n' "$out" | grep -E '^.{0,3}(cgroup|session)' )"
unlike "$out" 'cannot be (frozen or )?limited' "doctor has nothing against limits here"

done_testing
