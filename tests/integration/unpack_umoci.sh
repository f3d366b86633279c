#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a sandbox sees of an image of several layers is, to the last owner, mode, link and byte, what umoci unpacks.
# modes: root root-asan user identity
. "$(dirname "$0")/lib.sh"

image=${OSBX_TEST_DATA:?}/python

# list [ROOT]: everything below ROOT, but what the sandbox makes itself. Of directories no size, and no time where it put
# something into them.
list() {
	cd "${1:-/}" && find . -xdev \( -path ./dev -o -path ./proc -o -path ./sys -o -path ./etc/resolv.conf -o -path ./etc/hosts \
		-o -path ./etc/hostname \) -prune -o -path . -o -path ./etc -o -type d -printf '%p %y %m %U %G %T@\n' \
		-o -printf '%p %y %m %U %G %T@ %s %n %l\n' | LC_ALL=C sort
}
sums() {
	cd "${1:-/}" && find . -xdev \( -path ./dev -o -path ./proc -o -path ./sys -o -path ./etc/resolv.conf -o -path ./etc/hosts \
		-o -path ./etc/hostname \) -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
}

# umoci as root of a user namespace with the ids 0..65535 gives the reference to an ordinary user too.
reference() {
	umoci unpack --image "$image:1" "$tmp/umoci" >/dev/null 2>&1 && list "$tmp/umoci/rootfs" >"$tmp/want" &&
		sums "$tmp/umoci/rootfs" >"$tmp/want.sums"
}
case $OSBX_TEST_MODE in
user) unshare --user --map-root-user --map-auto --mount sh -c "image='$image' tmp='$tmp'
$(sed -n '/^list()/,/^}/p; /^sums()/,/^}/p; /^reference()/,/^}/p' "$0")
reference && rm -rf '$tmp/umoci'" ;;
*) reference ;;
esac || not_ok 'umoci unpacks the image'

osbx load -q --name reference "oci:$image:1"
is "$status" 0 'osbx loads it'
"$OSBX" run --network none reference sh -c "$(sed -n '/^list()/,/^}/p' "$0")
list" >"$tmp/have"
"$OSBX" run --network none reference sh -c "$(sed -n '/^sums()/,/^}/p' "$0")
sums" >"$tmp/have.sums"
is "$(diff "$tmp/want" "$tmp/have" | head -20)" '' 'types, owners, modes, times, sizes, links'
is "$(diff "$tmp/want.sums" "$tmp/have.sums" | head -20)" '' 'contents'
like "$(wc -l <"$tmp/have")" '^[0-9]{4,}' 'of thousands of entries'
done_testing
