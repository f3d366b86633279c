#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user
# Private networks and their policies with real servers and an upstream resolver of a world of their own: what is reached, what is
# not and how that looks, the resolver, names bound to addresses, edits while it runs, the log.
. "$(dirname "$0")/../helpers/net_lib.sh"
. "$(dirname "$0")/lib.sh"

policy() {
	"$OSBX" policy "$@" </dev/null
}
# hundredths of seconds since boot
now() {
	cut -d ' ' -f 1 /proc/uptime | tr -d .
}

# As it comes: everything public.
try --network private -- 'get https://allowed.test' 'get https://other.test' 'get http://allowed.test/x' 'tcp echo.test 7 hello' 'tcp ssh.test 22' 'tcp 2001:db8::30 7 six' \
	'get https://[2001:db8::10]' 'lookup allowed.test' 'get http://v6.test' 'tcp 203.0.113.30 9' 'get http://private.test' 'get http://10.99.0.5' \
	'get http://own.test' 'get http://own-public.test' 'get http://192.168.77.1:8080' 'get http://169.254.169.254' 'get http://cgnat.test' 'udp 203.0.113.30 7'
same "default policy" <<'END'
get https://allowed.test: 200 host=allowed.test sni=allowed.test at=203.0.113.10:443
get https://other.test: 200 host=other.test sni=other.test at=203.0.113.11:443
get http://allowed.test/x: 200 host=allowed.test sni=- at=203.0.113.10:80
tcp echo.test 7 hello: hello
tcp ssh.test 22: SSH-2.0-test
tcp 2001:db8::30 7 six: six
get https://[2001:db8::10]: ~^200 .*at=2001:db8::10:443
lookup allowed.test: 2001:db8::10 203.0.113.10
get http://v6.test: 200 host=v6.test sni=- at=2001:db8::66:80
tcp 203.0.113.30 9: ~^(reset|refused)$
get http://private.test: noname
get http://10.99.0.5: ~^(reset|refused)$
get http://own.test: noname
get http://own-public.test: ~^(reset|refused|noname)$
get http://192.168.77.1:8080: ~^(reset|refused)$
get http://169.254.169.254: ~^(reset|refused)$
get http://cgnat.test: noname
udp 203.0.113.30 7: hello
END
is "$(arrived '^tcp (10\.|169\.|192\.|100\.)')" 0 "nothing arrives where nothing may"

# Denied but for a name, as an agent meets it.
osbx run -q --network private --deny '*' --allow allowed.test -v "$world/ca.pem:/ca.pem:ro" @host curl -sS --cacert /ca.pem https://allowed.test
like "$status:$out" '^0:host=allowed.test sni=allowed.test at=(203\.0\.113\.10|2001:db8::10):443$' "an allowed name"
forget
begin=$(now)
osbx run -q --network private --deny '*' --allow allowed.test -v "$world/ca.pem:/ca.pem:ro" @host curl -sS --cacert /ca.pem https://other.test
is "$status" 6 "another one does not exist"
[ $(($(now) - begin)) -lt 300 ]
is $? 0 "which is known at once"
is "$(arrived '^dns.* other\.test')" 0 "no resolver outside hears of it"
osbx run --network private --deny '*' --allow allowed.test -v "$world/ca.pem:/ca.pem:ro" @host curl -sS --cacert /ca.pem https://other.test
like "$err" 'network policy refused other\.test' "and osbx says whose doing it was"

# One sandbox for the rest.
osbx run -d --name p --network private --deny '*' --allow allowed.test --allow '*.allowed.test' --allow alias.test --allow short.test --allow chain.test --allow echo.test:7 \
	--allow talk.test --allow big.test --allow huge.test --allow 198.51.100.40 --allow 10.99.0.5:80 --allow mixed.test --allow rebind.test \
	--allow mapped.test --allow nat64.test --allow evil-alias.test --allow loop-alias.test --allow ttl0.test --allow v6only.test --allow lame.test \
	--allow servfail.test --allow garbage.test --allow wrong-id.test --allow nosuch.test --allow silent-first.test --allow own.test \
	-v "$here/../helpers:/helpers:ro" @host sleep 1000
