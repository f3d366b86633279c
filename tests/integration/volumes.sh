#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Volumes by bind: what is shown, who owns it, what read-only means, and that nothing is ever made on the source side.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
"$OSBX" load -q "$image" >/dev/null
src="$tmp/src"
mkdir -p "$src/sub/deep" "$tmp/ro"
echo one >"$src/file"
echo deep >"$src/sub/deep/file"
echo kept >"$tmp/ro/file"
# Where one range of ids serves all sandboxes and nothing is id-mapped, files of a volume are nobody's.
shared=$([ "$OSBX_TEST_MODE" = identity ] && echo 1)
open_to_all() {
	[ -z "$shared" ] || chmod -R a+rwX "$@"
}
open_to_all "$src" "$tmp/ro"

osbx run -v "$src:/data" "$image" cat /data/file /data/sub/deep/file
is "$(echo $out)" "one deep" "a directory"
osbx run -v "$src/file:/etc/note" "$image" cat /etc/note
is "$out" one "a file"
osbx run -v "$src:/made/for/it" "$image" cat /made/for/it/file
is "$out" one "the mount point is made"
osbx run -v "$src/sub:/etc" "$image" ls /etc
is "$out" deep "over a directory of the image"
cd "$src" || exit 1
osbx run -v .:/data "$image" cat /data/file
is "$out" one "relative: ."
osbx run -v ./sub:/data "$image" cat /data/deep/file
is "$out" deep "relative: ./sub"
osbx run -v sub/deep:/data "$image" cat /data/file
is "$out" deep "relative: with a slash"
osbx run -v sub:/data "$image" true
like "$status $err" '^125 .*named volumes' "a bare name is none"
cd / || exit 1

# Writing, and who owns what
osbx run -v "$src:/data" "$image" sh -c 'echo new >/data/new; mkdir /data/dir; stat -c "%u:%g" /data /data/file'
if [ -z "$shared" ]; then
	is "$(echo $out)" "0:0 0:0" "container root is the owner"
	is "$(cat "$src/new"; stat -c %u "$src/new" "$src/dir" | sort -u)" "new
$(id -u)" "what it writes belongs to the caller"
else
	is "$(echo $out)" "65534:65534 65534:65534" "shared ids: the owner is nobody"
	is "$(cat "$src/new")" new "who may write where others may"
fi
if [ "$OSBX_TEST_MODE" = root ]; then
	mkdir "$tmp/others"
	chown 4321:4322 "$tmp/others"
	osbx run -v "$tmp/others:/data" "$image" sh -c 'touch /data/x; stat -c "%u:%g" /data'
	is "$out/$(stat -c %u:%g "$tmp/others/x")" "0:0/4321:4322" "root: container root is the owner of the source, never the host's root"
fi

# Read-only, with everything mounted below
osbx run -v "$tmp/ro:/data:ro" "$image" sh -c 'cat /data/file; touch /data/x'
like "$out $err" 'kept .*Read-only file system' ":ro"
osbx run -v "$tmp/ro:/data:ro" "$image" sh -c 'mount -o remount,rw /data'
is "$([ "$status" != 0 ] && echo refused)" refused "cannot be made writable inside"
osbx run -v "$tmp/ro:/data:rw" "$image" touch /data/x
is "$status" 0 ":rw"
osbx run -v "$tmp/ro:/data:rx" "$image" true
like "$status $err" '^125 .*rx' "an unknown option"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	mkdir -p "$tmp/tree/below"
	unshare -m sh -c "mount -t tmpfs none '$tmp/tree/below' && echo inner >'$tmp/tree/below/file' &&
		'$OSBX' run -v '$tmp/tree:/data:ro' '$image' sh -c 'cat /data/below/file; touch /data/below/x 2>&1; touch /data/x 2>&1' </dev/null" \
		>"$tmp/out" 2>&1
	if grep -q 'cannot be id-mapped' "$tmp/out"; then
		# Before Linux 6.3 no tmpfs can: nothing is shown without it.
		like "$(cat "$tmp/out")" "$tmp/tree cannot be shown in the sandbox: $tmp/tree/below \(tmpfs\)" "what cannot be mapped below is named"
		release=$(uname -r)
		[ "$(printf '%s\n6.3\n' "${release%%-*}" | sort -V | head -n 1)" != 6.3 ]
		is $? 0 "which is so only before Linux 6.3 ($release)"
	else
		is "$(grep -c -e inner -e Read-only "$tmp/out")" 3 "read-only includes what is mounted below"
	fi
