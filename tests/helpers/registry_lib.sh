# SPDX-License-Identifier: Apache-2.0
# Registries for integration scripts; read after lib.sh, which gives $tmp and $here.
#   registry_start NAME [LINES-OF-CONFIG]   Debian's docker-registry; its address is then in $registry
#   flaky_start NAME UPSTREAM [OPTION…]     the misbehaving proxy; its address is then in $flaky, rules NAME RULE…
#   token_start [OPTION…]                   the token server; its address is then in $token
#   registry_stop                           end all of them
helpers="$here/../helpers"
server_pids=

server_add() {
	server_pids="$server_pids $1"
}

registry_stop() {
	for pid in $server_pids; do
		kill "$pid" 2>/dev/null
	done
	for pid in $server_pids; do
		wait "$pid" 2>/dev/null
	done
	server_pids=
}

# A port that nobody has now. The registry cannot tell which one it took.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# wait_for SECONDS COMMAND…
wait_for() {
	tries_=$(($1 * 20))
	shift
	until "$@" >/dev/null 2>&1; do
		tries_=$((tries_ - 1))
		[ "$tries_" -gt 0 ] || return 1
		sleep 0.05
	done
}

is_answering() {
	python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)' "${1%:*}" "${1##*:}"
}

registry_start() {
	registry=127.0.0.1:$(free_port)
	mkdir -p "$tmp/registry-$1"
	cat >"$tmp/registry-$1/config.yml" <<-END
		version: 0.1
		log: {level: error, accesslog: {disabled: true}}
		storage: {filesystem: {rootdirectory: ${3:-$tmp/registry-$1/data}}}
		http: {addr: "$registry", secret: tests}
		${2:-}
	END
	docker-registry serve "$tmp/registry-$1/config.yml" >"$tmp/registry-$1/log" 2>&1 &
	server_add $!
	wait_for 20 is_answering "$registry" || note "registry $1 does not answer: $(cat "$tmp/registry-$1/log")"
}

# port_of FILE: what a server of ours wrote there
port_of() {
	wait_for 20 test -s "$1"
	cat "$1"
}

flaky_start() {
	name_=$1 upstream_=$2
	shift 2
	rm -f "$tmp/$name_.port"
	: >"$tmp/$name_.rules"
	: >"$tmp/$name_.log"
	python3 "$helpers/registry_flaky.py" --upstream "$upstream_" --rules "$tmp/$name_.rules" --log "$tmp/$name_.log" \
		--port-file "$tmp/$name_.port" "$@" 2>"$tmp/$name_.err" &
	server_add $!
	flaky=127.0.0.1:$(port_of "$tmp/$name_.port")
}

# rules NAME RULE…: from now on; the log begins anew
rules() {
	name_=$1
	shift
	: >"$tmp/$name_.log"
	printf '%s\n' "$@" >"$tmp/$name_.new"
	mv "$tmp/$name_.new" "$tmp/$name_.rules"
}

token_start() {
	rm -f "$tmp/token.port"
	: >"$tmp/token.log"
	: >"$tmp/token.mode"
	python3 "$helpers/registry_token.py" --cert "$tmp/certs/token.pem" --key "$tmp/certs/token.key" --log "$tmp/token.log" \
		--mode "$tmp/token.mode" --port-file "$tmp/token.port" "$@" 2>"$tmp/token.err" &
	server_add $!
	token=127.0.0.1:$(port_of "$tmp/token.port")
}
