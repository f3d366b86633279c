#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Images from Debian's docker-registry: names, policies, documents that are not what they should be, what other tools
# find in the store afterwards.
# modes: root user single
. "$(dirname "$0")/lib.sh"
. "$here/../helpers/pull_lib.sh"
needs docker-registry skopeo umoci python3

registry_start plain
flaky_start flaky "$registry"
image mixed big same
for name in mixed big same; do
	push "$images/$name:t" "$registry/t/$name:1"
done
push "$OSBX_TEST_DATA/busybox:1" "$registry/busybox:1"
digest=$(skopeo inspect --tls-verify=false "docker://$registry/t/mixed:1" | json 'd["Digest"]')

# --- a pull
osbx pull "$registry/t/mixed:1"
is "$status/$out" "0/pulled $registry/t/mixed:1" "an image is pulled"
is "$(printf '%s\n' "$err" | grep -c '^layer [0-9a-f]\{12\}: done, ')" 4 "a line a layer where there is no terminal"
is "$(inconsistent)" "" "the store is consistent"
is "$("$OSBX" images --json | json 'd[0]["name"], d[0]["digest"], d[0]["layers"], d[0]["unpacked"]')" "$registry/t/mixed:1 $digest 4 True" \
	"images lists it"
same_as "$registry/t/mixed:1" mixed "gzip, zstd and plain layers are there"
osbx pull "$registry/t/mixed:1"
is "$status/$out" "0/$registry/t/mixed:1 is up to date" "again: up to date"
osbx pull -q "$registry/t/mixed:1" "$registry/t/big:1"
is "$status/$out/$err" "0/$registry/t/mixed:1
$registry/t/big:1/" "--quiet prints the names alone"
osbx pull --json "$registry/t/mixed:1" "$registry/t/same:1"
is "$(printf '%s' "$out" | json '[(e["name"][-3:], e["pulled"]) for e in d]') $err" "[('d:1', False), ('e:1', True)] " "--json says what was pulled"
is "$(printf '%s' "$out" | json 'd[0]["digest"]')" "$digest" "and the digests"
same_as "$registry/t/same:1" same "one blob in two layers"
osbx pull "$registry/t/none:1" "$registry/busybox:1"
is "$status/$out" "125/pulled $registry/busybox:1" "one of two is missing: the other one is pulled"
like "$err" "^osbx: $registry/t/none:1: not found at $registry" "and the error names it"
osbx pull oci:x
is "$status" 125 "a layout is not pulled"
like "$err" "^hint: osbx load" "but loaded"
osbx pull --tls-verify=no "$registry/busybox:1"
like "$status/$err" "^125/osbx: option --tls-verify: expected true or false" "--tls-verify true or false"
osbx pull --creds=a:b "$registry/busybox:1"
is "$status" 125 "no secrets on the command line"

# --- bars on a terminal
store_new
rules flaky "GET blobs slow 3000000"
TERM=xterm COLUMNS=80 script -qec "stty cols 80 rows 24; exec '$OSBX' pull $flaky/t/big:1" /dev/null </dev/null >"$tmp/bars" 2>&1
like "$(cat "$tmp/bars")" 'fetching  \[=+ +\] [0-9.]+ MiB / 5\.7 MiB' "a bar a layer"
like "$(cat "$tmp/bars")" 'total +[0-9] of 4 +\[=+ *\] [0-9.]+ MiB / [0-9.]+ MiB  [0-9.]+ MiB/s' "and one for all, with the rate"
like "$(cat "$tmp/bars")" "pulled $flaky/t/big:1" "and what came of it"
rules flaky '* . pass'

# --- other tools
store_new
osbx pull -q "$registry/t/mixed:1" "$registry/t/big:1"
is "$(skopeo inspect "oci:$OSBX_ROOT:$registry/t/mixed:1" | json 'd["Digest"]')" "$digest" "skopeo reads the store"
like "$(umoci ls --layout "$OSBX_ROOT")" "$registry/t/big:1" "umoci lists it"

