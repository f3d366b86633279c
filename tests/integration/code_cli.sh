#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root root-asan user single
# osbx code: files and standard input, state, errors, images, interrupts, the interactive loop.
. "$(dirname "$0")/lib.sh"

# What matplotlib wants beside /usr.
"$OSBX" run -d --network none --name box -e HOME=/tmp -e MATPLOTLIBRC=/usr/share/matplotlib/mpl-data -w /tmp @host sleep 1000 >/dev/null </dev/null

osbx code box -c 'x = 20
print("out")
import sys; print("err", file=sys.stderr)
x + 1'
is "$status $out $err" "0 out
21 err" "text, a result, standard error"
echo 'x + 2' >"$tmp/file.py"
osbx code box "$tmp/file.py"
is "$status $out" "0 22" "a file; the state is kept"
is "$(echo 'x + 3' | "$OSBX" code box)" 23 "standard input"
is "$(echo 'x + 4' | "$OSBX" code box -)" 24 "standard input by its name"
osbx code box --new -c 'x'
is "$status" 1 "a new context knows nothing of it: status 1"
like "$err" "NameError: name 'x' is not defined" "and the error is told"
is "$(curl -sS --unix-socket "$("$OSBX" inspect box | jq -r .execd.socket)" 'http://x/code/contexts' | jq length)" 1 "it is gone with its run"
osbx code box -l python3 -c 'x'
is "$out" 20 "another name of the language"
osbx code box -l cobol -c 'x'
is "$status" 125 "a language that is not there: status 125"
like "$err" 'cobol: .*python' "it says what is there"
osbx code nobody -c 1
is "$status" 125 "no such sandbox"
osbx code box -c 1 -i
is "$status" 125 "options that do not go together"
osbx code box "$tmp/none.py"
is "$status" 125 "no such file"
printf 'a\0b' >"$tmp/nul.py"
osbx code box "$tmp/nul.py"
like "$err" 'a NUL in the code' "a NUL in the code"
osbx code box -c 'print("nul\0"); print("日本")'
is "$out" "nul�
日本" "characters of all kinds"
osbx code box -c 'print("x" * 3000000)'
is "${#out}" 3000000 "much text"
osbx code box --timeout 200ms -c 'while True: pass'
is "$status" 1 "a time limit: status 1"
like "$err" 'KernelTimeout: timed out after 200 ms' "it is told"

# A reader that goes away ("| head") ends the run before osbx ends: the context is free for the next one.
for lang in python bash; do
	case $lang in
	python) code='while True: print("more", flush=True)' ;;
	*) code='while :; do echo more; done' ;;
	esac
	is "$({ "$OSBX" code box -l $lang -c "$code"; echo $? >"$tmp/ended"; } 2>/dev/null | head -n 1) $(cat "$tmp/ended")" \
		"more 141" "$lang: a reader that goes away"
	osbx code box -l $lang -c "print('next')"
	unlike "$err" busy "$lang: the next run finds nothing in its way"
done
like "$(yes 1 | timeout 60 "$OSBX" code box -i 2>/dev/null | head -n 1)" 1 "also that of a prompt"
before=$(curl -sS --unix-socket "$("$OSBX" inspect box | jq -r .execd.socket)" 'http://x/code/contexts' | jq length)
"$OSBX" code box --new -c 'while True: print("more", flush=True)' 2>/dev/null | head -n 1 >/dev/null
is "$(curl -sS --unix-socket "$("$OSBX" inspect box | jq -r .execd.socket)" 'http://x/code/contexts' | jq length)" "$before" \
	"a new context is gone with its reader"

