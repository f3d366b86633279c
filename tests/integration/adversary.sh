#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a hostile or hurried user does: odd surroundings, files where files should not be, everything at once. Nothing may be made
# or lost on the caller's side, nothing may hang, and every refusal is one line.
# modes: root root-asan user single nested identity no_openat2 no_clone3 self
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
"$OSBX" load -q --name adversary:1 "$image" >/dev/null 2>"$tmp/load" || not_ok "load: $(cat "$tmp/load")"

in_image() {
	osbx run --network none "$@"
}

# one_line DESCRIPTION: the last command said one line, and a hint at most
one_line() {
	is "$(grep -c '^osbx: ' "$tmp/err") $(grep -vc -e '^osbx: ' -e '^hint: ' "$tmp/err")" '1 0' "$1"
}

# Volumes: the source side is never written to by osbx itself.
mkdir -p "$tmp/vol/parent/kept" "$tmp/other"
echo original >"$tmp/vol/parent/kept/file"
chmod -R a+rX "$tmp/vol"
in_image -v "$tmp/vol:/v" -w /v/made/here adversary:1 true
is "$status" 125 'a working directory that is missing in a volume is refused'
one_line 'in one line'
is "$(find "$tmp/vol" | sort | sed "s|$tmp||" | xargs)" '/vol /vol/parent /vol/parent/kept /vol/parent/kept/file' 'and not made there'
in_image -v "$tmp/vol:/v:ro" -w /v/other adversary:1 true
is "$status" 125 'nor in a read-only one'
in_image -v "$tmp/vol:/v" -w /v/parent adversary:1 pwd
is "$out" /v/parent 'one that exists is used'
in_image -v "$tmp/vol:/v" -v "$tmp/vol/parent/kept:/v/parent/kept:ro" adversary:1 sh -c \
	'mv /v/parent /v/gone && mkdir -p /v/parent/kept && echo forged >/v/parent/kept/file; cat /v/parent/kept/file'
is "$(cat "$tmp/vol/parent/kept/file" 2>&1)" original 'a read-only volume is not hidden by renaming what is above it'
like "$out" original 'inside neither'
ln -s "$tmp/other" "$tmp/vol/link"
in_image -v "$tmp/vol:/v" -w /v/link/made adversary:1 true
is "$(find "$tmp/other" -mindepth 1)" '' 'a link in a volume leads nowhere outside'
rm -rf "$tmp/vol/gone" "$tmp/vol/link"

# save: a path that is no regular file is not replaced, and no planted name is followed.
mkfifo "$tmp/fifo"
timeout 10 cat "$tmp/fifo" >"$tmp/fifo.out" &
reader=$!
timeout 10 "$OSBX" save -o "$tmp/fifo" adversary:1 2>/dev/null
is "$(stat -c %F "$tmp/fifo")" fifo 'save -o leaves a named pipe one'
wait "$reader" 2>/dev/null
cat "$tmp/fifo.out" 2>/dev/null | tar t 2>/dev/null | grep -c '^blobs/sha256/.' >"$tmp/fifo.n"
is "$(cat "$tmp/fifo.n")" 3 'and the archive comes out of it'
: >"$tmp/target.tar"
ln -s target.tar "$tmp/link.tar"
"$OSBX" save -o "$tmp/link.tar" adversary:1 2>/dev/null
is "$(stat -c %F "$tmp/link.tar") $(tar tf "$tmp/target.tar" 2>/dev/null | grep -c '^blobs/sha256/.')" 'symbolic link 3' \
	'save -o writes through a link'
echo precious >"$tmp/precious"
ln -s "$tmp/precious" "$tmp/out.tar.part"
"$OSBX" save -o "$tmp/out.tar" adversary:1 2>/dev/null
is "$(head -c 8 "$tmp/precious")" precious 'save -o follows no link at the name it stages under'
for i in 1 2 3 4; do
	"$OSBX" save -o "$tmp/same.tar" adversary:1 2>>"$tmp/same.err" &
done
wait
is "$(cat "$tmp/same.err")" '' 'four saves to one file at once all succeed'
is "$(tar tf "$tmp/same.tar" 2>/dev/null | grep -c '^blobs/sha256/.')" 3 'and the file is whole'
echo old >"$tmp/old.tar"
"$OSBX" save -o "$tmp/old.tar" no/such:1 2>/dev/null
is "$(cat "$tmp/old.tar")" old 'a save that fails leaves the old file'
is "$(find "$tmp" -maxdepth 1 -name '*osbx-save*')" '' 'and no file of its own'
is "$("$OSBX" save adversary:1 2>/dev/null >/dev/full; echo $?)" 125 'a full disk under standard output is noticed'

