# SPDX-License-Identifier: Apache-2.0
# modes: root user single
# Host volumes through the lifecycle API: the list of what is allowed and the ways around it, links that lead out (also ones that a sandbox
# swaps meanwhile), read-only, missing directories, one inside the other.
. "$(dirname "$0")/lib.sh"

sock=$tmp/api.sock
server=
volumes_cleanup() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null
	cleanup
}
trap volumes_cleanup EXIT
mkdir -p "$tmp/host/allowed" "$tmp/host/second"
"$OSBX" serve --limits best-effort --listen "unix:$sock" --host-path "$tmp/host/allowed" --host-path "$tmp/host/second" 2>"$tmp/serve.err" &
server=$!
for _ in $(seq 600); do
	[ -S "$sock" ] && break
	sleep 0.05
done

export OSBX
timeout 600 python3 "$here/../helpers/serve_volumes.py" "$sock" "$tmp/host" >"$tmp/driver" 2>"$tmp/err"
status=$?
while read -r verdict what; do
	case $verdict in
	pass) ok "$what" ;;
	*) not_ok "$verdict $what" ;;
	esac
done <"$tmp/driver"
is "$status" 0 "the driver ended by itself"
note "$(tail -n 5 "$tmp/err")"
is "$("$OSBX" ps -aq)" "" "nothing is left"

# Without a list there are none.
kill "$server"
wait "$server"
is "$?:$(cat "$tmp/serve.err")" 0: "the server ends without a word"
"$OSBX" serve --limits best-effort --listen "unix:$sock" 2>"$tmp/serve.err" &
server=$!
for _ in $(seq 600); do
	curl -s -o "$tmp/health" --unix-socket "$sock" http://x/health && break
	sleep 0.05
done
curl -s -o "$tmp/body" --unix-socket "$sock" http://x/v1/sandboxes \
	-d "{\"image\":{\"uri\":\"@host\"},\"resourceLimits\":{},\"entrypoint\":[\"true\"],\"volumes\":[{\"name\":\"v\",\"mountPath\":\"/v\",\"host\":{\"path\":\"$tmp/host/allowed\"}}]}"
is "$(jq -r .code "$tmp/body")" VOLUME::HOST_PATH_NOT_ALLOWED "without --host-path there are no host volumes"

done_testing
