#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single nested no_openat2
# cp: where a copy goes, what it keeps, streams, and guests that put links in its way.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
"$OSBX" run -d --network none --name w "$image" sleep 100000 >/dev/null </dev/null
inside() {
	"$OSBX" exec w sh -c "$1"
}
# names CONTENT-OF: what is below a directory, sorted, on one line
names() {
	(cd "$1" && find . | LC_ALL=C sort | tr '\n' ' ' | sed 's/ $//')
}
names_inside() {
	inside "cd $1 && find . | LC_ALL=C sort | tr '\n' ' ' | sed 's/ \$//'"
}

cd "$tmp" || exit
mkdir -p tree/sub
echo file >tree/file
echo deep >tree/sub/deep
ln -s file tree/link
ln tree/file tree/zweit

# Where it goes.
osbx cp tree w:/tmp/new
is "$status$err" 0 "a directory, to a name that is not there"
is "$(names_inside /tmp/new)" ". ./file ./link ./sub ./sub/deep ./zweit" "is the copy"
osbx cp tree w:/tmp/new
is "$(names_inside /tmp/new/tree)" ". ./file ./link ./sub ./sub/deep ./zweit" "again: the directory is there now, and the copy goes into it"
inside 'mkdir /tmp/content'
osbx cp tree/. w:/tmp/content
is "$(names_inside /tmp/content)" ". ./file ./link ./sub ./sub/deep ./zweit" "the content of a directory"
osbx cp tree/. w:tmp/other
is "$(names_inside /tmp/other)" ". ./file ./link ./sub ./sub/deep ./zweit" "the same to a name that is not there, relative to the root"
osbx cp tree/file w:/tmp/named
is "$(inside 'cat /tmp/named')" file "a file, to a name"
osbx cp tree/file w:/tmp
is "$(inside 'cat /tmp/file')" file "into a directory"
echo second >second
osbx cp second w:/tmp/named
is "$(inside 'cat /tmp/named')" second "in the place of a file"
osbx cp second w:/tmp/missing/
is "$status" 125 "not to a name with a slash that is not there"
like "$err" '/tmp/missing/: No such file or directory' "which is said"
osbx cp second w:/tmp/missing/name
like "$status$err" '125.*directory of /tmp/missing/name: No such file' "nor to a missing directory"
osbx cp tree w:/tmp/named
like "$status$err" '125.*no directory takes the place of a file' "a directory does not replace a file"
osbx cp tree/file w:/tmp/named/
is "$status" 125 "a file with a slash behind it is none"
mkdir file
osbx cp file w:/tmp/new
like "$status$err" '125.*there is something else already' "nor does one that comes with the copy"
rmdir file
inside 'mkdir -p /tmp/dirs/second'
osbx cp second w:/tmp/dirs
like "$status$err" '125.*there is a directory already' "a file does not replace a directory"
osbx cp nothing w:/tmp
like "$status$err" '125.*nothing: No such file' "a source that is not there"
osbx cp w:/nothing .
like "$status$err" '125.*/nothing: No such file' "in the sandbox too"
osbx cp w:/tmp/new back
is "$status$err" 0 "out of the sandbox"
is "$(names back)" ". ./file ./link ./sub ./sub/deep ./tree ./tree/file ./tree/link ./tree/sub ./tree/sub/deep ./tree/zweit ./zweit" "all is there"
is "$(stat -c %i back/file)" "$(stat -c %i back/zweit)" "two names of a file stay such"
is "$(readlink back/link)" file "a link stays a link"
osbx cp w:/tmp/named .
is "$(cat named)" second "a file into the current directory"
osbx cp w:/tmp/new/. flat
is "$(cat flat/sub/deep)" deep "the content of a directory, out of it"
osbx cp w:/tmp/new/link .
is "$(readlink link)" file "a link as such"
rm -f link
osbx cp -L w:/tmp/new/link followed
is "$(cat followed 2>/dev/null)" file "-L: what it leads to"
osbx cp -L tree/link w:/tmp/followed
is "$(inside 'cat /tmp/followed; ls /tmp/new/link')" "file
/tmp/new/link" "and into the sandbox"
echo colon >a:b
osbx cp ./a:b w:/tmp/colon
is "$(inside 'cat /tmp/colon')" colon "a name with a colon has a slash before it"
osbx cp tree second
like "$status$err" '125.*none of the two paths is in a sandbox' "one of the two is in a sandbox"
osbx cp w:/tmp w:/tmp
like "$status$err" '^hint: osbx cp A:PATH' "and not both"
osbx cp tree nobody:/tmp
is "$status" 125 "a sandbox that does not exist"