# --- by digest
store_new
osbx pull -q "$registry/t/mixed@$digest"
is "$status/$out" "0/$registry/t/mixed@$digest" "by digest"
osbx run -q "$registry/t/mixed@$digest" echo runs
is "$out" runs "and it runs so"
osbx pull -q "$registry/t/mixed:7@$digest"
is "$status/$out" "0/$registry/t/mixed@$digest" "a tag beside a digest is not believed"
osbx pull "$registry/t/mixed@sha256:$(printf '%064d' 7)"
like "$status/$err" '^125/.*not found' "a digest that is not there"

# --- run
store_new
osbx run -q --pull never "$registry/busybox:1" true
like "$status/$err" "^125/osbx: image $registry/busybox:1 is not in the store" "run --pull never"
osbx run "$registry/busybox:1" echo '6*7'
is "$status/$out" "0/6*7" "run pulls what is missing"
rules flaky "GET . status 500"
osbx run "$registry/busybox:1" echo still
is "$status/$out/$err" "0/still/" "what is there starts without a registry"
osbx run --pull always "$flaky/busybox:1" true
is "$status" 125 "run --pull always asks it"
osbx run --pull sometimes "$registry/busybox:1" true
like "$status/$err" "^125/osbx: option --pull: expected missing, always or never" "another policy"
osbx run -q --pull always "$registry/busybox:1" echo '$0'
is "$status" 0 "run --pull always"

# --- a tag moves
push "$images/big:t" "$registry/busybox:1"
osbx run -q "$registry/busybox:1" ls /data
is "$status" 1 "the old image is used as long as it is there"
osbx pull "$registry/busybox:1"
is "$out" "pulled $registry/busybox:1" "pull takes the new one"
same_as "$registry/busybox:1" big "which runs"
push "$OSBX_TEST_DATA/busybox:1" "$registry/busybox:1"

# --- short names
store_new
printf '[registries]\nsearch=%s %s\n' "$flaky" "$registry" >"$OSBX_CONFIG"
rules flaky "GET . status 404"
osbx pull -q busybox:1
is "$status/$out" "0/$registry/busybox:1" "a short name is looked for in the configured registries"
is "$(grep -c /v2/busybox/manifests "$tmp/flaky.log")" 1 "in their order"
osbx run -q busybox:1 echo found
is "$status/$out" "0/found" "and found in the store"
rules flaky "GET . status 503"
osbx pull t/mixed:1
like "$status/$err" "^125/osbx: .*$flaky" "one that does not answer is not passed over"
rm "$OSBX_CONFIG"
printf '[registry "%s"]\nmirror=%s\n' "$flaky" "$registry" >"$OSBX_CONFIG"
osbx pull -q "$flaky/busybox:1"
is "$status/$out" "0/$flaky/busybox:1" "a mirror answers for a registry"
rm "$OSBX_CONFIG"

# --- documents
store_new
mixed=/v2/t/mixed/manifests/1
manifest=$tmp/manifest
skopeo inspect --raw --tls-verify=false "docker://$registry/t/mixed:1" >"$manifest"
# refused DESCRIPTION REGEX RULE…
refused() {
	what_=$1 regex_=$2
	shift 2
	rules flaky "$@"
	osbx pull "$flaky/t/mixed:1"
	like "$status $err" "^125 osbx: .*$regex_" "$what_"
}
refused "another type than it says of itself" 'another media type' "GET $mixed type application/vnd.oci.image.index.v1+json"
refused "a page" 'of type "text/html", which is no image' "GET $mixed type text/html;charset=utf-8"
refused "a digest that does not fit" 'the manifest has the digest .*, but .* says' "GET $mixed digest sha256:$(printf '%064d' 7)"
python3 - "$manifest" "$tmp" <<'END'
import json, sys
manifest, out = sys.argv[1:]
d = json.load(open(manifest))
one = {'mediaType': d['mediaType'], 'digest': 'sha256:' + '0' * 64, 'size': 10}


