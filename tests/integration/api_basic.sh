#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root root-asan user single nested
# The execution API as such: where it listens, who may use it, what it answers to nonsense, metrics, terminals, proxy,
# and that no workload can take it away.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
command -v curl >/dev/null || { echo "1..0 # SKIP no curl"; exit 0; }
command -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
sock_of() {
	"$OSBX" inspect "$1" | jq -r .execd.socket
}
# A path may be too long for a socket's address: from within its directory.
call() {
	(cd "$(dirname "$sock")" && curl -sS -m 60 --unix-socket execd.sock "$@")
}
# status CURL-ARGS…: "STATUS BODY"
status_of() {
	call -o "$tmp/body" -w '%{http_code}' "$@"
	printf ' '
	cat "$tmp/body"
}
# tap FILE: the checks of a driver
tap() {
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "${line#ok }" ;;
		"not ok "*) not_ok "${line#not ok }" ;;
		*) note "$line" ;;
		esac
	done <"$1"
}

# Where it listens.
"$OSBX" run -d --name w @host sleep 1000 >/dev/null
sock=$(sock_of w)
is "$(stat -c '%a %F' "$sock")" "600 socket" "a socket for its owner alone"
is "$(call -D - http://x/ping | tr -d '\r' | grep -v '^Date: ' | tr '\n' '|')" "HTTP/1.1 200 OK|Content-Length: 0||" "ping: 200, nothing, and its length"
is "$(status_of http://x/ready)" "200 " "ready likewise"
is "$("$OSBX" exec w curl -s -w '%{http_code}' http://127.0.0.1:44772/ping)" 200 "inside, on its port"
unlike "$("$OSBX" ps --json)" execd.sock "ps does not speak of it"
is "$("$OSBX" run --network host @host curl -sS -m 5 -o /dev/null http://127.0.0.1:44772/ping 2>&1 | grep -c 'onnect')" 1 "in the machine's network there is no port"
"$OSBX" run -d --name h --network host @host sleep 1000 >/dev/null
sock=$(sock_of h)
is "$(status_of http://x/ping)" "200 " "but the socket"
"$OSBX" rm -f h >/dev/null
is "$([ -e "$sock" ] || echo gone)" gone "rm removes it"

# A foreground run has it too, while it lasts.
"$OSBX" run --name f @host sleep 1000 </dev/null >"$tmp/f" 2>&1 &
foreground=$!
wait_until 20 sh -c "[ \"\$('$OSBX' inspect f | jq -r .status.state)\" = Running ]"
sock=$(sock_of f)
is "$(status_of http://x/ping)" "200 " "a run in the foreground"
kill "$foreground"
wait "$foreground" 2>/dev/null
is "$([ -e "$sock" ] || echo gone)" gone "at its end it is gone"
"$OSBX" run -d --name e "$image" true >/dev/null
wait_until 20 sh -c "[ \"\$('$OSBX' inspect e | jq -r .status.state)\" = Terminated ]"
is "$("$OSBX" inspect e | jq -r .execd)" null "what has ended has none"
is "$(find "$OSBX_RUNTIME/sandboxes" -name execd.sock | wc -l)" 1 "nor its directory"
"$OSBX" rm e >/dev/null

# Directories that are longer than an address.
long=$tmp/$(printf 'a%.0s' $(seq 90))/$(printf 'b%.0s' $(seq 90))
mkdir -p "$long"
short=$OSBX_RUNTIME
OSBX_RUNTIME=$long
"$OSBX" run -d --name w @host sleep 1000 >/dev/null
sock=$(sock_of w)
is "$(status_of http://x/ping)" "200 " "a long path"
"$OSBX" rm -f w >/dev/null
OSBX_RUNTIME=$short
sock=$(sock_of w)

