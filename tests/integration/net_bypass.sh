#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user
# Ways around a policy, tried from inside with all capabilities that a sandbox may have: other addresses, resolvers, protocols, names that lie,
# names that change, the network's own configuration. Whether something was reached is asked of the other side.
. "$(dirname "$0")/../helpers/net_lib.sh"
. "$(dirname "$0")/lib.sh"

forget
osbx run -d --name b --network private --cap-add ALL --deny '*' --allow allowed.test --allow rebind.test --allow mixed.test --allow mapped.test --allow nat64.test \
	--allow evil-alias.test --allow metadata.test --allow own.test --allow own-public.test --allow loop.test --allow chain.test --allow loop-alias.test --allow ttl0.test \
	--allow huge.test -v "$here/../helpers:/helpers:ro" @host sleep 1000
is "$status:$err" 0: "a sandbox that may reach names"

# Addresses, of all kinds and spellings.
try_in b 'tcp 203.0.113.11 80' 'tcp 203.0.113.11 443' 'tcp 203.0.113.30 7 x' 'tcp 2001:db8::11 80' 'tcp 2001:db8::30 7 x' 'tcp ::ffff:203.0.113.11 80' \
	'tcp ::ffff:10.99.0.5 80' 'tcp ::ffff:127.0.0.1 80' 'tcp 10.99.0.5 80' 'tcp 169.254.169.254 80' 'tcp 100.64.0.9 80' 'tcp 192.168.77.1 8080' 'tcp 192.168.77.1 80' \
	'tcp 203.0.113.200 8080' 'tcp fd77::1 8080' 'tcp 203.0.113.53 853 x' 'tcp 203.0.113.53 443 x' 'tcp 64:ff9b::a63:5 80' 'tcp 2002:a63:5::1 80' \
	'tcp ::10.99.0.5 80' 'tcp 0.0.0.0 8080' 'tcp 255.255.255.255 80' 'tcp 224.0.0.1 80' 'tcp 192.0.0.1 80' 'tcp 192.0.0.2 8080' 'tcp 127.0.0.1 8080' 'tcp ::1 8080' \
	'tcp fe80::1 80' 'tcp ff02::1 80' 'get http://0x0a.0x63.0.5' 'get http://174260229'
same "by address" <<'END'
tcp 203.0.113.11 80: ~^(reset|refused)$
tcp 203.0.113.11 443: ~^(reset|refused)$
tcp 203.0.113.30 7 x: ~^(reset|refused)$
tcp 2001:db8::11 80: ~^(reset|refused)$
tcp 2001:db8::30 7 x: ~^(reset|refused)$
tcp ::ffff:203.0.113.11 80: ~^(reset|refused)$
tcp ::ffff:10.99.0.5 80: ~^(reset|refused)$
tcp ::ffff:127.0.0.1 80: refused
tcp 10.99.0.5 80: ~^(reset|refused)$
tcp 169.254.169.254 80: ~^(reset|refused)$
tcp 100.64.0.9 80: ~^(reset|refused)$
tcp 192.168.77.1 8080: ~^(reset|refused)$
tcp 192.168.77.1 80: ~^(reset|refused)$
tcp 203.0.113.200 8080: ~^(reset|refused)$
tcp fd77::1 8080: ~^(reset|refused)$
tcp 203.0.113.53 853 x: ~^(reset|refused)$
tcp 203.0.113.53 443 x: ~^(reset|refused)$
tcp 64:ff9b::a63:5 80: ~^(reset|refused)$
tcp 2002:a63:5::1 80: ~^(reset|refused)$
tcp ::10.99.0.5 80: ~^(reset|refused|unreachable|EINVAL)$
tcp 0.0.0.0 8080: refused
tcp 255.255.255.255 80: ~^(reset|refused|unreachable|EACCES)$
tcp 224.0.0.1 80: ~^(reset|refused|unreachable)$
tcp 192.0.0.1 80: ~^(reset|refused)$
tcp 192.0.0.2 8080: refused
tcp 127.0.0.1 8080: refused
tcp ::1 8080: refused
tcp fe80::1 80: ~^(reset|refused|unreachable|EINVAL)$
tcp ff02::1 80: ~^(reset|refused|unreachable|EINVAL)$
get http://0x0a.0x63.0.5: ~^(reset|refused|noname)$
get http://174260229: ~^(reset|refused|noname)$
END

