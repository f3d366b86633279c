# SPDX-License-Identifier: Apache-2.0
# What the scripts about pulling share; read after lib.sh.
. "$here/../helpers/registry_lib.sh"

# Nothing of the caller's: his credentials, proxies and configuration.
unset http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY SSL_CERT_FILE REGISTRY_AUTH_FILE DOCKER_CONFIG XDG_CONFIG_HOME
export HOME="$tmp/home" XDG_RUNTIME_DIR="$tmp/xdg" OSBX_CONFIG="$tmp/osbx.conf"
mkdir -p "$HOME" "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
trap 'registry_stop; cleanup' EXIT
images=$tmp/images
mkdir -p "$images"

# needs PROGRAM…: skips the script when one is missing
needs() {
	for program_; do
		if ! command -v "$program_" >/dev/null; then
			skip "$(basename "$0" .sh)" "there is no $program_"
			done_testing
		fi
	done
}

# image NAME…: make them below $images
image() {
	python3 "$helpers/pull_images.py" "$images" "$OSBX_TEST_DATA/rootfs/bin/busybox" "$@"
}

# push LAYOUT[:TAG] NAME [OPTION…]: into $registry, as it is
push() {
	from_=$1 to_=$2
	shift 2
	skopeo copy -q --preserve-digests --dest-tls-verify=false "$@" "oci:$from_" "docker://$to_"
}

json() {
	python3 -c "import json, sys; d = json.load(sys.stdin); print($1)"
}

# layer NAME N: digest of layer N (from 0) of an image of ours
layer() {
	python3 - "$images/$1" "$2" <<-'END'
		import json, sys
		def blob(digest):
		    return json.load(open(f'{sys.argv[1]}/blobs/sha256/{digest[7:]}'))
		index = json.load(open(f'{sys.argv[1]}/index.json'))
		print(blob(index['manifests'][0]['digest'])['layers'][int(sys.argv[2])]['digest'])
	END
}

# Everything in blobs/ is what its name says, and nothing is half done. Prints what is wrong.
inconsistent() {
	(cd "$OSBX_ROOT/blobs/sha256" && sha256sum -- * 2>/dev/null | awk '$1 != $2 { print "blob", $2 }')
	ls "$OSBX_ROOT/staging"
	find "$OSBX_ROOT/layers" -mindepth 2 -maxdepth 2 -name '.*' ! -name '.unmapped'
	[ "${1:-}" = with-parts ] || ls "$OSBX_ROOT/partial" 2>/dev/null
}

parts() {
	ls "$OSBX_ROOT/partial" 2>/dev/null | wc -l
}

part_size() {
	stat -c %s "$OSBX_ROOT/partial/${1#sha256:}" 2>/dev/null || echo 0
}

# part_has DIGEST BYTES
part_has() {
	[ "$(part_size "$1")" -ge "$2" ]
}

# Another store from here on. The old one goes, its files may belong to subordinate ids.
store_new() {
	"$OSBX" images -q 2>/dev/null | sort -u | xargs -r "$OSBX" rmi -f -q >/dev/null 2>&1
	OSBX_ROOT=$tmp/root$((stores_n = ${stores_n:-0} + 1))
	mkdir "$OSBX_ROOT"
}

# Does the image have what the layout has? check NAME-OF-IMAGE REFERENCE: sums of /data
sums() {
	"$OSBX" run -q "$1" sh -c 'cd /data && sha256sum *' 2>&1
}

# same_as IMAGE LAYOUT DESCRIPTION: it runs, with the content that the layout has
same_as() {
	is "$(sums "$1")" "$(OSBX_ROOT="$tmp/reference" sums "oci:$images/$2:t")" "$3"
}
