#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single
# The languages of the code interpreter but python: in images that have one of them alone, and of this machine.
. "$(dirname "$0")/lib.sh"

# with_program ROOTFS PROGRAM: it, and the libraries that it needs
with_program() {
	program=$(readlink -f "$(command -v "$2")")
	mkdir -p "$1/usr/bin"
	cp "$program" "$1/usr/bin/$2"
	ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "$1$(dirname "$library")"
		cp -L "$library" "$1$library"
	done
}
sock_of() {
	"$OSBX" inspect "$1" | jq -r .execd.socket
}
# drive NAME LANGUAGE…
drive() {
	sock=$(sock_of "$1")
	shift
	python3 "$here/../helpers/code_languages.py" "$sock" "$@" >"$tmp/driven" 2>&1
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "${line#ok }" ;;
		done) ;;
		*) not_ok "${line#not ok }" ;;
		esac
	done <"$tmp/driven"
	is "$(tail -n 1 "$tmp/driven")" done "all of $* was looked at"
}
# How the SDK finds out that code can be run.
is_open() {
	"$OSBX" exec "$1" bash -c 'exec 3<>/dev/tcp/127.0.0.1/44771' >/dev/null 2>&1 </dev/null
}
types=untyped
node -e 'process.exit(typeof require("module").stripTypeScriptTypes === "function" ? 0 : 1)' && types=typescript

# bash alone.
mkdir -p "$tmp/bash/proc" "$tmp/bash/dev" "$tmp/bash/tmp" "$tmp/bash/bin"
for program in bash cat sleep ls tail; do
	with_program "$tmp/bash" $program
done
ln -s ../usr/bin/bash "$tmp/bash/bin/sh"
# node, and a bash as such an image has it.
mkdir -p "$tmp/node/proc" "$tmp/node/dev" "$tmp/node/tmp" "$tmp/node/bin"
for program in bash sleep node; do
	with_program "$tmp/node" $program
done

if "$OSBX" run -q --rm "dir:$tmp/bash" bash -c : >/dev/null 2>&1 </dev/null; then
	"$OSBX" run -d --name b "dir:$tmp/bash" sleep 100000 >/dev/null </dev/null
	wait_until 20 is_open b && ok "bash alone is ready" || not_ok "bash alone is ready"
	drive b bash
	like "$(curl -sS -m 60 --unix-socket "$(sock_of b)" -d '{"language":"python"}' http://x/code/context)" \
		'python: .*there is one for: bash' "no other language is there"
	"$OSBX" rm -f b >/dev/null
	# Debian's node has parts of itself elsewhere.
	parts=
	[ ! -d /usr/share/nodejs ] || parts="-v /usr/share/nodejs:/usr/share/nodejs:ro"
	# shellcheck disable=SC2086 # words
	"$OSBX" run -d --name n $parts "dir:$tmp/node" sleep 100000 >/dev/null </dev/null
	wait_until 20 is_open n && ok "node alone is ready" || not_ok "node alone is ready"
	drive n javascript $types
	"$OSBX" rm -f n >/dev/null
	"$OSBX" run -d --name h @host sleep 100000 >/dev/null </dev/null
else
	# A folder is no image where there is one id alone; this machine is.
	"$OSBX" run -d --name h @host sleep 100000 >/dev/null </dev/null
	drive h bash javascript $types
fi
drive h ruby
"$OSBX" rm -f h >/dev/null

# Those whose packages are large, where this machine has them.
if java --list-modules 2>/dev/null | grep -q '^jdk.jshell@'; then
	"$OSBX" run -d --name java @host sleep 100000 >/dev/null </dev/null
	drive java java
	"$OSBX" rm -f java >/dev/null
else
	skip "java" "no JDK with jdk.jshell is installed"
fi
# Once is enough: all of its library is compiled anew.
go=$(command -v go || ls /usr/local/go/bin/go 2>/dev/null)
if [ -n "$go" ] && [ "$OSBX_TEST_MODE" = root ]; then
	"$OSBX" run -d --name go -e PATH="${go%/go}:/usr/bin:/bin" @host sleep 100000 >/dev/null </dev/null
	drive go go
	"$OSBX" rm -f go >/dev/null
elif [ "$OSBX_TEST_MODE" = root ]; then
	skip "go" "no Go compiler is installed"
fi
if command -v R >/dev/null; then
	"$OSBX" run -d --name r -v /etc/R:/etc/R:ro @host sleep 100000 >/dev/null </dev/null
	drive r r
	"$OSBX" rm -f r >/dev/null
else
	skip "R" "R is not installed"
fi
done_testing
