# SPDX-License-Identifier: Apache-2.0
# modes: root user single
# The lifecycle API over a Unix socket and TCP: routes, errors, keys, kill -9 of the server, two servers, the proxy.
. "$(dirname "$0")/lib.sh"

image="@host"
sock=$tmp/api.sock
servers=

# serve [options]: start a server, its pid in $server; waits until it answers on $sock
serve() {
	"$OSBX" serve --limits best-effort --listen "unix:$sock" "$@" 2>"$tmp/serve.err" &
	server=$!
	servers="$servers $server"
	for _ in $(seq 200); do
		curl -s -o "$tmp/health" --unix-socket "$sock" http://x/health && return 0
		sleep 0.05
	done
	not_ok "the server answers"
	note "$(cat "$tmp/serve.err")"
	done_testing
}

end_servers() {
	for pid in $servers; do
		kill -9 "$pid" 2>/dev/null
	done
	"$OSBX" ps -aq 2>/dev/null | xargs -r "$OSBX" rm -f >/dev/null 2>&1
	cleanup
}
trap end_servers EXIT

# api METHOD PATH [BODY]: status in $status, body in $out
api() {
	method=$1
	path=$2
	shift 2
	status=$(curl -s -o "$tmp/body" -w '%{http_code}' --max-time 60 --unix-socket "$sock" -X "$method" \
		${1+-d "$1"} "http://x$path" 2>"$tmp/curl.err")
	out=$(cat "$tmp/body" 2>/dev/null)
}

# field FILTER: of the last body
field() {
	jq -r "$1" "$tmp/body"
}

# body [MEMBERS]: of a create
body() {
	printf '{"image":{"uri":"%s"},"timeout":600,"resourceLimits":{"cpu":"1","memory":"2Gi"},"entrypoint":["sleep","1000"]%s}' \
		"$image" "${1:+,$1}"
}

serve
is "$(cat "$tmp/health")" '{"status":"healthy"}' "health"
api GET /version
is "$status $(field '.version | type')" "200 string" "version"

# A life.
api POST /v1/sandboxes "$(body '"metadata":{"team":"a","n":"1"},"env":{"FOO":"bar","NO":null},"secureAccess":false,"extensions":{"opensandbox.extensions.x":"y","other":"z"}')"
is "$status $(field .status.state)" "202 Running" "a sandbox is created and runs"
id=$(field .id)
is "$(field 'has("image")')" false "the answer of a create has no image"
is "$(field '.metadata.team + .metadata.n')" a1 "metadata"
is "$(field '.extensions | keys | join(",")')" "opensandbox.extensions.x" "extensions that are shown"
is "$(field '.entrypoint | join(" ")')" "sleep 1000" "the command as it was sent"
like "$(field .createdAt)" '^[0-9-]*T[0-9:]*\.[0-9]{6}Z$' "times have microseconds and a zone"
is "$(field '[.. | select(. == null)] | length')" 0 "no member is null"
created=$(field .createdAt)
api GET "/v1/sandboxes/$id"
is "$status $(field .image.uri) $(field .createdAt)" "200 $image $created" "get"
api GET "/sandboxes/$id"
is "$status" 200 "the same without /v1"
is "$("$OSBX" ps -q)" "$id" "the command line sees it"
is "$("$OSBX" exec "$id" sh -c 'echo $FOO,$OPENSANDBOX_ID,${NO-unset}')" "bar,$id,unset" "its environment"

api GET /metrics
like "$out" '^osbx_creation_stage_seconds_count\{stage="launch"\} 1$' "numbers: stages of creations"
like "$out" '^osbx_creations_total\{result="running"\} 1$' "creations"
like "$out" '^osbx_sandboxes\{state="Running"\} 1$' "sandboxes by state"

# Lists.
api POST /v1/sandboxes "$(body '"metadata":{"team":"b"}')"
second=$(field .id)
api GET /v1/sandboxes
is "$status $(field '[.items[].id] | join(" ")')" "200 $second $id" "newest first"
is "$(field '.pagination | [.page,.pageSize,.totalItems,.totalPages,.hasNextPage] | map(tostring) | join(" ")')" \
	"1 20 2 1 false" "pagination"
