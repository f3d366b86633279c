#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TLS: certificates are always checked, except where that was given up by name; own authorities; redirects carry no credentials.
# modes: root user
. "$(dirname "$0")/lib.sh"
. "$here/../helpers/pull_lib.sh"
needs docker-registry htpasswd openssl skopeo python3

image mixed
registry_start plain
push "$images/mixed:t" "$registry/t/mixed:1"
plain=$registry
sh "$helpers/registry_certs.sh" "$tmp/certs"
tls_start() {
	flaky_start "$1" "$plain" --cert "$tmp/certs/$1.pem" --key "$tmp/certs/$1.key"
}

# settings LINE…: of the registry at $1
settings() {
	printf '[registry "%s"]\n' "$1" >"$OSBX_CONFIG"
	shift
	printf '%s\n' "$@" >>"$OSBX_CONFIG"
}

tls_start good
good=$flaky
osbx pull -q "$good/t/mixed:1"
like "$status/$err" '^125/osbx: .*issuer that is not trusted here' "an issuer that nobody knows"
settings "$good" "ca=$tmp/certs/ca.pem"
osbx pull -q "$good/t/mixed:1"
is "$status" 0 "an authority of one's own"
same_as "$good/t/mixed:1" mixed "the image is whole"
osbx run -q --pull always --platform linux/amd64 "$good/t/mixed:1" echo hi
like "$status" '^(0|125)$' "run uses it too"
settings "$good" "ca=$tmp/none.pem"
osbx pull -q "$good/t/mixed:1"
like "$status/$err" "^125/osbx: .*$tmp/none.pem" "an authority that is not there"
rm "$OSBX_CONFIG"

for kind in expired name; do
	tls_start $kind
	settings "$flaky" "ca=$tmp/certs/ca.pem"
	osbx pull -q "$flaky/t/mixed:1"
	case $kind in
	expired) like "$status/$err" '^125/osbx: .*its certificate has expired' "an expired certificate" ;;
	name) like "$status/$err" '^125/osbx: .*its certificate is for another name' "a certificate of another name" ;;
	esac
	osbx run -q "$flaky/t/mixed:1" true
	is "$status" 125 "$kind: run refuses it too"
	osbx pull -q --tls-verify=false "$flaky/t/mixed:1"
	is "$status" 0 "$kind: --tls-verify=false"
	settings "$flaky" tls_verify=false
	osbx pull -q "$flaky/t/mixed:1"
	is "$status" 0 "$kind: tls_verify=false in the configuration"
	osbx pull -q --tls-verify=true "$flaky/t/mixed:1"
	is "$status" 125 "$kind: which --tls-verify=true takes back"
	osbx run -q --pull always --tls-verify=false "$flaky/t/mixed:1" echo runs
	is "$out" runs "$kind: run --tls-verify=false"
	rm "$OSBX_CONFIG"
done

# --- passwords over TLS, and blob stores elsewhere
secret='s3cr3t'
htpasswd -Bbn anna "$secret" >"$tmp/htpasswd" 2>/dev/null
registry_start basic "auth: {htpasswd: {realm: tests, path: $tmp/htpasswd}}" "$tmp/registry-plain/data"
basic=$registry
rm -f "$tmp/good.port"
flaky_start front "$basic" --cert "$tmp/certs/good.pem" --key "$tmp/certs/good.key"
front=$flaky
flaky_start blobs "$plain" --cert "$tmp/certs/good.pem" --key "$tmp/certs/good.key"
blobs=$flaky
printf '[registry "%s"]\nca=%s\n' "$front" "$tmp/certs/ca.pem" >"$OSBX_CONFIG"
printf '%s' "$secret" >"$tmp/password"
"$OSBX" login -u anna --password-stdin "$front" <"$tmp/password" >"$tmp/out" 2>"$tmp/err"
is "$?" 0 "login over TLS"
rules front "GET blobs redirect https://localhost:${blobs##*:}"
rules blobs '* . pass'
store_new
osbx pull -q "$front/t/mixed:1"
is "$status" 0 "blobs from another host"
is "$(awk '$2 ~ /manifests/ { print $4 }' "$tmp/front.log" | sort -u | tr '\n' ' ')" '- Basic ' "the registry gets the password when it asks"
is "$(awk '{ print $4 }' "$tmp/blobs.log" | sort -u)" - "the other host does not"
same_as "$front/t/mixed:1" mixed "the image is whole"
rules front "GET blobs redirect http://$plain"
store_new
osbx pull -q "$front/t/mixed:1"
like "$status/$err" '^125/.*it redirects from https to http' "no way down to http"
done_testing