fi
# A read-only mount inside a writable volume protects its files there, not in the volume they come from.
mkdir -p "$tmp/work/config"
echo locked >"$tmp/work/config/file"
open_to_all "$tmp/work"
osbx run -v "$tmp/work:/work" -v "$tmp/work/config:/work/config:ro" "$image" sh -c 'echo x >/work/config/file; rm -r /work/config; mv /work/config /work/other; echo y >/work/new'
is "$(cat "$tmp/work/config/file")" locked "read-only inside a writable volume"
is "$(cat "$tmp/work/new")" y "while the rest can be written"
osbx run -v "$tmp/work/config:/work/config:ro" -v "$tmp/work:/work" "$image" sh -c 'echo x >/work/config/file'
is "$(cat "$tmp/work/config/file")" locked "whatever the order of the options"
osbx run -v "$tmp/work:/work" -v "$tmp/work:/again:ro" "$image" sh -c 'echo changed >/work/config/file; cat /again/config/file'
is "$out" changed "a second, writable way to the same files is one"

osbx run -v "$tmp/work:/work" -v "$tmp/work/config:/work/one/two/config:ro" "$image" true
is "$status/$(ls "$tmp/work" | xargs)" "125/config new" "a mount point that is missing two levels deep is not made"
mkdir -p "$tmp/deep/one/two/locked"
echo locked >"$tmp/deep/one/two/locked/file"
open_to_all "$tmp/deep"
osbx run -v "$tmp/deep:/deep" -v "$tmp/deep/one/two/locked:/deep/one/two/locked:ro" "$image" sh -c '
	mv /deep/one /deep/x; mv /deep/one/two /deep/one/x; rmdir /deep/one/two/locked
	mkdir -p /deep/one/two/locked && echo forged >/deep/one/two/locked/file; echo new >/deep/one/two/new; rm /deep/one/two/new'
is "$(cat "$tmp/deep/one/two/locked/file"; find "$tmp/deep" | sed "s|$tmp/deep||" | sort | xargs)" "locked
/one /one/two /one/two/locked /one/two/locked/file" "no directory above it can be renamed either"

# Nothing is made on the source side
osbx run -v "$src:/data" -v "$tmp/ro:/data/missing" "$image" true
like "$status $err" '^125 .*missing' "a mount point that a volume lacks is an error"
is "$(ls "$src" | tr '\n' ' ')" "dir file new sub " "and is not made"
osbx run -v "$src:/data" --tmpfs /data/sub "$image" ls /data/sub
is "$status/$out" "0/" "a tmpfs on a directory of a volume"
is "$(ls "$src/sub")" deep "which is as it was"
osbx run -v "$src:/data" -w /data/made/here "$image" true
like "$status $err" '^125 .*"/data/made/here" is missing in what is mounted above it' "a working directory that a volume lacks is an error"
is "$(ls "$src" | tr '\n' ' ')" "dir file new sub " "and is not made"
osbx run --tmpfs /data -w /data/made/here "$image" pwd
is "$out" /data/made/here "in a tmpfs it is made"
osbx run --read-only -w /tmp/made "$image" pwd
is "$out" /tmp/made "also in that of a read-only root"
osbx run -v "$tmp/nosuch:/data" "$image" true
like "$status $err" '^125 .*nosuch' "a missing source"
is "$(ls "$tmp/nosuch" 2>/dev/null)" "" "is not made either"