# What the server answers itself, and what does not exist.
is "$(status_of http://x/nothing)" '404 {"code":"NOT_FOUND","message":"there is nothing here"}' "404"
is "$(status_of http://x/ping/)" '404 {"code":"NOT_FOUND","message":"there is nothing here"}' "a slash more is another path"
is "$(status_of -X DELETE http://x/metrics)" '405 {"code":"NOT_SUPPORTED","message":"the method is not allowed here"}' "405"
like "$(call -o /dev/null -D - -X DELETE http://x/metrics)" '^Allow: .*GET' "with the methods that are"
is "$(status_of -d '{}' http://x/code)" '400 {"code":"INVALID_REQUEST_BODY","message":"code: missing"}' "no code"
is "$(status_of http://x/code/contexts/1)" '404 {"code":"CONTEXT_NOT_FOUND","message":"context not found"}' "no such context"
is "$(call http://x/v1/isolated/capabilities | jq -r .available)" false "no isolated sessions"
is "$(status_of -d '{}' http://x/v1/isolated/session)" '404 {"code":"NOT_FOUND","message":"isolated sessions are not available in this sandbox"}' "nor one of them"
is "$(call -o /dev/null -w '%{http_code}' -H "x: $(head -c 40000 /dev/zero | tr '\0' a)" http://x/ping)" 431 "431"
is "$(status_of -d 'nonsense' http://x/pty | cut -c 1-33)" '400 {"code":"INVALID_REQUEST_BODY' "a body that is no JSON"
is "$(status_of -d '[]' http://x/pty | cut -c 1-33)" '400 {"code":"INVALID_REQUEST_BODY' "a body that is no object"
is "$(status_of http://x/pty/none)" '404 {"code":"CONTEXT_NOT_FOUND","message":"no pty session none"}' "a terminal that does not exist"
is "$(status_of -d '{"cwd":7}' http://x/pty)" '400 {"code":"INVALID_REQUEST_BODY","message":"cwd: expected a string"}' "a member of another type"

# Metrics.
call http://x/metrics >"$tmp/metrics"
is "$(jq -c 'keys' "$tmp/metrics")" '["cpu_count","cpu_used_pct","mem_total_mib","mem_used_mib","timestamp"]' "metrics"
is "$(jq '.cpu_count > 0 and .cpu_used_pct >= 0 and .cpu_used_pct <= 100 and .mem_total_mib > 0 and .mem_used_mib > 0 and .mem_used_mib <= .mem_total_mib' "$tmp/metrics")" true "that can be"
is "$(jq --argjson now "$(date +%s)" '.timestamp / 1000 - $now | . < 60 and . > -60' "$tmp/metrics")" true "of now"
call -N -m 4 http://x/metrics/watch >"$tmp/watch" 2>/dev/null
is "$(head -2 "$tmp/watch" | jq -s 'length == 2 and .[1].timestamp - .[0].timestamp > 1500')" true "metrics/watch: a line every two seconds"
is "$(grep -c . "$tmp/watch")" "$(wc -l <"$tmp/watch")" "and one line end each"

# The token is asked for everywhere, and no process inside has it.
"$OSBX" run -d --name t -e EXECD_ACCESS_TOKEN=sesame -e OTHER=x @host sh -c 'env; exec sleep 1000' >/dev/null
sock=$(sock_of t)
unauthorized='401 {"error":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"}'
for path in metrics nothing pty/x files/info proxy/80/ v1/isolated/capabilities code/contexts; do
	is "$(status_of "http://x/$path")" "$unauthorized" "$path needs the token"
done
for token in '' sesam sesame1 Sesame; do
	is "$(status_of -H "X-EXECD-ACCESS-TOKEN: $token" http://x/metrics)" "$unauthorized" "not '$token'"
done
is "$(status_of -H 'X-EXECD-ACCESS-TOKEN: sesame' http://x/nothing | cut -c 1-3)" 404 "the right one is taken"
is "$(status_of -H 'x-execd-access-token: sesame' http://x/metrics | cut -c 1-3)" 200 "also in small letters"
is "$(status_of http://x/ping)$(status_of http://x/ready)" "200 200 " "ping and ready need none"
is "$("$OSBX" exec t curl -s -w '%{http_code}' -o /dev/null http://127.0.0.1:44772/metrics)" 401 "inside it is needed as well"
is "$("$OSBX" exec t curl -s -w '%{http_code}' -o /dev/null -H 'X-EXECD-ACCESS-TOKEN: sesame' http://127.0.0.1:44772/metrics)" 200 "and taken"
wait_until 10 sh -c "'$OSBX' logs t | grep -q OTHER=x"
is "$("$OSBX" logs t | grep -c sesame)" 0 "the workload does not have it"
is "$("$OSBX" exec t env | grep -c sesame)" 0 "nor what exec starts"
is "$("$OSBX" exec t sh -c 'cat /proc/[0-9]*/environ /proc/1/mem /proc/1/fd/* 2>/dev/null' | grep -ac sesame)" 0 "nor can it be read"
is "$("$OSBX" inspect t | grep -c sesame)" 0 "nor does inspect show it"
is "$(grep -rc sesame "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" 2>/dev/null | grep -cv ':0$')" 0 "nor is it on disk"
osbx run -e EXECD_ACCESS_TOKEN="$(head -c 5000 /dev/zero | tr '\0' a)" "$image" true
is "$status" 125 "a token has a limit"
like "$err" 'EXECD_ACCESS_TOKEN of more than 4096 bytes' "and the error says so"