is "$status:$err" 0: "a sandbox with a policy starts"
try_in p 'dns allowed.test A' 'dns allowed.test AAAA' 'dns ALLOWED.Test. A' 'dns sub.allowed.test A' 'dns allowed.test A tcp' 'dns other.test A' 'dns allowed.test.evil.test A' \
	'dns allowed.test HTTPS' 'dns allowed.test TXT' 'dns nosuch.test A' 'dns alias.test A' 'dns short.test A' 'dns evil-alias.test A' 'dns mixed.test A' \
	'dns mapped.test AAAA' 'dns nat64.test AAAA' 'dns v6only.test A' 'dns ttl0.test A' 'dns big.test A tcp' 'dns big.test A size=512' 'dns servfail.test A' \
	'dns garbage.test A' 'dns loop-alias.test A' 'dns allowed.test A at=203.0.113.53' 'dns other.test A at=203.0.113.53' 'dns other.test A at=203.0.113.53 tcp' \
	'dns other.test A at=2001:db8::10' 'dns own.test A'
same "resolver" <<'END'
dns allowed.test A: NOERROR 203.0.113.10
dns allowed.test AAAA: NOERROR 2001:db8::10
dns ALLOWED.Test. A: NOERROR 203.0.113.10
dns sub.allowed.test A: NOERROR 203.0.113.10
dns allowed.test A tcp: NOERROR 203.0.113.10
dns other.test A: ~^NXDOMAIN ede=1[57]$
dns allowed.test.evil.test A: ~^NXDOMAIN ede=1[57]$
dns allowed.test HTTPS: ~^NOERROR( ede=[0-9]+)?$
dns allowed.test TXT: NOERROR type16
dns nosuch.test A: NXDOMAIN
dns alias.test A: NOERROR cname:deep.alias.test cname:allowed.test 203.0.113.10
dns short.test A: NOERROR 7 records
dns evil-alias.test A: ~10\.99\.0\.5
dns mixed.test A: ~203\.0\.113\.10
dns mapped.test AAAA: ~^NOERROR
dns nat64.test AAAA: ~^NOERROR
dns v6only.test A: ~^NOERROR( ede=[0-9]+)?$
dns ttl0.test A: NOERROR 203.0.113.10 ttl0
dns big.test A tcp: NOERROR 100 records
dns big.test A size=512: ~^NOERROR truncated
dns servfail.test A: ~^SERVFAIL
dns garbage.test A: ~^SERVFAIL
dns loop-alias.test A: ~^(SERVFAIL|NOERROR)
dns allowed.test A at=203.0.113.53: NOERROR 203.0.113.10
dns other.test A at=203.0.113.53: ~^NXDOMAIN
dns other.test A at=203.0.113.53 tcp: ~^NXDOMAIN
dns other.test A at=2001:db8::10: ~^NXDOMAIN
dns own.test A: ~^(NXDOMAIN|NOERROR)( ede=[0-9]+)?$
END
is "$(arrived '^dns.* (other|.*evil)\.test|203\.0\.113\.53')" 0 "no other resolver is asked, and none about denied names"

forget
try_in p 'get https://allowed.test' 'get https://sub.allowed.test' 'get https://[2001:db8::10] sni=allowed.test host=allowed.test' \
	'get https://203.0.113.10 sni=allowed.test host=allowed.test' 'get https://203.0.113.10 sni=-' 'get https://203.0.113.11 sni=allowed.test host=allowed.test' \
	'get https://cdn.test at=203.0.113.10' 'get https://allowed.test sni=other.test' 'get http://allowed.test' 'get http://allowed.test host=other.test' \
	'kept allowed.test 203.0.113.10 allowed.test' 'kept allowed.test 203.0.113.10 cdn.test' 'pipelined allowed.test 203.0.113.10 allowed.test' \
	'pipelined allowed.test 203.0.113.10 cdn.test' 'upgrade allowed.test 203.0.113.10' 'upgrade cdn.test 203.0.113.10' 'smuggle allowed.test 203.0.113.10 cdn.test' '+pieces allowed.test 203.0.113.10 1' \
	'+pieces cdn.test 203.0.113.10 1' 'records allowed.test 203.0.113.10' 'records cdn.test 203.0.113.10' '+late allowed.test 203.0.113.10' 'tcp 203.0.113.10 443 SSH-2.0-x' \
	'lookup talk.test' '+tcp talk.test 443' '+tcp talk.test 80' 'tunnel other.test 203.0.113.10' 'tcp echo.test 7 hi' 'get http://echo.test' 'get https://198.51.100.40 sni=-' \
	'get http://198.51.100.40:8080' 'get http://10.99.0.5' 'get http://10.99.0.5:8080' 'get http://mixed.test' 'get http://198.51.100.41' 'get http://allowed.test:8080'
