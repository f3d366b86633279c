#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user
# Two hundred sandboxes with private networks at once: each has its own policy, and the host's rules, links, routes and settings are, byte for byte, what
# they were before, while they live and afterwards.
. "$(dirname "$0")/../helpers/net_lib.sh"
. "$(dirname "$0")/lib.sh"

many=200

# all that could tell of them: rules of both families and of nft, links, addresses, routes, rules, neighbours that stay, settings
host_state() {
	python3 "$here/../helpers/nft_dump.py"
	iptables-save 2>/dev/null | grep -v '^#'
	ip6tables-save 2>/dev/null | grep -v '^#'
	ip -d link show | sed 's/ state [A-Z]*//'
	ip addr show | sed 's/valid_lft.*//'
	ip route show table all
	ip -6 route show table all
	ip rule show
	ip netns list
	for f in net/ipv4/ip_forward net/ipv4/conf/all/route_localnet net/ipv6/conf/all/forwarding net/ipv4/ip_unprivileged_port_start; do
		echo "$f $(cat /proc/sys/$f)"
	done
}
# what the keepers have started
children() {
	for keeper in $("$OSBX" ps --json | jq '.[].keeperPid'); do
		cat "/proc/$keeper/task/$keeper/children"
	done
}

# A firewall that is somebody else's.
python3 "$here/../helpers/nft_dump.py" make
is $? 0 "the host has rules of its own"
host_state >"$tmp/before"
like "$(cat "$tmp/before")" 'table .*others' "which are seen"

n=0
while [ $n -lt $many ]; do
	# eight at a time
	for i in 1 2 3 4 5 6 7 8; do
		n=$((n + 1))
		[ $n -le $many ] || break
		"$OSBX" run -d --name m$n --network private --deny '*' --allow "$([ $((n % 2)) = 0 ] && echo allowed.test || echo other.test)" -v "$here/../helpers:/helpers:ro" \
			@host sleep 1000 </dev/null >/dev/null 2>>"$tmp/errors" &
	done
	wait
done
is "$("$OSBX" ps -q | wc -l):$(cat "$tmp/errors")" "$many:" "$many sandboxes"
host_state >"$tmp/during"
is "$(diff "$tmp/before" "$tmp/during")" "" "while they live nothing of the host's network is another"
for m in m1 m2 m$((many - 1)) m$many; do
	try_in $m 'get http://allowed.test' 'get http://other.test'
	case $m in
	*[13579]) same "$m" <<'END' ;;
get http://allowed.test: noname
get http://other.test: 200 host=other.test sni=- at=203.0.113.11:80
END
	*) same "$m" <<'END' ;;
get http://allowed.test: 200 host=allowed.test sni=- at=203.0.113.10:80
get http://other.test: noname
END
	esac
done
children | tr ' ' '\n' | grep . >"$tmp/children"
is "$(wc -l <"$tmp/children")" $((2 * many)) "each has two processes beside its keeper"
"$OSBX" ps -q | xargs "$OSBX" rm -f >"$tmp/rm" 2>&1
is "$?:$("$OSBX" ps -aq)" 0: "all are removed"
host_state >"$tmp/after"
is "$(diff "$tmp/before" "$tmp/after")" "" "and nothing of the host's network is another"
quiet() {
	while read -r pid; do
		! grep -qs -e osbx -e execd "/proc/$pid/cmdline" || return 1
	done <"$tmp/children"
}
wait_until 10 quiet
is $? 0 "no process is left"
is "$(find "$OSBX_RUNTIME/sandboxes" -mindepth 1 ! -name .lock 2>/dev/null)" "" "nor a file"
done_testing
