#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The store and its commands beside the tools that others use: skopeo, umoci and podman read what osbx writes and the
# reverse; names, removal, gc, other platforms, damage.
# needs: skopeo umoci python3
. "$(dirname "$0")/lib.sh"

data=${OSBX_TEST_DATA:?}
layout="$tmp/layout"
cp -r "$data/busybox" "$layout"
chmod -R u+w "$layout"
blobs="$OSBX_ROOT/blobs/sha256"

# json EXPRESSION: of the document d on standard input
json() {
	python3 -c "import json, sys; d = json.load(sys.stdin); print($1)"
}

count() {
	find "$1" -mindepth 1 -maxdepth 1 ! -name '.*' 2>/dev/null | wc -l
}

layers() {
	find "$OSBX_ROOT/layers" -mindepth 2 -maxdepth 2 -name '????????????????????????????????*' | wc -l
}

# An OCI layout by its directory: stored under a local name, once.
osbx load -q "oci:$layout:1"
is "$status/$out" "0/localhost/layout:1" "oci: is loaded under a local name"
osbx load -q "oci:$layout"
is "$status/$out" "0/localhost/layout:1" "again, without a tag"
is "$("$OSBX" images --json | json 'len(d), d[0]["layers"], d[0]["unpacked"]')" "1 1 True" "images --json lists it once"
manifest=$("$OSBX" images -q)
is "$manifest" "$(json 'd["manifests"][0]["digest"]' <"$layout/index.json")" "its digest is the layout's"
osbx load -q --name mine:2 "oci:$layout:1"
is "$status/$out" "0/mine:2" "--name stores it under another name"

# Other tools read the store.
is "$(skopeo inspect "oci:$OSBX_ROOT:localhost/layout:1" | json 'd["Digest"]')" "$manifest" "skopeo inspects the store"
like "$(umoci ls --layout "$OSBX_ROOT")" "docker.io/library/mine:2" "umoci lists the store"
umoci unpack --rootless --image "$OSBX_ROOT:docker.io/library/mine:2" "$tmp/bundle" 2>"$tmp/umoci"
is "$?" 0 "umoci unpacks from the store"
chmod -R u+rwx "$tmp/bundle" && rm -rf "$tmp/bundle"

# docker-archive: names, the same content.
skopeo copy -q "oci:$layout:1" "docker-archive:$tmp/docker.tar:name:1"
osbx load -q "docker-archive:$tmp/docker.tar"
is "$status/$out" "0/name:1" "docker-archive: brings its name"
osbx load -q "docker-archive:$tmp/docker.tar:name:1"
is "$status/$out" "0/name:1" "one image of an archive by its name"
osbx load "docker-archive:$tmp/docker.tar:other"
is "$status" 125 "an archive without the image is an error"
like "$err" "holds no image docker.io/library/other:latest, but docker.io/library/name:1" "and says what it holds"
is "$("$OSBX" images --json | json '[e["name"] for e in d]')" "['mine:2', 'name:1', 'localhost/layout:1']" "three names"
is "$(layers)" 1 "of one unpacked layer"

# Compressed archives, and layers compressed inside a docker-archive (as crane writes them).
gzip -k "$tmp/docker.tar"
osbx load -q "docker-archive:$tmp/docker.tar.gz"
is "$status/$out" "0/name:1" "a compressed archive"
mkdir "$tmp/inner" && tar -C "$tmp/inner" -xf "$tmp/docker.tar" && chmod -R u+w "$tmp/inner"
python3 - "$tmp/inner" <<'EOF'
import gzip, json, os, sys
os.chdir(sys.argv[1])
d = json.load(open('manifest.json'))
for image in d:
    for i, name in enumerate(image['Layers']):
        open(f'l{i}.tar.gz', 'wb').write(gzip.compress(open(name, 'rb').read()))
        image['Layers'][i] = f'l{i}.tar.gz'
    image['RepoTags'] = ['inner:1']
json.dump(d, open('manifest.json', 'w'))
EOF
tar -C "$tmp/inner" -cf "$tmp/inner.tar" .
osbx load -q "docker-archive:$tmp/inner.tar"
is "$status/$out" "0/inner:1" "compressed layers in a docker-archive"
is "$(layers)" 1 "still one unpacked layer"

