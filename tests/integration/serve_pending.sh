# SPDX-License-Identifier: Apache-2.0
# modes: root user
# Creations whose image has to be pulled from a registry that is slow, stalls or refuses: Pending, then Running or Failed with a
# reason; deleted, or left alone by a worker or a server that is killed, meanwhile.
. "$(dirname "$0")/lib.sh"
. "$here/../helpers/pull_lib.sh"
needs docker-registry skopeo python3 curl jq

registry_start plain
flaky_start flaky "$registry"
image big
push "$images/big:t" "$registry/t/big:1"
big=$(layer big 2)
sock=$tmp/api.sock
server=
serve() {
	"$OSBX" serve --limits best-effort --listen "unix:$sock" --create-wait "$1" 2>"$tmp/serve.err" &
	server=$!
	wait_for 20 curl -sf -o /dev/null --unix-socket "$sock" http://x/health
}
pending_cleanup() {
	kill -9 "$server" 2>/dev/null
	"$OSBX" ps -aq 2>/dev/null | xargs -r "$OSBX" rm -f >/dev/null 2>&1
	registry_stop
	cleanup
}
trap pending_cleanup EXIT

# api METHOD PATH [BODY]: status in $status, body in $tmp/body
api() {
	status=$(curl -s -o "$tmp/body" -w '%{http_code}' --unix-socket "$sock" -X "$1" ${3+-d "$3"} "http://x$2")
}
field() {
	jq -r "$1" "$tmp/body"
}
create() {
	api POST /v1/sandboxes "{\"image\":{\"uri\":\"$flaky/t/big:1\"${1:+,$1}},\"timeout\":600,\"resourceLimits\":{},\"entrypoint\":[\"sleep\",\"1000\"],\"metadata\":{\"k\":\"v\"},\"extensions\":{\"opensandbox.extensions.x\":\"y\"}}"
	id=$(field .id)
}
# state_is ID STATE…
state_is() {
	one_=$1
	shift
	api GET "/v1/sandboxes/$one_"
	for state_; do
		[ "$(field .status.state)" = "$state_" ] && return 0
	done
	return 1
}
gone() {
	api GET "/v1/sandboxes/$1"
	[ "$status" = 404 ]
}
none() {
	[ -z "$("$OSBX" ps -aq)" ] && [ -z "$(ls "$OSBX_RUNTIME/sandboxes" "$OSBX_ROOT/sandboxes" 2>/dev/null | grep -v -e : -e '^$')" ]
}
forget() {
	"$OSBX" rmi -f -q "$flaky/t/big:1" >/dev/null 2>&1
	"$OSBX" gc -q
	rm -rf "$OSBX_ROOT/partial"
}
# keepers: those of this store
keepers() {
	for dir_ in /proc/[0-9]*; do
		[ "$(cat "$dir_/comm" 2>/dev/null)" = osbx-keeper ] && tr '\0' '\n' <"$dir_/environ" 2>/dev/null | grep -qx "OSBX_RUNTIME=$OSBX_RUNTIME" && echo "${dir_#/proc/}"
	done
}
no_keepers() {
	[ -z "$(keepers)" ]
}

# So short that the first word of the keeper is what the client is told.
serve 1ms

