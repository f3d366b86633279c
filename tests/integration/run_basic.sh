#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# osbx run: command, status, environment, user, working directory, names, limits of what a request may say, and that
# nothing is left behind.
. "$(dirname "$0")/lib.sh"

data=${OSBX_TEST_DATA:?}
image=oci:$data/busybox:1
"$OSBX" load -q "$image" >/dev/null

one_id() {
	[ "$OSBX_TEST_MODE" = single ] || [ "$OSBX_TEST_MODE" = nested ] ||
		{ [ "$OSBX_TEST_MODE" = self ] && [ "$("$OSBX" run "$image" wc -l </dev/null /proc/self/uid_map | cut -d' ' -f1)" = 1 ] &&
			! "$OSBX" run "$image" grep -q 65 /proc/self/uid_map; }
}

left() {
	ls "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" "$OSBX_RUNTIME/names" "$OSBX_ROOT/ids" 2>/dev/null | grep -vc -e '^/' -e '^$'
}

# Command and exit status
osbx run "$image" echo hello world
is "$status/$out/$err" "0/hello world/" "a command, its output, nothing else"
osbx run "$image" -- echo -n x
is "$status/$out" "0/x" "-- stands between image and command"
osbx run "$image" sh -c 'exit 7'
is "$status" 7 "exit status of the command"
osbx run "$image" sh -c 'exit 255'
is "$status" 255 "the largest exit status"
osbx run "$image" sh -c 'kill -TERM $$'
is "$status" 143 "128 + signal"
osbx run "$image" sh -c 'kill -KILL $$'
is "$status" 137 "also of SIGKILL"
osbx run "$image" /nonexistent
is "$status" 127 "127: no such command"
like "$err" '^osbx: .*/nonexistent' "and it is named"
osbx run "$image" nonexistent
is "$status" 127 "127: not in PATH"
osbx run "$image" /etc/passwd
is "$status" 126 "126: not executable"
osbx run "$image" /etc
is "$status" 126 "126: a directory"
osbx run "$image" ""
is "$status" 125 "an empty command is refused"
osbx run nosuch-image true
is "$status" 125 "125: osbx failed"
osbx run "oci:$data/nosuch:1" true
is "$status" 125 "a missing layout"
like "$err" "nosuch" "is named"
osbx run
is "$status" 125 "no image"
osbx run --flying "$image" true
is "$status" 125 "an unknown option"
like "$err" 'flying' "is named"
osbx run --rm "$image" true
is "$status" 0 "--rm is accepted"

# Entrypoint rules of docker
osbx run "$image"
is "$status" 0 "the image's own command: a shell at the end of its input"
osbx run --entrypoint echo "$image" a b
is "$out" "a b" "--entrypoint with arguments"
osbx run --entrypoint "" "$image"
is "$status" 125 "--entrypoint '' also voids the image's command"
like "$err" 'names no command' "and says so"
osbx run --entrypoint "" "$image" echo x
is "$out" x "with a command it is that"

# Environment
osbx run -e A=1 -e B= -e IMAGE=request "$image" sh -c 'echo $A/$B/$IMAGE'
is "$out" "1//request" "-e, and over the image's"
osbx run "$image" sh -c 'echo $IMAGE $PATH $HOME'
is "$out" "busybox /bin /root" "the image's own, HOME from its passwd"
GIVEN=caller osbx run -e GIVEN -e NOT_GIVEN "$image" sh -c 'echo "$GIVEN ${NOT_GIVEN-unset}"'
is "$out" "caller unset" "-e NAME passes on the caller's"
SECRET=x osbx run "$image" env
unlike "$out" SECRET "nothing else of the caller's environment"
printf '# comment\n\nA=file\nB=two words\n' >"$tmp/env"
osbx run -e A=option --env-file "$tmp/env" "$image" sh -c 'echo $A/$B'
is "$out" "option/two words" "--env-file, under -e"
printf 'export A=1\n' >"$tmp/env"
osbx run --env-file "$tmp/env" "$image" true
like "$status $err" "^125 .*env:1" "a bad line is named"

