# SPDX-License-Identifier: Apache-2.0
# modes: root user
# Official clients, as they are published (tests/sdks.sh), against osbx serve.
. "$(dirname "$0")/lib.sh"

sdk=${OSBX_TEST_DATA:?}/sdk
python=$sdk/python/bin
scripts=$here/../sdk
export HOME="$tmp" OPENSANDBOX_DISABLE_METRICS=1

port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$OSBX" serve --limits best-effort --listen "tcp:127.0.0.1:$port" 2>"$tmp/serve.err" &
server=$!
end_server() {
	kill -9 "$server" 2>/dev/null
	"$OSBX" ps -aq 2>/dev/null | xargs -r "$OSBX" rm -f >/dev/null 2>&1
	cleanup
}
trap end_server EXIT
for _ in $(seq 200); do
	curl -s -o /dev/null "http://127.0.0.1:$port/health" && break
	sleep 0.05
done

# passes NAME COMMAND…
passes() {
	name=$1
	shift
	run timeout 300 "$@"
	if [ "$status" = 0 ]; then
		ok "$name"
	else
		not_ok "$name"
		note "$(printf '%s\n%s' "$out" "$err" | tail -n 15)"
	fi
	is "$("$OSBX" ps -aq)" "" "and leaves nothing"
	"$OSBX" ps -aq | xargs -r "$OSBX" rm -f >/dev/null 2>&1
}

# Where there is no control group that this user may write to, nothing can be frozen.
pause=
id=$("$OSBX" run -d @host -- sleep 1000)
if ! "$OSBX" pause "$id" >/dev/null 2>&1; then
	pause=--no-pause
	skip "pause" "no writable control group"
fi
"$OSBX" rm -f "$id" >/dev/null

passes "python, asynchronous" "$python/python" "$scripts/python_async.py" "127.0.0.1:$port" @host $pause
passes "python, through the server's proxy" "$python/python" "$scripts/python_async.py" "127.0.0.1:$port" @host --server-proxy $pause
passes "python, synchronous" "$python/python" "$scripts/python_sync.py" "127.0.0.1:$port" @host $pause
# What README.md tells to type, but for the port.
sed -n '/^```python$/,/^```$/{/^```/d; p}' "$here/../../README.md" | sed "s/127\.0\.0\.1:8080/127.0.0.1:$port/" >"$tmp/readme.py"
passes "the snippet of README.md" "$python/python" "$tmp/readme.py"
is "$out" "42
Hello" "prints its lines"
passes "interpreter" "$python/python" "$scripts/interpreter.py" "127.0.0.1:$port" @host
passes "interpreter, through the server's proxy" "$python/python" "$scripts/interpreter.py" "127.0.0.1:$port" @host --server-proxy
passes "interpreter, on a Jupyter server in the sandbox" "$python/python" "$scripts/interpreter.py" "127.0.0.1:$port" @host --jupyter
passes "mcp" "$python/python" "$scripts/mcp_client.py" "127.0.0.1:$port" @host
if command -v node >/dev/null; then
	cd "$sdk/js" || exit 1
	passes "javascript" node "$scripts/js.mjs" "127.0.0.1:$port" @host $pause
	cd / || exit 1
else
	not_ok "node is not installed"
fi

# The command line of OpenSandbox.
osb() {
	run timeout 60 "$python/osb" --domain "127.0.0.1:$port" --protocol http "$@"
}
osb sandbox create -o json --image @host --entrypoint sleep --entrypoint 1000 --timeout 10m
id=$(printf '%s' "$out" | grep -oE '[0-9a-f]{8}-[0-9a-f-]{27}' | head -n 1)
is "$status $("$OSBX" ps -q)" "0 $id" "osb sandbox create"
osb sandbox list
like "$out" "$(echo "$id" | cut -c1-8)" "osb sandbox list"
osb command run "$id" -- echo from-osb
like "$out" from-osb "osb command run"
osb sandbox kill "$id"
is "$status $("$OSBX" ps -aq)" "0 " "osb sandbox kill"

done_testing
