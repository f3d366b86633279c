#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Any difference to clang-format fails. usage: format.sh ROOT
cd "$1" || exit 1
find include src oci policy execd tests -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run --Werror
