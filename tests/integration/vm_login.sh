#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: vm
# Logging out: with linger sandboxes stay, without they end with the user's manager, and nothing is left. Run by root, who logs users in.
. "$(dirname "$0")/lib.sh"

# as USER TEXT: a login session as PAM makes it, with this shell text in it
as() {
	run systemd-run --quiet --wait --pipe --collect --service-type=simple -p PAMName=login -p "User=$1" -p WorkingDirectory=~ \
		--setenv=OSBX --setenv=LC_ALL sh -c "cd; $2"
}

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

logged_out() {
	! loginctl list-sessions --no-legend | grep -qw "$1"
}

manager_gone() {
	! [ -d "/run/user/$(id -u "$1")" ]
}

process_gone() {
	! kill -0 "$1"
}

# With linger: as a user who has logged out and comes back.
as alice '$OSBX run -d --name stay --network none --memory 64m @host sleep 1000'
id=$out
is "$status:$err" 0: "a user starts a sandbox in a login session"
until_true 30 logged_out alice
is $? 0 "and logs out"
as alice '$OSBX inspect stay'
is "$(printf '%s' "$out" | jq -r .status.state)" Running "with linger it runs on"
pid=$(printf '%s' "$out" | jq -r .pid)
dir=$(printf '%s' "$out" | jq -r .cgroup)
like "$dir" "^/sys/fs/cgroup/user\.slice/user-[0-9]*\.slice/user@[0-9]*\.service/.*/osbx-$id\.scope/osbx/$id\$" "below the user's manager"
is "$(cat "$dir/memory.max")" 67108864 "with its limit"
as alice '$OSBX exec stay id -u'
is "$out" 0 "it takes commands"
as alice 'systemctl --user restart nosuch.service 2>/dev/null; systemctl --user daemon-reexec; $OSBX exec stay echo still'
is "$out" still "also when the user's manager has begun anew"
as alice '$OSBX doctor'
like "$out" 'outlive a logout' "doctor says that it outlives a logout"
unlike "$out" 'cannot be (frozen or )?limited' "and that it can be limited"
as alice '$OSBX rm -f stay; $OSBX ps -aq; ls ~/.local/share/osbx/sandboxes $XDG_RUNTIME_DIR/osbx/sandboxes $XDG_RUNTIME_DIR/osbx/names | grep -v :'
is "$out" stay "it is removed, and nothing is left"
until_true 20 test ! -d "${dir%/osbx/*}"
is $? 0 "nor its scope"

# Without: documented to end some seconds after the last logout.
as bob '$OSBX doctor'
like "$out" 'a logout ends what bob runs' "without linger doctor says so"
like "$out" 'loginctl enable-linger bob' "and the remedy"
as bob '$OSBX run -d --name gone --network none --pids-limit 9 @host sleep 1000 && $OSBX inspect gone | jq -r .pid'
pid=$(printf '%s\n' "$out" | tail -n 1)
is "$status" 0 "a user without linger starts one"
kill -0 "$pid"
is $? 0 "it runs when the session has ended"
until_true 60 manager_gone bob
is $? 0 "until the user's manager ends"
until_true 10 process_gone "$pid"
is $? 0 "and it with it"
as bob '$OSBX ps -aq; $OSBX gc -q; ls ~/.local/share/osbx/sandboxes $XDG_RUNTIME_DIR/osbx/sandboxes $XDG_RUNTIME_DIR/osbx/names 2>/dev/null | grep -v :'
is "$(printf '%s' "$out" | grep -c .)" 0 "at the next login nothing is left of it"

# In a cgroup of somebody else's and without XDG_RUNTIME_DIR, as from cron or su: a manager that runs is found, another is not.
run setpriv --reuid alice --regid alice --init-groups env -i OSBX="$OSBX" HOME=/home/alice PATH="$PATH" sh -c '$OSBX run --network none --memory 64m @host echo ran'
is "$status:$out" 0:ran "a user who lingers needs no login for a limit"
until_true 60 manager_gone bob
run setpriv --reuid bob --regid bob --init-groups env -i OSBX="$OSBX" HOME=/home/bob PATH="$PATH" sh -c '$OSBX run --network none --memory 64m @host true'
is "$status" 125 "without a manager a limit is refused"
like "$err" 'the limit --memory cannot be enforced' "by its name"
like "$err" 'hint: .*(linger|XDG_RUNTIME_DIR)' "with a remedy"
run setpriv --reuid bob --regid bob --init-groups env -i OSBX="$OSBX" HOME=/home/bob PATH="$PATH" sh -c '$OSBX run -d --network none --memory 64m --limits best-effort @host sleep 1000 && $OSBX inspect $($OSBX ps -q) | jq -c .limitsMissing; $OSBX rm -f $($OSBX ps -q)'
like "$out" '^\["memory"\]$' "inspect says which limit is missing"

# A manager to which only some controllers were delegated.
until_true 60 manager_gone bob
mkdir -p "/etc/systemd/system/user@$(id -u bob).service.d"
printf '[Service]\nDelegate=\nDelegate=pids\n' >"/etc/systemd/system/user@$(id -u bob).service.d/test.conf"
systemctl daemon-reload
as bob '$OSBX run --network none --pids-limit 9 @host echo bounded; $OSBX run --network none --cpus 0.5 @host true'
is "$status:$out" 125:bounded "a limit without its controller is refused, another is not"
like "$err" 'no controller cpu in ' "and the error says where it is not"
as bob '$OSBX doctor'
like "$out" 'without cpu: ' "doctor names what was not delegated"
like "$out" 'Delegate=cpu memory pids' "and how it is"
rm -r "/etc/systemd/system/user@$(id -u bob).service.d"
systemctl daemon-reload
until_true 60 manager_gone bob

done_testing
