#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# doctor: a real sandbox decides; every blocker that can be made here is recognised, with its remedy; run says the same.
. "$(dirname "$0")/lib.sh"

# machine MOUNTS COMMAND…: the command in a private mount namespace, after these shell commands
machine() {
	setup=$1
	shift
	run unshare -m sh -c "set -e; $setup
		exec \"\$@\"" sh "$@"
}

# Words in front of a command that make it an ordinary user's, with directories of its own.
user_words="setpriv --reuid=54321 --regid=54321 --clear-groups env OSBX_ROOT=$tmp/user/root OSBX_RUNTIME=$tmp/user/runtime HOME=$tmp/user"

# A machine whose only ordinary user is 54321, by these files. Shell commands for machine.
accounts() {
	printf 'root:x:0:0::/root:/bin/sh\nann:x:54321:54321::/:/bin/sh\neve:x:310000:310000::/:/bin/sh\n' >"$tmp/passwd"
	printf '%s' "$1" >"$tmp/subuid"
	printf '%s' "$2" >"$tmp/subgid"
	chmod 644 "$tmp/passwd" "$tmp/subuid" "$tmp/subgid"
	touch /etc/subuid /etc/subgid
	echo "mount --bind $tmp/passwd /etc/passwd; mount --bind $tmp/subuid /etc/subuid; mount --bind $tmp/subgid /etc/subgid"
}

# blocked NAME CAUSE-REGEX REMEDY-REGEX: the last doctor -q failed, and said that
blocked() {
	is "$status" 1 "$1: exit 1"
	like "$out" "^FAIL .*$2" "$1: cause"
	like "$out" "^ +$3" "$1: remedy"
}

# ---- it works here
osbx doctor
is "$status" 0 'a sandbox starts: exit 0'
is "$err" '' 'nothing on standard error'
for step in directories filter volumes store image sources name plan launch run; do
	like "$out" "^ok +$step: [0-9.]+ ms$" "step $step is named"
done
for part in kernel 'user namespaces' AppArmor seccomp /proc ids store 'runtime directory' overlay 'id-mapped mounts' cgroup 'private network' session libraries clock; do
	like "$out" "^(ok|note) +$part: ." "part $part is named"
done
like "$out" 'osbx works here\.$' 'the verdict is the last line'
is "$(ls -A "$OSBX_RUNTIME/sandboxes" "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/names" | grep -v ':$' | tr -d '\n')" '' 'nothing of the sandbox is left'

osbx doctor -q
is "$status:$out$err" '0:' '-q says nothing when all is well'
osbx doctor --json
is "$(printf '%s' "$out" | python3 -c 'import json, sys
r = json.load(sys.stdin)
levels = {line["level"] for line in r["checks"] + r["steps"]}
print(r["works"], r["microseconds"] > 0, len(r["steps"]) >= 9, len(r["checks"]) >= 14, levels <= {"ok", "note"})')" \
	'True True True True True' '--json'
osbx doctor x
is "$status" 125 'operands are refused'

case $OSBX_TEST_MODE in
root) wanted='ids: (mapped|shared): ' ;;
user | self) wanted='ids: (subid|single): ' ;;
single) wanted='ids: single: osbx-single has 0 ids in /etc/subuid and 0 in /etc/subgid' ;;
nested) wanted='ids: single: ' ;;
identity) wanted='ids: shared: ' ;;
no_openat2) wanted='seccomp: a seccomp filter hides openat2' ;;
no_clone3) wanted='seccomp: a seccomp filter hides clone3' ;;
esac
osbx doctor
like "$out" "$wanted" "in the surroundings $OSBX_TEST_MODE"

# ---- blockers that nobody needs rights for
inner="$OSBX_TEST_HELPERS/in_userns"
run "$inner" single sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh "$OSBX" doctor -q
blocked 'user namespaces off' 'user.max_user_namespaces is 0' 'sysctl -w user.max_user_namespaces=15000'
run "$inner" single sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' sh "$OSBX" run @host true
is "$status" 125 'user namespaces off: run fails'
like "$err" 'user.max_user_namespaces is 0' 'user namespaces off: run says the cause'
like "$err" '^hint: .*sysctl -w user.max_user_namespaces=15000' 'user namespaces off: run says the remedy'
run "$inner" single sh -c 'echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"' sh "$OSBX" doctor -q
blocked 'no network namespaces' 'user.max_net_namespaces is 0' 'sysctl -w user.max_net_namespaces=15000'
like "$out" '^FAIL  launch: network namespace: make a new one: No space left on device$' 'no network namespaces: the step is named'
run "$inner" single sh -c 'echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"' sh "$OSBX" doctor --json
is "$(printf '%s' "$out" | python3 -c 'import json, sys
r = json.load(sys.stdin)
step = r["steps"][-1]
print(r["works"], step["name"], step["level"], step["cause"], step["remedy"])')" \
	"False launch FAIL user.max_net_namespaces is 0 ['sysctl -w user.max_net_namespaces=15000']" 'no network namespaces: --json'