# Servers inside, through the proxy; what they see.
cat >"$tmp/server.py" <<'PY'
import http.server

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        n = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(n)
        text = f'{self.command} {self.path}\n{self.headers}{body.decode()}\n'.encode()
        self.send_response(203)
        self.send_header('Content-Length', str(len(text)))
        self.send_header('X-Mine', 'yes')
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, *args):
        pass

http.server.ThreadingHTTPServer(('127.0.0.1', 8080), Handler).serve_forever()
PY
"$OSBX" exec -d t python3 -c "$(cat "$tmp/server.py")"
token='X-EXECD-ACCESS-TOKEN: sesame'
wait_until 20 sh -c "(cd '$(dirname "$sock")' && curl -sf --unix-socket execd.sock -H '$token' http://x/proxy/8080/)"
call -D "$tmp/head" -H "$token" -H 'X-Forwarded-For: 9.9.9.9' -H 'X-Forwarded-Host: evil' 'http://x/proxy/8080/a%2Fb//c?q=%20+%2B&r' --path-as-is >"$tmp/answer"
like "$(head -1 "$tmp/head")" ' 203 ' "the status goes through"
like "$(cat "$tmp/head")" '^X-Mine: yes' "and the fields"
is "$(head -1 "$tmp/answer")" 'GET /a%2Fb//c?q=%20+%2B&r' "path and query are what was sent"
is "$(grep -ic '^host: 127.0.0.1:8080' "$tmp/answer")" 1 "the host is that of the server"
is "$(tr -d '\r' <"$tmp/answer" | grep -i '^x-forwarded-for:' | cut -d ' ' -f 2-)" "9.9.9.9, 127.0.0.1" "who asked is added"
is "$(grep -ic -e '^x-forwarded-host' -e '^x-execd' "$tmp/answer")" 0 "the token and what only looks like us is not passed on"
is "$(call -H "$token" -X PUT --data-binary 'body of it' http://x/proxy/8080/x | tail -1)" "body of it" "a body"
is "$(call -H "$token" http://x/proxy/8080 | head -1)" "GET /" "no path is /"
is "$(call -H "$token" 'http://x/proxy/8080?x=1' | head -1)" "GET /?x=1" "nor before a query"
is "$(status_of -H "$token" http://x/proxy/9/)" "502 Bad Gateway" "nothing listens: 502"
for port in 0 65536 080 x -1 99999999999999999999; do
	is "$(status_of -H "$token" "http://x/proxy/$port/" | cut -c 1-3)" 400 "port $port: 400"
done
is "$(status_of -H "$token" http://x/proxy | cut -c 1-3)" 400 "no port: 400"
is "$(status_of -H "$token" http://x/proxy/44772/metrics | cut -c 1-3)" 200 "our own port is ourselves"
is "$(status_of http://x/proxy/44772/metrics | cut -c 1-3)" 401 "with the same rules"
is "$(status_of -H "$token" 'http://x/proxy/44772/v1/filesystem/0/0/files/info?path=/etc' | cut -c 1-3)" 200 "and as who asks"
is "$(status_of -H "$token" http://x/proxy/44772/proxy/44772/ping | cut -c 1-3)" 508 "once"
is "$(call -H "$token" http://x/proxy/44772/proxy/8080/deep | head -1)" "GET /deep" "and on from there"
"$OSBX" rm -f t >/dev/null

# Terminals.
sock=$(sock_of w)
for case in basic pipes many; do
	(cd "$(dirname "$sock")" && python3 "$here/../helpers/ws_client.py" execd.sock "$case") >"$tmp/driver" 2>"$tmp/err" ||
		not_ok "terminals: $case: the driver has ended: $(tail -1 "$tmp/err")"
	tap "$tmp/driver"
done

# What a workload can do: nothing to PID 1, and nothing to its owner.
"$OSBX" run -d --name h @host sleep 1000 >/dev/null
"$OSBX" exec w sh -c 'for s in KILL STOP TERM INT HUP SEGV TSTP; do kill -$s 1; done' 2>/dev/null
is "$(status_of http://x/ping)" "200 " "signals do not reach it"
"$OSBX" exec -d w python3 -c '
import socket, time
held = []
for _ in range(2000):
    try:
        s = socket.create_connection(("127.0.0.1", 44772), 2)
        s.sendall(b"GET /metrics/watch HTTP/1.1\r\nHost: x\r\n\r\n")
        held.append(s)
    except OSError:
        break