# Names
osbx run "$image" hostname
like "$out" '^[0-9a-f]{12}$' "the host name is the beginning of the id"
osbx run --hostname web.example "$image" sh -c 'hostname; cat /etc/hostname; echo $HOSTNAME; grep -c web.example /etc/hosts'
is "$(echo $out)" "web.example web.example web.example 1" "--hostname, in all places"
osbx run --hostname -x "$image" true
like "$status $err" '^125 osbx: hostname "-x": not' "a bad host name"
osbx run --hostname my_host "$image" hostname
is "$out" my_host "a host name with an underscore"
osbx run --name 'a b' "$image" true
like "$status $err" '^125 osbx: name "a b": not' "a bad name"
osbx run --platform linux/arm64 @host -- true
like "$status $err" '^125 osbx: platform "linux/arm64": @host has no' "another platform of this machine"
"$OSBX" run --name web "$image" sleep 100 </dev/null >/dev/null 2>&1 &
pid=$!
for _ in $(seq 100); do
	[ -e "$OSBX_RUNTIME/names/web" ] && [ -e "$OSBX_RUNTIME/sandboxes/$(readlink "$OSBX_RUNTIME/names/web")/state.json" ] && break
	sleep 0.1
done
osbx run --name web "$image" true
like "$status $err" '^125 .*web.*in use' "a name is unique among the living"
sleep 0.3
kill -TERM $pid
wait $pid
is $? 143 "SIGTERM is forwarded, and ends it"
osbx run --name web "$image" true
is "$status" 0 "then the name is free"
osbx run --name a/b "$image" true
is "$status" 125 "a bad name"
osbx run --label a=b --label c= "$image" true
is "$status" 0 "labels"
osbx run --label =nothing "$image" true
is "$status" 125 "a bad label"

# Users
osbx run "$image" sh -c 'id -u; id -g'
is "$(echo $out)" "0 0" "root by default"
if one_id; then
	osbx run -u app "$image" id
	like "$status $err" '^125 .*1000' "with one id, user 1000 does not exist"
	skip "users of the image" "one id"
else
	osbx run -u app "$image" sh -c 'id -u; id -g; id -G; echo $HOME; touch /tmp/x; stat -c %u /tmp/x'
	is "$(echo $out)" "1000 1000 1000 2000 /home/app 1000" "-u NAME, with its groups and HOME"
	osbx run -u 1234:5678 "$image" sh -c 'id -u; id -g; echo $HOME'
	is "$(echo $out)" "1234 5678 /" "-u with numbers that the image does not know"
	osbx run -u app --group-add 4321 --group-add extra "$image" id -G
	like "$out" '4321' "--group-add"
	osbx run -u nobody "$image" sh -c 'cat /proc/self/status' 
	like "$out" 'CapEff:.0000000000000000' "a user has no capabilities"
	osbx run -u app "$image" sh -c 'echo out >/dev/stdout; echo err >/dev/stderr'
	is "$out/$err" "out/err" "and may open its standard descriptors anew"
fi
osbx run -u 99999999999 "$image" true
is "$status" 125 "a user id that is none"
osbx run -u nosuchuser "$image" true
like "$status $err" '^125 .*nosuchuser' "an unknown user"

# Working directory
osbx run -w /tmp "$image" pwd
is "$out" /tmp "-w"
osbx run -w /made/for/me "$image" pwd
is "$out" /made/for/me "is made when it is missing"
osbx run -w tmp "$image" pwd
is "$status" 125 "a relative one is refused"

# Network
osbx run --network none "$image" sh -c 'ls /sys/class/net; cat /etc/resolv.conf; ping -c1 -w1 127.0.0.1 >/dev/null 2>&1; echo -n x | nc -w1 127.0.0.1 1 2>&1; ip addr show lo | grep -c 127.0.0.1'
like "$out" '^lo' "none: only the loopback"
like "$out" '1$' "which is up"
osbx run --network none "$image" wget -q -O- http://192.0.2.1/
[ "$status" != 0 ] && ok "a command without network fails" || not_ok "a command without network fails"
unlike "$err" 'hint' "without advice of ours"
osbx run --network private "$image" sh -c 'ls /sys/class/net; grep ^nameserver /etc/resolv.conf; echo $OSBX_NETWORK'
is "$(echo $out)" "lo nameserver 192.0.0.1 private" "private: a loopback, a resolver, and a name"
osbx run --network moon "$image" true
is "$status" 125 "an unknown network"
osbx run --network host "$image" sh -c 'ls /sys/class/net | wc -l; readlink /proc/self/ns/net'
is "$(echo "$out" | tail -1)" "$(readlink /proc/self/ns/net)" "host: the caller's"