# save: what others load.
osbx save -o "$tmp/saved.tar" name:1 mine:2
is "$status" 0 "save writes an oci-archive"
skopeo copy -q "oci-archive:$tmp/saved.tar:docker.io/library/name:1" "docker-archive:$tmp/back.tar:back:1"
is "$?" 0 "skopeo copies from it"
osbx load -q "docker-archive:$tmp/back.tar"
is "$status/$out" "0/back:1" "and the copy is loaded"
is "$("$OSBX" images --json | json 'len({e["digest"] for e in d if e["name"] in ("name:1", "back:1")})')" 1 "as the same image"
is "$("$OSBX" save name:1 | sha256sum)" "$("$OSBX" save name:1 | sha256sum)" "the same image gives the same bytes, by a pipe"
is "$(tar tf "$tmp/saved.tar" | sort | uniq -d)" "" "each blob once"
osbx load -q "oci-archive:$tmp/saved.tar"
is "$status/$out" "0/name:1
mine:2" "an oci-archive of two images"
osbx load -q "oci-archive:$tmp/saved.tar:docker.io/library/mine:2"
is "$status/$out" "0/mine:2" "one of them"
osbx save none:1
is "$status" 125 "save of nothing is an error"
like "$err" "image none:1 is not in the store" "that names it"

# tag and rmi.
osbx tag mine:2 "ghcr.io/a/b:3"
is "$status" 0 "tag"
digest=$("$OSBX" images --json | json '[e["digest"] for e in d if e["name"] == "mine:2"][0]')
osbx rmi "$digest"
is "$status" 125 "rmi by digest of an image with several names"
like "$err" "several names" "says so"
osbx rmi -q ghcr.io/a/b:3
is "$status" 0 "rmi of one name"
osbx images -q
like "$out" "$digest" "leaves the others"
osbx rmi -q -f "$digest"
is "$status" 0 "rmi -f by digest"
unlike "$("$OSBX" images -q)" "$digest" "takes them all"
osbx rmi -q nothing:1
is "$status" 125 "rmi of nothing is an error"
"$OSBX" images -q | sort -u | while read -r d; do "$OSBX" rmi -q -f "$d"; done
is "$("$OSBX" images --json)" "[]" "all images are gone"
is "$(count "$blobs")/$(layers)/$(count "$OSBX_ROOT/staging")/$(count "$OSBX_ROOT/chains")" "0/0/0/0" "and nothing is left"

# A nested index with attestations and other platforms.
python3 - "$layout" <<'EOF'
import hashlib, json, os, sys
os.chdir(sys.argv[1])

def put(d):
    text = json.dumps(d).encode()
    digest = hashlib.sha256(text).hexdigest()
    open('blobs/sha256/' + digest, 'wb').write(text)
    return {'digest': 'sha256:' + digest, 'size': len(text)}

MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
INDEX = 'application/vnd.oci.image.index.v1+json'
top = json.load(open('index.json'))
machine = {'x86_64': 'amd64', 'aarch64': 'arm64'}[os.uname().machine]
image = dict(top['manifests'][0], platform={'os': 'linux', 'architecture': machine})
image.pop('annotations', None)
other = dict(mediaType=MANIFEST, digest='sha256:' + 'a' * 64, size=7)
attestation = dict(other, platform={'os': 'unknown', 'architecture': 'unknown'},
                   annotations={'vnd.docker.reference.type': 'attestation-manifest'})
windows = dict(other, platform={'os': 'windows', 'architecture': machine, 'os.version': '10.0.1'})
strange = {'mediaType': 'application/x.y', 'digest': 'sha256:' + 'b' * 64, 'size': 1}
inner = dict(mediaType=INDEX, **put({'schemaVersion': 2, 'mediaType': INDEX,
                                     'manifests': [attestation, windows, strange, image]}))
outer = dict(mediaType=INDEX, annotations={'org.opencontainers.image.ref.name': 'nested'},
             **put({'schemaVersion': 2, 'mediaType': INDEX, 'manifests': [strange, inner]}))
top['manifests'].append(outer)
old = dict(mediaType='application/vnd.docker.distribution.manifest.v1+prettyjws',
           annotations={'org.opencontainers.image.ref.name': 'old'}, **put({'schemaVersion': 1, 'fsLayers': []}))
