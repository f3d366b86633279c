# SPDX-License-Identifier: Apache-2.0
# bash 4.1 and later. The channel was descriptor 3 (code_frame.h), and is 63 here; this text is standard input.
#
# An interactive shell without a terminal: it survives what ends a script (an unset variable with -u, an exec that
# fails), and an interrupt brings it back to its next line, out of whatever it was in. That line opens this text anew.
# What the code sets for itself (-e, -x, traps, IFS, functions named like a command) holds for the code, as far as a
# shell can tell it apart: nothing here may fail, print, or depend on it.
[ -n "${__osbx_count-}" ] || { exec 2>&61 61>&-; unset HISTFILE MAILCHECK; export -n PS1 PS2; set +o history +H +m; __osbx_count=0 __osbx_status=0 __osbx_open= __osbx_flags= __osbx_code=; }

# An interrupt between its fork and its exec makes a child a shell that wants the next line: it ends as one that the
# interrupt has ended, before it reads from the place that it shares with us. One in the middle of making a pipeline
# leaves its last child to be waited for by the next simple command, in place of that one's own status.
PROMPT_COMMAND='builtin :; [[ "$BASHPID" = "$$" ]] || exec "$BASH" --norc --noprofile -c "kill -INT \$\$" 62<&- 63<&-'

__osbx_send() { builtin printf '%s %d\n%s' "$1" "${#2}" "$2" >&63; }

# Bytes, whatever the locale of the code says.
__osbx_next() {
	__osbx_close
	while :; do
		LC_ALL=C TMOUT= IFS=' ' builtin read -r -u 63 __osbx_kind __osbx_length || builtin exit 0
		LC_ALL=C TMOUT= IFS= builtin read -r -d '' -N "$__osbx_length" -u 63 __osbx_code
		[ "$__osbx_kind" = R ] && break
	done
	__osbx_count=$((__osbx_count + 1)) __osbx_open=1 __osbx_now=0
	builtin return 0
}

# A run that an interrupt or a "break" has left is closed before the next one.
__osbx_close() {
	[ -n "$__osbx_open" ] || builtin return 0
	__osbx_open= __osbx_status=$__osbx_now __osbx_name=CommandExecError
	__osbx_send S ''
	[ "$__osbx_status" != 130 ] || __osbx_name=KeyboardInterrupt
	[ "$__osbx_status" = 0 ] || __osbx_send E "{\"ename\":\"$__osbx_name\",\"evalue\":\"$__osbx_status\",\"traceback\":[\"exit status $__osbx_status\"]}"
	__osbx_send F "{\"execution_count\":$__osbx_count}"
}

# $? of the last run is that of its first command; -x is off where the code is not.
__osbx_enter() { builtin return "$__osbx_status"; }

[ "$__osbx_count" != 0 ] || { __osbx_length="{\"language\":\"bash\",\"version\":\"${BASH_VERSION%%(*}\"}"; __osbx_send H "$__osbx_length"; }
while __osbx_next; do __osbx_x=; case $__osbx_flags in *x*) __osbx_x='set -x; ' ;; esac; if __osbx_enter; then builtin eval "$__osbx_x$__osbx_code"; else builtin eval "$__osbx_x$__osbx_code"; fi </dev/null 62<&- 63<&-; { __osbx_now=$? __osbx_flags=$-; set +x; } 2>/dev/null; done
{ __osbx_now=$? __osbx_flags=$-; set +x; } 2>/dev/null; exec </proc/self/fd/62
