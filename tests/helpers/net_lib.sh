# SPDX-License-Identifier: Apache-2.0
# Prelude of scripts about private networks, before lib.sh: the script runs in the host's network of a world of its own
# (networld.py), whose folder is $world.
if [ -z "${OSBX_WORLD:-}" ]; then
	OSBX_WORLD=$(mktemp -d "${TMPDIR:-/tmp}/osbx-world.XXXXXX")
	export OSBX_WORLD
	flags=-nm
	[ "$(id -u)" = 0 ] || flags=-Urnm
	for program in ${net_needs:-ip unshare openssl git curl python3}; do
		if ! command -v $program >/dev/null; then
			echo "1..0 # SKIP needs $program"
			exit 0
		fi
	done
	unshare $flags python3 "$(dirname "$0")/../helpers/networld.py" "$OSBX_WORLD/w" sh "$0"
	status=$?
	chmod -R u+rwx "$OSBX_WORLD"
	rm -rf "$OSBX_WORLD"
	exit $status
fi
world=$OSBX_WORLD/w

# try OPTIONS -- ATTEMPT…: what net_try.py gets in a new sandbox with these options; in $out
try() {
	options=
	while [ "$1" != -- ]; do
		options="$options '$1'"
		shift
	done
	shift
	eval "run \"\$OSBX\" run -q $options -v \"\$here/../helpers:/helpers:ro\" @host /usr/bin/python3 /helpers/net_try.py \"\$@\""
}

# try_in SANDBOX ATTEMPT…: the same in one that runs
try_in() {
	sandbox=$1
	shift
	run "$OSBX" exec "$sandbox" /usr/bin/python3 /helpers/net_try.py "$@"
}

# same DESCRIPTION: $out is standard input, line by line; each line is a case of its own
same() {
	cat >"$tmp/expected"
	printf '%s\n' "$out" >"$tmp/got"
	while IFS= read -r line <&3; do
		got=$(grep -F -e "${line%%: *}: " "$tmp/got" | head -n 1)
		case $line in
		*': ~'*) like "${got#*: }" "${line#*: \~}" "$1: ${line%%: *}" ;;
		*) is "${got#*: }" "${line#*: }" "$1: ${line%%: *}" ;;
		esac
	done 3<"$tmp/expected"
	[ -z "$err" ] || note "$err"
}

# arrived PATTERN: how many lines of the world's log there are
arrived() {
	grep -Ec -e "$1" "$world/log"
}

forget() {
	: >"$world/log"
}
