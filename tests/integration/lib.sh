# SPDX-License-Identifier: Apache-2.0
# Prelude of every integration script: TAP on standard output, a private store, helpers.
#
# Given by tests/run: OSBX (program), OSBX_TEST_MODE (root user single nested identity no_openat2 no_clone3),
# OSBX_TEST_HELPERS (folder of built helpers), OSBX_TEST_DATA (folder of images made once, see tests/images.sh).
# By hand: OSBX=/path/to/osbx sh tests/integration/run_basic.sh
set -u
: "${OSBX:=osbx}"
: "${OSBX_TEST_MODE:=$([ "$(id -u)" = 0 ] && echo root || echo user)}"
: "${OSBX_TEST_HELPERS:=$(dirname "$OSBX")/tests/helpers}"
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/osbx-test.XXXXXX")
export OSBX_ROOT="$tmp/root" OSBX_RUNTIME="$tmp/runtime"
mkdir -p "$OSBX_ROOT" "$OSBX_RUNTIME"
tests_n=0
failed_n=0

cleanup() {
	# A script that was cut short leaves none running.
	"$OSBX" ps -aq 2>/dev/null | xargs -r "$OSBX" rm -f >/dev/null 2>&1
	# Files of subordinate ids can only be removed by osbx itself.
	"$OSBX" gc -q >/dev/null 2>&1
	"$OSBX" images -q 2>/dev/null | sort -u | xargs -r "$OSBX" rmi -f -q >/dev/null 2>&1
	chmod -R u+rwx "$tmp" 2>/dev/null
	rm -rf "$tmp" 2>/dev/null
	rm -rf "$tmp" 2>/dev/null || :
}
trap cleanup EXIT
trap 'exit 130' INT TERM

ok() {
	tests_n=$((tests_n + 1))
	echo "ok $tests_n - $*"
}

not_ok() {
	tests_n=$((tests_n + 1))
	failed_n=$((failed_n + 1))
	echo "not ok $tests_n - $*"
}

# One case that this mode cannot run: tests/skips lists which may be, under CI=true others fail.
skip() {
	tests_n=$((tests_n + 1))
	echo "ok $tests_n - $1 # SKIP $2"
}

note() {
	printf '%s\n' "$*" | sed 's/^/# /'
}

# is ACTUAL EXPECTED DESCRIPTION
is() {
	if [ "$1" = "$2" ]; then
		ok "$3"
	else
		not_ok "$3"
		note "got:      $1"
		note "expected: $2"
	fi
}

# like TEXT EXTENDED-REGEX DESCRIPTION
like() {
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then
		ok "$3"
	else
		not_ok "$3"
		note "got:      $1"
		note "expected: /$2/"
	fi
}

unlike() {
	if printf '%s\n' "$1" | grep -Eq -e "$2"; then
		not_ok "$3"
		note "got: $1"
	else
		ok "$3"
	fi
}

# run COMMAND…: standard output in $out, standard error in $err, exit status in $status
run() {
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	out=$(cat "$tmp/out")
	err=$(cat "$tmp/err")
}

# osbx ARGS…: the same for osbx
osbx() {
	run "$OSBX" "$@"
}

# wait_until SECONDS COMMAND…: until it succeeds
wait_until() {
	limit=$(($1 * 20))
	shift
	while [ "$limit" -gt 0 ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.05
		limit=$((limit - 1))
	done
	return 1
}

done_testing() {
	echo "1..$tests_n"
	[ "$failed_n" = 0 ]
	exit $?
}
