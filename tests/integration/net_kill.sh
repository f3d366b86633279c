#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user
# What stands between a sandbox and the network is killed: the network is closed, never open; it is started again with the policy that is on record;
# killed too often it stays closed. A keeper that is killed takes it along.
. "$(dirname "$0")/../helpers/net_lib.sh"
. "$(dirname "$0")/lib.sh"

# pids of the netd of a sandbox: a child of its keeper
netd_of() {
	for p in $(cat /proc/"$1"/task/*/children 2>/dev/null); do
		tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null | grep -q '^[^ ]* netd' && echo "$p"
	done
}
keeper_of() {
	"$OSBX" inspect "$1" | jq -r .keeperPid
}
another_netd() {
	now=$(netd_of "$keeper")
	[ -n "$now" ] && [ "$now" != "$netd" ]
}
reaches() {
	"$OSBX" exec k /usr/bin/python3 /helpers/net_try.py "get http://$1" </dev/null 2>/dev/null | grep -q ': 200'
}

osbx run -d --name k --network private --deny '*' --allow allowed.test -v "$here/../helpers:/helpers:ro" @host sleep 1000
is "$status:$err" 0: "a sandbox with a policy"
reaches allowed.test
is $? 0 "reaches what it may"
"$OSBX" policy allow k cdn.test
"$OSBX" exec k curl -sN http://allowed.test/slow >"$tmp/ticks" 2>&1 </dev/null &
job=$!
wait_until 20 grep -q tick "$tmp/ticks"
keeper=$(keeper_of k)
netd=$(netd_of "$keeper")
like "$netd" '^[0-9]+$' "has one netd"
is "$(awk '/^(CapEff|Seccomp|NoNewPrivs):/ { print $2 }' "/proc/$netd/status" | tr '\n' ' ')" "0000000000000000 1 2 " "without capabilities, filtered"
is "$(readlink "/proc/$netd/ns/net")" "$(readlink "/proc/$("$OSBX" inspect k | jq .pid)/ns/net")" "in the sandbox's network"

# Stopped it decides nothing, and nothing gets through.
kill -STOP "$netd"
forget
run timeout 3 "$OSBX" exec k /usr/bin/python3 /helpers/net_try.py 'get http://203.0.113.11' 'tcp 10.99.0.5 80'
kill -CONT "$netd"
is "$(arrived '203\.0\.113\.11|10\.99')" 0 "while it does not run nothing gets out"

# Killed, in the middle of a loop of attempts.
forget
"$OSBX" exec k /usr/bin/python3 -c '
import socket, time
end = time.monotonic() + 3
n = 0
while time.monotonic() < end:
    for where in (("203.0.113.11", 80), ("10.99.0.5", 80), ("192.168.77.1", 8080)):
        n += 1
        try:
            s = socket.create_connection(where, timeout=1)
            s.sendall(b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")
            if s.recv(1):
                print("reached", where)
        except OSError:
            pass
print(n > 20)' >"$tmp/loop" 2>&1 </dev/null &
loop=$!
sleep 0.3
kill -KILL "$netd"
wait $job
ok "connections through it end"
wait_until 10 another_netd
is $? 0 "it is started again"
wait_until 10 reaches allowed.test
is $? 0 "and what was allowed is reached again"
reaches cdn.test
is $? 0 "with the policy as it was changed"
is "$("$OSBX" policy get k | jq -r '[.egress[].target] | join(" ")')" "cdn.test allowed.test" "which it has from the record"
wait $loop
is "$(cat "$tmp/loop")" True "meanwhile nothing else was"
is "$(arrived '203\.0\.113\.11|10\.99|192\.168\.77\.1')" 0 "nor did anything arrive"

# Too often.
n=0
while [ $n -lt 12 ] && [ "$("$OSBX" inspect k | jq -r .egress.state)" != closed ]; do
	for p in $(netd_of "$keeper"); do
		netd=$p
		kill -KILL "$p" 2>/dev/null
	done
	wait_until 3 another_netd
	n=$((n + 1))
done
is "$("$OSBX" inspect k | jq -r '"\(.status.state) \(.egress.state)"')" "Running closed" "killed too often it stays closed, and inspect says so"
forget
try_in k 'get http://203.0.113.10 host=allowed.test' 'tcp 203.0.113.11 80' 'udp 203.0.113.30 7' 'dns allowed.test A'
same "closed" <<'END'
get http://203.0.113.10 host=allowed.test: ~^(reset|refused|unreachable)$
tcp 203.0.113.11 80: ~^(reset|refused|unreachable)$
udp 203.0.113.30 7: ~^(EPERM|EACCES|refused|unreachable)$
dns allowed.test A: ~^(EPERM|EACCES|refused|unreachable)$
END
is "$(wc -l <"$world/log")" 0 "nothing arrives"
"$OSBX" rm -f k >/dev/null

# The keeper.
osbx run -d --name k --network private --deny '*' --allow allowed.test @host sleep 1000
keeper=$(keeper_of k)
netd=$(netd_of "$keeper")
init=$("$OSBX" inspect k | jq .pid)
kill -KILL "$keeper"
gone() {
	! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}
wait_until 10 gone "$netd"
is $? 0 "a keeper that is killed takes it along"
wait_until 10 gone "$init"
is $? 0 "and the sandbox"
"$OSBX" rm -f k >/dev/null 2>&1
"$OSBX" gc -q >/dev/null 2>&1
is "$("$OSBX" ps -aq)" "" "nothing is left"
done_testing