# Slow: Pending, and then it runs by itself.
rules flaky "GET blobs/$big slow 2000000"
create
is "$status $(field .status.state) $(field .status.reason)" "202 Pending PROVISIONING" "an image that is not there in time: Pending"
like "$(field .status.message)" "$flaky/t/big:1" "with what it waits for"
is "$(field '[.. | select(. == null)] | length') $(field '.entrypoint | join(" ")') $(field .metadata.k) $(field '.extensions | length')" "0 sleep 1000 v 1" "the answer is whole"
api GET "/v1/sandboxes/$id"
is "$(field .status.state) $(field .image.uri) $(field '.entrypoint | join(" ")') $(field .metadata.k)" "Pending $flaky/t/big:1 sleep 1000 v" "so is what is asked for later"
api GET '/v1/sandboxes?state=pending'
is "$(field '[.items[].id] | join(" ")')" "$id" "it is listed"
api GET "/v1/sandboxes/$id/endpoints/44772"
is "$status $(field .endpoint)" "200 x/v1/sandboxes/$id/proxy/44772" "its endpoints resolve"
api GET "/v1/sandboxes/$id/proxy/44772/ping"
is "$status $(field .code)" "409 SANDBOX::NOT_RUNNING" "a ping says not yet, in a way that clients ask again at once"
api POST "/v1/sandboxes/$id/pause"
is "$status $(field .code)" "409 SANDBOX::NOT_RUNNING" "it cannot be paused yet"
wait_for 60 state_is "$id" Running
is "$?" 0 "when the image is there it runs"
api GET "/v1/sandboxes/$id/proxy/44772/ping"
is "$status" 200 "and can be spoken to"
api GET "/v1/sandboxes/$id"
is "$(field 'has("expiresAt")') $(field .metadata.k)" "true v" "it expires, and has its metadata"
api DELETE "/v1/sandboxes/$id"
is "$status" 204 "it is removed"
wait_for 20 no_keepers
is "$?" 0 "with its keeper"

# Refused while pending: Failed with a reason, until it is deleted.
forget
rules flaky "GET blobs/$big stall 1000 x1" "GET blobs/$big status 404"
create
is "$status $(field .status.state)" "202 Pending" "an image that will not come"
wait_for 90 state_is "$id" Failed
is "$?" 0 "fails"
like "$(field .status.message)" 'not found|404|blob' "with the reason"
is "$(field '[.. | select(. == null)] | length')" 0 "and without a null"
api GET "/v1/sandboxes/$id/proxy/44772/ping"
is "$status $(field .code)" "409 SANDBOX::NOT_RUNNING" "it is no sandbox to speak to"
api DELETE "/v1/sandboxes/$id"
is "$status" 204 "and is removed"

# Deleted while the registry says nothing.
forget
rules flaky "GET blobs/$big stall 1000"
create
is "$status $(field .status.state)" "202 Pending" "a registry that stalls"
api DELETE "/v1/sandboxes/$id"
is "$status" 204 "what is pending can be deleted"
gone "$id"
is "$?" 0 "it is gone at once"
wait_for 20 no_keepers
is "$?" 0 "and so is its keeper"

# A worker that is killed while the client waits.
kill "$server"
wait "$server"
serve 60s
rules flaky "GET blobs/$big stall 1000"
curl -s -o "$tmp/body" -w '%{http_code}' --unix-socket "$sock" -d "{\"image\":{\"uri\":\"$flaky/t/big:1\"},\"timeout\":600,\"resourceLimits\":{},\"entrypoint\":[\"sleep\",\"1000\"]}" http://x/v1/sandboxes >"$tmp/status" &
client=$!
asked() {
	grep -q "blobs/$big" "$tmp/flaky.log"
}
wait_for 20 asked
worker=$(cat "/proc/$server/task/$server/children" | cut -d' ' -f1)
kill -9 "$worker"
wait "$client"
is "$(cat "$tmp/status") $(field '.code | type')" "500 string" "a worker that is killed is an answer of 500"
rules flaky '* . pass'
"$OSBX" ps -aq | xargs -r "$OSBX" rm -f >/dev/null 2>&1
wait_for 90 no_keepers
is "$?:$("$OSBX" ps -aq)" 0: "and no sandbox comes of it"

# Refused at once: an error.
forget
rules flaky '* . status 404'
create
like "$status $(field .code)" '^(404|500) SANDBOX::IMAGE_PULL_FAILED$' "an image that is refused at once is an error of the creation"
is "$("$OSBX" ps -aq)" "" "and leaves nothing"

done_testing