# Capabilities and filter
bits() {
	"$OSBX" run "$@" "$image" awk '/CapEff/ { print $2 }' /proc/self/status </dev/null
}
is "$(bits)" 00000000800405fb "the default set"
is "$(bits --cap-drop all)" 0000000000000000 "none"
is "$(bits --cap-drop ALL --cap-add net_raw)" 0000000000002000 "one, whatever the order says"
is "$(bits --cap-add CAP_NET_RAW --cap-drop ALL)" 0000000000002000 "in the other order, too"
osbx run --cap-add SYS_ADMIN "$image" true
like "$status $err" '^125 .*SYS_ADMIN' "what no sandbox may hold is refused"
osbx run --cap-add nonsense "$image" true
is "$status" 125 "an unknown capability"
osbx run "$image" awk '/^Seccomp:|NoNewPrivs/ { print $2 }' /proc/self/status
is "$(echo $out)" "1 2" "no_new_privs and a filter"
osbx run --seccomp unconfined "$image" awk '/^Seccomp:|NoNewPrivs/ { print $2 }' /proc/self/status
like "$(echo $out)" '^1 [02]$' "unconfined has no filter of ours"
printf '{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":1}]}' >"$tmp/profile.json"
osbx run --seccomp "$tmp/profile.json" "$image" mkdir /x
like "$status $err" 'not permitted' "a profile of the user's"
osbx run --seccomp "$tmp/none.json" "$image" true
like "$status $err" '^125 .*none.json' "a missing one"

# Root, tmpfs, sizes
osbx run --read-only "$image" sh -c 'touch /x 2>&1; touch /tmp/a /run/b /var/tmp/c /dev/shm/d && echo fine'
like "$out" 'Read-only file system' "--read-only"
like "$out" 'fine' "with room to write"
osbx run --tmpfs /data:1m "$image" sh -c 'df -k /data | tail -1; stat -c %a /data'
like "$out" ' 1024 .* /data' "--tmpfs with a size"
like "$out" '1777' "that anybody may write to"
osbx run --shm-size 1m "$image" df -k /dev/shm
like "$out" ' 1024 ' "--shm-size"
osbx run "$image" df -k /dev/shm
like "$out" ' 65536 ' "64 MiB by default"
umask 077
osbx run "$image" sh -c 'umask; touch /f; stat -c %a /f /'
is "$(echo $out)" "0022 644 755" "the caller's umask has no say"
umask 022

# A directory as image, never written to
cp -r "$data/rootfs" "$tmp/rootfs"
case $OSBX_TEST_MODE in
identity)
	osbx run "dir:$tmp/rootfs" true
	like "$status $err" '^125 .*belongs to user 0' "dir: a tree whose owner has no id inside is refused by name"
	;;
*)
	find "$tmp/rootfs" | sort >"$tmp/before"
	osbx run "dir:$tmp/rootfs" sh -c 'echo x >/new; rm /etc/group; cat /new'
	is "$out" x "dir: runs"
	find "$tmp/rootfs" | sort >"$tmp/after"
	is "$(cmp "$tmp/before" "$tmp/after" && echo same)" same "and is not written to"
	osbx run "dir:$tmp/rootfs"
	like "$status $err" '^125 .*no command' "it names no command"
	;;
esac
osbx run "dir:$tmp/nosuch" true
is "$status" 125 "a missing directory"
case $OSBX_TEST_MODE in
user | single | self)
	osbx run dir:/usr true
	like "$status $err" '^125 .*belongs to user 0' "another user's tree is refused by name"
	;;
esac

# Two at once, and what is kept
osbx run "$image" sh -c 'echo data >/file'
osbx run "$image" ls /file
is "$status" 1 "each sandbox begins anew"
osbx run --keep "$image" sh -c 'echo data >/file; exit 3'
is "$status" 3 "--keep"
kept=$(echo "$err" | sed -n 's/^osbx: kept in //p')
is "$(cat "$kept/upper/file")" data "keeps what was written"
like "$(cat "$kept/state.json")" '"state":"Terminated".*"exitStatus":3' "and how it ended"
osbx gc -q
is "$(cat "$kept/upper/file")" data "also from gc"
osbx gc --kept -q
is "$(ls -d "$kept" 2>/dev/null)" "" "until that is asked for it"
# What a killed osbx leaves is removed by the next one.
"$OSBX" run --name lost "$image" sleep 100 </dev/null >/dev/null 2>&1 &
pid=$!
for _ in $(seq 100); do
	[ -e "$OSBX_RUNTIME/names/lost" ] && [ -e "$OSBX_RUNTIME/sandboxes/$(readlink "$OSBX_RUNTIME/names/lost")/state.json" ] && break
	sleep 0.1
done
kill -9 $pid
wait $pid 2>/dev/null
sleep 0.5
osbx run "$image" true
is "$status/$err" 0/ "a run after one that was killed"
is "$(left)" 0 "nothing is left"
is "$(grep -c "$tmp" /proc/self/mountinfo)" 0 "nothing is mounted"

done_testing