# Other protocols.
try_in b 'udp 203.0.113.30 7' 'udp 203.0.113.10 443' 'udp 2001:db8::10 443' 'udp 203.0.113.53 5353' 'udp 192.168.77.53 5353' 'udp 224.0.0.251 5353' 'udp ff02::fb 5353' \
	'udp 224.0.0.252 5355' 'fragments 203.0.113.30 7' 'fragments 203.0.113.53 53' 'do ping' 'do packet' 'dns secret.evil.test A at=203.0.113.53' 'dns secret.evil.test A at=203.0.113.53 tcp' \
	'dns secret.evil.test A at=2001:db8::10' 'dns secret.evil.test TXT' 'dns c2VjcmV0.allowed.test A' 'dns secret.evil.test A at=127.0.0.1' 'dns secret.evil.test A at=192.0.0.1 tcp'
same "by protocol" <<'END'
udp 203.0.113.30 7: ~^(EPERM|EACCES|refused|unreachable)$
udp 203.0.113.10 443: ~^(EPERM|EACCES|refused|unreachable)$
udp 2001:db8::10 443: ~^(EPERM|EACCES|refused|unreachable)$
udp 203.0.113.53 5353: ~^(EPERM|EACCES|refused|unreachable)$
udp 192.168.77.53 5353: ~^(EPERM|EACCES|refused|unreachable)$
udp 224.0.0.251 5353: ~^(EPERM|EACCES|refused|unreachable)$
udp ff02::fb 5353: ~^(EPERM|EACCES|refused|unreachable|EINVAL)$
udp 224.0.0.252 5355: ~^(EPERM|EACCES|refused|unreachable)$
fragments 203.0.113.30 7: ~^(EPERM|EACCES|refused|unreachable)$
fragments 203.0.113.53 53: ~^(timeout|EPERM|EACCES|refused|unreachable|FORMERR)
do ping: ~^(EPERM|EACCES|refused|unreachable)$
dns secret.evil.test A at=203.0.113.53: ~^NXDOMAIN
dns secret.evil.test A at=203.0.113.53 tcp: ~^NXDOMAIN
dns secret.evil.test A at=2001:db8::10: ~^NXDOMAIN
dns secret.evil.test TXT: ~^NXDOMAIN
dns c2VjcmV0.allowed.test A: ~^NXDOMAIN
dns secret.evil.test A at=127.0.0.1: refused
dns secret.evil.test A at=192.0.0.1 tcp: ~^NXDOMAIN
END

# Names that lead where nothing may.
try_in b 'get http://mixed.test' 'get http://10.99.0.5 host=mixed.test' 'get http://mapped.test' 'get http://nat64.test' 'get http://evil-alias.test' 'get http://10.99.0.5 host=evil-alias.test' \
	'get http://metadata.test' 'get http://169.254.169.254 host=metadata.test' 'get http://own.test:8080' 'get http://192.168.77.1:8080 host=own.test' 'get http://own-public.test:8080' \
	'get http://203.0.113.200:8080 host=own-public.test' 'get http://loop.test:8080' 'lookup rebind.test 2' 'get http://rebind.test' 'lookup rebind.test 2' 'get http://10.99.0.5 host=rebind.test' \
	'lookup chain.test' 'dns loop-alias.test A' 'dns huge.test A tcp' 'get http://203.0.113.10 host=rebind.test' 'get http://ttl0.test'
