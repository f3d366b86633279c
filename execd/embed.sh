#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: embed.sh TEMPLATE NAME PROGRAM OUTPUT. Always writes OUTPUT: a new program must make a new object, though the
# text stays the same.
sed "s|@NAME@|$2|g; s|@IMAGE@|$3|" "$1" >"$4"