open("/tmp/held", "w").write(str(len(held)))
time.sleep(1000)'
wait_until 60 "$OSBX" exec w cat /tmp/held
is "$("$OSBX" exec h sh -c 'for i in $(seq 40); do curl -s -o /dev/null -w "%{http_code}\\n" -d {} http://127.0.0.1:44772/pty; done' | sort | uniq -c | tr -s ' \n' ' ')" " 32 201 8 503 " "nor do the terminals of those inside"
sock=$(sock_of h)
is "$(status_of -d '{}' http://x/pty | cut -c 1-3)" 201 "take all there can be"
"$OSBX" rm -f h >/dev/null
sock=$(sock_of w)
is "$(status_of http://x/ping)" "200 " "connections from inside do not keep its owner out"
cat >"$tmp/flood.py" <<'PY'
import socket, sys
def rss(pid):
    with open(f'/proc/{pid}/status') as f:
        return next(int(line.split()[1]) for line in f if line.startswith('VmRSS'))
def ask(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect('execd.sock')
    s.sendall(f'GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'.encode())
    return s
def ping():
    s = ask('/ping')
    answer = b''
    while True:
        piece = s.recv(4096)
        if not piece:
            return answer.startswith(b'HTTP/1.1 200')
        answer += piece
pid = int(sys.argv[1])
good = sum(ping() for _ in range(200))
before = rss(pid)
good += sum(ping() for _ in range(10000))
after = rss(pid)
print(('ok ' if good == 10200 else 'not ok ') + 'ten thousand connections are answered')
print(('ok ' if after - before < int(sys.argv[2]) else 'not ok ') + f'and leave nothing behind ({before} to {after} KiB)')
streams = [ask('/metrics/watch') for _ in range(256)]
good = sum(s.recv(4096).startswith(b'HTTP/1.1 200') for s in streams)
print(('ok ' if good == 256 and ping() else 'not ok ') + '256 streams at once')
for s in streams:
    s.close()
good = sum(ping() for _ in range(300))
print(('ok ' if good == 300 else 'not ok ') + 'and none of them is there any more')
PY
pid=$("$OSBX" inspect w | jq -r .pid)
# KiB; the sanitizer keeps what was freed.
grows=512
ldd "$OSBX" 2>/dev/null | grep -q libasan && grows=300000
(cd "$(dirname "$sock")" && python3 "$tmp/flood.py" "$pid" "$grows") >"$tmp/driver" 2>"$tmp/err" || not_ok "flood: $(tail -1 "$tmp/err")"
tap "$tmp/driver"
is "$("$OSBX" exec w sh -c 'ulimit -n')" "$("$OSBX" run @host sh -c 'ulimit -n')" "the number of descriptors is the workload's own"
is "$("$OSBX" run @host sh -c 'ulimit -Sn')" "$(ulimit -Sn)" "as that of the caller"

# Paused: requests wait.
osbx pause w
if [ "$status" = 0 ]; then
	call http://x/ping -w '%{http_code}' >"$tmp/paused" 2>&1 &
	waiter=$!
	sleep 0.5
	is "$(kill -0 "$waiter" 2>/dev/null && cat "$tmp/paused" && echo waits)" waits "a paused sandbox does not answer"
	"$OSBX" resume w >/dev/null
	wait "$waiter"
	is "$(cat "$tmp/paused")" 200 "and does when it goes on"
else
	skip "paused" "no control group to pause it by"
fi

# The end, while somebody is connected, and the end of a keeper.
call -N http://x/metrics/watch >/dev/null 2>&1 &
watcher=$!
sleep 0.3
"$OSBX" rm -f w >/dev/null
wait "$watcher"
is "$?" 18 "the end cuts what is still asked for"
is "$([ -e "$sock" ] || echo gone)" gone "and takes the socket along"
"$OSBX" run -d --name k @host sleep 1000 >/dev/null
sock=$(sock_of k)
kill -KILL "$("$OSBX" inspect k | jq -r .keeperPid)"
wait_until 20 sh -c "[ \"\$('$OSBX' inspect k | jq -r .status.state)\" = Failed ]"
is "$([ -e "$sock" ] || echo gone)" gone "a keeper that was killed leaves no socket"
"$OSBX" rm k >/dev/null

done_testing
