#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A disk that is full in the middle of a pull: said plainly, nothing broken, and gone on with when there is room.
# modes: root
. "$(dirname "$0")/lib.sh"
. "$here/../helpers/pull_lib.sh"
needs docker-registry skopeo python3 unshare

registry_start plain
image big
push "$images/big:t" "$registry/t/big:1"

# A store on a small tmpfs of its own mount namespace. Prints the statuses and what is wrong afterwards.
cat >"$tmp/full" <<'END'
set -u
mount -t tmpfs -o "size=$1,mode=700" none "$OSBX_ROOT" || exit 99
"$OSBX" pull -q "$2" >"$tmp/pull.out" 2>"$tmp/pull.err"
echo "status $?"
echo "images $("$OSBX" images -q | wc -l)"
for blob in "$OSBX_ROOT"/blobs/sha256/*; do
	[ ! -e "$blob" ] || [ "$(sha256sum <"$blob" | cut -c-64)" = "${blob##*/}" ] || echo "broken $blob"
done
find "$OSBX_ROOT/staging" "$OSBX_ROOT/layers" -mindepth 1 -name '.staging-*' 2>/dev/null
mount -o remount,size=64m "$OSBX_ROOT"
"$OSBX" pull -q "$2" >"$tmp/again.out" 2>&1
echo "again $?"
"$OSBX" run -q "$2" sh -c 'cd /data && sha256sum *' >"$tmp/sums" 2>&1
ls "$OSBX_ROOT/partial"
END
export tmp OSBX
reference=$(OSBX_ROOT="$tmp/reference" sums "oci:$images/big:t")
# The image: 7 MB compressed, 14 MB with what is unpacked.
for size in 500k 1500k 4m 7m 9m 12m; do
	run unshare -m --propagation private sh "$tmp/full" $size "$registry/t/big:1"
	is "$out" "status 125
images 0
again 0" "a disk of $size: nothing is broken, and it is gone on with"
	like "$(cat "$tmp/pull.err")" '^osbx: .*: No space left on device$' "a disk of $size: the error says so"
	is "$(cat "$tmp/sums")" "$reference" "a disk of $size: the image is whole in the end"
done
done_testing
