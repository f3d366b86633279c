#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user
# Network policies through the lifecycle API: the official Python clients and command line, and the routes themselves.
. "$(dirname "$0")/../helpers/net_lib.sh"
. "$(dirname "$0")/lib.sh"

sdk=${OSBX_TEST_DATA:?}/sdk
python=$sdk/python/bin
export HOME="$tmp" OPENSANDBOX_DISABLE_METRICS=1
port=8123
"$OSBX" serve --limits best-effort --listen tcp:127.0.0.1:$port 2>"$tmp/serve.err" &
server=$!
end_server() {
	kill -9 "$server" 2>/dev/null
	"$OSBX" ps -aq 2>/dev/null | xargs -r "$OSBX" rm -f >/dev/null 2>&1
	cleanup
}
trap end_server EXIT
wait_until 10 curl -s -o /dev/null http://127.0.0.1:$port/health

for proxy in '' --server-proxy; do
	run timeout 120 "$python/python" "$here/../sdk/python_policy.py" 127.0.0.1:$port @host $proxy
	is "$status" 0 "python${proxy:+, through the server}"
	[ "$status" = 0 ] || note "$(printf '%s\n%s' "$out" "$err" | tail -n 15)"
	is "$("$OSBX" ps -aq)" "" "and leaves nothing"
done

if command -v node >/dev/null; then
	run sh -c 'cd "$1" && exec timeout 120 node "$2" "$3" @host' sh "$sdk/js" "$here/../sdk/policy.mjs" 127.0.0.1:$port
	is "$status" 0 "javascript"
	[ "$status" = 0 ] || note "$(printf '%s\n%s' "$out" "$err" | tail -n 15)"
	is "$("$OSBX" ps -aq)" "" "and leaves nothing"
else
	not_ok "node is not installed"
fi

# api METHOD PATH [BODY]: status and body in $out
api() {
	if [ $# = 3 ]; then
		run curl -s -w ' %{http_code}' -X "$1" -H 'Content-Type: application/json' -d "$3" "http://127.0.0.1:$port/v1$2"
	else
		run curl -s -w ' %{http_code}' -X "$1" "http://127.0.0.1:$port/v1$2"
	fi
	code=${out##* }
	out=${out% *}
}
create() {
	api POST /sandboxes "{\"image\":{\"uri\":\"@host\"},\"entrypoint\":[\"sleep\",\"1000\"],\"timeout\":600,\"resourceLimits\":{}$1}"
}
create ',"networkPolicy":{"defaultAction":"deny","egress":[{"action":"allow","target":"allowed.test"}]}'
is "$code" 202 "a sandbox with a policy"
id=$(printf '%s' "$out" | jq -r .id)
reached() {
	"$OSBX" exec "$id" curl -s -o /dev/null -m 5 -w '%{http_code}' "http://$1" </dev/null
}
wait_until 10 sh -c "\"$OSBX\" inspect $id | jq -e '.status.state == \"Running\"'"
is "$(reached allowed.test) $(reached other.test)" "200 000" "it is enforced"
api GET "/sandboxes/$id/networkpolicy"
is "$code $(printf '%s' "$out" | jq -c .policy)" '200 {"defaultAction":"deny","egress":[{"action":"allow","target":"allowed.test"}]}' "the route tells it"
api PATCH "/sandboxes/$id/networkpolicy" '[{"action":"allow","target":"other.test"}]'
is "$code $(reached other.test)" "200 200" "PATCH"
api DELETE "/sandboxes/$id/networkpolicy" '["allowed.test"]'
is "$code $(reached allowed.test) $(reached other.test)" "200 000 200" "DELETE"
api PUT "/sandboxes/$id/networkpolicy" '{"defaultAction":"allow","egress":[{"action":"deny","target":"other.test"}]}'
is "$code $(reached allowed.test) $(reached other.test)" "200 200 000" "PUT"
api PUT "/sandboxes/$id/networkpolicy" '{"egress":[{"action":"perhaps","target":"x"}]}'
like "$code" '^4[02]' "one that is none is refused"
is "$(reached allowed.test) $(reached other.test)" "200 000" "and changes nothing"
api GET "/sandboxes/$id/endpoints/18080"
endpoint=$(printf '%s' "$out" | jq -r .endpoint)
token=$(printf '%s' "$out" | jq -r '.headers["OPENSANDBOX-EGRESS-AUTH"]')
is "$(curl -s "http://$endpoint/policy" -H "OPENSANDBOX-EGRESS-AUTH: $token" | jq -r .policy.defaultAction)" allow "the endpoint of port 18080 with its token"
is "$(curl -s -o /dev/null -w '%{http_code}' "http://$endpoint/policy")" 401 "and without"
is "$(curl -s "http://$endpoint/policy/denials" -H "OPENSANDBOX-EGRESS-AUTH: $token" | jq -r '[.denials[].name] | index("other.test") != null')" true "has what was denied"
"$OSBX" rm -f "$id" >/dev/null

# Without a policy, and with an empty one.
create ''
id=$(printf '%s' "$out" | jq -r .id)
is "$code $(reached allowed.test) $(reached private.test)" "202 200 000" "without a policy what is public is reached"
"$OSBX" rm -f "$id" >/dev/null
create ',"networkPolicy":{}'
id=$(printf '%s' "$out" | jq -r .id)
is "$code $(reached allowed.test) $(reached private.test)" "202 200 000" "with an empty one, too, as the contract has it"
"$OSBX" rm -f "$id" >/dev/null
create ',"networkPolicy":{"egress":[]}'
id=$(printf '%s' "$out" | jq -r .id)
is "$code $(reached allowed.test)" "202 000" "without a default action and rules nothing"

# The command line.
osb() {
	run timeout 60 "$python/osb" --domain 127.0.0.1:$port --protocol http "$@"
}
osb egress get "$id"
is "$status" 0 "osb egress get"
osb egress patch "$id" --rule allow=allowed.test
is "$status $(reached allowed.test)" "0 200" "osb egress patch"
[ "$status" = 0 ] || note "$out $err"
"$OSBX" rm -f "$id" >/dev/null
is "$(grep -c . "$tmp/serve.err")" "$(grep -c -e listening -e keys -e http "$tmp/serve.err")" "the server has nothing to complain of"
done_testing