# A reader that has stopped reading does not keep osbx from ending.
mkfifo "$tmp/stalled"
sleep 20 <>"$tmp/stalled" &
holder=$!
"$OSBX" run --network none adversary:1 yes >"$tmp/stalled" 2>/dev/null &
pid=$!
sleep 1
kill -TERM "$pid"
n=0
while kill -0 "$pid" 2>/dev/null && [ "$n" -lt 50 ]; do
	sleep 0.1
	n=$((n + 1))
done
if kill -0 "$pid" 2>/dev/null; then
	not_ok 'TERM ends a run whose reader has stopped reading'
	kill -KILL "$pid"
else
	wait "$pid"
	is $? 143 'TERM ends a run whose reader has stopped reading'
fi
kill "$holder" 2>/dev/null
wait 2>/dev/null
"$OSBX" gc -q 2>/dev/null

# A signal ends a run at any moment without anything left, and without anybody who clears up later.
left=0
i=0
while [ "$i" -lt 30 ]; do
	"$OSBX" run --network none adversary:1 sleep 20 >/dev/null 2>&1 </dev/null &
	pid=$!
	sleep "0.0$((i / 10))$((i % 10))"
	kill -TERM "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	left=$((left + $(find "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" -mindepth 1 -maxdepth 1 | wc -l)))
	i=$((i + 1))
done
is "$left" 0 'TERM in the first thirty milliseconds leaves nothing'

# What a killed osbx leaves is gone after the next command, whichever that is.
for next in images 'run --network none adversary:1 true' 'tag adversary:1 swept:1'; do
	: >"$tmp/up"
	"$OSBX" run --network none adversary:1 sh -c 'echo up; sleep 20' >"$tmp/up" 2>/dev/null </dev/null &
	pid=$!
	n=0
	while ! grep -q up "$tmp/up" && [ "$n" -lt 100 ]; do
		sleep 0.1
		n=$((n + 1))
	done
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	sleep 0.5
	# shellcheck disable=SC2086
	osbx $next
	is "$status $(find "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" -mindepth 1 -maxdepth 1 | wc -l)" '0 0' \
		"osbx ${next%% *} removes what a killed run has left"
done
"$OSBX" rmi -q swept:1

# So does one that ends a load.
"$OSBX" save -o "$tmp/whole.tar" adversary:1 2>/dev/null
left=0
for signo in TERM HUP; do
	mkfifo "$tmp/slow.$signo"
	{ head -c 300000 "$tmp/whole.tar" && exec sleep 600; } >"$tmp/slow.$signo" 2>/dev/null &
	holder=$!
	OSBX_ROOT="$tmp/root3" "$OSBX" load -q "oci-archive:$tmp/slow.$signo" >/dev/null 2>"$tmp/err" &
	pid=$!
	sleep 0.5
	kill -$signo "$pid"
	wait "$pid" 2>/dev/null
	like "$?" '^(143|129)$' "$signo ends a load whose archive has stalled"
	kill "$holder" 2>/dev/null
	wait "$holder" 2>/dev/null
	left=$((left + $(find "$tmp/root3/staging" "$tmp/root3/layers" -mindepth 1 -name '.*' -o -mindepth 1 -path '*staging/*' | wc -l)))
done
i=0
while [ "$i" -lt 20 ]; do
	OSBX_ROOT="$tmp/root3" "$OSBX" load -q "oci:${OSBX_TEST_DATA:?}/python" >/dev/null 2>&1 &
	pid=$!
	sleep "0.0$((i / 5))$((i % 5 * 2))"
	kill -TERM "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	left=$((left + $(find "$tmp/root3/staging" "$tmp/root3/layers" -mindepth 1 -name '.staging*' -o -mindepth 1 -path '*root3/staging/*' | wc -l)))
	i=$((i + 1))
done
is "$left" 0 'and nothing is left in the store'
OSBX_ROOT="$tmp/root3" "$OSBX" images -q | sort -u | OSBX_ROOT="$tmp/root3" xargs -r "$OSBX" rmi -f -q 2>/dev/null
OSBX_ROOT="$tmp/root3" "$OSBX" gc -q

# The caller's surroundings.
for mask in 077 000; do
	out=$(umask $mask && "$OSBX" run --network none adversary:1 sh -c 'umask; stat -c %a /etc /etc/hosts /dev/shm; touch /x; stat -c %a /x' | xargs)
	is "$out" '0022 755 644 1777 644' "umask $mask does not show inside"
