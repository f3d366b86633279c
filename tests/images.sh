#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# images.sh CACHE: the images that integration tests share, made once from Debian packages.
#   CACHE/busybox       OCI layout, tag 1: busybox-static, one layer
#   CACHE/python        OCI layout, tag 1: Debian with python3, several layers (root only; copied world-readable)
#   CACHE/rootfs        the busybox tree, for dir:
set -eu
cache=${1:?usage: images.sh CACHE}
version=1
[ "$(cat "$cache/version" 2>/dev/null || :)" = "$version" ] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

busybox_tree() {
	mkdir -p "$1/bin" "$1/etc" "$1/tmp" "$1/root" "$1/home/app"
	cp /bin/busybox "$1/bin/busybox"
	for applet in $(/bin/busybox --list); do
		[ "$applet" = busybox ] || ln -sf busybox "$1/bin/$applet"
	done
	chmod 1777 "$1/tmp"
	chmod 700 "$1/root"
	printf 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000:app:/home/app:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$1/etc/passwd"
	printf 'root:x:0:\napp:x:1000:\nextra:x:2000:app\nnogroup:x:65534:\n' >"$1/etc/group"
}

# layer LAYOUT:TAG BUNDLE: what changed in BUNDLE/rootfs becomes a layer
layer() {
	umoci repack --refresh-bundle --image "$1" "$2" 2>/dev/null
}

rm -rf "$cache/busybox" "$cache/python" "$cache/rootfs"
umoci init --layout "$cache/busybox"
umoci new --image "$cache/busybox:1"
umoci unpack $([ "$(id -u)" = 0 ] || echo --rootless) --image "$cache/busybox:1" "$work/b" 2>/dev/null
busybox_tree "$work/b/rootfs"
busybox_tree "$cache/rootfs"
layer "$cache/busybox:1" "$work/b"
umoci config --image "$cache/busybox:1" --config.cmd sh --config.env PATH=/bin --config.env IMAGE=busybox

if [ "$(id -u)" = 0 ]; then
	umoci init --layout "$cache/python"
	umoci new --image "$cache/python:1"
	umoci unpack --image "$cache/python:1" "$work/p" 2>/dev/null
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mmdebstrap --quiet --variant=minbase --include=ca-certificates "$suite" "$work/base.tar"
	tar -C "$work/p/rootfs" --numeric-owner -xpf "$work/base.tar" --exclude='./dev/*'
	layer "$cache/python:1" "$work/p"
	mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3-minimal,python3 "$suite" "$work/python.tar"
	tar -C "$work/p/rootfs" --numeric-owner -xpf "$work/python.tar" --exclude='./dev/*'
	layer "$cache/python:1" "$work/p"
	rm -rf "$work/p/rootfs/usr/share/doc"
	ln "$work/p/rootfs/etc/debian_version" "$work/p/rootfs/etc/debian_version.link"
	layer "$cache/python:1" "$work/p"
	umoci config --image "$cache/python:1" --config.cmd python3 \
		--config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
fi
umoci gc --layout "$cache/busybox" 2>/dev/null
chmod -R a+rX "$cache"
echo "$version" >"$cache/version"