# What it keeps.
touch -d 2001-02-03 second
chmod 640 second
osbx cp second w:/tmp/kept
is "$(inside 'stat -c "%a %Y" /tmp/kept')" "640 $(stat -c %Y second)" "mode and time of modification"
osbx cp w:/tmp/kept kept
is "$(stat -c '%a %Y' kept)" "640 $(stat -c %Y second)" "and back"
inside 'echo x >/tmp/open; chmod 666 /tmp/open; mkdir -m 500 /tmp/closed; echo y >/tmp/set; chmod 6755 /tmp/set'
(umask 027 && "$OSBX" cp w:/tmp/open open)
is "$(stat -c %a open)" 640 "the umask applies here"
osbx cp w:/tmp/set set
is "$(stat -c %a set)" 755 "set-id bits do not come out"
mkdir -p shut/in
echo z >shut/in/file
chmod 500 shut/in
osbx cp shut w:/tmp
is "$(inside 'stat -c %a /tmp/shut/in; cat /tmp/shut/in/file')" "500
z" "a directory that shuts out"
osbx cp w:/tmp/shut shut2
is "$(stat -c %a shut2/in)$(cat shut2/in/file)" 500z "and out of the sandbox"
head -c 3000000 /dev/urandom >random
osbx cp random w:/tmp/random
is "$(inside 'sha256sum </tmp/random')" "$(sha256sum <random)" "content"
"$OSBX" cp w:/tmp/random - </dev/null | tar xOf - | cmp -s - random
is "$?" 0 "and back as a stream"
truncate -s 64M sparse
echo end >>sparse
osbx cp sparse w:/tmp/sparse
is "$(inside 'stat -c %s /tmp/sparse')" "$(stat -c %s sparse)" "a sparse file has its size"
osbx cp w:/tmp/sparse sparse2
is "$(cmp sparse sparse2 && [ "$(stat -c %b sparse2)" -lt 4096 ] && echo small)" small "and stays small"
: >empty
osbx cp empty w:/tmp/empty
is "$(inside 'stat -c %s /tmp/empty')" 0 "an empty file"
mkdir odd
weird=$(printf 'two words\nand "line"\\ \303\244\377')
echo odd >"odd/$weird"
echo odd >"odd/ -n"
long=$(printf '%0250d' 7)
mkdir -p "odd/$long/$long"
echo odd >"odd/$long/$long/$long"
osbx cp odd w:/tmp
osbx cp w:/tmp/odd odd2
is "$(diff -r odd odd2 && echo same)" same "names with blanks, line ends, any bytes, and long ones"
inside 'mkfifo /tmp/content/fifo'
osbx cp w:/tmp/content special
like "$status$err" '^0osbx: left out: 1 devices' "a FIFO is left out, and nobody waits for it"
osbx cp -q w:/tmp/content special2
is "$status$err" 0 "-q"
osbx cp w:/tmp/content/fifo special3
like "$status$err" '125.*neither a file nor a directory' "one that is asked for is an error"
osbx cp w:/proc/version version
like "$(cat version)" '^Linux' "a file of procfs"

# Streams.
tar cf gnu.tar --format=gnu -C odd .
tar cf posix.tar --format=posix -C odd .
for kind in gnu posix; do
	inside "mkdir /tmp/$kind"
	"$OSBX" cp - "w:/tmp/$kind" <$kind.tar
	is "$?" 0 "an archive on standard input ($kind)"
	rm -rf odd3
	osbx cp "w:/tmp/$kind" odd3
	is "$(diff -r odd odd3 && echo same)" same "all of it"
done
gzip -k gnu.tar
"$OSBX" cp - w:/tmp <gnu.tar.gz 2>why
like "$?$(cat why)" '125.*it is compressed' "a compressed one is refused"
head -c 700 gnu.tar | "$OSBX" cp - w:/tmp 2>why
like "$(cat why)" 'tar stream: it ends too early' "one that is cut short"
echo nonsense | "$OSBX" cp - w:/tmp 2>why
like "$(cat why)" 'tar stream' "and none at all"
"$OSBX" cp - w:/tmp/gnu/nothing <gnu.tar 2>why
is "$?" 125 "the directory must exist"

