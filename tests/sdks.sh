#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sdks.sh CACHE: the official clients of the OpenSandbox API, installed once from their registries.
#   CACHE/sdk/python    a virtual environment: opensandbox, opensandbox-cli, opensandbox-mcp
#   CACHE/sdk/js        node_modules of @alibaba-group/opensandbox
set -eu
cache=${1:?usage: sdks.sh CACHE}/sdk
version="python 1.1.1, js 0.1.11"
[ "$(cat "$cache/version" 2>/dev/null || :)" = "$version" ] && exit 0
rm -rf "$cache"
mkdir -p "$cache/js"
/usr/bin/python3 -m venv "$cache/python"
"$cache/python/bin/pip" install --quiet --disable-pip-version-check \
	opensandbox==1.1.1 opensandbox-cli==1.1.1 opensandbox-mcp==1.1.1
(cd "$cache/js" && npm install --silent --no-audit --no-fund @alibaba-group/opensandbox@0.1.11)
chmod -R a+rX "$cache"
echo "$version" >"$cache/version"