same "names and addresses" <<'END'
get https://allowed.test: 200 host=allowed.test sni=allowed.test at=203.0.113.10:443
get https://sub.allowed.test: 200 host=sub.allowed.test sni=sub.allowed.test at=203.0.113.10:443
get https://[2001:db8::10] sni=allowed.test host=allowed.test: 200 host=allowed.test sni=allowed.test at=2001:db8::10:443
get https://203.0.113.10 sni=allowed.test host=allowed.test: 200 host=allowed.test sni=allowed.test at=203.0.113.10:443
get https://203.0.113.10 sni=-: ~^(reset|eof)$
get https://203.0.113.11 sni=allowed.test host=allowed.test: ~^(reset|refused|eof)$
get https://cdn.test at=203.0.113.10: ~^(reset|eof)$
get https://allowed.test sni=other.test: ~^(reset|eof)$
get http://allowed.test: 200 host=allowed.test sni=- at=203.0.113.10:80
get http://allowed.test host=other.test: reset
kept allowed.test 203.0.113.10 allowed.test: 200 then 200
kept allowed.test 203.0.113.10 cdn.test: 200 then reset
pipelined allowed.test 203.0.113.10 allowed.test: 2 answers
pipelined allowed.test 203.0.113.10 cdn.test: ~^[01] answers
upgrade allowed.test 203.0.113.10: 101 ping
upgrade cdn.test 203.0.113.10: reset
smuggle allowed.test 203.0.113.10 cdn.test: reset
pieces allowed.test 203.0.113.10 1: hello
pieces cdn.test 203.0.113.10 1: ~^(reset|eof)( slow)?$
records allowed.test 203.0.113.10: hello
records cdn.test 203.0.113.10: ~^(reset|eof)$
late allowed.test 203.0.113.10: hello
tcp 203.0.113.10 443 SSH-2.0-x: ~^(reset|eof)$
lookup talk.test: 203.0.113.31
tcp talk.test 443: ~^(reset|eof)( slow)?$
tcp talk.test 80: ~^(reset|eof)( slow)?$
tunnel other.test 203.0.113.10: reset
tcp echo.test 7 hi: hi
get http://echo.test: ~^(reset|refused)$
get https://198.51.100.40 sni=-: 200 host=198.51.100.40 sni=- at=198.51.100.40:443
get http://198.51.100.40:8080: 200 host=198.51.100.40:8080 sni=- at=198.51.100.40:8080
get http://10.99.0.5: 200 host=10.99.0.5 sni=- at=10.99.0.5:80
get http://10.99.0.5:8080: ~^(reset|refused)$
get http://mixed.test: ~^200 .*at=(203\.0\.113\.10|10\.99\.0\.5):80
get http://198.51.100.41: ~^(reset|refused)$
get http://allowed.test:8080: 200 host=allowed.test:8080 sni=- at=203.0.113.10:8080
END
is "$(arrived '^http (cdn|other)\.test|^http .* (cdn|other)\.test|^tcp (203\.0\.113\.11|198\.51\.100\.41) ')" 0 "no request for another name or address arrived"

# The log.
run policy log p
like "$out" 'other\.test' "the log names a name"
like "$out" '203\.0\.113\.11.* port 443' "an address and port"
like "$out" 'default action' "and why"
is "$(policy log --json p | jq -r 'select(.name == "other.test") | "\(.time | test("Z$")) \(.reason)"' | head -n 1)" "true default action" "as JSON"

