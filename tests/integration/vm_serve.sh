#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: vm
# osbx serve as a unit of the system (root) or of the user's manager: started by the first request, ready and alive as systemd is
# told, ended and restarted while its sandboxes go on.
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" = 0 ]; then
	user=
	units=/etc/systemd/system
	installed=/usr/local/lib/systemd/system
	sock=/run/osbx/api/osbx.sock
else
	user=--user
	units=$HOME/.config/systemd/user
	installed=/usr/local/lib/systemd/user
	sock=$XDG_RUNTIME_DIR/osbx/api/osbx.sock
fi
dropin=$units/osbx.service.d

ctl() {
	systemctl $user "$@"
}

serve_cleanup() {
	ctl stop osbx.socket osbx.service >/dev/null 2>&1
	rm -rf "$dropin"
	ctl daemon-reload
	"$OSBX" ps -aq | xargs -r "$OSBX" rm -f -q
	cleanup
}
trap serve_cleanup EXIT

# until_true SECONDS WORDS…: wait for a condition
until_true() {
	n=$(($1 * 5))
	shift
	while [ "$n" -gt 0 ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.2
		n=$((n - 1))
	done
	return 1
}

# api METHOD PATH [BODY]: status in $status, body in $tmp/body
api() {
	status=$(python3 - "$sock" "$tmp/body" "$@" 2>"$tmp/err" <<-'END'
		import http.client, socket, sys
		class Connection(http.client.HTTPConnection):
		    def connect(self):
		        self.sock = socket.socket(socket.AF_UNIX)
		        self.sock.settimeout(120)
		        self.sock.connect(sys.argv[1])
		c = Connection('localhost')
		c.request(sys.argv[3], sys.argv[4], sys.argv[5] if len(sys.argv) > 5 else None)
		answer = c.getresponse()
		with open(sys.argv[2], 'wb') as f:
		    f.write(answer.read())
		print(answer.status)
	END
	)
}
field() {
	jq -r "$1" "$tmp/body"
}

# unit [LINES…]: the service with this test's folders, and these lines
unit() {
	mkdir -p "$dropin"
	printf '[Service]\nEnvironment=OSBX_ROOT=%s OSBX_RUNTIME=%s\n' "$OSBX_ROOT" "$OSBX_RUNTIME" >"$dropin/test.conf"
	[ $# = 0 ] || printf '%s\n' "$@" >>"$dropin/test.conf"
	ctl daemon-reload
}
main_pid() {
	ctl show -P MainPID osbx.service
}
is_state() {
	[ "$(ctl show -P ActiveState osbx.service)" = "$1" ]
}
is_another() {
	pid_=$(main_pid)
	[ "$pid_" != 0 ] && [ "$pid_" != "$1" ] && is_state active
}
# still WORDS…: the sandbox runs, takes commands, and is listed by the server
still() {
	api GET /v1/sandboxes
	is "$status:$(field '[.items[] | .id + " " + .status.state] | join(",")'):$("$OSBX" exec "$id" echo in)" "200:$id Running:in" "$*"
}

run systemd-analyze verify --man=no $user "$installed/osbx.service" "$installed/osbx.socket"
is "$status:$(printf '%s' "$err" | grep osbx)" 0: "systemd finds nothing to say of the units"
unit
ctl start osbx.socket
is "$?:$(ctl is-active osbx.socket):$(ctl is-active osbx.service)" 0:active:inactive "the socket listens, the service does not run"
is "$(stat -c '%a %U' "$sock" "$(dirname "$sock")" | tr '\n' ' ')" "600 $(id -un) 700 $(id -un) " "only its owner can connect"
api GET /health
is "$status:$(cat "$tmp/body")" '200:{"status":"healthy"}' "the first request is answered"
is "$(ctl is-active osbx.service):$(ctl show -P Result osbx.service)" active:success "and has started the service, which has said that it is ready"

api POST /v1/sandboxes '{"image":{"uri":"@host"},"timeout":3600,"resourceLimits":{"cpu":"1","memory":"256Mi"},"entrypoint":["sleep","1000"]}'
id=$(field .id)
is "$status:$(field .status.state)" 202:Running "a sandbox is created"
[ "$status" = 202 ] || note "$(cat "$tmp/body")"
is "$("$OSBX" inspect "$id" | jq -c '.limitsMissing // []')" '[]' "with the limits that were asked for"
still "it runs"
pid=$(main_pid)
ctl restart osbx.service
is "$?:$(is_another "$pid" && echo other)" 0:other "the service is restarted"
still "the sandbox has not noticed"
ctl stop osbx.service
is "$(ctl is-active osbx.service):$("$OSBX" exec "$id" echo in)" inactive:in "the service is stopped, the sandbox runs on"
still "the next request starts the service again, which finds it"
pid=$(main_pid)
kill -9 "$pid"
until_true 60 is_another "$pid"
is $? 0 "a server that is killed is restarted"
still "and the sandbox is there"

# A server that hangs is killed and started again; one that does not is not.
unit WatchdogSec=6
ctl restart osbx.service
pid=$(main_pid)
sleep 15
is "$(main_pid):$(ctl show -P NRestarts osbx.service)" "$pid:$(ctl show -P NRestarts osbx.service)" "a server that does its work is left alone by the watchdog"
kill -STOP "$pid"
until_true 90 is_another "$pid"
is $? 0 "one that hangs is replaced"
still "and the sandbox is there"

# A server that nobody needs.
unit ExecStart= 'ExecStart=/usr/local/bin/osbx serve --idle-exit 2s'
ctl restart osbx.service
until_true 60 is_state inactive
is "$?:$(ctl show -P Result osbx.service)" 0:success "with --idle-exit it ends by itself when nobody is connected"
is "$(ctl is-active osbx.socket):$("$OSBX" exec "$id" echo in)" active:in "the socket and the sandbox stay"
still "and the next request starts it again"

api DELETE "/v1/sandboxes/$id"
is "$status:$("$OSBX" ps -aq)" 204: "the sandbox is removed"
ctl stop osbx.socket osbx.service
is "$(ls "$OSBX_RUNTIME/sandboxes" "$OSBX_ROOT/sandboxes" | grep -v -e : -e '^$')" "" "and nothing is left"

done_testing
