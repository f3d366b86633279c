# SPDX-License-Identifier: Apache-2.0
# modes: root user single
# Keys of the lifecycle API: every route at both mounts with each kind of right and wrong key, what is open without one, WebSockets.
. "$(dirname "$0")/lib.sh"

sock=$tmp/api.sock
server=
auth_cleanup() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null
	cleanup
}
trap auth_cleanup EXIT
printf '# keys\nalice:secret-one\nsecret-two\n' >"$tmp/keys"
chmod 600 "$tmp/keys"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
OSBX_API_KEY=secret-three "$OSBX" serve --limits best-effort --listen "unix:$sock" --listen "tcp:127.0.0.1:$port" --api-key-file "$tmp/keys" \
	2>"$tmp/serve.err" &
server=$!
for _ in $(seq 600); do
	[ -S "$sock" ] && break
	sleep 0.05
done

for to in "$sock" "$port"; do
	[ "$to" = "$sock" ] && over=socket || over=tcp
	timeout 400 python3 "$here/../helpers/serve_auth.py" "$to" secret-one secret-two secret-three >"$tmp/driver" 2>"$tmp/err"
	status=$?
	# More than can be read one by one: those that are as they should be are counted.
	is "$(grep -v '^pass' "$tmp/driver" | head -n 20)" "" "$over: every one of $(grep -c '^pass' "$tmp/driver") requests"
	is "$([ "$(grep -c '^pass' "$tmp/driver")" -ge 900 ] && echo many)" many "$over: they are many"
	is "$status" 0 "$over: the driver ended by itself"
	[ "$status" = 0 ] || note "$(tail -n 5 "$tmp/err")"
	is "$("$OSBX" ps -aq)" "" "$over: nothing is left"
done
kill "$server"
wait "$server"
is "$?:$(cat "$tmp/serve.err")" 0: "the server ends without a word"

done_testing