api GET '/v1/sandboxes?pageSize=1&page=2'
is "$(field '[.items[].id] | join(" ")') $(field .pagination.totalPages)" "$id 2" "the second page"
api GET '/v1/sandboxes?metadata=team%3Da'
is "$(field '[.items[].id] | join(" ")')" "$id" "filter of metadata"
api GET '/v1/sandboxes?metadata=team%253Da%2526n%253D1'
is "$status" 400 "pairs that are encoded as a whole are malformed"
api GET '/v1/sandboxes?metadata=te%2561m%3D%2561'
is "$(field '[.items[].id] | join(" ")')" "$id" "keys and values that are encoded once more"
api GET '/v1/sandboxes?state=paused&state=RUNNING'
is "$(field .pagination.totalItems)" 2 "states in any case, either of them"
api GET '/v1/sandboxes?state=Paused'
is "$(field .pagination.totalItems) $(field .pagination.totalPages)" "0 0" "none"
for query in page=0 pageSize=201 page=x pageSize=-1; do
	api GET "/v1/sandboxes?$query"
	is "$status" 422 "$query is refused"
done
api GET '/v1/sandboxes?metadata=team'
is "$status $(field .code)" "400 INVALID_METADATA_FORMAT" "a filter without a value is refused"
api DELETE "/v1/sandboxes/$second"
is "$status" 204 "delete"
api GET "/v1/sandboxes/$second"
is "$status $(field .code)" "404 SANDBOX::NOT_FOUND" "it is gone"
api DELETE "/v1/sandboxes/$second"
is "$status" 404 "a second delete finds nothing"

# Changes.
api PATCH "/v1/sandboxes/$id/metadata" '{"team":null,"new":"v"}'
is "$status $(field '.metadata | keys | join(",")')" "200 n,new" "a patch of metadata"
api GET "/v1/sandboxes/$id"
is "$(field '.metadata | keys | join(",")')" "n,new" "it is on record"
api PATCH "/v1/sandboxes/$id/metadata" '{"opensandbox.io/x":"1"}'
is "$status $(field .code)" "400 INVALID_METADATA_LABEL" "reserved names are refused"
expires=$(date -u -d '+2 hours' +%Y-%m-%dT%H:%M:%S.123456789+00:00)
api POST "/v1/sandboxes/$id/renew-expiration" "{\"expiresAt\":\"$expires\"}"
is "$status $(field .expiresAt)" "200 $(date -u -d "$expires" +%Y-%m-%dT%H:%M:%S).123000Z" "renew"
api POST "/v1/sandboxes/$id/renew-expiration" '{"expiresAt":"2020-01-01T00:00:00Z"}'
is "$status $(field .code)" "400 SANDBOX::INVALID_EXPIRATION" "a time in the past is refused"
api POST "/v1/sandboxes/$id/renew-expiration" '{"expiresAt":"soon"}'
is "$status" 422 "what is no time is refused"
api POST /v1/sandboxes "$(body | sed 's/"timeout":600/"timeout":null/')"
forever=$(field .id)
is "$status $(field 'has("expiresAt")')" "202 false" "one that does not expire"
api POST "/v1/sandboxes/$forever/renew-expiration" "{\"expiresAt\":\"$expires\"}"
is "$status" 409 "cannot be renewed"
api DELETE "/v1/sandboxes/$forever"

# A sandbox that lives on as long as it is used.
api POST /v1/sandboxes "$(body '"extensions":{"access.renew.extend.seconds":"600"}' | sed 's/"timeout":600/"timeout":60/')"
used=$(field .id)
before=$(field .expiresAt)
status=$(curl -s -o /dev/null -w '%{http_code}' --unix-socket "$sock" -H 'OpenSandbox-Access-Renew: skip' \
	"http://x/v1/sandboxes/$used/proxy/44772/ping")
api GET "/v1/sandboxes/$used"
is "$(field .expiresAt)" "$before" "an access that is not to count"
api GET "/v1/sandboxes/$used/proxy/44772/ping"
for _ in $(seq 100); do
	api GET "/v1/sandboxes/$used"
	[ "$(field .expiresAt)" != "$before" ] && break
	sleep 0.05
done
is "$(($(date -d "$(field .expiresAt)" +%s) - $(date -d "$before" +%s) > 400))" 1 "an access renews"
api DELETE "/v1/sandboxes/$used"

# Endpoints and the proxy.
api GET "/v1/sandboxes/$id/endpoints/8080"
is "$status $(field .endpoint)" "200 x/v1/sandboxes/$id/proxy/8080" "an endpoint"
api GET "/sandboxes/$id/endpoints/18080?use_server_proxy=true"
is "$status $(field .endpoint)" "200 x/sandboxes/$id/proxy/18080" "with the mount that was used"
for port in 0 65536 x; do
	api GET "/v1/sandboxes/$id/endpoints/$port"
	like "$status" '^(400|422)$' "port $port is refused"