def put(name, **changes):
    with open(f'{out}/{name}', 'w') as f:
        json.dump({**d, **changes}, f)


put('same')
put('foreign', layers=[{**d['layers'][0], 'mediaType': 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip', 'urls': ['http://127.0.0.1:1/x']}])
put('size', layers=[{**d['layers'][0], 'size': 5}] + d['layers'][1:])
put('larger', layers=[{**d['layers'][0], 'size': d['layers'][0]['size'] + 5}] + d['layers'][1:])
put('swapped', layers=[d['layers'][1], d['layers'][0]] + d['layers'][2:])
put('config', config={**d['config'], 'size': 3})
put('artifact', config={**d['config'], 'mediaType': 'application/vnd.example'})
index = {'schemaVersion': 2, 'mediaType': 'application/vnd.oci.image.index.v1+json'}
with open(f'{out}/other', 'w') as f:
    json.dump({**index, 'manifests': [{**one, 'platform': {'os': 'linux', 'architecture': 's390x'}}]}, f)
with open(f'{out}/both', 'w') as f:
    json.dump({**d, 'manifests': [one]}, f)
END
refused "foreign layers" 'foreign layers .* are not fetched' "GET $mixed body 200,$tmp/foreign"
refused "a blob that is larger than its manifest says" 'bytes there, not 5' "GET $mixed body 200,$tmp/size"
refused "a blob that is smaller than its manifest says" 'bytes there, not ' "GET $mixed body 200,$tmp/larger"
refused "a configuration of another size" 'bytes there, not 3' "GET $mixed body 200,$tmp/config"
refused "an artifact" 'it is an artifact' "GET $mixed body 200,$tmp/artifact"
refused "an index without this platform" 'it has no image for linux/.*, but for linux/s390x' "GET $mixed body 200,$tmp/other"
refused "manifest and index at once" 'has no member manifests' "GET $mixed body 200,$tmp/both"
refused "layers in another order than their diff_ids" 'diff digest is' "GET $mixed body 200,$tmp/swapped"
is "$("$OSBX" images -q)" "" "no image came of that"
rules flaky "GET $mixed body 200,$tmp/same"
osbx pull -q "$flaky/t/mixed:1"
is "$status" 0 "a server that does not know the type"
rules flaky '* . pass'
is "$(inconsistent)" "" "the store is consistent"

# --- a list of 1,000 entries
store_new
python3 - "$digest" "$(wc -c <"$manifest")" >"$tmp/list" <<'END'
import json, os, sys
digest, size = sys.argv[1], int(sys.argv[2])
machine = {'x86_64': 'amd64', 'aarch64': 'arm64'}.get(os.uname().machine, os.uname().machine)


def entry(architecture, digest=digest, size=size):
    return {'mediaType': 'application/vnd.oci.image.manifest.v1+json', 'digest': digest, 'size': size,
            'platform': {'os': 'linux', 'architecture': architecture}}


entries = [entry(f'other{i}', f'sha256:{i:064x}', 9) for i in range(999)]
entries.insert(700, entry(machine))
json.dump({'schemaVersion': 2, 'mediaType': 'application/vnd.oci.image.index.v1+json', 'manifests': entries}, sys.stdout)
END
rules flaky "GET $mixed body 200,$tmp/list"
osbx pull -q "$flaky/t/mixed:1"
is "$status" 0 "an index of 1,000 entries"
same_as "$flaky/t/mixed:1" mixed "the one for this machine is taken"
osbx pull --platform linux/other5 "$flaky/t/mixed:1"
like "$status/$err" "^125/osbx: .*not found" "--platform takes another one"

# --- gc
touch -d '2 days ago' "$OSBX_ROOT/partial/$(printf '%064d' 1)"
: >"$OSBX_ROOT/partial/$(printf '%064d' 2)"
"$OSBX" gc -q
is "$(ls "$OSBX_ROOT/partial")" "$(printf '%064d' 2)" "gc removes downloads that nobody went on with for a day"
done_testing
