#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Put an image of random blobs into a registry: its bytes are no layers, only to be fetched.

usage: registry_put.py HOST:PORT REPOSITORY TAG DIR SIZE...

The blobs are kept as DIR/HEX. Prints "DIGEST SIZE" a line: the manifest, the configuration, then the blobs.
"""
import hashlib
import http.client
import json
import os
import random
import sys
import urllib.parse

MANIFEST = 'application/vnd.oci.image.manifest.v1+json'


def request(host, method, path, body=b'', headers=None):
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request(method, path, body, headers or {})
    reply = connection.getresponse()
    reply.read()
    if reply.status not in (201, 202):
        raise SystemExit(f'{method} {path}: {reply.status}')
    location = reply.headers.get('Location')
    connection.close()
    return location


def put_blob(host, repository, folder, data, media_type):
    digest = 'sha256:' + hashlib.sha256(data).hexdigest()
    with open(os.path.join(folder, digest[7:]), 'wb') as f:
        f.write(data)
    place = urllib.parse.urlsplit(request(host, 'POST', f'/v2/{repository}/blobs/uploads/'))
    query = place.query + ('&' if place.query else '') + urllib.parse.urlencode({'digest': digest})
    request(host, 'PUT', f'{place.path}?{query}', data, {'Content-Type': 'application/octet-stream'})
    return {'mediaType': media_type, 'digest': digest, 'size': len(data)}


def main(host, repository, tag, folder, *sizes):
    source = random.Random(f'{repository}:{tag}')
    os.makedirs(folder, exist_ok=True)
    config = put_blob(host, repository, folder, b'{"architecture":"amd64","os":"linux"}', 'application/vnd.oci.image.config.v1+json')
    layers = [put_blob(host, repository, folder, source.randbytes(int(n)), 'application/vnd.oci.image.layer.v1.tar') for n in sizes]
    text = json.dumps({'schemaVersion': 2, 'mediaType': MANIFEST, 'config': config, 'layers': layers}).encode()
    request(host, 'PUT', f'/v2/{repository}/manifests/{tag}', text, {'Content-Type': MANIFEST})
    print('sha256:' + hashlib.sha256(text).hexdigest(), len(text))
    for blob in (config, *layers):
        print(blob['digest'], blob['size'])


main(*sys.argv[1:])