done
is "$(find "$OSBX_ROOT" -maxdepth 1 -perm /077 ! -path "$OSBX_ROOT" | xargs)" '' 'nor in the store'
(ulimit -n 20 && exec "$OSBX" run --network none adversary:1 true) >"$tmp/out" 2>"$tmp/err" </dev/null
is $? 125 'too few descriptors are an error'
one_line 'of one line'
"$OSBX" run -i --network none adversary:1 sh -c 'cat; exit 3' <&- >&- 2>&-
is $? 3 'closed standard descriptors do no harm'
mkdir "$tmp/cwd" && cd "$tmp/cwd" && rmdir "$tmp/cwd"
in_image adversary:1 pwd
is "$status $out" '0 /' 'a removed working directory of the caller does no harm'
in_image -v .:/v adversary:1 true
is "$status" 125 'unless a volume is relative to it'
one_line 'which is said in one line'
cd "$here" || exit 1
# shellcheck disable=SC2046
in_image adversary:1 sh -c 'echo $#' x $(seq 5000)
is "$out" 5000 'five thousand arguments are passed on'
in_image adversary:1 sh -c 'echo ${#1}' x "$(head -c 120000 /dev/zero | tr '\0' a)"
is "$out" 120000 'one of 120 kB, too'
printf '\357\273\277FIRST=1\nSECOND=a=b\r\n' >"$tmp/bom.env"
in_image --env-file "$tmp/bom.env" adversary:1 env
like "$out" '^FIRST=1$' 'a byte order mark is no part of a name'

in_image -v "$tmp/vol:/v" -v "$tmp/other:/v/none" adversary:1 true
is "$status $err" "125 osbx: mount point /v/none: it is missing in what is mounted above it
hint: create it there first, or choose another place: osbx makes nothing in directories of this machine" 'a missing mount point is named in plain words'
# With one range for all sandboxes the caller's own files are nobody's, and dir: is refused.
if [ "$OSBX_TEST_MODE" != identity ]; then
	cp -r "${OSBX_TEST_DATA:?}/rootfs" "$tmp/dangling"
	ln -s /nothing/there "$tmp/dangling/link"
	in_image -w /link "dir:$tmp/dangling" true
	like "$status $err" '^125 osbx: working directory "/link": a link on the way leads to nothing' 'a working directory behind a dangling link'
	one_line 'in one line'
fi
if unshare -rpf true 2>/dev/null; then
	run env OSBX_ROOT="$tmp/root3" unshare -rpf "$OSBX" run @host -- true
	like "$status $err" '^125 osbx: .*/proc is that of another pid namespace' 'a /proc of another pid namespace is named'
	like "$err" '^hint: mount -t proc' 'with the remedy'
fi

# Users: a number is a number, and nothing else is.
for user in 4294967295 -1 0x0 '1 ' ' 1' +1 1e3 '' : 1: :1 1:2:3 99999999999999999999 4294967296 0:4294967295; do
	in_image -u "$user" adversary:1 id -u
	is "$status" 125 "user '$user' is refused"
	one_line "user '$user' in one line"
done

if [ "$OSBX_TEST_MODE" != identity ]; then
	cp -r "${OSBX_TEST_DATA:?}/rootfs" "$tmp/users"
	truncate -s 2M "$tmp/users/etc/passwd"
	in_image "dir:$tmp/users" sh -c 'id -u; echo $HOME'
	is "$(echo $out)" '0 /' 'a list of users that is too large is as good as none'
	in_image -u app "dir:$tmp/users" true
	is "$status" 125 'unless a user is looked for in it'
	one_line 'which is said in one line'
fi

# Everything at once.
for i in 1 2 3 4 5 6 7 8 9 10; do
	(
		"$OSBX" run --network none --name once adversary:1 sleep 2 2>/dev/null
		echo $? >>"$tmp/once"
	) &
done
wait
is "$(sort "$tmp/once" | uniq -c | xargs)" '1 0 9 125' 'of ten runs with one name one starts'
for i in 1 2 3 4 5; do
	(
		OSBX_ROOT="$tmp/root2" "$OSBX" load -q "$image" >/dev/null 2>&1
		echo $? >>"$tmp/loads"
	) &
done
wait
is "$(sort "$tmp/loads" | uniq -c | xargs)" '5 0' 'five loads of one image at once succeed'
is "$(find "$tmp/root2/staging" -mindepth 1)" '' 'and leave nothing staged'
OSBX_ROOT="$tmp/root2" "$OSBX" images -q | sort -u | OSBX_ROOT="$tmp/root2" xargs -r "$OSBX" rmi -f -q 2>/dev/null
"$OSBX" tag adversary:1 busy:1
"$OSBX" rmi -q adversary:1
"$OSBX" run --network none busy:1 sh -c 'echo up; sleep 2; cat /bin/busybox | wc -c' >"$tmp/busy" 2>&1 &
n=0
while ! grep -q up "$tmp/busy" && [ "$n" -lt 100 ]; do
	sleep 0.1
	n=$((n + 1))
done
"$OSBX" rmi -f -q "$("$OSBX" images -q | sort -u | head -1)"
"$OSBX" gc -q
wait
like "$(tail -1 "$tmp/busy")" '^[0-9]{6,}$' 'an image that is removed meanwhile stays for its sandbox'
"$OSBX" gc -q
is "$(find "$OSBX_ROOT/layers" -mindepth 2 -maxdepth 2 ! -name 'points-*')" '' 'and goes after it'
is "$(find "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" -mindepth 1 -maxdepth 1)" '' 'no sandbox is left'

done_testing
