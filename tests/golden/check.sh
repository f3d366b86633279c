#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: check.sh FILE COMMAND [ARG...]: the output of COMMAND is FILE, byte for byte. A wanted change is taken over with
# OSBX_GOLDEN_UPDATE=1 and read in the diff of the commit.
set -eu
file=$1
shift
if [ "${OSBX_GOLDEN_UPDATE:-}" = 1 ]; then
	"$@" >"$file"
	exit 0
fi
"$@" | diff -u "$file" -