# Links of the image lead nowhere else
ln -s "$src" "$tmp/link"
osbx run -v "$tmp/link:/data" "$image" cat /data/file
is "$out" one "a link as source is the user's own"
cp -r "${OSBX_TEST_DATA:?}/rootfs" "$tmp/rootfs"
ln -s "$tmp/outside" "$tmp/rootfs/escape"
osbx run -v "$src:/escape/x" "dir:$tmp/rootfs" true
is "$(ls -d "$tmp/outside" 2>/dev/null)" "" "a link in the image does not lead out"

# What an image declares as VOLUME and does not have
cp -r "${OSBX_TEST_DATA:?}/busybox" "$tmp/declares"
python3 - "$tmp/declares" <<'EOF'
import hashlib, json, os, sys
os.chdir(sys.argv[1])
def read(d):
    return json.load(open('blobs/sha256/' + d['digest'][7:]))
def write(d, value):
    data = json.dumps(value).encode()
    d.update(digest='sha256:' + hashlib.sha256(data).hexdigest(), size=len(data))
    open('blobs/sha256/' + d['digest'][7:], 'wb').write(data)
index = json.load(open('index.json'))
manifest = read(index['manifests'][0])
config = read(manifest['config'])
config['config']['Volumes'] = {p: {} for p in ('/srv/data', '/etc', '/bin/sh', '/proc/x', '/')}
config['config']['WorkingDir'] = '/srv/data/work'
write(manifest['config'], config)
write(index['manifests'][0], manifest)
json.dump(index, open('index.json', 'w'))
EOF
osbx run "oci:$tmp/declares:1" sh -c 'pwd; stat -c "%u:%g %a" /srv /srv/data; ls /srv/data'
is "$(echo $out)" "/srv/data/work 0:0 755 0:0 755 work" "is made, root's and 755"
osbx run -v "$src:/srv" -w / "oci:$tmp/declares:1" ls /srv
is "$(echo $out)/$(ls "$src" | xargs)" "dir file new sub/dir file new sub" "not in a volume"

# What cannot be a volume
if [ "$OSBX_TEST_MODE" = root ] && unshare -m true 2>/dev/null; then
	mkdir -p "$tmp/odd/in/proc"
	run unshare -m sh -c "mount -t proc proc '$tmp/odd/in/proc' && exec '$OSBX' run -v '$tmp/odd:/data:ro' '$image' true"
	like "$status $err" "^125 osbx: .*$tmp/odd.*$tmp/odd/in/proc \\(proc\\) below it cannot be id-mapped" "root: what cannot be id-mapped is named"
	like "$err" '^hint: .*parts' "with a remedy"
fi
mkfifo "$tmp/fifo"
osbx run -v "$tmp/fifo:/data" "$image" true
like "$status $err" '^125 .*named pipe' "a pipe"
osbx run -v /dev/null:/data "$image" true
like "$status $err" '^125 .*device' "a device"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$tmp/sock"
osbx run -v "$tmp/sock:/data" "$image" true
like "$status $err" '^125 .*socket' "a socket"
osbx run -v "$src:/" "$image" true
is "$status" 125 "on the root"
osbx run -v "$src:data" "$image" true
is "$status" 125 "on a relative place"
osbx run -v "$src:/proc" "$image" true
is "$status" 125 "on /proc"
osbx run -v "$src:/dev/pts" "$image" true
is "$status" 125 "on /dev/pts"
osbx run -v "$src:/a" -v "$tmp/ro:/a/" "$image" true
like "$status $err" '^125 .*twice' "two on one place"

# nosuid, nodev
osbx run -v "$src:/data" "$image" grep ' /data ' /proc/self/mountinfo
like "$out" 'nosuid,nodev' "nosuid and nodev"
osbx run --tmpfs /t "$image" grep ' /t ' /proc/self/mountinfo
like "$out" 'nosuid,nodev' "also for tmpfs"

# Names that need care
mkdir "$tmp/a b,c"
echo odd >"$tmp/a b,c/f"
osbx run -v "$tmp/a b,c:/x y,z" "$image" cat "/x y,z/f"
is "$out" odd "blanks and commas in names"
is "$(grep -c "$tmp" /proc/self/mountinfo)" 0 "nothing is mounted outside"

done_testing
