#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over every file of the build, one a process: clang-tidy 14 takes the va_list of a second file for uninitialised. usage: tidy.sh ROOT BUILD-DIR
cd "$1" || exit 1
find src oci policy execd -name '*.c' -print0 |
	xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$2" --extra-arg=-Wno-unknown-warning-option