top['manifests'].append(old)
json.dump(top, open('index.json', 'w'))
EOF
osbx load -q "oci:$layout:nested"
is "$status/$out" "0/localhost/layout:nested" "an index in an index"
is "$("$OSBX" images -q)" "$manifest" "leads to the same image"
osbx load "oci:$layout:old"
is "$status" 125 "schema 1 is refused"
like "$err" "schema 1" "by name"
like "$err" "^hint: .*skopeo" "with a hint"
osbx load --platform linux/s390x "oci:$layout:nested"
is "$status" 125 "a platform that is not there is refused"
like "$err" "no image for linux/s390x, but for" "and the others are named"

# Damage in what is loaded leaves the store as it was.
before=$(cd "$OSBX_ROOT" && find . | sort; cat "$OSBX_ROOT/index.json")
layer=$(skopeo inspect --raw "oci:$layout:1" | json 'd["layers"][0]["digest"].split(":")[1]')
cp -r "$layout" "$tmp/damaged"
python3 - "$tmp/damaged/blobs/sha256/$layer" <<'EOF'
import sys
with open(sys.argv[1], 'r+b') as f:
    f.seek(1000)
    byte = f.read(1)
    f.seek(1000)
    f.write(bytes([byte[0] ^ 1]))
EOF
"$OSBX" rmi -q localhost/layout:nested
osbx load "oci:$tmp/damaged:1"
is "$status" 125 "a changed layer is refused"
like "$err" "layer 1" "and named"
is "$("$OSBX" images --json)" "[]" "no image was added"
is "$(count "$blobs")/$(layers)/$(count "$OSBX_ROOT/staging")" "0/0/0" "and no content"
: >"$tmp/damaged/blobs/sha256/$layer"
osbx load "oci:$tmp/damaged:1"
like "$err" "has 0 bytes instead of" "a cut layer is refused before it is read"
rm "$tmp/damaged/blobs/sha256/$layer"
osbx load "oci:$tmp/damaged:1"
like "$err" "blob sha256:$layer is missing" "a missing layer is named"
ln -s /etc/passwd "$tmp/damaged/blobs/sha256/$layer"
osbx load "oci:$tmp/damaged:1"
like "$err" "links that lead out of the layout are not followed" "a link out of the layout is not followed"

# Blobs that came before are not read again; what is lost is brought again.
"$OSBX" load -q "oci:$layout:1" >/dev/null
mv "$layout/blobs" "$layout/gone"
osbx load -q "oci:$layout:1"
is "$status/$out" "0/localhost/layout:1" "a second load needs no blobs"
mv "$layout/gone" "$layout/blobs"
rm "$blobs/$layer"
osbx load -q "oci:$layout:1"
is "$status/$(test -s "$blobs/$layer" && echo there)" "0/there" "a lost blob is brought again"

# gc: what is of use stays, garbage of killed processes goes, foreign files stay.
mkdir "$OSBX_ROOT/staging/dead"
echo part >"$OSBX_ROOT/staging/dead/blob"
echo x >"$blobs/0000000000000000000000000000000000000000000000000000000000000000"
echo mine >"$OSBX_ROOT/notes"
osbx gc --json
is "$status" 0 "gc"
is "$(printf '%s' "$out" | json 'd["blobs"]')" 1 "counts the blob"
is "$(count "$OSBX_ROOT/staging")/$(count "$blobs")/$(cat "$OSBX_ROOT/notes")" "0/3/mine" "removes what is dead, and only that"
osbx gc -q
is "$status" 0 "gc again"
is "$(layers)" 1 "the image stays unpacked"

# Several at once.
"$OSBX" rmi -q localhost/layout:1
for i in 1 2 3 4 5 6; do
	"$OSBX" load -q --name "p:$i" "oci:$layout:1" >"$tmp/p$i" 2>&1 </dev/null &
done
wait
is "$(cat "$tmp"/p[1-6] | sort | tr '\n' ' ')" "p:1 p:2 p:3 p:4 p:5 p:6 " "six loads at once"
is "$("$OSBX" images --json | json 'len(d), len({e["digest"] for e in d})')" "6 1" "give six names of one image"
is "$(count "$blobs")/$(layers)/$(count "$OSBX_ROOT/staging")" "3/1/0" "and one content"

