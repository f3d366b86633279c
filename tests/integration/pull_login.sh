#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# login and logout, credential files and helpers of docker and podman, registries that want a password or a token; secrets are
# never seen where they should not be.
# modes: root user single
. "$(dirname "$0")/lib.sh"
. "$here/../helpers/pull_lib.sh"
needs docker-registry htpasswd openssl skopeo python3

secret='s3cr3t:Zahn-7'
basic64=$(printf 'anna:%s' "$secret" | base64)
auth_json=$HOME/.config/containers/auth.json
config_json=$HOME/.docker/config.json
htpasswd -Bbn anna "$secret" >"$tmp/htpasswd" 2>/dev/null
image mixed big
registry_start open
push "$images/mixed:t" "$registry/t/mixed:1"
push "$images/big:t" "$registry/t/big:1"
data=$tmp/registry-open/data
registry_start basic "auth: {htpasswd: {realm: tests, path: $tmp/htpasswd}}" "$data"
basic=$registry
sh "$helpers/registry_certs.sh" "$tmp/certs"
token_start --user "anna:$secret"
registry_start bearer "auth: {token: {realm: 'http://$token/token', service: registry.test, issuer: osbx-tests, rootcertbundle: $tmp/certs/token.pem}}" "$data"
bearer=$registry

# All that osbx says, to be looked through at the end.
osbx() {
	run "$OSBX" "$@"
	printf '%s\n%s\n' "$out" "$err" >>"$tmp/said"
}

login() {
	printf '%s\n' "$2" | "$OSBX" login -u anna --password-stdin "$1" >"$tmp/out" 2>"$tmp/err"
	status=$?
	out=$(cat "$tmp/out")
	err=$(cat "$tmp/err")
	printf '%s\n%s\n' "$out" "$err" >>"$tmp/said"
}

# --- user and password
osbx pull "$basic/t/mixed:1"
like "$status/$err" "^125/osbx: $basic/t/mixed:1: $basic asks for a login" "without a login"
like "$err" "^hint: osbx login $basic" "the hint says what to do"
login "$basic" wrong
like "$status/$err" "^125/osbx: $basic: $basic refuses the credentials" "a wrong password"
is "$(ls "$HOME/.config" "$HOME/.docker" 2>/dev/null)" "" "is kept nowhere"
login "$basic" "$secret"
is "$status/$out" "0/logged in to $basic; the credentials are in $auth_json" "login says where it keeps the password"
is "$(stat -c %a "$auth_json")" 600 "which nobody else can read"
is "$(json "d['auths']['$basic']['auth']" <"$auth_json")" "$basic64" "in the form of podman and docker"
osbx pull -q "$basic/t/mixed:1"
is "$status" 0 "the pull uses it"
same_as "$basic/t/mixed:1" mixed "the image is whole"
is "$(skopeo inspect --tls-verify=false "docker://$basic/t/mixed:1" 2>/dev/null | json 'd["Os"]')" linux "skopeo reads it too"
osbx logout "$basic"
is "$status/$out" "0/removed the credentials for $basic" "logout"
osbx logout "$basic"
is "$status/$out" "0/there are no credentials for $basic" "again"
osbx run -q --pull always "$basic/t/mixed:1" true
like "$status/$err" '^125/.*asks for a login' "run --pull always without a login"
osbx run -q "$basic/t/mixed:1" echo still
is "$out" still "what is there needs none"