same "by name" <<'END'
get http://mixed.test: 200 host=mixed.test sni=- at=203.0.113.10:80
get http://10.99.0.5 host=mixed.test: ~^(reset|refused)$
get http://mapped.test: ~^(noname|reset|refused)$
get http://nat64.test: ~^(noname|reset|refused)$
get http://evil-alias.test: ~^(noname|reset|refused)$
get http://10.99.0.5 host=evil-alias.test: ~^(reset|refused)$
get http://metadata.test: ~^(noname|reset|refused)$
get http://169.254.169.254 host=metadata.test: ~^(reset|refused)$
get http://own.test:8080: ~^(noname|reset|refused)$
get http://192.168.77.1:8080 host=own.test: ~^(reset|refused)$
get http://own-public.test:8080: ~^(noname|reset|refused)$
get http://203.0.113.200:8080 host=own-public.test: ~^(reset|refused)$
get http://loop.test:8080: ~^(noname|reset|refused)$
lookup rebind.test 2: 203.0.113.10
get http://10.99.0.5 host=rebind.test: ~^(reset|refused)$
dns loop-alias.test A: ~^(SERVFAIL|NOERROR|NXDOMAIN)
dns huge.test A tcp: ~^(NOERROR [0-9]+ records|SERVFAIL)
get http://203.0.113.10 host=rebind.test: 200 host=rebind.test sni=- at=203.0.113.10:80
get http://ttl0.test: 200 host=ttl0.test sni=- at=203.0.113.10:80
END

# The network's own configuration.
try_in b 'do raw' 'do packet' 'do route' 'do link' 'do nft' 'do mark' 'do device' 'do transparent' 'do netns' 'do netd_port' 'do listeners' 'do kill_netd'
same "by configuration" <<'END'
do raw: ~^(done|EPERM)$
do packet: ~^(EAFNOSUPPORT|EPERM)$
do route: EPERM
do link: EPERM
do nft: ~^(EAFNOSUPPORT|EPERM)$
do mark: ~^(reset|refused|EPERM)$
do device: ~^(reset|refused|EPERM|unreachable)$
do transparent: ~^(reset|refused|EPERM)$
do netns: ~^(EPERM|ENOSPC|unreachable)$
do netd_port: 401
do listeners: some listeners, 0 answers
do kill_netd: not seen
END
run "$OSBX" exec b /usr/bin/python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
try:
    s.sendto(bytes([0x10, 0, 0, 7, 0, 13, 0, 0]) + b"hello", ("203.0.113.30", 0))
    print("sent")
except PermissionError:
    print("not sent")'
like "$out" '^(sent|not sent)$' "a datagram through a raw socket is one more for the policy"
run "$OSBX" exec b /usr/bin/python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 47)
try:
    s.sendto(b"\0\0\x08\0" + b"E" * 40, ("203.0.113.30", 0))
    print("sent")
except PermissionError:
    print("not sent")'
is "$out" "not sent" "a tunnel in GRE"
run "$OSBX" exec b /usr/bin/python3 -c '
import os, socket
s = socket.socket(socket.AF_INET, getattr(socket, "SOCK_SEQPACKET"), 132)
try:
    s.connect(("203.0.113.30", 7))
    print("connected")
except OSError:
    print("not connected")'
unlike "$out" '^connected' "SCTP"

# What the other side saw.
is "$(arrived '^udp')" 0 "no datagram arrived"
is "$(arrived '^dns.* .*(evil\.test|c2vjcmv0)')" 0 "no question about another name"
is "$(arrived '203\.0\.113\.53')" 0 "nor at another resolver"
is "$(arrived '^tcp (203\.0\.113\.(11|30|20|31|32|200)|2001:db8::(11|30)|10\.|169\.254|100\.64|192\.168|fd77|127|::1)')" 0 "no connection to another address"
is "$(arrived '^http ')" "$(arrived '^http (mixed|rebind|ttl0)\.test - / 203\.0\.113\.10|^http (mixed|rebind|ttl0)\.test - / 2001:db8::10')" "and no request but those that were allowed"

# The policy stands as it was given.
is "$("$OSBX" policy get b | jq -r .defaultAction)" deny "nothing inside has changed the policy"

