#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a hostile process tries from inside: system calls, PID 1, devices, /proc, /sys, descriptors, control groups.
# The table of calls is that of tests/helpers/try_syscall.c, which the sanitizers do not let be static.
# modes: root user single nested identity no_openat2 no_clone3 self
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
"$OSBX" load -q "$image" >/dev/null 2>"$tmp/load" || not_ok "load: $(cat "$tmp/load")"
mkdir -p "$tmp/tools"
cp "$OSBX_TEST_HELPERS/try_syscall" "$tmp/tools/"
chmod 755 "$tmp/tools" "$tmp/tools/try_syscall"

inside() {
	osbx run --network none -v "$tmp/tools:/tools:ro" "$image" "$@"
}

# refused NAME…: each must end in an error or a signal, never "ok"
inside /tools/try_syscall
is "$status" 0 "every attempt was made"
note "$out"
like "$out" '^clone3 ENOSYS$' "clone3 is not there, so that programs fall back"
for name in io_uring_setup keyctl add_key request_key unshare_user clone_user setns mount tiocsti tiocsti_high tioclinux \
	ptrace_init socket_packet socket_alg socket_vsock bpf perf_event_open userfaultfd; do
	case $out in
	*"$name "*) unlike "$out" "^$name ok\$" "$name is refused" ;;
	*) not_ok "$name was tried" ;;
	esac
done
unlike "$out" '^(int80|x32)[a-z_]* ok$' "foreign entries of the kernel are closed"

# PID 1 is no way out and cannot be read.
inside sh -c 'cat /proc/1/exe >/dev/null 2>&1 && echo readable; readlink /proc/1/exe || :; cat /proc/1/environ 2>/dev/null; cat /proc/1/maps 2>/dev/null
	for f in /proc/1/fd/*; do readlink $f; done; for f in mem root cwd; do ls /proc/1/$f/ >/dev/null 2>&1 && echo "$f open"; dd if=/proc/1/$f of=/dev/null bs=1 count=1 2>/dev/null && echo "$f read"; done; : '
is "$out" "" "nothing of PID 1 can be read"
inside sh -c 'kill -9 1; kill -TERM 1; kill -STOP 1; sleep 0.1; echo alive'
is "$out" alive "PID 1 survives signals from inside"
inside sh -c 'ls /proc/self/fd'
is "$(echo "$out" | tr '\n' ' ' | tr -s ' ')" "0 1 2 3 " "only the standard descriptors (and that of ls itself)"
exec 7</etc/passwd
inside sh -c 'ls -l /proc/self/fd | grep -c passwd'
is "$out" 0 "a descriptor that the caller leaked is closed"
exec 7<&-

# The caller's files cannot be reached through standard descriptors.
echo precious >"$tmp/precious"
"$OSBX" run --network none "$image" sh -c 'echo hello; : >/proc/self/fd/1; echo more >/dev/stdout' >>"$tmp/precious" 2>/dev/null </dev/null
like "$(cat "$tmp/precious")" '^precious$' "reopening standard output does not truncate the caller's file"

# Files of the kernel.
inside sh -c 'for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sysrq-trigger /proc/sys/vm/drop_caches /proc/irq/default_smp_affinity; do
	(echo 1 >$f) 2>/dev/null && echo "$f written"; done; : '
is "$out" "" "nothing below /proc that rules the kernel can be written"
inside sh -c 'for f in /proc/kcore /proc/keys /proc/timer_list /proc/sched_debug; do [ -e $f ] && [ "$(head -c 1 $f 2>/dev/null | wc -c)" != 0 ] && echo "$f"; done; for d in /sys/firmware /proc/acpi; do ls -A $d 2>/dev/null; done; : '
is "$out" "" "masked files give nothing"
inside sh -c 'touch /sys/kernel/x /sys/fs/cgroup/x 2>&1; mkdir /sys/fs/cgroup/y 2>&1; echo 1 >/sys/fs/cgroup/cgroup.procs'
unlike "$status" '^0$' "/sys and the control groups are read-only"
inside sh -c 'find /sys/fs/cgroup -name release_agent 2>/dev/null; ls /sys/fs/cgroup | grep -v "^cgroup\.\|^cpu\|^memory\|^io\|^pids\|^misc\|^hugetlb\|^rdma\|^irq\|^dmem" ; : '
is "$out" "" "no release_agent, and no other group than its own"
inside sh -c 'mknod /tmp/sda b 8 0 2>&1 | grep -c . ; ls /dev | grep -c "^sd\|^vd\|^nvme\|^mem$\|^kmsg$\|^fuse$\|^net$\|^kvm$"'
like "$out" '^1
0$' "no device of the host, and none can be made"
inside sh -c 'mount -t tmpfs none /mnt 2>/dev/null && echo mounted; mount -o remount,rw /proc/sys 2>/dev/null && echo remounted; umount /proc/sys 2>/dev/null && echo unmounted; umount /dev/shm 2>/dev/null && echo unmounted; : '
is "$out" "" "nothing can be mounted, remounted or unmounted"
inside sh -c 'grep -E "^(NoNewPrivs|CapInh|CapAmb|Seccomp):" /proc/self/status | tr -s "\t\n" " "'
like "$out" '^CapInh: 0+ CapAmb: 0+ NoNewPrivs: 1 Seccomp: 2' "no inheritable or ambient capabilities, no new privileges, a filter"
inside sh -c 'grep ^CapEff: /proc/self/status | cut -f 2'
is "$((0x$out & ~0x800405fb))" 0 "capabilities are the eleven of the manual, or fewer"
inside sh -c 'chroot / sh -c "cd ../../..; ls / | head -3" >/dev/null; ls /proc/1/root 2>/dev/null | wc -l'
is "$out" 0 "chroot gains nothing"

# Terminals of the caller: without -t there is none, with any option typing into one is refused (above).
inside sh -c ': </dev/tty 2>/dev/null && echo tty; ps -o pid,comm | wc -l'
unlike "$out" '^tty' "no controlling terminal"
inside ps -o comm
unlike "$out" 'systemd|sshd|bash' "no process of the host is seen"

# Host names, IPC and network are its own.
inside sh -c 'ip link 2>/dev/null | grep -c "^[0-9]"; ls /sys/class/net'
like "$out" '^1
lo$' "the network has loopback alone"
inside sh -c 'ip addr show lo | grep -c "inet 127.0.0.1"'
is "$out" 1 "loopback is up"
inside sh -c 'hostname changed 2>/dev/null; hostname'
unlike "$out" '^changed$' "the host name cannot be changed"
unlike "$(hostname)" '^changed$' "nor that of the host"

done_testing
