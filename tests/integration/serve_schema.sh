# SPDX-License-Identifier: Apache-2.0
# modes: root user single
# Every answer of the lifecycle API against its schema: each route, each status, each code of an error.
. "$(dirname "$0")/lib.sh"

python=
for one in python3 /usr/bin/python3; do
	"$one" -c 'import jsonschema' 2>/dev/null && python=$one && break
done
if [ -z "$python" ]; then
	not_ok "python3-jsonschema is there"
	done_testing
fi
sock=$tmp/api.sock
server=
schema_cleanup() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null
	cleanup
}
trap schema_cleanup EXIT
printf 'one:secret-one\nrated:secret-two\n' >"$tmp/keys"
chmod 600 "$tmp/keys"
"$OSBX" serve --limits best-effort --listen "unix:$sock" --api-key-file "$tmp/keys" --max-sandboxes 4 --rate 60 2>"$tmp/serve.err" &
server=$!
for _ in $(seq 600); do
	[ -S "$sock" ] && break
	sleep 0.05
done

timeout 400 "$python" "$here/../helpers/serve_schema.py" "$sock" secret-one secret-two >"$tmp/driver" 2>"$tmp/err"
status=$?
while read -r verdict what; do
	case $verdict in
	pass) ok "$what" ;;
	*) not_ok "$verdict $what" ;;
	esac
done <"$tmp/driver"
is "$status" 0 "the driver ended by itself"
[ "$failed_n" = 0 ] || note "$(tail -n 20 "$tmp/err")"
is "$("$OSBX" ps -aq)" "" "nothing is left"
kill "$server"
wait "$server"
is "$?:$(cat "$tmp/serve.err")" 0: "the server ends without a word"

done_testing
