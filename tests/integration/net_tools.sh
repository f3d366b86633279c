#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user
# Programs as they are, without settings of a proxy: curl, wget, git, ssh, python, node, java and their resolvers, an image with another C library's,
# long downloads and uploads through a policy.
. "$(dirname "$0")/../helpers/net_lib.sh"
. "$(dirname "$0")/lib.sh"

osbx run -d --name t --network private --deny '*' --allow allowed.test --allow git.test --allow ssh.test:22 --allow echo.test:7 -e SSL_CERT_FILE=/ca.pem \
	-e GIT_SSL_CAINFO=/ca.pem -e NODE_EXTRA_CA_CERTS=/ca.pem -e CURL_CA_BUNDLE=/ca.pem -e HOME=/tmp -v "$world/ca.pem:/ca.pem:ro" -v "$here/../helpers:/helpers:ro" \
	@host sleep 1000
is "$status:$err" 0: "a sandbox with a policy"
in_t() {
	run timeout 60 "$OSBX" exec t "$@"
}
# needs PROGRAM: is it there? else the cases are skipped
has() {
	command -v "$1" >/dev/null && return 0
	skip "$1" "$1 is not installed"
	return 1
}
good='host=allowed.test sni=allowed.test at=.*:443'

in_t curl -sSf https://allowed.test
like "$out" "$good" "curl"
in_t curl -sSf -4 --http1.1 -d hello=1 http://allowed.test/post
like "$status:$out" '^0:host=allowed.test' "curl posts"
in_t curl -sSf https://other.test
like "$status:$err" '^6:.*resolve' "curl says what is denied"
in_t curl -sSf --max-time 20 https://203.0.113.11 -k
like "$status" '^(7|35|56)$' "an address that is denied is reset"
in_t curl -sf -o /dev/null -w '%{size_download}' http://allowed.test/bytes/300000000
is "$status:$out" 0:300000000 "a long download"
in_t curl -sf -o /dev/null -w '%{size_download}' https://allowed.test/bytes/50000000
is "$status:$out" 0:50000000 "one with TLS"
in_t sh -c 'head -c 30000000 /dev/zero | curl -sSf -X POST -H Expect: --data-binary @- http://allowed.test/up >/dev/null && echo up'
is "$out" up "a long upload"
in_t sh -c 'for i in 1 2 3 4 5 6 7 8; do curl -sf -o /dev/null -w "%{size_download} " http://allowed.test/bytes/5000000 & done; wait'
is "$(echo $out)" "5000000 5000000 5000000 5000000 5000000 5000000 5000000 5000000" "eight at once"
if has wget; then
	in_t wget -q -O - --ca-certificate=/ca.pem https://allowed.test
	like "$out" "$good" "wget"
fi
in_t git clone -q https://git.test/repo.git /tmp/a
is "$status:$("$OSBX" exec t git -C /tmp/a log --format=%s </dev/null)" 0:first "git by https"
in_t git clone -q git://git.test/repo.git /tmp/b
is "$status:$("$OSBX" exec t git -C /tmp/b log --format=%s </dev/null)" 0:first "git by its own protocol"
in_t git ls-remote https://other.test/repo.git
like "$status:$err" '^128:.*(resolve|not exist)' "git says what is denied"
if has ssh; then
	in_t ssh -v -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=5 ssh.test
	like "$err" 'remote software version test' "ssh reaches its server, which speaks first"
	in_t ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=5 -p 22 203.0.113.31
	like "$status:$err" '([Rr]eset|refused|closed)' "and no other"
fi
in_t /usr/bin/python3 -c 'import urllib.request; print(urllib.request.urlopen("https://allowed.test").read().decode())'
like "$out" "$good" "python"
in_t /usr/bin/python3 -c 'import asyncio
async def main():
    r, w = await asyncio.open_connection("echo.test", 7)
    w.write(b"hello"); w.write_eof()
    print((await r.read()).decode())
asyncio.run(main())'
is "$out" hello "python with a half-close"
if has node; then
	in_t node -e 'require("https").get("https://allowed.test", r => r.on("data", d => console.log(d.toString())))'
	like "$out" "$good" "node"
	in_t node -e 'const d = require("dns"); d.resolve4("allowed.test", (e, a) => { console.log(a); d.resolve4("other.test", e => console.log(e.code)) })'
	is "$(echo $out)" "[ '203.0.113.10' ] ENOTFOUND" "the resolver of node itself"
	in_t node -e 'fetch("https://other.test").catch(e => console.log(e.cause.code))'
	is "$out" ENOTFOUND "node says what is denied"
fi
if has java; then
	printf 'public class Get { public static void main(String[] a) throws Exception { System.out.println(new String(new java.net.URL(a[0]).openStream().readAllBytes()));
		try { java.net.InetAddress.getByName("other.test"); } catch (java.net.UnknownHostException e) { System.out.println("unknown"); } } }\n' >"$tmp/Get.java"
	"$OSBX" cp "$tmp/Get.java" t:/tmp/Get.java >/dev/null
	in_t java /tmp/Get.java http://allowed.test
	is "$(echo $out | sed 's/ at=[^ ]*//')" "host=allowed.test sni=- unknown" "java"
fi
if has apt-get && has dpkg-deb; then
	mkdir -p "$tmp/deb/DEBIAN" "$tmp/deb/usr/share/probe" "$world/www/apt"
	head -c 3000000 /dev/urandom >"$tmp/deb/usr/share/probe/data"
	printf 'Package: probe\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@allowed.test>\nDescription: probe\n' >"$tmp/deb/DEBIAN/control"
	dpkg-deb --root-owner-group -b "$tmp/deb" "$world/www/apt/probe.deb" >/dev/null
	{
		cat "$tmp/deb/DEBIAN/control"
		printf 'Filename: ./probe.deb\nSize: %s\nSHA256: %s\n' "$(stat -c %s "$world/www/apt/probe.deb")" "$(sha256sum <"$world/www/apt/probe.deb" | cut -d ' ' -f 1)"
	} >"$world/www/apt/Packages"
	in_t sh -c 'mkdir -p /tmp/apt/lists/partial /tmp/apt/cache/archives/partial && cd /tmp/apt && echo "deb [trusted=yes] http://allowed.test/apt ./" >list && : >status &&
		set -- -o APT::Sandbox::User=root -o Dir::Etc::SourceList=/tmp/apt/list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=/tmp/apt/lists -o Dir::State::status=/tmp/apt/status -o Dir::Cache=/tmp/apt/cache &&
		apt-get "$@" -qq update && apt-get "$@" -qq download probe && ls probe*.deb'
	like "$status:$out" '^0:probe_1_all\.deb' "apt, from a list to a package"
fi
osbx run -q --network private --deny '*' --allow allowed.test "oci:${OSBX_TEST_DATA:?}/busybox:1" wget -q -O - http://allowed.test
like "$out" '^host=allowed.test' "an image with nothing but busybox"
osbx run -q --network private --deny '*' --allow allowed.test "oci:$OSBX_TEST_DATA/busybox:1" nslookup -type=a allowed.test
like "$out" 'Address: *203\.0\.113\.10' "and its nslookup"
is "$(arrived '^(dns|http).* other\.test|^tcp 203\.0\.113\.(11|31)')" 0 "nothing of what is denied arrived"
done_testing