# --- what others wrote
printf '%s' "$secret" | skopeo login --tls-verify=false --authfile "$tmp/skopeo.json" -u anna --password-stdin "$basic" >/dev/null
export REGISTRY_AUTH_FILE="$tmp/skopeo.json"
osbx pull -q "$basic/t/mixed:1"
is "$status" 0 "REGISTRY_AUTH_FILE, written by skopeo"
unset REGISTRY_AUTH_FILE
rm "$auth_json"
mkdir -p "$HOME/.docker"
printf '{"HttpHeaders":{"X":"y"},"auths":{"%s/t":{"auth":"%s"}}}' "http://$basic" "$basic64" >"$config_json"
osbx pull -q "$basic/t/mixed:1"
is "$status" 0 "an entry of docker's for a part of the registry"
login "$basic" "$secret"
is "$out" "logged in to $basic; the credentials are in $config_json" "login writes to the file that is there"
is "$(json 'd["HttpHeaders"]["X"], len(d["auths"])' <"$config_json")" "y 2" "and keeps the rest of it"
printf '{"auths":{"%s":{"auth":"%s"}}}' "$basic" 'bm90aGluZw==' >"$config_json"
osbx pull "$basic/t/mixed:1"
like "$status/$err" "^125/osbx: credentials in $config_json: entry \"$basic\": auth is not base64 of USER:PASSWORD" "an entry that cannot be read"
printf '{"auths":' >"$config_json"
osbx pull "$basic/t/mixed:1"
like "$status/$err" "^125/osbx: credentials in $config_json: json: " "a file that cannot be read"
rm "$config_json"

# --- names of registries
login "http://$basic/v2/" "$secret"
is "$status" 0 "an address will do"
osbx logout "https://$basic"
is "$out" "removed the credentials for $basic" "for logout too"
for bad in nodots 'a b.example' ''; do
	osbx login "$bad"
	like "$status/$err" "^125/osbx: \"$bad\" is not a registry" "\"$bad\" is not a registry"
done
osbx login -u anna -p "$secret" "$basic"
like "$status/$err" '^125/osbx: option (--password|-p): every user of the machine can read' "no password on the command line"
osbx login -u anna "$basic"
like "$status/$err" '^125/osbx: standard input is not a terminal' "no terminal to ask at"
osbx login --password-stdin "$basic"
like "$status/$err" '^125/osbx: --password-stdin needs --username' "--password-stdin needs a name"
login "$basic" ''
like "$status/$err" '^125/osbx: no password came' "an empty password"

# --- tokens
osbx pull "$bearer/t/mixed:1"
like "$status/$err" '^125/.*asks for a login' "tokens: without a login"
login "$bearer" wrong
like "$status/$err" '^125/.*refuses the credentials' "tokens: wrong password"
login "$bearer" "$secret"
is "$status" 0 "tokens: login"
store_new
osbx pull -q "$bearer/t/mixed:1"
is "$status" 0 "tokens: pull"
is "$(sort -u "$tmp/token.log" | grep -c "repository:t/mixed:pull anna")" 1 "tokens: of the scope of the pull"
osbx logout "$bearer"

