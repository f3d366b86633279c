#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sdks.sh CACHE: the official clients of the OpenSandbox API, installed once from their registries.
#   CACHE/sdk/python    a virtual environment: opensandbox, opensandbox-code-interpreter, opensandbox-cli, opensandbox-mcp
#   CACHE/sdk/js        node_modules of @alibaba-group/opensandbox
#   CACHE/sdk/jupyter   a kernel of bash for Debian's jupyter-server: modules, and share/jupyter
set -eu
cache=${1:?usage: sdks.sh CACHE}/sdk
version="python 1.1.1, interpreter 1.1.1, js 0.1.11, bash_kernel 0.10.0"
[ "$(cat "$cache/version" 2>/dev/null || :)" = "$version" ] && exit 0
rm -rf "$cache"
mkdir -p "$cache/js" "$cache/jupyter/share/jupyter/kernels/bash"
/usr/bin/python3 -m venv "$cache/python"
"$cache/python/bin/pip" install --quiet --disable-pip-version-check \
	opensandbox==1.1.1 opensandbox-code-interpreter==1.1.1 opensandbox-cli==1.1.1 opensandbox-mcp==1.1.1
(cd "$cache/js" && npm install --silent --no-audit --no-fund @alibaba-group/opensandbox@0.1.11)
# What it is made of beside is Debian's.
"$cache/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$cache/jupyter" \
	bash_kernel==0.10.0 filetype==1.2.0
cat >"$cache/jupyter/share/jupyter/kernels/bash/kernel.json" <<'END'
{"argv": ["/usr/bin/python3", "-m", "bash_kernel", "-f", "{connection_file}"], "display_name": "Bash", "language": "bash"}
END
chmod -R a+rX "$cache"
echo "$version" >"$cache/version"
