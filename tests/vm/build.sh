#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh key          what the image would be made of, as a name
# build.sh build DIR    make it: kernels 6.1 and 6.12, an emulator, a Debian 12 with systemd, from the packages that apt's own
#                       configuration leads to. Nothing is installed on this machine. Root.
#
#   DIR/vmlinux-6.1 DIR/vmlinux-6.12    ELF kernels: the emulator starts them without the guest's own decompression
#   DIR/initrd-6.1 DIR/initrd-6.12      busybox and the modules on the way to the root file system
#   DIR/root.ext4                       the system; its service osbx-vm runs /host/tests/vm/guest from the second disk
#   DIR/qemu/                           the emulator of the backports: 7.2 cannot run 6.12, and forks three times slower
set -eu
here=$(cd "$(dirname "$0")" && pwd)
kernels='6.1 6.12'
packages=systemd,systemd-sysv,libpam-systemd,dbus,dbus-user-session,udev,kmod,uidmap,iproute2,procps,util-linux,mount,passwd,login,busybox-static
packages=$packages,python3,jq,libarchive13,libcurl4,libinih1,libisal2,libseccomp2,libssl3,libzstd1,zlib1g,ca-certificates,zstd,skopeo,umoci
# What only costs time in a machine that lives for minutes.
masked='apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer e2scrub_reap.service getty.target
	systemd-timesyncd.service systemd-pstore.service systemd-random-seed.service systemd-update-utmp.service
	systemd-update-utmp-runlevel.service systemd-journal-flush.service systemd-journal-catalog-update.service
	systemd-hwdb-update.service systemd-machine-id-commit.service ldconfig.service systemd-update-done.service
	systemd-sysusers.service systemd-firstboot.service systemd-boot-system-token.service systemd-udev-settle.service
	systemd-ask-password-console.path systemd-ask-password-wall.path kmod-static-nodes.service systemd-binfmt.service
	proc-sys-fs-binfmt_misc.automount modprobe@configfs.service modprobe@drm.service modprobe@efi_pstore.service
	modprobe@dm_mod.service modprobe@loop.service serial-getty@ttyS0.service'

fail() {
	echo "tests/vm: $*" >&2
	exit 1
}

# URI of the archive that has this suite, as this machine reaches it.
archive() {
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
		sed -n "s/ $1 main\$//p" | head -n 1
}

step() {
	now=$(date +%s)
	echo "$1: $((now - last)) s"
	last=$now
}

key() {
	{
		cat "$here/build.sh"
		apt-cache show --no-all-versions linux-image-cloud-amd64 2>/dev/null | grep ^Version
	} | sha256sum | cut -c 1-16
}

# An apt of our own, so that backports are no matter of this machine's.
apt_prepare() {
	base=$(archive bookworm)
	security=$(archive bookworm-security)
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -n "$base" ] || fail "apt knows no archive of bookworm"
	mkdir -p apt/lists/partial apt/cache/archives/partial debs
	{
		echo "deb [signed-by=$keyring] $base bookworm main"
		echo "deb [signed-by=$keyring] $base bookworm-backports main"
		[ -z "$security" ] || echo "deb [signed-by=$keyring] $security bookworm-security main"
	} >apt/sources.list
	cat >apt/conf <<-END
		Dir::Etc::sourcelist "$PWD/apt/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::State::lists "$PWD/apt/lists";
		Dir::Cache "$PWD/apt/cache";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
	END
	APT_CONFIG=$PWD/apt/conf
	export APT_CONFIG
	apt-get update -qq
}

download() {
	kernel_61=$(apt-cache show linux-image-cloud-amd64 | sed -n 's/^Depends: \(linux-image-6\.1\.[^ ]*\).*/\1/p' | head -n 1)
	kernel_612=$(apt-cache show linux-image-cloud-amd64 | sed -n 's/^Depends: \(linux-image-6\.12\.[^ ]*\).*/\1/p' | head -n 1)
	[ -n "$kernel_61" ] && [ -n "$kernel_612" ] || fail "no packages of the kernels 6.1 and 6.12"
	(cd debs && apt-get download -qq "$kernel_61" "$kernel_612" \
		qemu-system-x86/bookworm-backports qemu-system-common/bookworm-backports qemu-system-data/bookworm-backports seabios/bookworm-backports)
	dpkg-deb -x debs/"$kernel_61"_*.deb kernel-6.1
	dpkg-deb -x debs/"$kernel_612"_*.deb kernel-6.12
	for deb in debs/qemu-system-*.deb debs/seabios_*.deb; do
		dpkg-deb -x "$deb" qemu
	done
	(cd debs && ls) >packages
}

