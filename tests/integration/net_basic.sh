#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single nested
# A private network from outside: what is said of it, its policy by command and API, the death of netd and keeper.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
sock=$tmp/api.sock
server=

end_all() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null
	cleanup
}
trap end_all EXIT

# field FILTER: of what inspect says of n
field() {
	"$OSBX" inspect "${2:-n}" | jq -cr "$1"
}

# netd_of SANDBOX: pid of its netd
netd_of() {
	for p in $(cat "/proc/$(field .keeperPid "$1")/task/"*/children); do
		tr '\0' ' ' <"/proc/$p/cmdline" | grep -q '^osbx netd' && echo "$p"
	done
}

# ---- what there is
"$OSBX" run -q -d --name n "$image" sleep 100000 >/dev/null </dev/null
is "$(field .network)" private "the default network"
is "$(field '[.egress.state, .egress.mode, .egress.policy]')" \
	'["enforced","allow_all",{"defaultAction":"allow","egress":[]}]' "its policy"
is "$(field .request.policy)" null "nothing was asked for"
osbx exec n sh -c 'ls /sys/class/net; grep ^nameserver /etc/resolv.conf; echo $OSBX_NETWORK'
is "$(echo $out)" 'lo nameserver 192.0.0.1 private' "inside: a loopback, a resolver, a name"
osbx exec n grep '^#' /etc/resolv.conf
like "$out" 'osbx policy allow [0-9a-f-]+ TARGET' "and how to ask for more"
like "$("$OSBX" ps | tail -1)" ' private ' "ps says it"
is "$(field .network "$("$OSBX" run -d --network none "$image" sleep 1000 </dev/null)")" none "another one"
osbx run --network host --deny '*' "$image" true
like "$status/$err" '^125/osbx: network host: no policy is enforced there$' "a policy with the machine's network"
osbx run --network none --no-name-check "$image" true
is "$status" 125 "or with none"
osbx run --allow 'no name' "$image" true
like "$status/$err" '^125/osbx: option --allow: ' "what is no target"
printf '[sandbox]\nnetwork = none\n' >"$tmp/conf"
OSBX_CONFIG="$tmp/conf" osbx run "$image" sh -c 'echo "$OSBX_NETWORK"'
is "$status/$out" 0/ "the configuration has a say"
OSBX_CONFIG="$tmp/conf" osbx run --deny '*' "$image" sh -c 'echo "$OSBX_NETWORK"'
is "$status/$out" 0/private "but a policy means what enforces it"

# ---- nothing is reached that is not public
own=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -m1 -E '^[0-9.]+$')
refused_at_once() {
	before=$(date +%s%N)
	osbx exec n sh -c "$1"
	took=$((($(date +%s%N) - before) / 1000000))
	is "$([ "$status" != 0 ] && echo failed) $([ "$took" -lt 5000 ] && echo soon)" "failed soon" "$2"
}
for addr in 10.0.0.1 169.254.169.254 192.168.0.1 ${own:-127.0.0.1}; do
	refused_at_once "nc -w 20 $addr 80 </dev/null | grep . || exit 1" "$addr is refused at once"
done
refused_at_once 'ping -c1 -w20 192.0.2.77' "no ICMP goes out"

# ---- the policy of a running one
osbx policy get n
is "$status/$out" '0/{"defaultAction":"allow","egress":[]}' "policy get"
osbx policy deny n '*' bad.test
is "$status" 0 "policy deny"
osbx policy allow n good.test '*.good.test:443' 10.1.0.0/16
is "$status" 0 "policy allow"
is "$(field '[.egress.mode, .egress.policy.defaultAction, .egress.policy.egress[].target]')" \
	'["enforcing","deny","good.test","*.good.test:443","10.1.0.0/16","bad.test"]' "is on record"
osbx policy remove n BAD.test
is "$status/$("$OSBX" policy get n | jq '.egress | length')" 0/3 "policy remove"
echo '{"egress":[{"action":"allow","target":"a.test"}]}' >"$tmp/policy"
osbx policy set n "$tmp/policy"
is "$status/$("$OSBX" policy get n)" '0/{"defaultAction":"deny","egress":[{"action":"allow","target":"a.test"}]}' "policy set"
osbx policy set n
is "$status/$("$OSBX" policy get n | jq -r .defaultAction)" 125/deny "an empty one is none"
osbx policy allow n 'no name'
like "$status/$err" '^125/osbx: policy: .*no name' "a mistake is refused, and named"
osbx policy frobnicate n
like "$status/$err" '^125/osbx: policy: unknown verb' "an unknown verb"
osbx exec n nslookup denied.test
[ "$status" != 0 ] && ok "a name that is not allowed" || not_ok "a name that is not allowed"
wait_until 20 sh -c "'$OSBX' policy log n | grep -q denied.test" && ok "is in the log" || not_ok "is in the log"
like "$("$OSBX" policy log --json n | jq -r 'select(.name == "denied.test") | .time' | head -1)" \
	'^[0-9]{4}-[0-9]{2}-[0-9]{2}T' "with its time"
osbx policy get "$("$OSBX" run -d --network none "$image" sleep 1000 </dev/null)"
like "$status/$err" '^125/osbx: sandbox .* has no running private network' "one without"