run "$OSBX_TEST_HELPERS/no_syscall" mount_setattr "$OSBX" doctor -q
blocked 'outer filter' 'a seccomp filter of .* refuses mount_setattr' 'docker run --security-opt seccomp=unconfined'
run "$OSBX_TEST_HELPERS/no_syscall" mount_setattr "$OSBX" run @host true
like "$err" '^hint: a seccomp filter of .* refuses mount_setattr' 'outer filter: run says the cause'
run "$OSBX_TEST_HELPERS/no_syscall" sethostname "$OSBX" doctor -q
blocked 'a filter like that of podman' 'a seccomp filter of .* refuses sethostname' 'docker run --security-opt seccomp=unconfined'
mkdir -m 777 "$tmp/open"
run env OSBX_ROOT="$tmp/open" "$OSBX" doctor -q
is "$status" 1 'directory that others may write to: exit 1'
like "$out" "^FAIL  directories: $tmp/open: others may write to it" 'directory that others may write to: the step is named'
like "$out" "hint: chmod go-w $tmp/open" 'directory that others may write to: remedy'
run env OSBX_ROOT=relative "$OSBX" doctor -q
is "$status" 1 'relative OSBX_ROOT: exit 1'
like "$out" '^FAIL  directories: OSBX_ROOT=relative: not an absolute path' 'relative OSBX_ROOT'
run env -u OSBX_ROOT -u HOME -u XDG_DATA_HOME HOME=/proc/none/at/all "$OSBX" doctor --json
like "$out" '"steps":\[' 'without a home there is a report, too'

if [ "$OSBX_TEST_MODE" != root ]; then
	done_testing
fi

# ---- blockers that need a machine of their own
mkdir "$tmp/user" "$tmp/empty"
chown 54321:54321 "$tmp/user"
chmod 711 "$tmp"

machine "mount -t tmpfs -o mode=700,size=24k none $OSBX_ROOT" "$OSBX" doctor -q
blocked 'full store' "$OSBX_ROOT has .* free" 'osbx gc'
machine "mount -t tmpfs -o mode=700,ro none $OSBX_ROOT" "$OSBX" doctor -q
blocked 'read-only store' "$OSBX_ROOT is mounted read-only" 'export OSBX_ROOT='
machine "mount -t tmpfs -o mode=700,ro none $OSBX_RUNTIME" "$OSBX" doctor -q
blocked 'read-only runtime directory' "$OSBX_RUNTIME is mounted read-only" 'export OSBX_RUNTIME='
machine "mount -t tmpfs -o mode=700,nosuid,noexec,nodev none $OSBX_ROOT" "$OSBX" doctor -q
is "$status:$out" '0:' 'a store that is nosuid and noexec does no harm'
machine "mount -t ramfs none $OSBX_ROOT; chmod 700 $OSBX_ROOT" "$OSBX" doctor
like "$out" "^note  store: $OSBX_ROOT is on ramfs without extended attributes" 'no extended attributes: a note'
is "$status" 0 'no extended attributes: it works all the same'
over="mount -t tmpfs none /mnt; mkdir /mnt/u /mnt/w; mount -t overlay none -o lowerdir=$tmp/empty,upperdir=/mnt/u,workdir=/mnt/w $OSBX_ROOT; chmod 700 $OSBX_ROOT"
machine "$over" "$OSBX" doctor -q
blocked 'store on overlay' "$OSBX_ROOT is on overlay, which cannot be the upper directory" 'export OSBX_ROOT='
like "$out" '^FAIL  launch: root: overlay: ' 'store on overlay: the step is named'
machine "$over" "$OSBX" run @host true
like "$err" "^hint: (.* is on overlay, which cannot|osbx doctor has the cause)" 'store on overlay: run says the cause'
machine 'mount --bind /dev/null /proc/uptime' "$OSBX" doctor -q
blocked 'masked /proc' '/proc/uptime is covered by' 'docker run --security-opt systempaths=unconfined'
like "$out" '^FAIL  launch: mounts: mount /proc ' 'masked /proc: the step is named'

# The settings do not exist on every kernel: as files they do, and what carries them masks /proc, so that it fails for real.
fake='mount -t tmpfs none /proc/sys/kernel; echo 1 >/proc/sys/kernel'
# shellcheck disable=SC2086
machine "$fake/apparmor_restrict_unprivileged_userns" $user_words "$OSBX" doctor -q
blocked 'AppArmor' 'kernel.apparmor_restrict_unprivileged_userns is 1' "printf 'abi <abi/4.0>,.nprofile osbx $OSBX flags=.unconfined. . userns, ..n' . sudo tee"
machine "$fake/apparmor_restrict_unprivileged_userns" $user_words "$OSBX" run @host true
like "$err" '^hint: AppArmor restricts .*osbx doctor has the remedy' 'AppArmor: run says the cause'
machine "$fake/apparmor_restrict_unprivileged_userns; echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_unconfined" $user_words "$OSBX" doctor
like "$out" '^note  AppArmor: kernel.apparmor_restrict_unprivileged_unconfined is 1, too' 'AppArmor: the second setting'
machine "$fake/x; echo 0 >/proc/sys/kernel/unprivileged_userns_clone" $user_words "$OSBX" doctor -q
blocked 'user namespaces of root' 'kernel.unprivileged_userns_clone is 0' 'sudo sysctl -w kernel.unprivileged_userns_clone=1'

