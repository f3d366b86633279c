#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Images built entry by entry (tests/helpers/mkimage.py): what is refused and with which words, what is accepted and what
# the sandbox then sees. After each case a canary beside the store must be as it was.
# modes: root root-asan user single nested identity no_openat2 self
. "$(dirname "$0")/lib.sh"

base=${OSBX_TEST_DATA:?}/busybox
mkimage="$here/../helpers/mkimage.py"
export CANARY="$tmp/canary/file"
mkdir -p "$tmp/canary" "$tmp/images"
echo untouched >"$CANARY"
python3 "$mkimage" --all "$tmp/images" "$base" || not_ok 'images cannot be made'
canary_now() {
	(cd "$tmp/canary" && stat -c '%n %f %u %g %s %Y %Z %i' . ./* && cat file)
}
canary=$(canary_now)

check_canary() {
	[ "$(canary_now)" = "$canary" ] || not_ok "$1: the canary has changed"
	case $(ls -A "$OSBX_ROOT"/layers/*) in
	*staging*) not_ok "$1: a staging directory is left" ;;
	esac
	rm -rf "${tmp:?}/images/$1"
}

# reject CASE REGEX [LOAD-OPTION…]: load fails with 125 and these words, and leaves no image
reject() {
	case_=$1 words=$2
	shift 2
	osbx load -q "$@" "oci:$tmp/images/$case_:t"
	if [ "$status" != 125 ]; then
		not_ok "$case_ is refused"
		note "status $status" "$err"
	else
		like "$err" "$words" "$case_ is refused: $words"
	fi
	is "$("$OSBX" images -q)" "" "$case_: no image is left"
	check_canary "$case_"
}

# accept CASE COMMAND EXPECTED: load, and what the command prints in the sandbox
accept() {
	osbx load -q --name "hostile/$1" "oci:$tmp/images/$1:t"
	if [ "$status" != 0 ]; then
		not_ok "$1 is accepted"
		note "$err"
	else
		osbx run --network none "hostile/$1" sh -c "$2"
		is "$out$err" "$3" "$1: $2"
		run "$OSBX" rmi -q "hostile/$1"
	fi
	check_canary "$1"
}

# Below the root of the image, or nowhere.
for case_ in absolute dotdot_pax symlink_parent symlink_parent_up symlink_lower; do
	case $case_ in
	symlink_lower) file=out/file ;;
	*) file=$CANARY ;;
	esac
	accept "$case_" "cat $file" owned
done
accept dotdot 'cat /b' inside
accept symlink_file 'cat out; test -L out || echo file' "minefile"
accept symlink_chain 'cat /x' inside
accept hardlink_to_symlink 'readlink out; cat stolen' "$CANARY
mine"
accept hardlink_lower_symlink 'readlink stolen' "$CANARY"
reject symlink_loop 'a/x: follow links'
reject hardlink_dotdot 'stolen: hard link to .*canary/file, which neither'
reject hardlink_absolute 'stolen: hard link to .*canary/file, which neither'
reject hardlink_through_symlink 'stolen: hard link to out/file, which neither'
reject hardlink_directory 'l: hard link to d, which is no file'
reject hardlink_missing 'l: hard link to no/such/file, which neither'
reject hardlink_self_missing 'hard link to f, which neither'
accept hardlink_self 'cat f' same

# The root entry (CVE-2021-29136).
for case_ in root_symlink root_symlink_dots root_file root_hardlink; do
	reject "$case_" 'the root is not a directory'
done
accept root_mode 'cat f; stat -c %a /' "in
755"
accept root_owner 'cat f; stat -c %a /' "in
755"

# Types.
accept device 'cat f; test -e disk || echo none' "in
none"
accept fifo 'test -p pipe && stat -c %a pipe' 640
accept type_changes 'cat a c/x e/below; readlink b; ls c' "file
new
below
a
x"
accept duplicates 'cat f; stat -c %a f' "number 4
604"
accept lower_type_changes 'cat was_dir was_file/new was_link/new; ls was_link' "now a file
new
new
new"
accept mode_000 'stat -c %a locked locked/d locked/f; ls locked/d; cat locked/f' "0
0
600
second"
accept setid 'stat -c "%a %n" suid sgid sgid_dir t' "4755 suid
2755 sgid
2775 sgid_dir
1777 t"

# Whiteouts: order does not matter, only layers below are hidden.
for case_ in whiteout_after whiteout_before; do
	accept "$case_" 'cat f d/*' "new
new"
done
for case_ in opaque_last opaque_first; do
	accept "$case_" 'ls d' new
done
accept opaque_alone 'ls d; ls -d d' d
for case_ in umoci_file umoci_file_reversed; do
	accept "$case_" 'cat a' file
done
accept whiteout_nothing 'ls d new; ls -d no void 2>/dev/null' "d:
f

new:
f"
accept whiteout_twice 'ls d; test -e g || echo none' "again
none"
accept whiteout_through_symlink 'cat real/keep; readlink l' "kept
real"
accept hardlink_whiteout 'ls d' stays
accept aufs 'cat g; ls -A | grep -c wh' "in
0"
accept forged_overlay 'cat d/keep; test -c f || echo none' "kept
none"
for case_ in whiteout_dotdot whiteout_dot whiteout_empty whiteout_folder; do
	reject "$case_" 'not a valid whiteout'
done
osbx run --network none "oci:$tmp/images/opaque_root:t" /bin/sh
is "$status" 127 "opaque_root: nothing of the layers below is left"
"$OSBX" images -q | sort -u | xargs -r "$OSBX" rmi -f -q >/dev/null
check_canary opaque_root

# Hard links into layers below.
accept hardlink_lower 'cat la lb ls l2; stat -c %h la; test la -ef usr/a && echo same' "one
newer
one
one
4
same"
accept hardlink_forward 'cat l' one
reject hardlink_hidden 'l: hard link to a/x, which neither'
reject hardlink_hidden_opaque 'l: hard link to a/x, which neither'
accept implied_parents 'stat -c %a p p/q p/q/r; stat -c %Y p' "711
1777
755
5"

# Formats.
for case_ in gnu_long pax_long; do
	accept "$case_" "cat $(printf 'd%.0s' $(seq 100))/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/file" 'long name'
done
accept pax_global 'cat f; stat -c %u f; test -e owned || echo none' "in
0
none"
accept pax_names 'cat latin* new* "$(printf "e\314\201")" "$(printf "\303\251")"' \
	"$(printf 'latin-\350\nlatin-\351\nnew\nline\ne\314\201\n\303\251')"
accept sparse_gnu 'stat -c %s s; od -An -c -j4096 -N1 s; od -An -c -j9437184 -N1 s; du -k s | cut -f1' "10485760
   A
   B
8"
accept sparse_pax 'stat -c %s s; od -An -c -j4096 -N1 s; od -An -c -j9437184 -N1 s; du -k s | cut -f1' "10485760
   A
   B
8"
accept xattrs 'cat f; stat -c %a f' "in
644"
reject pax_broken 'read tar'
reject pax_number 'read tar'
reject component_long 'name of 300 bytes'
reject path_long 'path of 8039 bytes'
reject sparse_huge 's: file is larger than the image may be'
reject xattr_huge 'f: (extended attributes of more than 65536 bytes|set attribute user.*No space)'
reject negative_id 'f: user id -2 is out of range'
reject endless_id 'f: user id 1099511627776 is out of range'
case $(ls "$OSBX_ROOT/layers") in
*single*) accept huge_id 'cat f; stat -c %u f' "in
0" ;;
*) reject huge_id 'f: image needs user id 200000, there are the ids 0 to 6553[56] only' ;;
esac
reject bad_checksum 'read tar'
reject truncated 'read tar: Truncated'
reject not_tar 'read tar: Unrecognized'
accept no_end 'cat f' in
accept empty 'echo runs' runs

# Compression.
for case_ in members padding zstd zstd_frames behind_the_end; do
	accept "$case_" 'cat f' in
done
accept mislabelled 'cat f g h' "in
in
in"
reject garbage_behind 'gzip data is followed by other bytes'
reject cut_gzip 'compressed data is cut off'
reject bad_crc 'inflate gzip'
reject bzip2 'bzip2 compression is not supported'

# Claims.
reject wrong_digest 'blob digest is'
reject wrong_diff 'diff digest is'
reject wrong_size 'more bytes than|size'
reject larger_size 'fewer bytes than|size'

# Quantity: refused before the disk is full, and the limit can be raised.
reject bomb 'bomb: file is larger than the image may be' --unpack-max 1g
reject bomb_behind 'image is larger than 1 GiB when unpacked' --unpack-max 1g
like "$err" 'hint: .*--unpack-max' 'the limit says how to raise it'
accept many_entries 'ls | grep -c "^e[0-9]"' 3000

osbx gc -q
is "$(ls -A "$OSBX_ROOT"/layers/*)" points-1 "gc leaves no layer of an image"
done_testing
