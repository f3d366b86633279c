#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# completion: the scripts are loaded by the shells themselves, and asked as a person who presses the tab key does.
# modes: root user self
. "$(dirname "$0")/lib.sh"

# The scripts call osbx by name.
mkdir "$tmp/bin" "$tmp/here"
ln -s "$OSBX" "$tmp/bin/osbx"
PATH=$tmp/bin:$PATH
export PATH
touch "$tmp/here/layout.tar" "$tmp/here/two words"
"$OSBX" load -q --name deb:12 "oci:$OSBX_TEST_DATA/busybox" >/dev/null
"$OSBX" run -d --network none --name box-1 @host sleep 1000 >/dev/null </dev/null
"$OSBX" run -d --network none --name box-2 @host sleep 1000 >/dev/null </dev/null

cat >"$tmp/ask.bash" <<-'END'
	# usage: bash ask.bash SCRIPT LINE
	source "$1"
	complete -p osbx >/dev/null || exit 1
	COMP_LINE=$2 COMP_POINT=${#2} COMPREPLY=()
	"$(complete -p osbx | sed 's/.*-F \([^ ]*\).*/\1/')" osbx
	printf '%s\n' "${COMPREPLY[@]}"
END
cat >"$tmp/ask.fish" <<-'END'
	# usage: fish ask.fish SCRIPT LINE
	source $argv[1]
	complete -C $argv[2] | string replace -r '\t.*' ''
END
# zsh completes only at its own prompt: on a terminal, with what it offers written down beside.
cat >"$tmp/ask.zsh" <<-'END'
	# usage: zsh -f ask.zsh FOLDER-OF-SCRIPT LINE
	zmodload zsh/zpty
	zpty z zsh -f -i
	zpty -w z "PROMPT=; fpath=(${(q)1} \$fpath); cd ${(q)PWD}"
	zpty -w z 'autoload -Uz compinit; compinit -u -D'
	zpty -w z 'compadd() { local -a hits; [[ " ${@[1,(i)(-|--)]} " == *" -"[OAD]" "* ]] || { builtin compadd -A hits "$@"; (( $#hits )) && print -rl -- "" "hit:"${^hits}; }; builtin compadd "$@" }'
	zpty -w z 'ended() { print -r -- "the""end" }; comppostfuncs=(ended); bindkey "^I" complete-word; print -r -- rea""dy'
	zpty -r z out '*ready*'
	zpty -w -n z "$2"$'\t'
	zpty -r z out '*theend*'
	print -rl -- ${${(M)${(f)"${out//$'\r'/}"}:#hit:*}#hit:}
	zpty -d z
END

mkdir "$tmp/zsh"
"$OSBX" completion bash >"$tmp/osbx.bash"
"$OSBX" completion zsh >"$tmp/zsh/_osbx"
"$OSBX" completion fish >"$tmp/osbx.fish"

# offered SHELL LINE: what it offers, sorted, on one line
offered() {
	(
		cd "$tmp/here" || exit
		case $1 in
		bash) bash --norc "$tmp/ask.bash" "$tmp/osbx.bash" "$2" ;;
		zsh) HOME=$tmp timeout 60 zsh -f "$tmp/ask.zsh" "$tmp/zsh" "$2" ;;
		fish) HOME=$tmp XDG_CONFIG_HOME=$tmp/fish XDG_DATA_HOME=$tmp/fish fish --no-config "$tmp/ask.fish" "$tmp/osbx.fish" "$2" ;;
		esac 2>&1
	) | LC_ALL=C sort -u | tr '\n' ' ' | sed 's/^ *//; s/ $//'
}

# offers SHELL LINE EXPECTED DESCRIPTION
offers() {
	is "$(offered "$1" "$2")" "$3" "$1: $4"
}

for shell in bash zsh fish; do
	if ! command -v "$shell" >/dev/null; then
		skip "$shell" "$shell is not installed"
		continue
	fi
	offers $shell 'osbx ver' 'version' 'a command'
	offers $shell 'osbx gc --k' '--kept' 'an option'
	offers $shell 'osbx run --network ' 'host none private' 'values of an option'
	offers $shell 'osbx run -it --network h' 'host' 'values behind other options'
	offers $shell 'osbx run @' '@host' 'the image of this machine'
	offers $shell 'osbx rmi d' 'deb:12 dir: docker-archive:' 'names of images'
	offers $shell 'osbx completion ' 'bash fish zsh' 'words of a synopsis'
	offers $shell 'osbx stop box' 'box-1 box-2' 'names of sandboxes'
	offers $shell 'osbx stop box-1 box-2' 'box-2' 'more than one'
	offers $shell 'osbx exec -it bo' 'box-1 box-2' 'the sandbox of a command'
	offers $shell 'osbx cp l' 'layout.tar' 'a file to copy'
	offers $shell 'osbx run --env-file l' 'layout.tar' 'files'
	offers $shell 'osbx nonsense -' '' 'nothing for an unknown command, and no message'
	like "$(offered $shell 'osbx run --seccomp ')" '(^| )default( |$)' 'words beside files'
	like "$(offered $shell 'osbx run --seccomp ')" 'layout.tar' 'files beside words'
	like "$(offered $shell 'osbx run -')" '--cap-add .*--hostname .*--workdir' 'all options'
