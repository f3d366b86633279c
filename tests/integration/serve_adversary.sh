# SPDX-License-Identifier: Apache-2.0
# modes: root user
# What a careless operator, a hostile page and clients that come at the same time could do to the lifecycle API: files in the way of a
# socket, groups, keys that cannot match, descriptors of another kind, few descriptors, an idle server with a WebSocket, lost changes.
. "$(dirname "$0")/lib.sh"

sock=$tmp/api.sock
server=
adversary_cleanup() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null
	"$OSBX" ps -aq 2>/dev/null | xargs -r "$OSBX" rm -f >/dev/null 2>&1
	cleanup
}
trap adversary_cleanup EXIT

answers() {
	curl -sf -o /dev/null --unix-socket "${1:-$sock}" http://x/health
}
# serve [COMMAND…] -- [options]: start a server, its pid in $server; waits until it answers on $sock
serve() {
	before=
	while [ "$1" != -- ]; do
		before="$before $1"
		shift
	done
	shift
	$before "$OSBX" serve --limits best-effort "$@" 2>"$tmp/serve.err" &
	server=$!
	until_answers "$sock"
}
until_answers() {
	for _ in $(seq 600); do
		answers "$1" && return 0
		sleep 0.05
	done
	return 1
}
end_server() {
	kill "$server"
	wait "$server"
	is "$?:$(cat "$tmp/serve.err")" 0: "$1: the server ends without a word"
	server=
}
# drive WHERE PART [ARGUMENT]
drive() {
	timeout 300 python3 "$here/../helpers/serve_adversary.py" "$@" >"$tmp/driver" 2>"$tmp/err"
	driven=$?
	while read -r verdict what; do
		case $verdict in
		pass) ok "$2: $what" ;;
		*) not_ok "$2: $verdict $what" ;;
		esac
	done <"$tmp/driver"
	is "$driven" 0 "$2: the driver ended by itself"
	[ "$driven" = 0 ] || note "$(tail -n 5 "$tmp/err")"
}
# refused DESCRIPTION REGEX COMMAND…: it ends with 125 and says so
refused() {
	what=$1
	text=$2
	shift 2
	run timeout 20 "$@"
	is "$status" 125 "$what"
	like "$err" "$text" "$what: it says why"
}

# Files in the way.
echo precious >"$tmp/file"
refused "a file where a socket is to be" 'is no socket' "$OSBX" serve --listen "unix:$tmp/file"
is "$(cat "$tmp/file" 2>&1)" precious "it is still there"
ln -s "$tmp/nowhere" "$tmp/link"
refused "a link where a socket is to be" 'is no socket' "$OSBX" serve --listen "unix:$tmp/link"
is "$(readlink "$tmp/link")" "$tmp/nowhere" "it is still there"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$sock"
serve -- --listen "unix:$sock"
answers
is "$?" 0 "a socket that nobody listens on is taken over"
refused "a second server on a socket" 'another server listens there' "$OSBX" serve --listen "unix:$sock"
kill -STOP "$server"
refused "a server that has stopped has its socket, too" 'another server listens there' "$OSBX" serve --listen "unix:$sock"
kill -CONT "$server"
end_server "files"

# What cannot work is refused.
refused "port 0" 'ADDRESS:PORT' "$OSBX" serve --listen tcp:127.0.0.1:0
refused "a key with a line end" 'no field of a request can hold' env OSBX_API_KEY="secret
" "$OSBX" serve --listen "unix:$sock"
refused "a key with a space" 'no field of a request can hold' env OSBX_API_KEY="two words" "$OSBX" serve --listen "unix:$sock"
mkdir -m 700 "$tmp/keys"
refused "keys of a directory" 'not a file' "$OSBX" serve --api-key-file "$tmp/keys"
head -c 70000 /dev/zero | tr '\0' a >"$tmp/long"
chmod 600 "$tmp/long"
refused "too many keys" 'more than 65536 bytes' "$OSBX" serve --api-key-file "$tmp/long"
refused "a group for another socket than the default" 'socket-group' "$OSBX" serve --listen "unix:$tmp/other.sock" --socket-group "$(id -g)"
refused "a group that does not exist" 'no such group' "$OSBX" serve --socket-group no-such-group

