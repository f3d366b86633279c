#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# @host: this machine's programs, nothing of its data.
. "$(dirname "$0")/lib.sh"

osbx run @host -- sh -c 'id -u; hostname; ls /home /root 2>&1 | head -2; awk "BEGIN{print 6*7}"'
is "$(echo "$out" | sed -n '1p;$p' | tr '\n' ' ')" "0 42 " "runs the machine's own programs as root"
like "$(echo "$out" | sed -n 2p)" '^[0-9a-f]{12}$' "under a name of its own"
osbx run @host </dev/null
is "$status" 0 "without a command it is a shell"
osbx run @host -- sh -c 'ls -A /home /root /srv /run /tmp /mnt /opt /var/tmp /var/log /var/lib /var/cache | grep -v "^/" | grep -v "^$" | wc -l'
is "$out" 0 "no home directory, nothing of /var, /run, /srv, /opt"
osbx run @host -- sh -c 'touch /usr/x 2>&1 || touch /etc/alternatives/x 2>&1; ls /usr/x 2>&1'
like "$out" 'Read-only file system' "/usr is read-only"
osbx run @host -- sh -c 'touch /etc/x /tmp/y /var/lib/z /x /root/w && echo fine'
is "$out" fine "the rest can be written"
osbx run @host -- sh -c 'stat -c "%a %n" /tmp /var/tmp /root; cat /etc/passwd | cut -d: -f1 | tr "\n" " "'
is "$(echo $out)" "1777 /tmp 1777 /var/tmp 700 /root root daemon nobody" "modes and users are made for it"
osbx run @host -- sh -c 'ls /etc/shadow /etc/ssh /etc/sudoers /etc/machine-id /etc/profile.d 2>/dev/null | wc -l'
is "$out" 0 "nothing else of the machine's /etc"
for entry in alternatives ld.so.cache ld.so.conf ssl/certs mime.types terminfo profile; do
	if [ -e /etc/$entry ]; then
		osbx run @host -- ls -d /etc/$entry
		is "$status" 0 "/etc/$entry of the machine"
		osbx run @host -- touch /etc/$entry
		is "$status" 1 "is read-only"
	fi
done
if [ -e /etc/localtime ]; then
	is "$("$OSBX" run @host -- cksum </dev/null /etc/localtime)" "$(cksum /etc/localtime)" "/etc/localtime, wherever it leads"
fi
is "$("$OSBX" run @host -- sh -c '. /etc/os-release; echo $ID' </dev/null)" "$(. /etc/os-release && echo "$ID")" "/etc/os-release"
osbx run @host -- sh -c 'echo $HOME; echo $PATH'
is "$(echo $out)" "/root /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "HOME and PATH"
for name in bin sbin lib lib64; do
	if [ -L /$name ]; then
		is "$("$OSBX" run @host -- readlink /$name </dev/null)" "$(readlink /$name)" "/$name leads where the machine's does"
	elif [ -d /$name ]; then
		is "$("$OSBX" run @host -- ls /$name </dev/null | cksum)" "$(ls /$name | cksum)" "/$name is the machine's"
	fi
done
# The order of mounts: a volume inside what @host binds, and in place of it.
mkdir "$tmp/local"
echo mine >"$tmp/local/file"
osbx run -v "$tmp/local:/usr/local:ro" @host -- cat /usr/local/file
is "$out" mine "a volume on /usr/local"
osbx run -v "$tmp/local:/etc" @host -- sh -c 'ls /etc; cat /etc/file'
is "$(echo $out)" "file mine" "a volume on /etc is all of it"
is "$(ls "$tmp/local")" file "and nothing is made in it"
osbx run --read-only @host -- sh -c 'touch /etc/x 2>&1; touch /tmp/x && echo fine'
like "$(echo $out)" 'Read-only file system fine' "--read-only"
osbx run --network host @host -- cat /etc/resolv.conf
is "$out" "$(cat /etc/resolv.conf 2>/dev/null)" "with the machine's network, its resolver"
osbx run --network none @host -- cat /etc/resolv.conf
is "$out" "" "without, none"
# Made once, whole.
is "$(ls -d "$OSBX_ROOT"/layers/*/host-1 | wc -l)" 1 "one skeleton"
is "$(ls -dA "$OSBX_ROOT"/layers/*/.staging-* 2>/dev/null | wc -l)" 0 "and no staging"
osbx gc -q
osbx run @host true
is "$status" 0 "gc leaves it usable"

done_testing