# An archive that leads elsewhere.
cat >evil.py <<-'END'
	import io, sys, tarfile
	def add(t, name, kind=tarfile.REGTYPE, link='', data=b''):
	    i = tarfile.TarInfo(name)
	    i.type, i.linkname, i.size = kind, link, len(data)
	    t.addfile(i, io.BytesIO(data))
	with tarfile.open(sys.argv[1], 'w', format=tarfile.PAX_FORMAT) as t:
	    what = sys.argv[2]
	    if what == 'dotdot':
	        add(t, 'a/../../escaped', data=b'x')
	    elif what == 'absolute':
	        add(t, '/tmp/escaped', data=b'x')
	    elif what == 'link':
	        add(t, 'l', tarfile.SYMTYPE, '/tmp')
	        add(t, 'l/escaped', data=b'x')
	    elif what == 'hard':
	        add(t, 'h', tarfile.LNKTYPE, '/etc/passwd')
	    elif what == 'hardup':
	        add(t, 'h', tarfile.LNKTYPE, '../../etc/passwd')
	    elif what == 'hardlink':
	        add(t, 'l', tarfile.SYMTYPE, '/etc')
	        add(t, 'h', tarfile.LNKTYPE, 'l/passwd')
	    elif what == 'device':
	        add(t, 'd', tarfile.CHRTYPE)
	        add(t, 'f', tarfile.FIFOTYPE)
END
inside 'mkdir /tmp/evil'
for what in dotdot absolute link hard hardup hardlink; do
	python3 evil.py evil.tar $what
	"$OSBX" cp - w:/tmp/evil <evil.tar 2>why
	like "$?$(cat why)" '125.*(lead elsewhere|where a directory must be)' "an archive with $what"
done
is "$(inside 'ls /tmp/escaped /escaped /tmp/evil/h 2>/dev/null')" "" "has left nothing elsewhere"
python3 evil.py evil.tar device
"$OSBX" cp - w:/tmp/evil <evil.tar 2>why
like "$?$(cat why)" '0.*left out: 2' "devices and FIFOs are left out"

# A guest whose links name places of this machine.
echo secret >secret
mkdir target
inside "ln -s $tmp/secret /tmp/secret; ln -s $tmp/target /tmp/target; ln -s $tmp /tmp/up; ln -s ../../../../../../../../../..$tmp /tmp/far"
osbx cp -L w:/tmp/secret stolen
like "$status$err" '125.*No such file' "-L stays in the sandbox"
osbx cp w:/tmp/up/secret stolen
is "$status" 125 "so do links on the way"
osbx cp w:/tmp/far/secret stolen
is "$status" 125 "and those with many .."
osbx cp tree/file w:/tmp/target/
osbx cp tree/file w:/tmp/target
osbx cp tree/file w:/tmp/up/target/x
osbx cp tree/file w:/tmp/far/target/x
is "$(ls -A target)" "" "nothing arrives here by a link of the sandbox"
# Without openat2 such a link is taken by its text, which begins at the root of the sandbox.
[ "$OSBX_TEST_MODE" = no_openat2 ] && magic_links= || magic_links='exe cwd root fd/0 fd/3 fd/7'
for magic in $magic_links; do
	osbx cp -L "w:/proc/self/$magic" "magic"
	is "$status" 125 "-L /proc/self/$magic"
	osbx cp -L "w:/proc/1/$magic" "magic"
	is "$status" 125 "-L /proc/1/$magic"
	osbx cp tree/file "w:/proc/self/$magic/x"
	is "$status" 125 "into /proc/self/$magic"
done
is "$(ls magic 2>/dev/null)" "" "no magic link was followed"

# Links that change while a copy goes by them.
inside 'mkdir /tmp/race /tmp/race/d; echo plain >/tmp/race/d/secret'
"$OSBX" exec -d w sh -c "cd /tmp/race; while :; do mv d e; ln -s $tmp d; rm d; mv e d; done"
"$OSBX" exec -d w sh -c "cd /tmp/race; while :; do ln -s $tmp/target m; rm m; mkdir m; rmdir m; done"
leaked=0
for i in $(seq 30); do
	rm -rf raced
	"$OSBX" cp w:/tmp/race raced 2>/dev/null
	"$OSBX" cp w:/tmp/race/d/secret raced-file 2>/dev/null
	"$OSBX" cp tree/file w:/tmp/race/m/ 2>/dev/null
	"$OSBX" cp tree/. w:/tmp/race/m 2>/dev/null
	grep -rqs '^secret' raced raced-file && leaked=1