# Descriptors of a service manager.
handed() {
	python3 - "$OSBX" "$@" <<-'END'
		import os, socket, sys
		kind, n = sys.argv[2:4]
		tcp = socket.socket()
		tcp.bind(('127.0.0.1', 0))
		if kind == 'tcp':
		    tcp.listen()
		udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		udp.bind(('127.0.0.1', 0))
		pair = socket.socketpair()
		sock = {'tcp': tcp, 'deaf': tcp, 'udp': udp, 'pair': pair[0], 'file': open('/dev/null')}[kind]
		os.dup2(sock.fileno(), 100)
		os.dup2(100, 3)
		os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=n)
		os.execv(sys.argv[1], ['osbx', 'serve', *sys.argv[4:]])
	END
}
refused_handed() {
	what=$1
	text=$2
	shift 2
	handed "$@" 2>"$tmp/err" &
	pid=$!
	for _ in $(seq 400); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	is "$?" 125 "$what"
	like "$(cat "$tmp/err")" "$text" "$what: it says why"
}
refused_handed "a socket of datagrams" 'descriptor 3' udp 1
refused_handed "a socket that does not listen" 'descriptor 3' deaf 1
refused_handed "a connection" 'descriptor 3' pair 1
refused_handed "what is no socket" 'descriptor 3' file 1
refused_handed "a number of sockets that is none" 'LISTEN_FDS' tcp many
refused_handed "more sockets than can be" 'LISTEN_FDS' tcp 99999

# A group that may connect, whatever the mask is.
chmod 711 "$tmp"
group=$(id -g)
other=
if [ "$(id -u)" = 0 ]; then
	group=65534
	other="setpriv --reuid 65534 --regid $group --clear-groups"
fi
default=$OSBX_RUNTIME/api/osbx.sock
for mask in 077 022; do
	rm -rf "$OSBX_RUNTIME"
	(
		umask "$mask"
		mkdir -m 700 "$OSBX_RUNTIME"
		exec "$OSBX" serve --socket-group "$group" 2>"$tmp/serve.err"
	) &
	server=$!
	until_answers "$default"
	is "$(stat -c '%a %g' "$default")" "660 $group" "mask $mask: the socket is the group's"
	is "$(stat -c '%a %g' "$OSBX_RUNTIME/api")" "750 $group" "mask $mask: and its directory"
	is "$(stat -c '%a' "$OSBX_RUNTIME")" 711 "mask $mask: they are reached"
	is "$($other curl -s --unix-socket "$default" http://x/health)" '{"status":"healthy"}' "mask $mask: a member is answered"
	end_server "mask $mask"
done
if [ "$(id -u)" = 0 ]; then
	is "$(setpriv --reuid 65533 --regid 65533 --clear-groups curl -s --unix-socket "$default" http://x/health; echo $?)" 7 "nobody else is"
	is "$(setpriv --reuid 65533 --regid 65533 --clear-groups ls "$OSBX_RUNTIME" 2>/dev/null; echo $?)" 2 "nor sees what is there"
fi

# Clients at the same time; wishes; volumes.
mkdir -p "$tmp/base" "$tmp/base-outside"
ln -s "$tmp/base-outside" "$tmp/base/out"
ln -s ../base-outside "$tmp/base/up"
serve -- --listen "unix:$sock" --host-path "$tmp/base" --host-path "$tmp/base-missing"
drive "$sock" patches
drive "$sock" wishes
drive "$sock" volumes "$tmp/base"
end_server "clients"

# Pages.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
serve -- --listen "unix:$sock" --listen "tcp:127.0.0.1:$port"
drive "$port" pages
drive "$port" alive
end_server "pages"

# Few descriptors.
serve prlimit --nofile=48:48 -- --listen "unix:$sock"
drive "$sock" files
end_server "files"

# Idle, but for a WebSocket.
serve -- --listen "unix:$sock" --idle-exit 1s
drive "$sock" idle 1
wait "$server"
is "$?:$(cat "$tmp/serve.err")" 0: "an idle server ends once the WebSocket is closed"
server=
is "$("$OSBX" ps -q | wc -l)" 1 "and no sandbox ends with it"
"$OSBX" ps -aq | xargs -r "$OSBX" rm -f >/dev/null
is "$("$OSBX" ps -aq)" "" "nothing is left"

done_testing