done
api GET "/v1/sandboxes/$id/proxy/44772/ping"
is "$status" 200 "the execution API through the proxy"
api POST "/v1/sandboxes/$id/proxy/44772/command" '{"command":"echo a; exit 7"}'
is "$(grep -c '"stdout"' "$tmp/body") $(grep -o '"evalue":"[0-9]*"' "$tmp/body")" '1 "evalue":"7"' \
	"a command through the proxy"
api GET "/v1/sandboxes/$id/proxy/9/"
is "$status $(field .code)" "502 BACKEND_CONNECTION_FAILED" "a port where nothing listens"
api GET "/v1/sandboxes/$id/proxy/0/"
is "$status" 400 "no port"
api GET "/v1/sandboxes/00000000-0000-4000-8000-000000000000/proxy/80/"
is "$status" 404 "the proxy of an unknown sandbox"
for path in "/v1/sandboxes/../../etc" "/v1/sandboxes/%2e%2e%2f%2e%2e" "/v1/sandboxes/$id%2f" "/v1/sandboxes/$(echo "$id" | cut -c1-8)"; do
	api GET "$path"
	is "$status" 404 "$path is no sandbox"
done

# What is not supported says so.
api POST /v1/sandboxes '{"image":'
is "$status" 422 "half a document"
api POST /v1/sandboxes "$(body | sed 's/"uri":"[^"]*"/"uri":"no.such.registry.invalid\/x"/')"
like "$status $(field .code)" '^(500|503) SANDBOX::IMAGE_PULL_FAILED$' "an image that cannot be had"
api POST /v1/sandboxes "$(body | sed 's/\["sleep","1000"\]/["no-such-program"]/')"
is "$status $(field .code)" "400 SANDBOX::INVALID_ENTRYPOINT" "a command that is not there"
for path in /v1/pools /v1/templates /v1/snapshots; do
	api GET "$path"
	is "$status $(field '.code | type')" "501 string" "$path is not supported"
done
api GET /nothing
is "$status $(field '.code | type')" "404 string" "an unknown route"
api PUT /v1/sandboxes '{}'
is "$status" 405 "a method that a route does not have"
is "$("$OSBX" ps -q)" "$id" "none of these left anything"

# Diagnostics.
api POST /v1/sandboxes "$(body | sed 's/\["sleep","1000"\]/["sh","-c","echo one; echo two >\&2; exit 3"]/')"
short=$(field .id)
for _ in $(seq 100); do
	api GET "/v1/sandboxes/$short"
	[ "$(field .status.state)" = Terminated ] && break
	sleep 0.1
done
is "$(field .status.state)" Terminated "one whose command has ended stays"
like "$(field .status.message)" 'status 3' "with its exit status"
api GET "/v1/sandboxes/$short/diagnostics/logs"
is "$(printf '%s\n' "$out" | sort | tr '\n' ' ')" "one two " "its output"
api GET "/v1/sandboxes/$short/diagnostics/logs?scope=container"
is "$status $(field '[.kind,.delivery,.truncated] | map(tostring) | join(" ")')" "200 logs inline false" "with a scope"
api GET "/v1/sandboxes/$short/diagnostics/events?scope=nothing"
is "$status $(field .code)" "400 DIAGNOSTICS_SCOPE_UNSUPPORTED" "an unknown scope"
api GET "/v1/sandboxes/$short/diagnostics/summary"
like "$out" 'end exited' "a summary has the events"
api DELETE "/v1/sandboxes/$short"
is "$status" 204 "and is removed"

# The request id.
is "$(curl -s -D - -o /dev/null --unix-socket "$sock" -H 'X-Request-ID: abc-1' "http://x/v1/sandboxes/none" | tr -d '\r' | sed -n 's/^X-Request-ID: //p')" \
	abc-1 "X-Request-ID comes back"

# A second server on the same sandboxes; then the first is killed.
first=$server
first_sock=$sock
sock=$tmp/second.sock
serve
api GET /v1/sandboxes
is "$(field '[.items[].id] | join(" ")')" "$id" "two servers see the same"
kill -9 "$first"
wait "$first" 2>/dev/null
api GET "/v1/sandboxes/$id/proxy/44772/ping"
is "$status" 200 "the sandbox does not notice when its server is killed"
sock=$first_sock
serve
api GET "/v1/sandboxes/$id"
is "$status $(field .status.state)" "200 Running" "a server that starts where one was killed finds it"
api DELETE "/v1/sandboxes/$id"
is "$status $("$OSBX" ps -aq)" "204 " "nothing is left"

# Keys and addresses.
kill "$server"
wait "$server"
is "$?" 0 "SIGTERM ends it"
printf '# keys\nalice:secret1\nsecret2\n' >"$tmp/keys"
chmod 644 "$tmp/keys"
osbx serve --listen "unix:$tmp/k.sock" --api-key-file "$tmp/keys"
is "$status" 125 "keys that others can read are refused"
chmod 600 "$tmp/keys"
run timeout 10 "$OSBX" serve --listen tcp:0.0.0.0:1
is "$status" 125 "an address of others without a key is refused"
like "$err" 'no key' "with the reason"
serve --api-key-file "$tmp/keys"
key() {
	curl -s -o "$tmp/body" -w '%{http_code}' --unix-socket "$sock" ${2+-H "OPEN-SANDBOX-API-KEY: $2"} "http://x$1"
}
is "$(key /v1/sandboxes) $(field .code)" "401 MISSING_API_KEY" "no key"
is "$(key /v1/sandboxes '') $(field .code)" "401 MISSING_API_KEY" "an empty key"
is "$(key /v1/sandboxes wrong) $(field .code)" "401 INVALID_API_KEY" "a wrong key"
is "$(key /v1/sandboxes secret1)" 200 "a key with a name"
is "$(key /v1/sandboxes secret2)" 200 "a key without one"
is "$(key /health)" 200 "health needs none"
is "$(key /metrics)" 401 "metrics does"
is "$(key /v1/sandboxes/00000000-0000-4000-8000-000000000000/proxy/80/x)" 404 "nor does the proxy"
is "$(curl -s -o "$tmp/body" -w '%{http_code}' --path-as-is --unix-socket "$sock" \
	http://x/v1/sandboxes/a/proxy/80/../../../sandboxes)" 401 "but for a path that leads back"

# Limits of a key.
kill "$server"
wait "$server"
printf 'bad name:secret3\n' >"$tmp/names"
chmod 600 "$tmp/names"
osbx serve --listen "unix:$tmp/k.sock" --api-key-file "$tmp/names"
is "$status" 125 "a name of a key that is no label is refused"
serve --api-key-file "$tmp/keys" --key-sandboxes 1 --rate 3
made() {
	status=$(curl -s -o "$tmp/body" -w '%{http_code}' --unix-socket "$sock" -H "OPEN-SANDBOX-API-KEY: $1" -d "$(body '"metadata":{"a":"b"}')" http://x/v1/sandboxes)
}
made secret1
own=$(field .id)
is "$status $(field '.metadata | keys | join(",")')" "202 a" "one with a key, and whose it is is not shown"
made secret1
is "$status $(field .code)" "429 SANDBOX::LIMIT_REACHED" "a second one with this key is refused"
curl -s -o "$tmp/body" --unix-socket "$sock" -H "OPEN-SANDBOX-API-KEY: secret1" -X PATCH -d '{"a":null,"opensandbox.io/key":null}' "http://x/v1/sandboxes/$own/metadata"
is "$(field .code)" INVALID_METADATA_LABEL "whose it is cannot be changed"
made secret2
is "$status" 202 "another key has its own"
"$OSBX" rm -f "$own" >/dev/null
made secret1
is "$status" 202 "what is removed does not count"
made secret1
is "$status $(field .code)" "429 SANDBOX::RATE_LIMITED" "more creations a minute than a key may"
"$OSBX" ps -aq | xargs -r "$OSBX" rm -f >/dev/null

# Many at once count before any of them is there. One that is made late may be seen too late.
kill "$server"
wait "$server"
serve --max-sandboxes 2
body >"$tmp/wish"
most=0
for _ in 1 2 3; do
	waits=
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		curl -s -o /dev/null -w '%{http_code}\n' --unix-socket "$sock" -d "@$tmp/wish" http://x/v1/sandboxes >"$tmp/made.$i" &
		waits="$waits $!"
	done
	# shellcheck disable=SC2086
	wait $waits
	made=$(cat "$tmp"/made.* | grep -c 202)
	is "$(cat "$tmp"/made.* | sort -u | tr '\n' ' ')$("$OSBX" ps -q | wc -l)" "202 429 $made" "of many creations at once, those that are refused leave nothing"
	most=$((most + made))
	"$OSBX" ps -aq | xargs -r "$OSBX" rm -f >/dev/null
done
is "$([ "$most" -ge 6 ] && [ "$most" -le 12 ] && echo few || echo "$most")" few "and what they may be is kept"

done_testing
