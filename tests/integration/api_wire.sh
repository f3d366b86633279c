#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single
# The transcripts of tests/wire that hold for every server, played to the execution API of a sandbox.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
wire=$(cd "$(dirname "$0")/../wire" && pwd)
command -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit 0; }

id=$("$OSBX" run -d "$image" sleep 600) || exit 1
sock=$("$OSBX" inspect "$id" | jq -r .execd.socket)
# A path may be too long for a socket's address: from within its directory.
(cd "$(dirname "$sock")" && python3 "$wire/run" execd.sock "$wire"/00*.txt) >"$tmp/wire"
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#ok * - }" ;;
	"not ok "*) not_ok "${line#not ok * - }" ;;
	esac
done <"$tmp/wire"
is "$(grep -c '^ok' "$tmp/wire")" "$(($(ls "$wire"/00*.txt | wc -l) * 2))" "all of them were played"
"$OSBX" rm -f "$id" >/dev/null
done_testing