# --- helpers
mkdir "$tmp/bin"
PATH=$tmp/bin:$PATH
export STORE="$tmp/kept"
helper() {
	cat >"$tmp/bin/docker-credential-osbxtest"
	chmod 755 "$tmp/bin/docker-credential-osbxtest"
}
printf '{"credHelpers":{"%s":"osbxtest"}}' "$basic" >"$config_json"
helper <<'END'
#!/bin/sh
case $1 in
store) cat >"$STORE" ;;
get) cat "$STORE" 2>/dev/null || { echo 'credentials not found in native keychain'; exit 1; } ;;
erase) rm -f "$STORE" ;;
esac
END
osbx pull "$basic/t/big:1"
like "$status/$err" '^125/.*asks for a login' "helper: has nothing"
login "$basic" "$secret"
is "$status/$out" "0/logged in to $basic; the credentials are in docker-credential-osbxtest" "helper: login stores there"
is "$(json 'd["Username"]' <"$STORE")/$(cat "$config_json")" "anna/{\"credHelpers\":{\"$basic\":\"osbxtest\"}}" "and nowhere else"
osbx pull -q "$basic/t/mixed:1"
is "$status" 0 "helper: pull"
osbx logout "$basic"
is "$out/$(ls "$STORE" 2>&1 | grep -c 'No such')" "removed the credentials for $basic/1" "helper: logout"
printf '#!/bin/sh\necho rubbish with %s in it\n' "$secret" | helper
osbx pull "$basic/t/mixed:1"
like "$status/$err" '^125/osbx: credential helper docker-credential-osbxtest printed no user name and secret' "helper: rubbish"
like "$err" "^hint: $config_json names this helper" "the hint names the file"
printf '#!/bin/sh\necho the keyring is locked\nexit 3\n' | helper
osbx pull "$basic/t/mixed:1"
like "$status/$err" '^125/osbx: credential helper docker-credential-osbxtest get failed: the keyring is locked' "helper: fails"
rm "$tmp/bin/docker-credential-osbxtest"
osbx pull "$basic/t/mixed:1"
like "$status/$err" '^125/osbx: credential helper docker-credential-osbxtest is not in PATH' "helper: is not there"
if [ "$OSBX_TEST_MODE" = root ]; then
	printf '#!/bin/sh\nsleep 1000 & echo $! >"$STORE.pid"\nwait\n' | helper
	before=$(date +%s)
	osbx pull "$basic/t/mixed:1"
	like "$status/$err" '^125/osbx: credential helper docker-credential-osbxtest gave no answer within 30 s' "helper: hangs"
	is "$((($(date +%s) - before) < 45))/$(sed -n 's/^State:.//p' "/proc/$(cat "$STORE.pid")/status" 2>/dev/null | grep -v '^Z')" 1/ \
		"and is ended with what it started"
fi
rm -f "$config_json"

# --- a terminal
"$helpers/login_driver.py" "$OSBX" "$basic" anna "$secret" >"$tmp/driver" 2>&1
while read -r line; do
	case $line in
	'ok '*) ok "terminal: ${line#ok }" ;;
	'not ok '*) not_ok "terminal: ${line#not ok }" ;;
	*) note "$line" ;;
	esac
done <"$tmp/driver"
is "$(grep -c '^ok' "$tmp/driver")" 9 "terminal: nine checks"

# --- secrets
login "$basic" "$secret"
login "$bearer" "$secret"
flaky_start flaky "$basic"
printf '{"auths":{"%s":{"auth":"%s"}}}' "$flaky" "$basic64" >"$tmp/flaky.json"
store_new
rules flaky 'GET blobs slow 4000000'
# What everybody can see of our processes while they work: command lines, names; and of what is ours alone the environment.
watch() {
	while [ ! -e "$tmp/enough" ]; do
		ps -eo args | grep -v registry_token.py >>"$tmp/ps"
		for pid in $(pgrep -u "$(id -u)" osbx); do
			tr '\0' '\n' <"/proc/$pid/environ" >>"$tmp/environ" 2>/dev/null
			tr '\0' '\n' <"/proc/$pid/cmdline" >>"$tmp/ps" 2>/dev/null
		done
		sleep 0.02
	done
}
watch 2>/dev/null &
watcher=$!
REGISTRY_AUTH_FILE="$tmp/flaky.json" osbx pull "$flaky/t/big:1"
is "$status" 0 "a pull that takes its time"
login "$basic" "$secret"
: >"$tmp/enough"
wait $watcher
is "$(grep -c fetch "$tmp/ps" | awk '{ print ($1 > 0) }')" 1 "the helper was seen"
token_secret=$(awk '$4 != "-" { print $4 }' "$tmp/flaky.log" | sort -u | head -n 1)
is "$token_secret" Basic "the registry had the password"
for where in ps environ said flaky.log; do
	is "$(grep -c -F -e "$secret" -e "$basic64" "$tmp/$where")" 0 "no secret in: $where"
done
is "$(grep -r -l -F -e "$secret" -e "$basic64" "$OSBX_ROOT" "$OSBX_RUNTIME" 2>/dev/null)" "" "no secret in the store"
done_testing
