#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user nested
# netd by itself, under a keeper, a resolver and servers of the test's: every gate between a sandbox and the network.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || { echo "1..0 # SKIP no python3"; exit 0; }
command -v unshare >/dev/null || { echo "1..0 # SKIP no unshare"; exit 0; }
python3 "$(dirname "$0")/../helpers/netd_keeper.py" "$OSBX" >"$tmp/out" 2>"$tmp/err" </dev/null || {
	not_ok "the driver ran to its end"
	sed 's/^/# /' "$tmp/err"
}
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#ok }" ;;
	"not ok "*) not_ok "${line#not ok }" ;;
	"# "*) note "${line#??}" ;;
	*) note "$line" ;;
	esac
done <"$tmp/out"
done_testing