# Whoever is inside can take every connection to the policy API, and the policy is edited all the same.
run "$OSBX" exec b sh -c '/usr/bin/python3 -c "
import socket, sys, time
s = []
for i in range(300):
    c = socket.create_connection((\"127.0.0.1\", 18080))
    c.send(b\"\" if i % 2 else b\"GET /hea\")
    s.append(c)
open(\"/tmp/held\", \"w\").close()
time.sleep(1000)" </dev/null >/dev/null 2>&1 & until [ -e /tmp/held ]; do sleep 0.05; done'
is "$status" 0 "the policy API has all connections it takes"
run "$OSBX" policy allow b cdn.test
is "$status:$err" 0: "and is asked for an edit"
is "$("$OSBX" policy get b | jq -r '.egress[0].target')" cdn.test "which is made"

# Nor do denials, however many there are.
"$OSBX" exec b /usr/bin/python3 -c '
import os, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("192.0.0.1", 53))
n = 0
while not os.path.exists("/tmp/enough"):
    name = b"n%d" % n
    try:
        s.send(struct.pack("!6H", n & 0xffff, 0x100, 1, 0, 0, 0) + bytes([len(name)]) + name + b"\5other\4test\0\0\1\0\1")
    except OSError:
        pass
    n += 1
    if n == 2000:
        open("/tmp/many", "w").close()' </dev/null >/dev/null 2>&1 &
job=$!
wait_until 30 "$OSBX" exec b test -e /tmp/many
is $? 0 "questions without end"
edits=
for i in 1 2 3 4 5 6 7 8; do
	run "$OSBX" policy allow b "e$i.test"
	edits="$edits$status$err"
done
is "$edits" 00000000 "edits are made all the same"
"$OSBX" exec b touch /tmp/enough
wait $job
wait_until 20 sh -c "[ \"\$(\"$OSBX\" stats --json b | jq .netDenied)\" -ge 2000 ]"
is $? 0 "denials are counted"

# A connection from the time when everything was allowed has no name, and ends when names begin to count.
osbx run -d --name d --network private -v "$here/../helpers:/helpers:ro" @host sleep 1000
try_in d 'lookup cdn.test' 'lookup allowed.test'
"$OSBX" exec d curl -sN --resolve cdn.test:80:203.0.113.10 http://cdn.test/slow </dev/null >"$tmp/slow" 2>&1 &
job=$!
wait_until 20 grep -q tick "$tmp/slow"
is $? 0 "a download"
run sh -c "echo '{\"defaultAction\":\"deny\",\"egress\":[{\"action\":\"allow\",\"target\":\"allowed.test\"}]}' | \"$OSBX\" policy set d"
is "$status:$err" 0: "a policy with another name of the same address"
wait_until 20 sh -c "! kill -0 $job 2>/dev/null"
is $? 0 "the download is cut"
kill $job 2>/dev/null
wait $job
unlike "$?" '^0$' "with an error"
"$OSBX" rm -f d >/dev/null

# Behind an upgrade that some server has not made, a blank does not hide a request.
run "$OSBX" exec b /usr/bin/python3 -c '
import socket
socket.getaddrinfo("allowed.test", 80)
s = socket.create_connection(("203.0.113.10", 80))
s.sendall(b"GET /ws HTTP/1.1\r\nHost: allowed.test\r\nUpgrade: echo\r\n\r\n")
s.recv(4096)
try:
    s.sendall(b" GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")
    print("read", s.recv(100))
except OSError as e:
    print(type(e).__name__)'
is "$out" ConnectionResetError "a request behind a blank"

# Another sandbox is as far away as the host.
osbx run -d --name c --network private -v "$here/../helpers:/helpers:ro" @host /usr/bin/python3 -m http.server 8000
osbx run -q --network private -v "$here/../helpers:/helpers:ro" @host /usr/bin/python3 /helpers/net_try.py 'tcp 192.0.0.2 8000' 'tcp fd53:4258::2 8000' 'tcp 127.0.0.1 8000'
same "another sandbox" <<'END'
tcp 192.0.0.2 8000: refused
tcp fd53:4258::2 8000: refused
tcp 127.0.0.1 8000: refused
END
done_testing
