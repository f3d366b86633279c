# SPDX-License-Identifier: Apache-2.0
# clang14 PROGRAM: $program is the one of version 14; without it the test is skipped.
clang14() {
	program=$(command -v "$1-14" || command -v "$1")
	case $("$program" --version 2>&1) in
	*"version 14."*) ;;
	*)
		echo "no $1 of version 14: ${program:-none}"
		exit 77
		;;
	esac
}