# ---- ids
good='ann:300000:65536
'
# shellcheck disable=SC2086
{
	machine "$(accounts '' '')" $user_words "$OSBX" doctor
	is "$status" 0 'no subordinate ids: works'
	like "$out" '^note  ids: single: ann has 0 ids in /etc/subuid and 0 in /etc/subgid' 'no subordinate ids: a note'
	like "$out" '^ +sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ann$' 'no subordinate ids: remedy'
	machine "$(accounts 'bob:100000:65536
ann:200000:65536
' '')" $user_words "$OSBX" doctor
	like "$out" '^note  ids: single: ann has 65536 ids in /etc/subuid and 0 in /etc/subgid' 'ids in one file only'
	like "$out" 'usermod --add-subuids 265536-331071' 'the remedy takes ids that nobody has'
	machine "$(accounts "bob:365535:5
$good" "$good")" $user_words "$OSBX" doctor
	is "$status" 0 'overlap: works'
	like "$out" '^note  ids: subordinate ids of ann are also ids of bob' 'overlap with somebody else: a note'
	machine "$(accounts "$good" "$good")" $user_words "$OSBX" doctor
	like "$out" '^note  ids: subordinate ids of ann are also ids of eve' "overlap with a user's own id"
	machine "$(accounts 'ann:400000:10
' 'ann:400000:10
')" $user_words "$OSBX" doctor
	like "$out" '^note  ids: subid: ann has 10 ids in /etc/subuid and 10 in /etc/subgid; an image may need 65536' 'few subordinate ids'
	good='ann:400000:65536
'
	machine "$(accounts "$good" "$good")" $user_words "$OSBX" doctor
	like "$out" '^ok    ids: subid: ' 'subordinate ids: fine'
	rm -rf "$tmp/user/root" "$tmp/user/runtime"
	cp /usr/bin/newuidmap "$tmp/newuidmap"
	chmod 755 "$tmp/newuidmap"
	machine "$(accounts "$good" "$good"); mount --bind $tmp/newuidmap /usr/bin/newuidmap" $user_words "$OSBX" doctor -q
	blocked 'helper without set-user-id' '/usr/bin/newuidmap is not set-user-id root' 'sudo chown root /usr/bin/newuidmap && sudo chmod u\+s /usr/bin/newuidmap'
	machine "$(accounts "$good" "$good"); mount --bind $tmp/newuidmap /usr/bin/newuidmap" $user_words "$OSBX" run @host true
	like "$err" '^hint: /usr/bin/newuidmap is not set-user-id root' 'helper without set-user-id: run says the cause'
	machine "$(accounts "$good" "$good"); mount --bind /usr/bin/newuidmap /usr/bin/newuidmap; mount -o remount,bind,nosuid /usr/bin/newuidmap" $user_words "$OSBX" doctor -q
	blocked 'helper on nosuid' '/usr/bin/newuidmap is on a file system that is mounted nosuid' 'sudo mount -o remount,suid'
	machine "$(accounts "$good" "$good"); mount --bind /dev/null /usr/bin/newuidmap" $user_words "$OSBX" doctor
	is "$status" 0 'no helper: works with one id'
	like "$out" '^note  ids: single: newuidmap and newgidmap are not installed' 'no helper: a note'
	like "$out" '^ +sudo apt install uidmap$' 'no helper: remedy'
	machine "$(accounts "$good" "$good")" $user_words setpriv --no-new-privs "$OSBX" doctor
	is "$status" 0 'no_new_privs: works with one id'
	like "$out" '^note  ids: single: no_new_privs is set' 'no_new_privs: a note'
}

# ---- libraries
library=$(ldconfig -p | sed -n 's/.*libzstd.so.1 .* => //p' | head -n 1)
machine "mount --bind /dev/null $library" "$OSBX" doctor
is "$status" 0 'a library is missing: works'
like "$out" '^note  libraries: .*libzstd.so.1 is missing: layers compressed by zstd cannot be unpacked' 'a library is missing: a note'
like "$out" '^ +apt install .*libzstd1' 'a library is missing: remedy'
machine "mount --bind /dev/null $library" "$OSBX" version
like "$out" '^zstd +not found \(libzstd.so.1\)' 'version says it, too'
done_testing
