#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user
# What is refused is told to the operator's web hook.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
export OSBX_CONFIG="$tmp/osbx.conf"

# hook STATUS…: in $hook its pid, in $port where it listens; configured
hook() {
	: >"$tmp/log"
	rm -f "$tmp/port"
	python3 "$here/../helpers/web_hook.py" "$tmp/log" "$@" >"$tmp/port" &
	hook=$!
	wait_until 20 test -s "$tmp/port"
	port=$(cat "$tmp/port")
	printf '[network]\ndeny_webhook=http://127.0.0.1:%s/hook\n' "$port" >"$OSBX_CONFIG"
}
# said N: so many lines
said() {
	[ "$(wc -l <"$tmp/log")" -ge "$1" ]
}
gone() {
	! pgrep -u "$(id -u)" -f 'osbx notify' >/dev/null
}
# Connected is a program at once; what it is told then is that it was refused.
refused="import socket
s = socket.socket()
s.settimeout(20)
try:
    s.connect(('10.1.2.3', 80))
    s.recv(1)
except OSError:
    pass"

hook 200
osbx run -d --name w --deny '*' @host sleep 1000
is "$status:$err" 0: "a sandbox starts"
is "$(pgrep -c -u "$(id -u)" -f 'osbx notify')" 0 "nothing more runs while nothing is refused"
"$OSBX" exec w /usr/bin/python3 -c "$refused" >/dev/null </dev/null
wait_until 20 said 1
like "$(cat "$tmp/log")" '^200 application/json \{"hostname":"10\.1\.2\.3","timestamp":"[0-9T:.-]+Z","source":"opensandbox-egress","sandboxId":"[0-9a-f-]{36}","port":80\}$' "an address is told"
"$OSBX" exec w /usr/bin/python3 -c "
import socket
try: socket.getaddrinfo('evil.test', 80)
except OSError: pass" </dev/null
wait_until 20 sh -c "grep -q '\"hostname\":\"evil.test\"' '$tmp/log'"
is $? 0 "and a name"
# Killed, it is there again for the next.
wait_until 20 pkill -KILL -u "$(id -u)" -f 'osbx notify'
sleep 1
"$OSBX" exec w /usr/bin/python3 -c "$refused" >/dev/null </dev/null
"$OSBX" exec w /usr/bin/python3 -c "import socket; socket.socket().connect_ex(('10.1.2.4', 81))" </dev/null
wait_until 20 sh -c "grep -q '10.1.2.[34].*\"port\":8' '$tmp/log' && [ \$(wc -l <'$tmp/log') -ge 3 ]"
is $? 0 "it is started again"
# So many at once that some are only counted.
: >"$tmp/log"
"$OSBX" exec w /usr/bin/python3 -c "
import socket
for i in range(2000):
    s = socket.socket()
    s.connect_ex(('10.1.%d.%d' % (i // 250, i % 250), 80))
    s.close()" </dev/null
wait_until 20 said 20
is $? 0 "many are told in part"
osbx run -q --deny '*' @host /usr/bin/python3 -c "$(printf '%s' "$refused" | sed 's/10.1.2.3/10.9.9.9/')"
wait_until 20 sh -c "grep -q '10.9.9.9' '$tmp/log'"
is $? 0 "also the last one of a sandbox that has ended"
osbx rm -f w
is "$status" 0 "it is removed"
wait_until 20 gone
is $? 0 "and the process ends"
kill $hook

hook 503 503 200
osbx run -d --name r --deny '*' @host sleep 1000
"$OSBX" exec r /usr/bin/python3 -c "$refused" >/dev/null </dev/null
wait_until 30 said 3
is "$(cut -d ' ' -f 1 "$tmp/log" | tr '\n' ' ')" "503 503 200 " "what fails is tried again"
osbx rm -f r
kill $hook

hook 404 200
osbx run -d --name f --deny '*' @host sleep 1000
"$OSBX" exec f /usr/bin/python3 -c "$refused" >/dev/null </dev/null
wait_until 20 said 1
"$OSBX" exec f /usr/bin/python3 -c "import socket; socket.socket().connect_ex(('10.1.2.9', 82))" </dev/null
wait_until 20 said 2
like "$(sed -n 2p "$tmp/log")" '^200 .*10\.1\.2\.9' "what the hook does not want is not sent twice"
osbx rm -f f
kill $hook

hook 302 200
osbx run -q --deny '*' @host /usr/bin/python3 -c "$refused"
wait_until 20 said 1
sleep 1
is "$(wc -l <"$tmp/log")" 1 "a redirect is not followed"
kill $hook

hook hang
osbx run -d --name h --deny '*' @host sleep 1000
"$OSBX" exec h /usr/bin/python3 -c "$refused" >/dev/null </dev/null
wait_until 20 said 1
run timeout 20 "$OSBX" policy allow h 10.1.2.3
is "$status" 0 "a hook that hangs stops no edit"
run timeout 20 "$OSBX" rm -f h
is "$status" 0 "and no end"
kill $hook

for url in ftp://x/ http:// 'http:///x' 'https://a b' x; do
	printf '[network]\ndeny_webhook=%s\n' "$url" >"$OSBX_CONFIG"
	osbx run -q --network private @host true
	like "$status:$err" '^125:.*deny_webhook: expected' "\"$url\" is none"
done
done_testing