context=$(curl -sS --unix-socket "$("$OSBX" inspect box | jq -r .execd.socket)" -d '{"language":"python"}' http://x/code/context | jq -r .id)
osbx code --context "$context" box -c 'x = "of it"; x'
is "$out" "'of it'" "a context by its id"
osbx code --context 00000000-0000-0000-0000-000000000000 box -c x
is "$status" 125 "no such context"

# begin CODE [FIRST]: it runs in the background, behind FIRST and a word, its process in $begun
begin() {
	: >"$tmp/begun"
	# A shell without job control has its background ignore SIGINT, and that is inherited.
	/usr/bin/python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' \
		"$OSBX" code box -c "${2-}
print('running', flush=True)
$1" >"$tmp/begun" 2>"$tmp/begun.err" &
	begun=$!
	wait_until 20 grep -q running "$tmp/begun" || not_ok "it does not begin"
}
begin 'while True: pass'
osbx code box -c 1
is "$status $err" "125 osbx: error running codes session is busy" "a busy context"
kill -INT "$begun"
wait "$begun"
is "$?" 1 "interrupted: status 1"
like "$(cat "$tmp/begun.err")" KeyboardInterrupt "it is told"
osbx code box -c x
is "$out" 20 "the state is kept"
begin 'while True: pass' 'import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)'
kill -INT "$begun"
sleep 0.2
kill -INT "$begun"
wait "$begun"
is "$?" 130 "interrupted twice: status 130"

cat >"$tmp/typed" <<'END'
for i in range(2):
    print("line", i)

1 / 0
y = [
  1,
  2]

y
"no end of line"
END
printf '%s' "$(cat "$tmp/typed")" >"$tmp/typed"
out=$("$OSBX" code -i --new box <"$tmp/typed" 2>"$tmp/err")
is "$? $out" "0 line 0
line 1
[1, 2]
'no end of line'" "interactive: blocks, results, what follows an error"
like "$(cat "$tmp/err")" 'ZeroDivisionError' "and the error"

mkdir "$tmp/plots"
osbx code --new box --out "$tmp/plots" -c 'import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
plt.figure(figsize=(2, 1), dpi=100, facecolor="red")
plt.show()'
is "$status" 0 "a figure"
is "$(/usr/bin/python3 -c 'import sys; from PIL import Image; i = Image.open(sys.argv[1]).convert("RGB"); print(i.format or "", i.getpixel((3, 3)), i.width > 100)' "$tmp/plots/1-1.png")" " (255, 0, 0) True" "is saved: a red picture"
osbx code --new box --out "$tmp/none" -c 'class P:
  def _repr_png_(self): return b"x"
P()'
like "$err" 'osbx: open .*none: No such file' "no such directory"
cat >"$tmp/image.py" <<'END'
class P:
    def _repr_png_(self): return b"\x89PNG and so on" * 400
P()
END
# terminal VARIABLE=VALUE…: what is written to a terminal of this kind, the shown image's bytes
terminal() {
	env -u TMUX -u STY "$@" script -qec "'$OSBX' code --new box '$tmp/image.py'" /dev/null </dev/null | /usr/bin/python3 -c 'import base64, re, sys
text = sys.stdin.buffer.read()
kitty = b"".join(re.findall(rb"\x1b_G[^;]*;([^\x1b]*)\x1b\\", text))
iterm = b"".join(re.findall(rb"\x1b\]1337;File=inline=1:([^\x07]*)\x07", text))
print("kitty" if kitty else "", "iterm" if iterm else "", base64.b64decode(kitty + iterm) == b"\x89PNG and so on" * 400, b"object at" in text)'
}
if command -v script >/dev/null; then
	is "$(terminal TERM=xterm-kitty)" "kitty  True False" "an image in kitty"
	is "$(terminal TERM=xterm TERM_PROGRAM=iTerm.app)" " iterm True False" "an image in iTerm2"
	is "$(terminal TERM=xterm)" "  False True" "in other terminals its text"
else
	not_ok "script is not installed"
fi
osbx code --new box -c 'class P:
  def _repr_mimebundle_(self, **k): return {"image/png": "\x1b]0;title\x07"}
P()'
unlike "$out$err" "$(printf '\033')" "an image that is none does not reach the terminal"
"$OSBX" rm -f box >/dev/null
osbx code box -c 1
is "$status" 125 "a sandbox that has ended"
done_testing
