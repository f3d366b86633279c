#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user
# What a private network carries besides connections: UDP and ping, by policy, in real sizes and numbers.
. "$(dirname "$0")/../helpers/net_lib.sh"
. "$(dirname "$0")/lib.sh"

refused='~^(EPERM|EACCES|refused|unreachable)$'

# As it comes: everything public.
osbx run -d --name u --network private -v "$here/../helpers:/helpers:ro" @host sleep 1000
is "$status:$err" 0: "a sandbox starts"
try_in u 'udp 203.0.113.30 7' 'udp 2001:db8::30 7 six' 'sizes 203.0.113.30 7 1 1400 1472 1473 9000 65507' 'sizes 2001:db8::30 7 1 1452 1453 65000' \
	'many 203.0.113.30 7 200' 'segments 203.0.113.30 7' 'ttl 203.0.113.30 7' 'udp 203.0.113.30 9' 'udp 2001:db8::30 9' 'udp 203.0.113.10 443' \
	'ping 203.0.113.30 5' 'ping 2001:db8::30 5' 'ping 127.0.0.1' 'ping ::1'
same "public" <<END
udp 203.0.113.30 7: hello
udp 2001:db8::30 7 six: six
sizes 203.0.113.30 7 1 1400 1472 1473 9000 65507: same
sizes 2001:db8::30 7 1 1452 1453 65000: same
many 203.0.113.30 7 200: 200
segments 203.0.113.30 7: 1000 1000 1000 500
ttl 203.0.113.30 7: near
udp 203.0.113.30 9: refused
udp 2001:db8::30 9: refused
udp 203.0.113.10 443: hello
ping 203.0.113.30 5: 0 1 2 3 4
ping 2001:db8::30 5: 0 1 2 3 4
ping 127.0.0.1: 0
ping ::1: 0
END

# What is not public, or is somebody else's.
forget
try_in u 'udp 10.99.0.5 443' 'udp 192.168.77.1 7' 'udp fd77::1 7' 'udp 169.254.169.254 443' 'udp 203.0.113.200 7' 'udp ::ffff:10.99.0.5 443' 'ping 10.99.0.5' 'ping 192.168.77.1' \
	'udp 203.0.113.53 853' 'udp 224.0.0.251 5353' 'udp ff02::fb 5353' 'udp 224.0.0.252 5355' 'udp 255.255.255.255 7' 'udp 0.1.2.3 7' \
	'udp 203.0.113.30 8' 'spoof 203.0.113.30 7 198.51.100.1' 'neighbour 203.0.113.99 4711' \
	'protocol udplite 203.0.113.30 7' 'protocol dccp 203.0.113.30 7' 'protocol sctp 203.0.113.30 7'
same "not public" <<END
udp 10.99.0.5 443: $refused
udp 192.168.77.1 7: $refused
udp fd77::1 7: $refused
udp 169.254.169.254 443: $refused
udp 203.0.113.200 7: $refused
udp ::ffff:10.99.0.5 443: $refused
ping 10.99.0.5: $refused
ping 192.168.77.1: $refused
udp 203.0.113.53 853: $refused
udp 224.0.0.251 5353: $refused
udp ff02::fb 5353: ~^(EPERM|EACCES|refused|unreachable|EINVAL)$
udp 224.0.0.252 5355: $refused
udp 255.255.255.255 7: ~^(EPERM|EACCES|refused|unreachable)$
udp 0.1.2.3 7: ~^(EPERM|EACCES|refused|unreachable|EINVAL)$
udp 203.0.113.30 8: timeout
spoof 203.0.113.30 7 198.51.100.1: timeout
neighbour 203.0.113.99 4711: nothing
protocol udplite 203.0.113.30 7: ~^(no socket|EPERM|EACCES|refused|unreachable)
protocol dccp 203.0.113.30 7: ~^(no socket|EPERM|EACCES|refused|unreachable)
protocol sctp 203.0.113.30 7: ~^(no socket|EPERM|EACCES|refused|unreachable)
END
is "$(arrived '^udp')" "$(arrived '^udp 203\.0\.113\.30 8')" "and none of them arrives"
like "$("$OSBX" policy log u)" '10\.99\.0\.5 port 443/udp: not a public address' "the log tells the protocol"

