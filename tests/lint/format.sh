#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Any difference to clang-format fails. It changes its mind between versions: the style is that of 14, and without that
# one the test is skipped. usage: format.sh ROOT
. "$(dirname "$0")/clang14.sh"
clang14 clang-format
cd "$1" || exit 1
find include src oci policy execd tests -name '*.[ch]' -print0 | xargs -0 "$program" --dry-run --Werror