done
if command -v bash >/dev/null; then
	offers bash 'osbx run --network=h' 'host' 'a value behind ='
	offers bash 'osbx run deb:' '12' 'a name with a colon: only what bash has not yet'
	offers bash 'osbx load oci:l' 'layout.tar' 'a file behind a transport'
	offers bash 'osbx run -e A=b --name x @host l' 'layout.tar' 'files behind the image'
	offers bash 'osbx run @host -' '' 'no options behind the image'
	offers bash 'osbx run @host tw' 'two words' 'a file name with a blank'
fi
if command -v zsh >/dev/null; then
	offers zsh 'osbx load oci:l' 'layout.tar' 'a file behind a transport'
	offers zsh 'osbx run @host -' '' 'no options behind the image'
fi

# A colon that bash has split at is not offered again.
command -v bash >/dev/null && offers bash 'osbx cp box' 'box-1: box-2:' 'bash: a sandbox to copy to or from'
command -v zsh >/dev/null && offers zsh 'osbx cp box' 'box-1: box-2:' 'zsh: a sandbox to copy to or from'
command -v fish >/dev/null && offers fish 'osbx cp box' 'box-1: box-2:' 'fish: a sandbox to copy to or from'

# ---- the command itself
for shell in bash zsh fish; do
	run "$OSBX" completion $shell
	is "$status" 0 "$shell: exit 0"
	unlike "$out" "(^|from |-a |')(unpack|fetch)['):]|words='.* (unpack|fetch)[ ']" "$shell: hidden commands stay hidden"
done
osbx completion --list images
is "$status:$out" '0:deb:12' 'list of images'
osbx completion --list sandboxes
is "$status:$out" '0:box-1
box-2' 'list of sandboxes'
"$OSBX" rm -f box-1 box-2 >/dev/null
run env OSBX_RUNTIME="$tmp/none" OSBX_ROOT="$tmp/none" "$OSBX" completion --list sandboxes
is "$status:$out" '0:' 'nowhere: none'
osbx completion --list stars
is "$status" 125 'list of something else'
osbx completion tcsh
is "$status" 125 'another shell'
like "$err" 'hint: bash, zsh or fish' 'another shell: hint'
osbx completion
is "$status" 125 'no shell'
run env OSBX_ROOT="$tmp/none" "$OSBX" completion --list images
is "$status:$out" '0:' 'no store: no names'
[ -e "$tmp/none" ] && not_ok 'no store: none is made' || ok 'no store: none is made'

# ---- hints on what was meant
osbx vesrion
like "$err" '^osbx: unknown command vesrion$' 'unknown command'
like "$err" '^hint: did you mean osbx version\?$' 'unknown command: hint'
osbx run --newtork host @host
like "$err" '^osbx: unknown option --newtork$' 'unknown option'
like "$err" '^hint: did you mean --network\?$' 'unknown option: hint'
osbx images --xyzzy
like "$err" '^hint: see osbx images --help$' 'an option like no other: hint'
osbx xyzzy
like "$err" '^hint: osbx --help lists the commands$' 'a command like no other: hint'
osbx unpakc
unlike "$err" 'did you mean' 'hidden commands are not meant'
osbx --version
is "$status:$out" "0:osbx $(printf '%s' "$out" | cut -d ' ' -f 2)" '--version'
osbx version
like "$out" '^kernel +Linux [0-9]' 'version: kernel'
like "$out" '^archive +[0-9]+\.' 'version: a library'
osbx version --json
is "$(printf '%s' "$out" | python3 -c 'import json, sys
r = json.load(sys.stdin)
print(sorted(r), {"curl", "archive", "seccomp"} <= {l["name"] for l in r["libraries"]})')" \
	"['ids', 'kernel', 'libraries', 'machine', 'version'] True" 'version --json'
done_testing