# Many, beside a connection and an edit.
run "$OSBX" exec u sh -c '/usr/bin/python3 /helpers/net_try.py "flood 203.0.113.30 7 6" >/tmp/flood & sleep 1; /usr/bin/python3 /helpers/net_try.py "get https://allowed.test" "tcp echo.test 7 hello"; wait; cat /tmp/flood'
same "beside a flood" <<END
get https://allowed.test: 200 host=allowed.test sni=allowed.test at=203.0.113.10:443
tcp echo.test 7 hello: hello
flood 203.0.113.30 7 6: many
END
try_in u 'many 203.0.113.30 7 300' 'udp 203.0.113.30 7'
like "$out" '7: hello' "more than there may be at once make room"
osbx rm -f u

# By name; QUIC, whose names nobody sees.
osbx run -d --name n --network private --deny '*' --allow echo.test --allow allowed.test --allow other.test:443/udp --allow 203.0.113.20 -v "$here/../helpers:/helpers:ro" @host sleep 1000
forget
try_in n 'udp 203.0.113.30 7' 'lookup echo.test' 'udp 203.0.113.30 7 named' 'ping 203.0.113.30' 'lookup allowed.test' 'udp 203.0.113.10 443' 'lookup other.test' 'udp 203.0.113.11 443 meant' \
	'get https://other.test' 'udp 203.0.113.20 443 address' 'udp 203.0.113.31 7' 'ping 203.0.113.31'
same "by name" <<END
udp 203.0.113.30 7: $refused
lookup echo.test: 2001:db8::30 203.0.113.30
udp 203.0.113.30 7 named: named
ping 203.0.113.30: 0
lookup allowed.test: 2001:db8::10 203.0.113.10
udp 203.0.113.10 443: $refused
lookup other.test: 2001:db8::11 203.0.113.11
udp 203.0.113.11 443 meant: meant
get https://other.test: ~^(reset|refused)$
udp 203.0.113.20 443 address: address
udp 203.0.113.31 7: $refused
ping 203.0.113.31: $refused
END
is "$(arrived '^udp 203\.0\.113\.10')" 0 "QUIC to an allowed name does not arrive"
like "$("$OSBX" policy log n)" 'QUIC' "and the log says why"

# An edit, while it is in use.
"$OSBX" exec n /usr/bin/python3 /helpers/net_try.py 'until 203.0.113.30 7' >"$tmp/until" </dev/null &
job=$!
wait_until 20 sh -c "[ \$(grep -c '^udp 203.0.113.30 7' '$world/log') -gt 5 ]"
osbx policy remove n echo.test
is "$status:$err" 0: "its rule goes"
wait $job
like "$(cat "$tmp/until")" ': (EPERM|EACCES|refused|unreachable)' "and so do its datagrams"
osbx policy allow n echo.test:7/udp
try_in n 'lookup echo.test' 'udp 203.0.113.30 7 again' 'tcp 203.0.113.30 7' 'ping 203.0.113.30'
same "a rule of UDP alone" <<END
lookup echo.test: 2001:db8::30 203.0.113.30
udp 203.0.113.30 7 again: again
tcp 203.0.113.30 7: ~^(reset|refused)$
ping 203.0.113.30: $refused
END
osbx rm -f n

# A user who may have no socket for ping is told so.
if setpriv --bounding-set=-net_raw --inh-caps=-net_raw true 2>/dev/null &&
	! setpriv --bounding-set=-net_raw --inh-caps=-net_raw python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)' 2>/dev/null; then
	run setpriv --bounding-set=-net_raw --inh-caps=-net_raw "$OSBX" run -d --name q --network private -v "$here/../helpers:/helpers:ro" @host sleep 1000
	try_in q 'ping 203.0.113.30' 'udp 203.0.113.30 7'
	same "without ping sockets" <<-END
	ping 203.0.113.30: $refused
	udp 203.0.113.30 7: hello
	END
	like "$("$OSBX" policy log q)" 'ping' "the log says what is missing"
	osbx rm -f q
else
	skip "without ping sockets" "everybody may have one here"
fi
done_testing
