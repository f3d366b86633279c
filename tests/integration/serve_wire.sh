# SPDX-License-Identifier: Apache-2.0
# modes: root user single
# The lifecycle API and its proxy byte for byte: forms of requests, bounds, races, clients that go away, WebSockets, events, long bodies.
. "$(dirname "$0")/lib.sh"

sock=$tmp/api.sock
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$OSBX" serve --limits best-effort --listen "unix:$sock" --listen "tcp:127.0.0.1:$port" 2>"$tmp/serve.err" &
server=$!
serve_cleanup() {
	kill -9 "$server" 2>/dev/null
	"$OSBX" ps -aq 2>/dev/null | xargs -r "$OSBX" rm -f >/dev/null 2>&1
	cleanup
}
trap serve_cleanup EXIT
for _ in $(seq 200); do
	[ -S "$sock" ] && break
	sleep 0.05
done

for part in answers forms wishes races gone gone-tcp proxy many; do
	[ "$part" = gone-tcp ] && to=$port || to=$sock
	timeout 400 python3 "$here/../helpers/serve_driver.py" "$to" "${part%-tcp}" >"$tmp/driver" 2>"$tmp/err"
	status=$?
	while read -r verdict what; do
		case $verdict in
		pass) ok "$part: $what" ;;
		*) not_ok "$part: $verdict $what" ;;
		esac
	done <"$tmp/driver"
	is "$status" 0 "$part: the driver ended by itself"
	[ "$status" = 0 ] || note "$(tail -n 5 "$tmp/err")"
	is "$("$OSBX" ps -aq)" "" "$part: nothing is left"
	"$OSBX" ps -aq | xargs -r "$OSBX" rm -f >/dev/null 2>&1
done
kill "$server"
wait "$server"
is "$?:$(cat "$tmp/serve.err")" 0: "the server ends without a word"

done_testing
