#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root root-asan user single nested
# Published ports: whom they reach, who may have them, half-closes, ends, pauses, many connections.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
client() {
	run timeout 60 python3 "$here/../helpers/publish_client.py" "$@"
}
# words OF A PORT INSIDE of a sandbox: address and port outside, as two words
at() {
	"$OSBX" port "$1" "$2" | head -n 1 | sed 's/^\[\(.*\)\]:/\1 /; t; s/:/ /'
}
answers() {
	curl -sSf -m 5 "http://$1/hello"
}

"$OSBX" run -q --network none "$image" true

# Servers on 127.0.0.1 and on all addresses.
echo_server='mkdir -p /tmp/www; echo hello >/tmp/www/hello; httpd -p 0.0.0.0:8000 -h /tmp/www; httpd -p 127.0.0.1:8001 -h /tmp/www; exec sleep 1000'
osbx run -d --network none --name w -p :8000 -p 127.0.0.1::8001 -p '[::1]::8000' -p 9 "$image" sh -c "$echo_server"
is "$status:$err" 0: "a sandbox with published ports starts"
all=$("$OSBX" port w 8000 | head -n 1)
like "$all" '^127\.0\.0\.1:[1-9][0-9]*$' "port tells where, on the loopback unless asked"
wait_until 20 answers "$all"
is "$(answers "$all")" hello "a service on all addresses answers"
is "$(answers "$("$OSBX" port w 8001)")" hello "so does one on 127.0.0.1"
is "$(answers "$("$OSBX" port w 8000 | tail -n 1)")" hello "and through IPv6"
like "$("$OSBX" port w | head -n 1)" '^8000/tcp -> 127\.0\.0\.1:[0-9]+$' "port lists them"
like "$("$OSBX" ps)" "$all->8000," "ps shows them"
is "$("$OSBX" inspect w | jq -c '[.ports[] | [.address, .inside, .protocol, .port > 0]][2]')" '["::1",8000,"tcp",true]' "inspect has them"
osbx port w 99
is "$status" 125 "one that is not published is an error"
like "$err" 'port 99 is not published' "which says so"
client reset $(at w 9)
is "$out" reset "where nobody listens inside, the connection is reset"

# Bytes.
echo_at() {
	timeout 5 python3 "$here/../helpers/publish_client.py" echo $(at "$1" 7 2>/dev/null) 10 2>/dev/null | grep -q same
}
"$OSBX" run -d --network none --name e -p 7 -v "$here/../helpers:/helpers:ro" @host /usr/bin/python3 /helpers/publish_client.py serve 7 >/dev/null
wait_until 20 echo_at e
client echo $(at e 7) 20000000
is "$out" "20000000 same" "bytes go both ways and end with a half-close"
client many $(at e 7) 300
is "$out" 300 "three hundred connections at once"
client echo $(at e 7) 1000
is "$out" "1000 same" "and the next one"

# Who has the port.
port=${all##*:}
osbx run --network none -p "$port:80" "$image" true
is "$status" 125 "a port in use is refused"
like "$err" "port 127\.0\.0\.1:$port: in use" "by name"
like "$err" ':80 takes any free one' "with a remedy"
osbx run -d --network none --name v -p "$port:80" "$image" true
is "$status:$("$OSBX" ps -aq --filter name=v)" 125: "a detached one too, and nothing is left"
osbx run --network none -p 192.0.2.1:0:80 "$image" true
like "$status:$err" '^125:.*not an address of this machine' "an address of somebody else is refused"
osbx run --network host -p 80 "$image" true
like "$status:$err" '^125:.*network host' "nothing is published of the host's network"
osbx run --network none -p 5000:80 -p 5000:81 "$image" true
like "$status:$err" '^125:.*given twice' "one port is given once"
osbx run --network none -p 80/udp "$image" true
like "$status:$err" '^125:.*only TCP' "UDP is refused"
if ! python3 -c 'import socket; socket.socket().bind(("127.0.0.1", 81))' 2>/dev/null; then
	osbx run --network none -p 81:80 "$image" true
	like "$err" 'ip_unprivileged_port_start' "a port of root's is refused with a remedy"
fi

# Pause.
if "$OSBX" pause e >/dev/null 2>&1; then
	timeout 60 python3 "$here/../helpers/publish_client.py" wait $(at e 7) "$tmp/sent" >"$tmp/pong" &
	job=$!
	wait_until 20 test -s "$tmp/sent"
	is "$(cat "$tmp/pong")" "" "while it is paused a connection waits"
	"$OSBX" resume e >/dev/null
	wait $job
	is "$(cat "$tmp/pong")" ping "and is served when it goes on"
else
	skip "pause" "no control group that can be frozen"
fi

# The end.
osbx rm -f e w
is "$status" 0 "it is removed"
osbx run -d --network none --name w2 -p "$port:8000" "$image" sh -c "$echo_server"
is "$status:$err" 0: "its port is free at once"
osbx rm -f w2
osbx run -d --network none --name last -p :7 "$image" sh -c 'head -c 3000000 /dev/zero >/tmp/z; nc -l -p 7 </tmp/z'
client tail $(at last 7)
[ "$out" = 3000000 ] || { wait_until 20 false; client tail $(at last 7); }
is "$out" 3000000 "what the last process wrote is delivered"
osbx wait last
osbx port last
like "$status:$err" '^125:.*has ended' "then there are no ports"
is "$("$OSBX" ps -a | awk '/last/ { print $NF }')" - "nor in ps"
osbx rm last

# In the foreground, and ended by a signal with a connection open.
"$OSBX" run --network none --name f -p :7 -v "$here/../helpers:/helpers:ro" @host sh -c 'trap "exit 3" TERM; /usr/bin/python3 /helpers/publish_client.py serve 7 & while :; do sleep 0.05; done' </dev/null >"$tmp/f.out" 2>&1 &
job=$!
wait_until 20 echo_at f
is $? 0 "in the foreground, too"
timeout 60 python3 "$here/../helpers/publish_client.py" tail $(at f 7) >"$tmp/held" 2>&1 &
held=$!
kill -TERM $job
wait $job
is $? 3 "a connection that is open does not keep it"
wait $held
wait_until 5 sh -c '! "$OSBX" ps | grep -q " f "'
is "$("$OSBX" ps -aq)" "" "nothing is left"
done_testing