# ---- netd dies: closed, and there again
is "$(netd_of n | wc -l)" 1 "one netd"
token=$(jq -r .token "$OSBX_RUNTIME/sandboxes/$(field .id)/egress.json")
kill -9 "$(netd_of n)"
wait_until 20 sh -c "'$OSBX' policy get n" && ok "it is started again" || not_ok "it is started again"
is "$("$OSBX" policy get n | jq -cr '.egress[].target')" a.test "with the policy that was in force"
[ "$(jq -r .token "$OSBX_RUNTIME/sandboxes/$(field .id)/egress.json")" != "$token" ] && ok "and another token" ||
	not_ok "and another token"
is "$(stat -c %a "$OSBX_RUNTIME/sandboxes/$(field .id)/egress.json")" 600 "which is its owner's"
for _ in 1 2 3 4 5 6 7; do
	wait_until 20 sh -c "'$OSBX' policy get n || [ '$(field .egress.state)' = closed ]"
	kill -9 $(netd_of n) 2>/dev/null
	wait_until 2 sh -c "[ -z \"\$(pgrep -P $(field .keeperPid) -f '^osbx netd')\" ]"
done
wait_until 20 sh -c "[ \"\$('$OSBX' inspect n | jq -r .egress.state)\" = closed ]" &&
	ok "too often: it stays closed" || not_ok "too often: it stays closed"
refused_at_once 'nslookup a.test' "and nothing goes out"
osbx policy get n
like "$status/$err" '^125/osbx: the network of sandbox .* is closed: netd ended' "which is said"

# ---- the keeper dies, and netd with it
"$OSBX" run -d --name k "$image" sleep 100000 >/dev/null </dev/null
pid=$(netd_of k)
kill -9 "$(field .keeperPid k)"
wait_until 20 sh -c "! [ -e /proc/$pid ]" && ok "without a keeper no netd" || not_ok "without a keeper no netd"
"$OSBX" run -d --name e "$image" sleep 100000 >/dev/null </dev/null
pid=$(netd_of e)
"$OSBX" stop e >/dev/null
wait_until 20 sh -c "! [ -e /proc/$pid ]" && ok "nor without a sandbox" || not_ok "nor without a sandbox"
osbx policy get e
like "$status/$err" '^125/osbx: ' "which has no policy then"
is "$(field .network e)" private "and still says what it had"

# ---- the API
"$OSBX" serve --limits best-effort --listen "unix:$sock" 2>"$tmp/serve.err" &
server=$!
wait_until 20 curl -s -o /dev/null --unix-socket "$sock" http://x/health
# api METHOD PATH [BODY]: status in $status, body in $out
api() {
	status=$(curl -s -o "$tmp/body" -w '%{http_code}' --max-time 60 --unix-socket "$sock" -X "$1" ${3+-d "$3"} ${token:+-H "OPENSANDBOX-EGRESS-AUTH: $token"} "http://x$2")
	out=$(cat "$tmp/body")
}
token=
api POST /v1/sandboxes '{"image":{"uri":"@host"},"timeout":600,"resourceLimits":{},"entrypoint":["sleep","1000"],"networkPolicy":{"defaultAction":"deny","egress":[{"action":"allow","target":"a.test"}]}}'
id=$(jq -r .id "$tmp/body")
is "$status" 202 "a creation with a policy"
api GET "/v1/sandboxes/$id/networkpolicy"
is "$status $(jq -cr '[.status, .mode, .policy]' "$tmp/body")" \
	'200 ["ok","enforcing",{"defaultAction":"deny","egress":[{"action":"allow","target":"a.test"}]}]' "networkpolicy"
api PATCH "/sandboxes/$id/networkpolicy" '[{"action":"deny","target":"b.test"}]'
api DELETE "/v1/sandboxes/$id/networkpolicy" '["A.test"]'
api GET "/v1/sandboxes/$id/networkpolicy"
is "$status $(jq -cr '[.policy.egress[].target]' "$tmp/body")" '200 ["b.test"]' "patched, deleted"
api PATCH "/v1/sandboxes/$id/networkpolicy" '[{"action":"deny","target":"no name"}]'
is "$status $(jq -r .code "$tmp/body")" "422 GENERAL::VALIDATION_ERROR" "a mistake has its place"
api GET "/v1/sandboxes/$id/endpoints/18080"
path=$(jq -r .endpoint "$tmp/body")
token=$(jq -r '.headers["OPENSANDBOX-EGRESS-AUTH"]' "$tmp/body")
api GET "${path#x}/policy"
is "$status $(jq -cr .policy.defaultAction "$tmp/body")" "200 deny" "the policy API by its endpoint"
token=wrong
api GET "${path#x}/policy"
is "$status $out" "401 unauthorized" "not without its token"
api GET "/v1/sandboxes/$id/networkpolicy"
is "$status" 200 "which the lifecycle API does not ask for"
token=
api GET "/v1/sandboxes/$("$OSBX" run -d --network none "$image" sleep 1000 </dev/null)/networkpolicy"
is "$status $(jq -r .code "$tmp/body")" "409 SANDBOX::NOT_RUNNING" "one without"

done_testing
