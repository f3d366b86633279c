#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The registry client alone (tests/helpers/fetch_probe.c) against Debian's docker-registry, with and without
# authentication, in front of it a proxy that cuts, stalls, corrupts and lies.
# modes: root user
. "$(dirname "$0")/lib.sh"
. "$here/../helpers/registry_lib.sh"

for program in docker-registry openssl htpasswd nghttpx; do
	if ! command -v "$program" >/dev/null; then
		skip "registry client" "there is no $program"
		done_testing
	fi
done
probe=$OSBX_TEST_HELPERS/fetch_probe
sh "$helpers/registry_certs.sh" "$tmp/certs"
trap 'registry_stop; cleanup' EXIT
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY SSL_CERT_FILE REGISTRY_AUTH_FILE
export HOME="$tmp/home" XDG_RUNTIME_DIR="$tmp/runtime"
mkdir -p "$HOME"

probe() {
	run "$probe" -f "$@"
}

# The parts of a pull: fresh unless told otherwise.
parts=$tmp/parts
fresh() {
	rm -rf "$parts"
	mkdir -p "$parts"
}

# same DESCRIPTION: all blobs of the image are there, and went through their pipes
same() {
	is "$(cd "$parts" && sha256sum -- * | awk '$1 != $2' | wc -l; ls "$parts" | wc -l)" "0
4" "$1: the parts are the blobs"
	is "$(printf '%s\n' "$out" | awk '$1 == "done" && "sha256:" $2 == $5' | wc -l)" 4 "$1: and went through the pipes"
}

