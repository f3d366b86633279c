# SPDX-License-Identifier: Apache-2.0
# What scripts about Jupyter servers in sandboxes share, behind lib.sh.

kernels=${OSBX_TEST_DATA:?}/sdk/jupyter
port=44771
# sandbox NAME COMMAND…: with JUPYTER_HOST; its socket in $sock
sandbox() {
	name=$1
	shift
	"$OSBX" run -d --network none --name "$name" -v "$kernels:/kernels:ro" -v "$here/../helpers:/helpers:ro" -w /tmp \
		-e HOME=/tmp -e PYTHONPATH=/kernels -e JUPYTER_PATH=/kernels/share/jupyter -e "JUPYTER_HOST=http://127.0.0.1:$port/" \
		-e JUPYTER_TOKEN=a-token @host /usr/bin/python3 "$@" >/dev/null </dev/null
	sock=$("$OSBX" inspect "$name" | jq -r .execd.socket)
}
# api METHOD TARGET [CURL OPTIONS]: body in $out, status in $code
api() {
	method=$1
	target=$2
	shift 2
	code=$(curl -sS -N -m 60 -o "$tmp/body" -w '%{http_code}' --unix-socket "$sock" -X "$method" "$@" "http://x$target" 2>"$tmp/err")
	out=$(cat "$tmp/body")
}
# told: of the events in $out, one a line; pings and times do not count, nor how a line was cut
told() {
	printf '%s\n' "$out" | jq -rcn 'reduce inputs as $e ([]; if ($e.type == "stdout" or $e.type == "stderr") and
			.[-1].type == $e.type and (.[-1].text | endswith("\n") | not) then .[-1].text += $e.text else . + [$e] end) | .[] |
		if .type == "stdout" or .type == "stderr" then "\(.type) \(.text | rtrimstr("\n"))"
		elif .type == "error" then "error \(.error.ename) \(.error.evalue)"
		elif .type == "result" then "result \(.results)"
		elif .type == "execution_count" then "count \(.execution_count)"
		elif .type == "ping" or .type == "init" then empty else .type // .message end'
}
# code CONTEXT CODE: what happened in $out
code() {
	api POST /code -d "$(jq -nc --argjson x "$1" --arg c "$2" '{context: $x, code: $c}')"
	[ "$code" = 200 ] && out=$(told)
}
# context JSON: $context, as a request names it
context() {
	api POST /code/context -d "$1"
	context=$(printf '%s' "$out" | jq -c '{id}')
}
