#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Any difference to clang-format fails. It changes its mind between versions: the style is that of 14, and without that
# one the test is skipped. usage: format.sh ROOT
cd "$1" || exit 1
format=$(command -v clang-format-14 || command -v clang-format)
case $("$format" --version 2>&1) in
*"version 14."*) ;;
*)
	echo "no clang-format of version 14: ${format:-none}"
	exit 77
	;;
esac
find include src oci policy execd tests -name '*.[ch]' -print0 | xargs -0 "$format" --dry-run --Werror