done
is "$leaked$(ls -A target)" 0 "swapped links lead neither out nor in"
"$OSBX" rm -f w >/dev/null
"$OSBX" run -d --network none --name w "$image" sleep 100000 >/dev/null </dev/null

# Deep trees, loops, endless files.
inside 'cd /tmp; i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i + 1)); done'
osbx cp w:/tmp/d deep
like "$status$err" '125.*nested more than' "a tree without end is refused"
osbx cp -L w:/dev/zero zero
like "$status$err" '125.*neither a file nor a directory' "so is a device"
inside 'ln -s loop /tmp/loop'
osbx cp -L w:/tmp/loop loop
like "$status$err" '125.*(symbolic links|loop)' "and a link to itself"
osbx cp second w:/tmp/loop
like "$status$err" '125.*(symbolic links|loop)' "also as a destination"

# Interrupted.
truncate -s 100G endless
"$OSBX" cp endless w:/tmp/endless 2>/dev/null &
pid=$!
for _ in $(seq 200); do
	inside '[ -e /tmp/endless ]' && break
	sleep 0.05
done
kill -9 $pid
wait $pid 2>/dev/null
size=
for _ in $(seq 200); do
	before=$size
	size=$(inside 'cat /proc/[0-9]*/stat | grep -c "(osbx-execd)"')
	[ "$size" = 1 ] && break
	sleep 0.05
done
like "$size" '^[01]$' "a copy whose client is killed ends inside too"

# Who copies.
if [ "$OSBX_TEST_MODE" = root ] || [ "$OSBX_TEST_MODE" = user ] || [ "$OSBX_TEST_MODE" = no_openat2 ]; then
	"$OSBX" run -d --network none --name u --user 1000:1000 "$image" sleep 100000 >/dev/null </dev/null
	osbx cp tree u:/tmp/mine
	is "$("$OSBX" exec u stat -c '%u:%g' /tmp/mine/file)" 1000:1000 "what is copied belongs to the sandbox's user"
	osbx cp second u:/etc/second
	like "$status$err" '125.*Permission denied' "who may not write everywhere"
	like "$err" 'hint: with --user 0' "a hint"
	osbx cp -u 0 second u:/etc/second
	is "$("$OSBX" exec u stat -c '%u:%g' /etc/second)" 0:0 "-u"
	osbx cp -a second u:/etc/third
	is "$("$OSBX" exec u stat -c '%u:%g' /etc/third)" "$(stat -c %u:%g second)" "-a keeps the owner"
	"$OSBX" exec -u 0 u sh -c 'echo s >/tmp/s; chown 4321:4321 /tmp/s; chmod 6755 /tmp/s'
	osbx cp -a u:/tmp/s -
	if [ "$OSBX_TEST_MODE" != user ]; then
		osbx cp -a u:/tmp/s s
		is "$(stat -c '%u:%g %a' s)" "4321:4321 755" "also here, but for set-id bits"
	else
		osbx cp -a u:/tmp/s s
		like "$status$err" '125.*keep the owner' "an ordinary user cannot give files away"
	fi
	"$OSBX" rm -f u >/dev/null
else
	osbx cp -a tree/file w:/tmp/a
	is "$status" "$([ "$(id -u)" = 0 ] && echo 0 || echo 125)" "-a with an owner that is not in the sandbox"
	osbx cp -u 1000 tree/file w:/tmp/a
	is "$status" 125 "a user that is not in the sandbox"
fi

# Files that are mounted are written to; what is read-only stays.
"$OSBX" run -d --network none --name r --read-only -v "$tmp/tree:/vol:ro" "$image" sleep 100000 >/dev/null </dev/null
osbx cp second r:/second
like "$status$err" '125.*Read-only file system' "a read-only root"
osbx cp second r:/vol
like "$status$err" '125.*Read-only file system' "a read-only volume"
osbx cp r:/vol volume
is "$(cat volume/sub/deep)" deep "is read"
"$OSBX" rm -f r >/dev/null

if "$OSBX" pause w >/dev/null 2>&1; then
	osbx cp second w:/tmp
	like "$status$err" '125.*sandbox is paused' "a paused sandbox is refused"
	"$OSBX" resume w >/dev/null
fi
"$OSBX" rm -f w >/dev/null
osbx cp second w:/tmp
is "$status" 125 "and one that is gone"
rm -rf endless
done_testing