# The ELF file inside a bzImage: where it begins and how long it is stands in the header.
vmlinux() {
	python3 - "$1" "$2" <<-'END'
		import struct, subprocess, sys
		data = open(sys.argv[1], 'rb').read()
		offset, size = struct.unpack_from('<II', data, 0x248)
		start = ((data[0x1f1] or 4) + 1) * 512 + offset
		payload = data[start:start + size]
		tools = {b'\x02\x21\x4c\x18': ['lz4', '-dc'], b'\xfd7zX': ['xz', '-dc'], b'\x28\xb5\x2f\xfd': ['zstd', '-dc']}
		# The last four bytes are the length of what was compressed.
		elf = subprocess.run(tools[payload[:4]], input=payload[:-4], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
		assert elf[:4] == b'\x7fELF'
		open(sys.argv[2], 'wb').write(elf)
	END
}

initrd() {
	tree=$PWD/initrd-tree
	version=$(ls "kernel-$1/lib/modules")
	rm -rf "$tree"
	mkdir -p "$tree/bin" "$tree/dev" "$tree/proc" "$tree/sys" "$tree/m" "$tree/new"
	cp /bin/busybox "$tree/bin/busybox"
	ln -s busybox "$tree/bin/sh"
	for module in virtio_pci virtio_blk ext4; do
		modprobe -d "$PWD/kernel-$1" -S "$version" --show-depends "$module" | sed -n 's/^insmod //p'
	done | while read -r file; do
		name=$(basename "$file" | sed 's/\.xz$//')
		[ ! -e "$tree/m/$name" ] || continue
		case $file in
		*.xz) xz -dc "$file" >"$tree/m/$name" ;;
		*) cp "$file" "$tree/m/$name" ;;
		esac
		echo "$name" >>"$tree/m/order"
	done
	cat >"$tree/init" <<-'END'
		#!/bin/sh
		b=/bin/busybox
		$b mount -t proc proc /proc
		$b mount -t sysfs sysfs /sys
		$b mount -t devtmpfs dev /dev
		for m in $($b cat /m/order); do $b insmod "/m/$m"; done
		for i in $($b seq 200); do [ -b /dev/vda ] && break; $b usleep 10000; done
		$b mount -t ext4 -o rw,noatime /dev/vda /new || $b reboot -f
		$b umount /sys /proc
		$b mount --move /dev /new/dev
		exec $b switch_root /new /lib/systemd/systemd
	END
	chmod +x "$tree/init"
	mknod -m 600 "$tree/dev/console" c 5 1
	mknod -m 666 "$tree/dev/null" c 1 3
	(cd "$tree" && find . | cpio -o -H newc --quiet) >"initrd-$1"
}

root_tree() {
	mmdebstrap --quiet --variant=minbase --mode=root --format=directory --include="$packages" --dpkgopt=force-unsafe-io \
		--aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
		bookworm root "deb $base bookworm main" ${security:+"deb $security bookworm-security main"}
	echo osbx-vm >root/etc/hostname
	printf '127.0.0.1 localhost osbx-vm\n::1 localhost\n' >root/etc/hosts
	echo 0123456789abcdef0123456789abcdef >root/etc/machine-id
	: >root/etc/fstab
	# alice stays when she logs out, bob does not, carol has no subordinate ids.
	for user in alice bob carol; do
		chroot root useradd -m -U -s /bin/bash "$user"
	done
	sed -i /^carol:/d root/etc/subuid root/etc/subgid
	mkdir -p root/var/lib/systemd/linger root/host root/etc/systemd/journald.conf.d
	: >root/var/lib/systemd/linger/alice
	printf '[Journal]\nStorage=volatile\n' >root/etc/systemd/journald.conf.d/vm.conf
	for unit in $masked; do
		ln -sf /dev/null "root/etc/systemd/system/$unit"
	done
	cat >root/etc/systemd/system/osbx-vm.service <<-'END'
		[Unit]
		Description=tests of osbx
		After=multi-user.target
		[Service]
		Type=oneshot
		ExecStartPre=mount -o ro /dev/vdb /host
		ExecStart=/host/tests/vm/guest
		ExecStopPost=sh -c 'tar -C /run/results -cf /dev/vdc . ; sync; echo b >/proc/sysrq-trigger'
		StandardOutput=tty
		StandardError=inherit
		TTYPath=/dev/ttyS0
		TimeoutStartSec=infinity
	END
	mkdir -p root/etc/systemd/system/graphical.target.wants
	ln -sf ../osbx-vm.service root/etc/systemd/system/graphical.target.wants/osbx-vm.service
	ln -sf /lib/systemd/system/graphical.target root/etc/systemd/system/default.target
	rm -rf root/var/cache/apt root/var/lib/apt/lists
	mkdir -p root/lib/modules
	for kernel in $kernels; do
		cp -a "kernel-$kernel/lib/modules/." root/lib/modules/
	done
}

build() {
	last=$(date +%s)
	rm -rf "$1.new"
	mkdir -p "$1.new"
	cd "$1.new"
	apt_prepare
	download
	step "kernels and emulator"
	for kernel in $kernels; do
		vmlinux kernel-$kernel/boot/vmlinuz-* "vmlinux-$kernel"
		depmod -b "kernel-$kernel" "$(ls "kernel-$kernel/lib/modules")"
		initrd "$kernel"
	done
	step "initial file systems"
	unset APT_CONFIG
	root_tree
	step "Debian 12"
	mke2fs -q -t ext4 -O '^has_journal,^metadata_csum' -m 0 -E lazy_itable_init=1,root_owner=0:0 -d root root.ext4 2000M
	rm -rf apt debs root initrd-tree kernel-6.1 kernel-6.12
	step "its disk"
	rm -rf "$1"
	mv "$1.new" "$1"
}

case ${1:-} in
key) key ;;
build) build "${2:?usage: build.sh build DIR}" ;;
*) fail "usage: build.sh key | build DIR" ;;
esac
