#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: vm
# Private networks on the kernels of the virtual machine: of root, and of a login user who is nobody else's root. Without times: the machine is slow.
net_needs='ip unshare openssl python3'
. "$(dirname "$0")/../helpers/net_lib.sh"
. "$(dirname "$0")/lib.sh"

# all of it WHO: with $osbx as the program of that one
whole() {
	run $osbx run -d --name "n$1" --network private --deny '*' --allow allowed.test --allow echo.test:7 -p :7000 -v "$here/../helpers:/helpers:ro" @host \
		/usr/bin/python3 /helpers/publish_client.py serve 7000
	is "$status:$err" 0: "$1 starts a sandbox with a policy"
	run $osbx exec "n$1" /usr/bin/python3 /helpers/net_try.py 'get https://allowed.test' 'get http://allowed.test' 'dns other.test A' 'get https://allowed.test sni=other.test' \
		'tcp echo.test 7 hello' 'tcp 203.0.113.11 80' 'get http://[2001:db8::10] host=allowed.test' 'tcp 10.99.0.5 80' 'tcp 192.168.77.1 8080' 'udp 203.0.113.30 7' 'udp 203.0.113.31 7' 'ping 203.0.113.31' 'do link' 'do netd_port'
	out=$(printf '%s' "$out" | sed 's/ slow$//')
	same "$1" <<'END'
get https://allowed.test: 200 host=allowed.test sni=allowed.test at=203.0.113.10:443
get http://allowed.test: 200 host=allowed.test sni=- at=203.0.113.10:80
dns other.test A: ~^NXDOMAIN ede=
get https://allowed.test sni=other.test: ~^(reset|eof)$
tcp echo.test 7 hello: hello
tcp 203.0.113.11 80: ~^(reset|refused)$
get http://[2001:db8::10] host=allowed.test: 200 host=allowed.test sni=- at=2001:db8::10:80
tcp 10.99.0.5 80: ~^(reset|refused)$
tcp 192.168.77.1 8080: ~^(reset|refused)$
udp 203.0.113.30 7: hello
udp 203.0.113.31 7: ~^(EPERM|EACCES|refused|unreachable)$
ping 203.0.113.31: ~^(EPERM|EACCES|refused|unreachable)$
do link: EPERM
do netd_port: 401
END
	run $osbx policy allow "n$1" other.test
	run $osbx exec "n$1" /usr/bin/python3 /helpers/net_try.py 'get http://other.test'
	like "$out" '200 host=other\.test' "$1 allows one more"
	run $osbx policy deny "n$1" other.test
	run $osbx exec "n$1" /usr/bin/python3 /helpers/net_try.py 'get http://other.test'
	like "$out" ': noname' "and takes it back"
	run $osbx port "n$1" 7000
	run timeout 60 python3 "$here/../helpers/publish_client.py" echo $(echo "$out" | sed 's/:/ /') 1000000
	is "$out" "1000000 same" "$1 publishes a port"
	run $osbx rm -f "n$1"
	is "$status" 0 "and it ends"
}

# The first one waits for modules of the kernel, which takes long here.
wait_until 5 "$OSBX" run -q --network private @host true
osbx=$OSBX
whole "$(id -un)"
if [ "$(id -u)" = 0 ] && [ "$(cat /proc/self/uid_map)" = "$(printf "%10d %10d %10d" 0 0 4294967295)" ]; then
	home=$(mktemp -d /tmp/osbx-alice.XXXXXX)
	mkdir "$home/root" "$home/runtime"
	chown -R alice "$home"
	chmod 755 "$OSBX_WORLD" "$world"
	osbx="setpriv --reuid alice --regid alice --init-groups env -i HOME=/home/alice USER=alice PATH=$PATH OSBX_ROOT=$home/root OSBX_RUNTIME=$home/runtime $OSBX"
	whole alice
	rm -rf "$home"
fi
is "$(arrived '^udp 203\.0\.113\.31|^dns.* nosuch|^tcp (10\.|192\.168)')" 0 "nothing arrived where nothing may"
done_testing