# Edits.
is "$(policy get p | jq -r '.defaultAction, .egress[0].target')" "deny
allowed.test" "the policy that is in force"
begin=$(now)
run policy allow p other.test
is "$status:$err" 0: "one more name is allowed"
try_in p 'get https://other.test'
[ $(($(now) - begin)) -lt 300 ]
is "$?:${out%% host=*}" "0:get https://other.test: 200" "and reached"
"$OSBX" exec p /usr/bin/python3 /helpers/net_try.py 'get http://other.test/slow' >"$tmp/slow" 2>&1 &
job=$!
"$OSBX" exec p curl -sN http://other.test/slow >"$tmp/ticks" 2>&1 &
curl_job=$!
wait_until 20 grep -q tick "$tmp/ticks"
is $? 0 "a download runs"
begin=$(now)
run policy deny p other.test
is "$status:$err" 0: "it is denied again"
wait $curl_job
curl_status=$?
[ $curl_status != 0 ] && [ $(($(now) - begin)) -lt 200 ]
is $? 0 "its connections are cut"
wait $job
try_in p 'dns other.test A' 'get http://203.0.113.11 host=other.test' 'get http://allowed.test'
same "after the edit" <<'END'
dns other.test A: ~^NXDOMAIN
get http://203.0.113.11 host=other.test: ~^(reset|refused)$
get http://allowed.test: 200 host=allowed.test sni=- at=203.0.113.10:80
END
run policy allow p 'no name'
is "$status" 125 "a target that is none is refused"
like "$err" 'no name' "by its text"
run sh -c "echo '{\"defaultAction\":\"deny\",\"egress\":[{\"action\":\"allow\",\"target\":\"other.test\"}]}' | \"$OSBX\" policy set p"
is "$status" 0 "a whole policy"
try_in p 'dns allowed.test A' 'get http://203.0.113.10 host=allowed.test' 'get https://other.test'
same "the new policy" <<'END'
dns allowed.test A: ~^NXDOMAIN
get http://203.0.113.10 host=allowed.test: ~^(reset|refused)$
get https://other.test: 200 host=other.test sni=other.test at=203.0.113.11:443
END
run policy remove p other.test
is "$status:$(policy get p | jq -c .egress)" '0:[]' "a rule is removed"
try_in p 'get https://other.test'
like "$out" 'noname|reset' "and nothing is left"
is "$("$OSBX" inspect p | jq -r '"\(.network) \(.egress.policy.defaultAction)"')" "private deny" "inspect has it"
like "$("$OSBX" exec p sh -c 'echo $OSBX_NETWORK; cat /etc/resolv.conf' </dev/null)" 'private' "the environment says where it stands"
"$OSBX" rm -f p >/dev/null

# Off switch, other kinds, what cannot be.
try --network private --deny '*' --allow allowed.test --no-name-check -- 'lookup allowed.test' 'get https://203.0.113.10 sni=other.test host=x' 'get https://203.0.113.11 sni=-'
same "without the check of names" <<'END'
get https://203.0.113.10 sni=other.test host=x: 200 host=x sni=other.test at=203.0.113.10:443
get https://203.0.113.11 sni=-: ~^(reset|refused|eof)$
END
try --network none -- 'get http://203.0.113.10' 'lookup allowed.test'
same "no network" <<'END'
get http://203.0.113.10: unreachable
lookup allowed.test: ~^(again|noname)
END
osbx run --network host --deny '*' @host true
like "$status:$err" '^125:.*no policy is enforced' "a policy needs a private network"
osbx run --network private --allow 'a b' @host true
like "$status:$err" '^125:.*a b' "a target that is none"

# Resolvers of the host that change.
osbx run -d --name r --network private -v "$here/../helpers:/helpers:ro" @host sleep 1000
forget
try_in r 'dns allowed.test A'
is "$(arrived '^dns udp allowed.test A 192.168.77.53'):$(arrived 77.54)" 1:0 "the first resolver is asked"
printf 'nameserver 192.168.77.54\n' >/etc/resolv.conf.new
mv /etc/resolv.conf.new /etc/resolv.conf
forget
wait_until 15 sh -c "\"$OSBX\" exec r /usr/bin/python3 /helpers/net_try.py 'dns other.test A' >/dev/null; grep -q 'other.test A 192.168.77.54' '$world/log' || { : >'$world/log'; false; }"
is $? 0 "another one when resolv.conf is another one"
printf 'nameserver 192.168.77.1\nnameserver 192.168.77.53\n' >/etc/resolv.conf.new
mv /etc/resolv.conf.new /etc/resolv.conf
wait_until 15 sh -c "\"$OSBX\" exec r /usr/bin/python3 /helpers/net_try.py 'dns cdn.test A' | grep -q NOERROR"
is $? 0 "one that does not answer is left for the next"
try_in r 'dns lame.test A'
like "$out" 'SERVFAIL' "and nobody waits for ever"
"$OSBX" rm -f r >/dev/null
done_testing