big=3000000
registry_start plain
plain=$registry
image=$(python3 "$helpers/registry_put.py" "$plain" t/image 1 "$tmp/put" 1000 $big 70000)
manifest_digest=$(printf '%s\n' "$image" | awk 'NR == 1 { print $1 }')
big_digest=$(printf '%s\n' "$image" | awk -v n=$big '$2 == n { print $1 }')
small_digest=$(printf '%s\n' "$image" | awk '$2 == 1000 { print $1 }')
big_hex=${big_digest#sha256:}

# --- a good registry
probe ping "$plain/t"
is "$out" pong 'ping'
probe manifest "$plain/t/image:1"
is "$out" "manifest application/vnd.oci.image.manifest.v1+json $manifest_digest $manifest_digest" 'manifest by tag'
probe manifest "$plain/t/image@$manifest_digest"
like "$out" "$manifest_digest $manifest_digest" 'manifest by digest'
probe manifest "localhost:${plain##*:}/t/image:1"
is "$status" 0 'localhost by name'
fresh
probe blobs "$plain/t/image:1" "$parts"
is "$status" 0 'blobs'
same 'blobs'
probe blobs "$plain/t/image:1" "$parts"
is "$(printf '%s\n' "$out" | awk '$1 == "done" && $3 == $4' | wc -l)" 4 'what is complete is not fetched again'
same 'complete parts'
probe manifest "$plain/t/image:2"
like "$out" "error NOT_FOUND $plain/t/image:2: not found at $plain \(manifest unknown\)" 'no such tag'
probe manifest "$plain/t/none:1"
like "$out" "error NOT_FOUND $plain/t/none:1: not found at $plain" 'no such repository'
probe manifest "127.0.0.1:1/t:1"
like "$out" 'error UNAVAILABLE 127.0.0.1:1/t:1: 127.0.0.1:1: cannot connect: Connection refused' 'no registry'
probe manifest "registry.invalid/t:1"
like "$out" 'error UNAVAILABLE registry.invalid/t:1: registry.invalid: the name cannot be resolved' 'no such name'
probe blobs "$plain/t/image:1" "$parts" "sha256:$(printf '%064d' 7)" 5
like "$out" 'failed 0+7 0 NOT_FOUND .*: blob sha256:0+…: not found at' 'no such blob'

# --- user and password
htpasswd -Bbn anna 's3cr3t:pass' >"$tmp/htpasswd" 2>/dev/null
registry_start basic "auth: {htpasswd: {realm: tests, path: $tmp/htpasswd}}" "$tmp/registry-plain/data"
basic=$registry
probe ping "$basic/t"
like "$out" "error UNAUTHORIZED 127.0.0.1:[0-9]+: $basic asks for a login.*\| osbx login $basic" 'basic: no login'
probe -u anna:wrong ping "$basic/t"
like "$out" 'error UNAUTHORIZED .* refuses the credentials' 'basic: wrong password'
probe -u 'anna:s3cr3t:pass' ping "$basic/t"
is "$out" pong 'basic: ping'
fresh
probe -u 'anna:s3cr3t:pass' blobs "$basic/t/image:1" "$parts"
same 'basic'

# --- tokens
token_start --user 'anna:s3cr3t:pass' --refresh IDENTITY
realm="realm: 'http://$token/token', service: registry.test, issuer: osbx-tests, rootcertbundle: $tmp/certs/token.pem"
registry_start token "auth: {token: {$realm}}" "$tmp/registry-plain/data"
bearer=$registry
tokens() {
	awk -v want="$1" '$1 == want' "$tmp/token.log" | wc -l
	: >"$tmp/token.log"
}
probe manifest "$bearer/t/image:1"
like "$out" "error UNAUTHORIZED .* asks for a login \(incorrect username or password\)" 'token: anonymous is refused'
: >"$tmp/token.log"
fresh
probe -u 'anna:s3cr3t:pass' blobs "$bearer/t/image:1" "$parts"
same 'token'
is "$(cat "$tmp/token.log")" 'GET registry.test repository:t/image:pull anna' 'token: one for all requests, of the right scope'
: >"$tmp/token.log"
probe -u 'anna:s3cr3t:pass' ping "$bearer/t"
is "$out$(cat "$tmp/token.log")" 'pongGET registry.test - anna' 'token: ping asks for no scope'
: >"$tmp/token.log"
probe -i IDENTITY manifest "$bearer/t/image:1"
is "$status$(cat "$tmp/token.log")" '0POST registry.test repository:t/image:pull refresh' 'token: by identity token'
probe -i OTHER manifest "$bearer/t/image:1"
like "$out" 'error UNAUTHORIZED .* refuses the credentials' 'token: wrong identity token'
probe -u anna:wrong ping "$bearer/t"
like "$out" 'error UNAUTHORIZED .* refuses the credentials \(incorrect username or password\)' 'token: wrong password'
: >"$tmp/token.log"
echo wrong >"$tmp/token.mode"
probe -u 'anna:s3cr3t:pass' manifest "$bearer/t/image:1"
like "$out" 'error UNAUTHORIZED .* refuses the credentials' 'token: that is no good'
is "$(tokens GET)" 1 'token: one that is good and not enough is not fetched again'
echo foreign >"$tmp/token.mode"
probe -u 'anna:s3cr3t:pass' manifest "$bearer/t/image:1"
like "$out" 'error UNAUTHORIZED .* refuses the credentials' 'token: of another issuer'
is "$(tokens GET)" 2 'token: is fetched once more, and no more'
echo short >"$tmp/token.mode"
fresh
probe -u 'anna:s3cr3t:pass' blobs "$bearer/t/image:1" "$parts"
same 'token that expires at once'
echo access >"$tmp/token.mode"
probe -u 'anna:s3cr3t:pass' manifest "$bearer/t/image:1"
is "$status" 0 'token: access_token will do'
for mode in rubbish huge empty crlf; do
	echo "$mode" >"$tmp/token.mode"
	probe -u 'anna:s3cr3t:pass' manifest "$bearer/t/image:1"
	like "$out" 'error (INVALID_REQUEST|UNAVAILABLE) t?.*: token of |error .*too large' "token: $mode"
done
: >"$tmp/token.log"
echo 503 >"$tmp/token.mode"
probe -u 'anna:s3cr3t:pass' manifest "$bearer/t/image:1"
like "$out" "error UNAVAILABLE .*$token answers 503" 'token: the server fails'
is "$(tokens GET | awk '{ print ($1 >= 3) }')" 1 'token: and was asked again'
: >"$tmp/token.mode"

# --- a registry that misbehaves
flaky_start flaky "$plain"
requests() {
	grep -c -E "$1" "$tmp/flaky.log"
}
rules flaky "GET blobs/$big_digest cut 1000000 x2"
fresh
probe blobs "$flaky/t/image:1" "$parts"
same 'cut twice'
is "$(awk -v p="/v2/t/image/blobs/$big_digest" '$2 == p { print $3 }' "$tmp/flaky.log" | tr '\n' ' ')" \
	'- bytes=1000000- bytes=2000000- ' 'cut: it goes on where it was cut'
rules flaky 'GET blobs cut-random 700000 x40'
fresh
probe blobs "$flaky/t/image:1" "$parts"
is "$status" 0 'cut at random'
same 'cut at random'
rules flaky "GET blobs/$big_digest cut 100"
fresh
probe blobs "$flaky/t/image:1" "$parts" "$big_digest" $big
like "$out" "failed $big_hex [0-9]+ UNAVAILABLE .*the connection was cut" 'no progress is given up on'
is "$(requests "blobs/$big_digest")" 5 'after five tries'
rules flaky "GET blobs/$big_digest stall 500000 x1"
fresh
probe blobs "$flaky/t/image:1" "$parts"
same 'stalled'
rules flaky "GET blobs/$big_digest cut 500000 x1" "GET blobs/$big_digest norange"
fresh
probe blobs "$flaky/t/image:1" "$parts"
same '200 instead of 206'
rules flaky "GET blobs/$big_digest cut 500000 x1" "GET blobs/$big_digest badrange x1"
fresh
probe blobs "$flaky/t/image:1" "$parts"
same 'a part that was not asked for'
rules flaky "GET blobs/$big_digest cut 500000 x1" "GET blobs/$big_digest 416 x1"
fresh
probe blobs "$flaky/t/image:1" "$parts"
same 'a part that is said not to be there'
rules flaky "GET blobs/$big_digest corrupt 1234567"
fresh
probe blobs "$flaky/t/image:1" "$parts" "$big_digest" $big
is "$status$(printf '%s\n' "$out" | awk '$1 == "done" && "sha256:" $2 != $5' | wc -l)" 01 'corrupt bytes are passed on for the hash to see'
fresh
head -c $((big + 10)) /dev/zero >"$parts/$big_hex"
rules flaky '* ^ pass'
probe blobs "$flaky/t/image:1" "$parts" "$big_digest" $big
is "$status$(sha256sum <"$parts/$big_hex" | cut -c-64)" "0$big_hex" 'a part that is too long is begun anew'
for code in 503 502 500 408; do
	rules flaky "GET manifests status $code x2"
	probe manifest "$flaky/t/image:1"
	is "$status$(requests manifests)" 03 "$code twice, then well"
done
rules flaky 'GET manifests status 503'
probe manifest "$flaky/t/image:1"
like "$out" "error UNAVAILABLE .* $flaky answers 503 \(so the rules say\)" '503 for good'
is "$(requests manifests)" 5 'after five tries'
rules flaky 'GET manifests status 429,Retry-After=1 x1'
before=$(date +%s%N)
probe manifest "$flaky/t/image:1"
is "$status$(((($(date +%s%N) - before) / 1000000) >= 1000))" 01 'Retry-After is obeyed'
rules flaky 'GET manifests status 503,Retry-After=@3 x1'
before=$(date +%s%N)
probe manifest "$flaky/t/image:1"
is "$status$(((($(date +%s%N) - before) / 1000000) >= 1000))" 01 'Retry-After is obeyed, as a date'
rules flaky 'GET manifests status 429,Retry-After=@7200'
probe manifest "$flaky/t/image:1"
like "$out" 'error UNAVAILABLE .*the rate limit of .* try again in (119|120) minutes' 'Retry-After that is too far is not waited for'
is "$(requests manifests)" 1 'and asked once'
rules flaky 'GET manifests status 429,Retry-After=soon x1'
probe manifest "$flaky/t/image:1"
is "$status" 0 'a Retry-After that is none'
rules flaky 'GET manifests status 429,Retry-After=7200,RateLimit-Limit=100;w=21600,RateLimit-Remaining=0;w=21600'
probe manifest "$flaky/t/image:1"
like "$out" "error UNAVAILABLE .*the rate limit of $flaky is reached \(100 pulls in 6 hours\) \| try again in 120 minutes; osbx login" \
	'a rate limit is said plainly'
is "$(requests manifests)" 1 'and not run against'
rules flaky 'GET manifests drop x1'
probe manifest "$flaky/t/image:1"
is "$status" 0 'dropped once'
rules flaky 'GET /v2/$ status 404'
probe ping "$flaky/t"
like "$out" "error NOT_SUPPORTED .*$flaky: it does not speak the registry API v2" 'no registry behind the name'
rules flaky 'GET manifests garbage'
probe manifest "$flaky/t/image:1"
like "$out" 'error UNAVAILABLE .*the answer is not HTTP' 'another protocol'
rules flaky "GET blobs/$big_digest length $((big + 1))"
fresh
probe blobs "$flaky/t/image:1" "$parts" "$big_digest" $big
like "$out" "failed $big_hex 0 INVALID_REQUEST .*it has $((big + 1)) bytes there, not $big" 'a length above the size'
rules flaky "GET blobs/$big_digest more 1000"
fresh
probe blobs "$flaky/t/image:1" "$parts" "$big_digest" $big
like "$out" "failed $big_hex [0-9]+ INVALID_REQUEST .*more than its $big bytes" 'more bytes than the size'
rules flaky "GET blobs/$small_digest length 10"
fresh
probe blobs "$flaky/t/image:1" "$parts" "$small_digest" 1000
like "$out" "failed [0-9a-f]+ 0 INVALID_REQUEST .*it has 10 bytes there, not 1000" 'a length below the size'
rules flaky 'GET manifests type text/html;charset=utf-8'
probe manifest "$flaky/t/image:1"
like "$out" "manifest text/html $manifest_digest" 'the type is told as it is'
rules flaky 'GET manifests digest sha256:nonsense'
probe manifest "$flaky/t/image:1"
like "$out" "manifest application/vnd.oci.image.manifest.v1.json - $manifest_digest" 'a claimed digest that is none'
head -c 5000000 /dev/zero >"$tmp/large"
rules flaky "GET manifests body 200,$tmp/large"
probe manifest "$flaky/t/image:1"
like "$out" 'error LIMIT_EXCEEDED .*the manifest is too large' 'a manifest without end'
rules flaky "GET manifests body 404,$tmp/large"
probe manifest "$flaky/t/image:1"
like "$out" 'error NOT_FOUND' 'a refusal without end'
printf '{"errors":[{"code":"DENIED","message":"\\u001b[31mred\\u0007"}]}' >"$tmp/red"
rules flaky "GET manifests body 403,$tmp/red"
probe manifest "$flaky/t/image:1"
like "$out" 'error FORBIDDEN .*denies access \(\?\[31mred\?\)' 'control bytes of a refusal are shown as ?'

# --- redirects
flaky_start store "$basic"
store=$flaky
flaky_start front "$basic"
front=$flaky
rules front "GET blobs redirect http://$store"
rules store '* ^ pass'
fresh
probe -u 'anna:s3cr3t:pass' blobs "$front/t/image:1" "$parts" "$big_digest" $big
is "$(awk '/blobs/ { print $4 }' "$tmp/store.log" | sort -u)" - 'no credentials for another port'
like "$out" "failed $big_hex 0 UNAUTHORIZED" 'and its 401 is final'
rules store "GET blobs/$big_digest pass"
rules front "GET blobs redirect http://localhost:${plain##*:}"
fresh
probe -u 'anna:s3cr3t:pass' blobs "$front/t/image:1" "$parts"
same 'redirected to another host'
rules front 'GET blobs/.* loop'
probe -u 'anna:s3cr3t:pass' blobs "$front/t/image:1" "$parts" "sha256:$(printf '%064d' 7)" 5
like "$out" 'INVALID_REQUEST .*it redirects too often' 'a redirect loop'
is "$(grep -c blobs "$tmp/front.log")" 6 'after five redirects'
rules front "GET blobs location http://anna:x@$plain/v2/"
probe -u 'anna:s3cr3t:pass' blobs "$front/t/image:1" "$parts" "sha256:$(printf '%064d' 7)" 5
like "$out" 'FORBIDDEN .*it redirects to an address with credentials' 'credentials in an address'
rules front 'GET blobs location ftp://127.0.0.1/x'
probe -u 'anna:s3cr3t:pass' blobs "$front/t/image:1" "$parts" "sha256:$(printf '%064d' 7)" 5
like "$out" 'INVALID_REQUEST .*it redirects to an address that is not valid' 'another protocol'

# --- TLS
tls_start() {
	flaky_start "$1" "$plain" --cert "$tmp/certs/$1.pem" --key "$tmp/certs/$1.key"
}
tls_start good
good=$flaky
probe manifest "$good/t/image:1"
like "$out" "error FORBIDDEN .*$good: its certificate is from an issuer that is not trusted here \| put the issuer" 'TLS: unknown issuer'
probe -c "$tmp/certs/ca.pem" manifest "$good/t/image:1"
is "$status" 0 'TLS: own authority'
fresh
probe -c "$tmp/certs/ca.pem" blobs "$good/t/image:1" "$parts"
same 'TLS'
SSL_CERT_FILE=$tmp/certs/ca.pem probe manifest "$good/t/image:1"
is "$status" 0 'TLS: authority of SSL_CERT_FILE'
probe -c "$tmp/certs/good.key" manifest "$good/t/image:1"
like "$out" 'error INVALID_REQUEST certificates .*good.key: not a PEM certificate' 'TLS: a file that is no certificate'
probe -c "$tmp/none" manifest "$good/t/image:1"
like "$out" 'error .*read certificates .*none: No such file' 'TLS: a file that is not there'
probe -k manifest "$good/t/image:1"
is "$status" 0 'TLS: not verified'
tls_start expired
probe -c "$tmp/certs/ca.pem" manifest "$flaky/t/image:1"
like "$out" 'error FORBIDDEN .*its certificate has expired' 'TLS: expired'
tls_start name
probe -c "$tmp/certs/ca.pem" manifest "$flaky/t/image:1"
like "$out" 'error FORBIDDEN .*its certificate is for another name' 'TLS: another name'
probe -c "$tmp/certs/ca.pem" -k manifest "$flaky/t/image:1"
is "$status" 0 'TLS: another name, not verified'
rules good "GET blobs redirect http://$plain"
probe -c "$tmp/certs/ca.pem" blobs "$good/t/image:1" "$parts" "sha256:$(printf '%064d' 7)" 5
like "$out" 'FORBIDDEN .*it redirects from https to http' 'TLS: no redirect to http'
if [ "$OSBX_TEST_MODE" = root ]; then
	run unshare -m sh -c 'mkdir -p /etc/docker && mount -t tmpfs none /etc/docker && mkdir -p "/etc/docker/certs.d/$1" &&
		cp "$2" "/etc/docker/certs.d/$1/ca.crt" && "$3" -f manifest "$1/t/image:1"' sh "$good" "$tmp/certs/ca.pem" "$probe"
	is "$status" 0 'TLS: authority in /etc/docker/certs.d'
fi

# --- HTTP/2
two=127.0.0.1:$(free_port)
nghttpx --no-ocsp --workers=1 -f "${two%:*},${two##*:}" -b "${plain%:*},${plain##*:}" --accesslog-file="$tmp/two.log" \
	--accesslog-format='$protocol_version $request' "$tmp/certs/good.key" "$tmp/certs/good.pem" >"$tmp/two.out" 2>&1 &
server_add $!
wait_for 20 is_answering "$two"
fresh
probe -c "$tmp/certs/ca.pem" blobs "$two/t/image:1" "$parts"
same 'HTTP/2'
wait_for 5 grep -q manifests "$tmp/two.log"
is "$(cut -d' ' -f1 "$tmp/two.log" | sort -u)" HTTP/2 'HTTP/2 it was'

# --- IPv6
flaky_start six "$plain" --listen ::1
probe manifest "[::1]:${flaky##*:}/t/image:1"
is "$status" 0 'an IPv6 address'

# --- mirrors
flaky_start mirror "$plain"
mirror=$flaky
flaky_start origin "$plain"
origin=$flaky
fresh
probe -m "$mirror" blobs "$origin/t/image:1" "$parts"
same 'mirror'
is "$(wc -l <"$tmp/origin.log")" 0 'mirror: the registry itself is not asked'
rules mirror 'GET manifests status 404'
rules origin '* ^ pass'
fresh
probe -d -m "$mirror" blobs "$origin/t/image:1" "$parts"
same 'mirror without the manifest'
like "$err" "$mirror" 'mirror: said at debug'
probe -d -m 127.0.0.1:1 -m "$origin" manifest "$plain/t/image:1"
is "$status" 0 'mirror: one that is not there'
rules mirror 'GET blobs cut 1000000 x1' 'GET blobs drop'
rules origin '* ^ pass'
fresh
probe -m "$mirror" blobs "$origin/t/image:1" "$parts" "$big_digest" $big
is "$status$(awk '/blobs/ { print $3 }' "$tmp/origin.log")" '0bytes=1000000-' 'mirror: the registry goes on where the mirror ended'
rules mirror 'GET manifests status 403'
probe -m "$mirror" manifest "$origin/t/image:1"
like "$out" 'error FORBIDDEN' 'mirror: what it denies is not asked for elsewhere'
rules mirror '* ^ pass'
rules origin '* ^ pass'
python3 "$helpers/registry_put.py" "$plain" cache/t/image 1 "$tmp/put2" 1000 >/dev/null
probe -m "$mirror/cache" manifest "$origin/t/image:1"
is "$status$(awk '{ print $2 }' "$tmp/mirror.log")" '0/v2/cache/t/image/manifests/1' 'mirror: with a prefix'
flaky_start basicmirror "$basic"
probe -u 'anna:s3cr3t:pass' -m "$flaky" manifest "$origin/t/image:1"
like "$out" 'error UNAUTHORIZED' 'mirror: has not the credentials of the registry'
is "$(awk '{ print $4 }' "$tmp/basicmirror.log" | sort -u)" - 'mirror: nothing was sent to it'
cat >"$tmp/auth.json" <<END
{"auths":{"$flaky":{"auth":"$(printf 'anna:s3cr3t:pass' | base64)"}}}
END
REGISTRY_AUTH_FILE=$tmp/auth.json probe -m "$flaky" manifest "$origin/t/image:1"
is "$status" 0 'mirror: has its own'

# --- proxies
python3 "$helpers/registry_proxy.py" --user bob:pr0xy --log "$tmp/proxy.log" --port-file "$tmp/proxy.port" &
server_add $!
proxy=127.0.0.1:$(port_of "$tmp/proxy.port")
far=registry.test:${good##*:}
rules good '* ^ pass'
https_proxy=http://bob:pr0xy@$proxy probe -d -c "$tmp/certs/ca.pem" manifest "$far/t/image:1"
is "$status$(cat "$tmp/proxy.log")" "0CONNECT $far bob" 'proxy: https'
ALL_PROXY=bob:pr0xy@$proxy probe -c "$tmp/certs/ca.pem" manifest "$far/t/image:1"
is "$status" 0 'proxy: of ALL_PROXY, without a scheme'
: >"$tmp/proxy.log"
all_proxy=http://bob:pr0xy@$proxy probe -k manifest "registry.test:${plain##*:}/t/image:1"
like "$status $(tr '\n' ' ' <"$tmp/proxy.log")" "^0 CONNECT .*bob GET http://registry.test:${plain##*:}/v2/t/image/manifests/1 bob" 'proxy: http'
https_proxy=http://bob:wr0ng@$proxy probe -d -c "$tmp/certs/ca.pem" manifest "$far/t/image:1"
like "$out" "error UNAVAILABLE .*$far: its proxy answers 407" 'proxy: wrong password'
unlike "$out$err" 'wr0ng' 'proxy: its password is not said'
https_proxy="http://bob:wr0ng@[$proxy" probe -d -c "$tmp/certs/ca.pem" manifest "$far/t/image:1"
like "$out" 'error INVALID_REQUEST .*https_proxy: not the address of a proxy' 'proxy: not valid'
unlike "$out$err" 'wr0ng' 'proxy: not valid, and not said'
https_proxy="gopher://bob:wr0ng@$proxy" probe -d -c "$tmp/certs/ca.pem" manifest "$far/t/image:1"
unlike "$out$err" 'wr0ng' 'proxy: of an unknown kind, and not said'
: >"$tmp/proxy.log"
HTTPS_PROXY=http://bob:pr0xy@$proxy no_proxy=.test probe -c "$tmp/certs/ca.pem" manifest "$far/t/image:1"
like "$out" 'the name cannot be resolved' 'proxy: no_proxy'
https_proxy=http://bob:pr0xy@$proxy probe -c "$tmp/certs/ca.pem" manifest "$good/t/image:1"
is "$status$(cat "$tmp/proxy.log")" 0 'proxy: not for this machine'
HTTP_PROXY=http://bob:pr0xy@$proxy probe -k manifest "registry.test:${plain##*:}/t/image:1"
is "$status$(cat "$tmp/proxy.log")" 1 'proxy: HTTP_PROXY is not obeyed'

# --- how many at once
python3 "$helpers/registry_put.py" "$plain" t/many 1 "$tmp/put3" 40000 41000 42000 43000 44000 45000 46000 47000 >/dev/null
rules origin 'GET blobs slow 100000'
fresh
probe blobs "$origin/t/many:1" "$parts"
is "$status$(awk '{ if ($6 > n) n = $6 } END { print n }' "$tmp/origin.log")" 04 'four transfers at once'

# --- pipes
fresh
rules origin '* ^ pass'
before=$(date +%s%N)
probe -s 2000000 blobs "$origin/t/image:1" "$parts" "$big_digest" $big "$small_digest" 1000
is "$status$(printf '%s\n' "$out" | awk '$1 == "done" && "sha256:" $2 == $5' | wc -l)" 02 'a slow reader gets everything'
probe -x 100000 blobs "$origin/t/image:1" "$parts" "$big_digest" $big "$small_digest" 1000
like "$out" "failed $big_hex .*Broken pipe" 'a reader that goes away ends its blob'
like "$out" "done ${small_digest#sha256:} 1000" 'and no other'
fresh
probe -n blobs "$origin/t/image:1" "$parts"
is "$status$(cd "$parts" && sha256sum -- * | awk '$1 != $2' | wc -l)" 00 'without pipes'
if [ "$OSBX_TEST_MODE" = root ]; then
	run unshare -m sh -c 'mount -t tmpfs -o size=1m none "$1" && "$2" -f -n blobs "$3/t/image:1" "$1"' sh "$parts" "$probe" "$origin"
	like "$out" "failed $big_hex [0-9]+ RUNTIME_ERROR .*write part: No space left on device" 'a full disk'
fi

# --- what the helper is
helper_of() {
	pgrep -P "$1" -f '^osbx fetch'
}
fresh
rules front '* blobs slow 300000'
REGISTRY_AUTH_FILE=/dev/null "$probe" -d -f -u 'anna:s3cr3t:pass' blobs "$front/t/image:1" "$parts" "$big_digest" $big >"$tmp/slow.out" 2>"$tmp/slow.err" &
parent=$!
wait_for 10 helper_of $parent
wait_for 10 test -s "$parts/$big_hex"
helper=$(helper_of $parent)
field() {
	awk -v f="$1:" '$1 == f { print $2 }' "/proc/$helper/status"
}
is "$(field NoNewPrivs)$(field Seccomp)$(field CapEff)$(field CapPrm)" 1200000000000000000000000000000000 'helper: no new privileges, a filter, no capability'
[ "$OSBX_TEST_MODE" != root ] || is "$(field Uid)" 65534 'helper: root has become nobody'
if [ "$OSBX_TEST_MODE" = root ]; then
	is "$(cat "/proc/$helper/cmdline" "/proc/$helper/environ" | tr '\0' ' ' | grep -c s3cr3t)" 0 'helper: no secret in argv or environment'
else
	is "$(tr '\0' ' ' <"/proc/$helper/cmdline" | grep -c s3cr3t)" 0 'helper: no secret in argv'
	is "$(cat "/proc/$helper/environ" 2>/dev/null)" '' 'helper: cannot be looked into'
fi
kill -9 $parent
wait $parent 2>/dev/null
wait_for 5 test ! -d "/proc/$helper"
is "$([ -d "/proc/$helper" ] && echo there)" '' 'helper: dies with its parent'
is "$(cat "$tmp/slow.out" "$tmp/slow.err" "$tmp"/flaky.err 2>/dev/null | grep -c -E 's3cr3t|YW5uYTpzM2NyM3Q6cGFzcw')" 0 'no secret is said'

done_testing
