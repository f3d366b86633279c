#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: embed.sh TEMPLATE PROGRAM OUTPUT. Always writes OUTPUT: a new program must make a new object, though the text
# stays the same.
sed "s|@IMAGE@|$2|" "$1" >"$3"
