#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# registry_certs.sh DIR: a certificate authority and what it signed, with keys of no worth.
#   DIR/ca.pem                     the authority
#   DIR/{good,expired,name}.pem    for localhost, registry.test and this machine's addresses; the same
#                                 but expired; for another name; each with its .key
#   DIR/token.pem                  signs tokens, also serves them
set -eu
dir=${1:?usage: registry_certs.sh DIR}
mkdir -p "$dir"
cd "$dir"
new_key="openssl req -newkey rsa:2048 -nodes -sha256"
names='subjectAltName=DNS:localhost,DNS:registry.test,IP:127.0.0.1,IP:::1'

cat >ca.conf <<END
[ca]
default_ca = own
[own]
database = ./index.txt
serial = ./serial
new_certs_dir = .
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
END
: >index.txt
echo 1000 >serial

$new_key -x509 -days 3650 -subj '/CN=osbx tests authority' -keyout ca.key -out ca.pem 2>/dev/null

# sign NAME SUBJECT-ALT-NAMES START END
sign() {
	$new_key -subj "/CN=$1" -addext "$2" -keyout "$1.key" -out "$1.csr" 2>/dev/null
	openssl ca -batch -config ca.conf -cert ca.pem -keyfile ca.key -startdate "$3" -enddate "$4" -in "$1.csr" -out "$1.pem" -notext 2>/dev/null
}

sign good "$names" 20200101000000Z 20491231000000Z
sign expired "$names" 20200101000000Z 20210101000000Z
sign name 'subjectAltName=DNS:registry.example' 20200101000000Z 20491231000000Z
sign token "$names" 20200101000000Z 20491231000000Z