# Names for short, and the digits of the table.
"$OSBX" tag p:1 localhost/short:1
osbx run --network none short:1 echo ran
is "$status $out" "0 ran" "a short name stands for an image of localhost"
osbx rmi short:1
is "$status $out" "0 removed localhost/short:1" "also when it is removed"
digits=$("$OSBX" images | awk 'NR == 2 { print $2 }')
osbx run --network none "$digits" echo ran
is "${#digits} $status $out" "12 0 ran" "the digits that images prints are a name"
"$OSBX" tag p:1 deep/name:2
"$OSBX" save -o "$tmp/familiar.tar" deep/name:2
"$OSBX" rmi -q deep/name:2
osbx load "oci-archive:$tmp/familiar.tar:deep/name:2"
is "$status $out" "0 loaded deep/name:2" "an archive's image is named as images prints it"
"$OSBX" rmi -q deep/name:2

# What only a run brought from a transport goes when nobody uses it; what was loaded stays.
mkdir "$tmp/passing" && cp -r "$layout/." "$tmp/passing"
OSBX_ROOT="$tmp/passing-root"
export OSBX_ROOT
osbx run --network none "oci:$tmp/passing:1" true
is "$status $("$OSBX" images -q | wc -l)" "0 1" "a run from a layout leaves its image"
osbx gc -q
is "$("$OSBX" images -q | wc -l)/$(find "$OSBX_ROOT/blobs/sha256" -type f | wc -l)" 0/0 "until gc"
osbx run --network none "oci:$tmp/passing:1" echo again
is "$status $out" "0 again" "which makes no difference to the next run"
"$OSBX" load -q "oci:$tmp/passing:1" >/dev/null
osbx gc -q
is "$("$OSBX" images -q | wc -l)" 1 "an image that was loaded stays"
"$OSBX" images -q | sort -u | xargs -r "$OSBX" rmi -f -q
OSBX_ROOT="$tmp/root"

# A store that cannot be written to can be read.
cat >"$tmp/read-only.sh" <<'END'
set -e
mount --bind "$OSBX_ROOT" "$OSBX_ROOT"
mount -o remount,bind,ro "$OSBX_ROOT"
"$OSBX" images -q | sort -u | wc -l
"$OSBX" save p:1 | tar t | grep -c '^blobs/sha256/.'
"$OSBX" tag p:1 p:7 2>&1 || echo "$?"
"$OSBX" run --network none p:1 true 2>&1 || echo "$?"
END
if [ "$(id -u)" = 0 ]; then
	run env OSBX="$OSBX" unshare -m sh "$tmp/read-only.sh"
else
	run env OSBX="$OSBX" unshare -rm sh "$tmp/read-only.sh"
fi
if [ "$status" = 1 ] && printf '%s' "$err" | grep -q -e '^unshare:' -e '^mount:'; then
	skip "a read-only store" "no mount namespace here"
else
	like "$out" '^1$' "a read-only store is listed"
	like "$out" '^3$' "and saved from"
	is "$(printf '%s\n' "$out" | grep -c '^osbx: .*Read-only file system')/$(printf '%s\n' "$out" | grep -c '^125$')" 2/2 \
		"what writes to it says why it cannot"
fi

# Somebody else's directory, or one that others can write.
chmod o+w "$OSBX_ROOT"
osbx images
is "$status" 125 "a store that others can write is refused"
like "$err" "^hint: chmod go-w" "with the remedy"
chmod o-w "$OSBX_ROOT"

# podman loads what save wrote.
if command -v podman >/dev/null && [ "$OSBX_TEST_MODE" = root ]; then
	"$OSBX" save -o "$tmp/podman.tar" p:1
	like "$(podman --root "$tmp/pr" --runroot "$tmp/prr" --storage-driver vfs load -i "$tmp/podman.tar" 2>&1)" \
		"docker.io/library/p:1" "podman loads what save wrote"
	podman --root "$tmp/pr" --runroot "$tmp/prr" --storage-driver vfs rmi -f -a >/dev/null 2>&1
else
	skip "podman loads what save wrote" "needs podman and root"
fi

done_testing
