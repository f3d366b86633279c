#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: vm
# The wall clock jumps: what counts is how long a sandbox has lived, and the record says when that is over by the new clock.
# Run by root, whose machine it is.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
run_d() {
	"$OSBX" run -d --network none "$@" </dev/null
}
expires() {
	date -d "$("$OSBX" inspect "$1" | jq -r .expiresAt)" +%s
}
# near A B: not more than 30 s apart
near() {
	[ $(($1 - $2)) -lt 30 ] && [ $(($2 - $1)) -lt 30 ]
}
until_true() {
	n=$(($1 * 10))
	shift
	while [ "$n" -gt 0 ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
		n=$((n - 1))
	done
	return 1
}
jump() {
	timedatectl set-ntp false 2>/dev/null
	date -s "@$(($(date +%s) + $1))" >/dev/null
}
moved() {
	near "$(expires "$1")" "$2"
}
gone() {
	! "$OSBX" inspect "$1"
}

osbx run -q --network none "$image" true
run_d --name long --timeout 1h "$image" sleep 10000 >/dev/null
before=$(expires long)
if ! jump 7200; then
	skip "clock" "the clock of this machine cannot be set"
	done_testing
fi
until_true 30 moved long $((before + 7200))
is "$("$OSBX" inspect long | jq -r .status.state)" Running "two hours forward: one with an hour to live lives on"
near "$(expires long)" $((before + 7200)) && ok "its expiry has moved with the clock" || not_ok "its expiry has moved with the clock"
run_d --name short --timeout 3s "$image" sleep 10000 >/dev/null
jump -86400
until_true 60 gone short
is "$(gone short && echo gone)" gone "a day back: one with three seconds to live lives no day longer"
near "$(expires long)" $((before + 7200 - 86400)) && ok "the other's expiry has moved back" || not_ok "the other's expiry has moved back"
osbx renew --timeout 2h long
is "$status" 0 "renewed behind a jump"
near "$(expires long)" $(($(date +%s) + 7200)) && ok "by the clock as it is now" || not_ok "by the clock as it is now"
jump 79200
is "$("$OSBX" inspect long | jq -r .status.state)" Running "forward again"
osbx renew --timeout 1s long
until_true 60 gone long
is "$(gone long && echo gone)" gone "and it expires"
done_testing
