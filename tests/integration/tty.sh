#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# -it at a real terminal: tests/helpers/tty_driver.py plays the person and the shell.
# needs: python3
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
"$OSBX" load -q "$image" >/dev/null
python3 "$here/../helpers/tty_driver.py" "$OSBX" "$image" >"$tmp/results" 2>"$tmp/errors"
status=$?
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	"not ok "*) not_ok "${line#not ok }" ;;
	"# "*) echo "$line" ;;
	esac
done <"$tmp/results"
is "$status/$(cat "$tmp/errors")" 0/ "the driver came to its end"
osbx gc -q
is "$(ls "$OSBX_ROOT/sandboxes" "$OSBX_RUNTIME/sandboxes" 2>/dev/null | grep -c '^[0-9a-f]')" 0 "nothing is left"

done_testing
