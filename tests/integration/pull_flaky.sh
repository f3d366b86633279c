#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Pulls that go wrong on the way: cut, stalled, corrupted, killed, interrupted, many at once. Whatever happens, the store is
# consistent, nothing is fetched twice, and the next pull goes on where the last one ended.
# modes: root user
. "$(dirname "$0")/lib.sh"
. "$here/../helpers/pull_lib.sh"
needs docker-registry skopeo python3

registry_start plain
flaky_start flaky "$registry"
image big $(seq -f 'o%g' 0 9)
push "$images/big:t" "$registry/t/big:1"
for i in $(seq 0 9); do
	push "$images/o$i:t" "$registry/t/o$i:1"
done
# Layers: 0 busybox, 1 before, 2 big, 3 after.
big=$(layer big 2)
before=$(layer big 1)
size=$(stat -c %s "$images/big/blobs/sha256/${big#sha256:}")

# ranges DIGEST: the Range of each request for a blob, - for all of it
ranges() {
	awk -v p="/blobs/$1\$" '$2 ~ p { printf "%s ", $3 }' "$tmp/flaky.log"
}

# --- cut and stalled
rules flaky "GET blobs/$big cut 2000000 x2"
osbx pull -q "$flaky/t/big:1"
is "$status/$(ranges "$big")" "0/- bytes=2000000- bytes=4000000- " "cut twice: it resumes"
is "$(inconsistent)" "" "and the store is consistent"
same_as "$flaky/t/big:1" big "and the image whole"
store_new
rules flaky "GET blobs cut-random 900000 x60"
osbx pull -q "$flaky/t/big:1"
is "$status" 0 "cut at random offsets"
is "$(inconsistent)" "" "the store is consistent"
same_as "$flaky/t/big:1" big "and the image whole"
if [ "$OSBX_TEST_MODE" = root ]; then
	store_new
	rules flaky "GET blobs/$big stall 3000000 x1"
	osbx pull -q "$flaky/t/big:1"
	is "$status/$(ranges "$big")" "0/- bytes=3000000- " "stalled: it gives up after half a minute and resumes"
fi

# --- given up, and gone on with
store_new
rules flaky "GET blobs/$big cut 1000000 x1" "GET blobs/$big status 404"
osbx pull -q "$flaky/t/big:1"
like "$status/$err" "^125/osbx: $flaky/t/big: blob .*: not found at $flaky" "the registry's error is the one that is told"
unlike "$err" 'layer|fewer bytes|cut off' "not what the unpacker made of it"
is "$(part_size "$big")" 1000000 "what came stays"
is "$(inconsistent with-parts)" "" "and nothing else"
rules flaky '* . pass'
osbx pull -q "$flaky/t/big:1"
is "$status/$(ranges "$big")" "0/bytes=1000000- " "the next pull asks for the rest"
is "$(ranges "$before")" "" "and not for what was whole"
is "$(inconsistent)" "" "the store is consistent"
same_as "$flaky/t/big:1" big "and the image whole"

# --- corrupted
for at in 10 1234567 $((size - 3)); do
	store_new
	rules flaky "GET blobs/$big corrupt $at"
	osbx pull -q "$flaky/t/big:1"
	like "$status/$err" "^125/osbx: $flaky/t/big: blob $big: its bytes have the digest sha256:" "byte $at corrupt: blob and registry are named"
	is "$(part_size "$big")" 0 "and what came is removed"
	is "$(inconsistent with-parts)$("$OSBX" images -q)" "" "no image came of it"
	rules flaky '* . pass'
	osbx pull -q "$flaky/t/big:1"
	is "$status/$(inconsistent)" 0/ "the next pull is a good one"
done
# What an earlier pull left may be damaged too.
store_new
mkdir "$OSBX_ROOT/partial"
head -c 2000000 /dev/zero >"$OSBX_ROOT/partial/${big#sha256:}"
rules flaky '* . pass'
osbx pull -q "$flaky/t/big:1"
is "$status/$(ranges "$big")" "0/bytes=2000000- - " "a damaged beginning: once more from the start"
same_as "$flaky/t/big:1" big "and the image is whole"

# --- killed in the middle
# pull_start IMAGE…: in the background, as a process group of its own; a shell would have it ignore SIGINT
pull_start() {
	python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])' \
		"$OSBX" pull -q "$@" >"$tmp/started" 2>&1 &
	started=$!
}

# pull_begin BYTES: one that has that much of the big layer
pull_begin() {
	rules flaky "GET blobs/$big slow 3000000"
	pull_start "$flaky/t/big:1"
	wait_for 20 part_has "$big" "$1" || note "nothing arrives: $(cat "$tmp/started")"
}
store_new
pull_begin 1500000
kill -9 $started
wait $started 2>/dev/null
had=$(part_size "$big")
is "$((had >= 1500000 && had < size))" 1 "killed in the middle: the part stays"
is "$("$OSBX" images -q)" "" "there is no image"
rules flaky '* . pass'
osbx pull -q "$flaky/t/big:1"
is "$status/$(ranges "$big")" "0/bytes=$had- " "and repeated: only the rest is fetched"
"$OSBX" gc -q
is "$(inconsistent)" "" "after gc the store is consistent"
same_as "$flaky/t/big:1" big "the image is whole"
for n in 1 3 5 7; do
	store_new
	pull_begin $((n * 800000))
	kill -9 $started
	wait $started 2>/dev/null
	rules flaky '* . pass'
	osbx pull -q "$flaky/t/big:1"
	"$OSBX" gc -q
	is "$status$(inconsistent)" 0 "killed with $n parts of 8"
done

# --- interrupted
for signal in INT/2 TERM/15 HUP/1; do
	store_new
	pull_begin 1000000
	kill -${signal%/*} $started
	wait $started 2>/dev/null
	is $? $((128 + ${signal#*/})) "SIG${signal%/*} ends it by that signal"
	is "$(inconsistent with-parts)" "" "what can be resumed is left, and nothing else"
	is "$(part_has "$big" 1000000; echo $?)" 0 "and that is"
	rules flaky '* . pass'
	osbx pull -q "$flaky/t/big:1"
	is "$status$(inconsistent)" 0 "which the next pull does"
done

# A terminal sends it to the helpers too, which end first.
store_new
pull_begin 1000000
kill -s INT -- "-$started"
wait $started 2>/dev/null
is $? 130 "Ctrl-C ends it by that signal"
is "$(inconsistent with-parts)" "" "Ctrl-C: what can be resumed is left, and nothing else"
is "$(cat "$tmp/started")" "" "Ctrl-C: without a word"
rules flaky '* . pass'
osbx pull -q "$flaky/t/big:1"
is "$status$(inconsistent)" 0 "Ctrl-C: the next pull goes on"

# --- ten at once
# fetched_twice: digests of blobs that were asked for from their beginning more than once
fetched_twice() {
	sed -n 's,^GET [^ ]*/blobs/\([^ ]*\) - .*,\1,p' "$tmp/flaky.log" | sort | uniq -d
}
store_new
rules flaky 'GET blobs slow 2000000'
pids=
for i in $(seq 0 9); do
	pull_start "$flaky/t/o$i:1"
	pids="$pids $started"
done
failed=0
for pid in $pids; do
	wait "$pid" || failed=$((failed + 1))
done
is "$failed" 0 "ten pulls of overlapping images at once"
is "$(fetched_twice)" "" "no blob is fetched twice"
is "$(inconsistent)" "" "the store is consistent"
for i in $(seq 0 9); do
	same_as "$flaky/t/o$i:1" "o$i" "image $i is whole"
done
store_new
rules flaky 'GET blobs slow 1000000'
pids=
for i in $(seq 0 9); do
	pull_start "$flaky/t/o$i:1"
	pids="$pids $started"
done
set -- $pids
sleep 0.5
kill -9 "$1" "$4"
sleep 0.3
kill -9 "$6"
kill -TERM "$8"
failed=0
for pid in $pids; do
	wait "$pid" 2>/dev/null || failed=$((failed + 1))
done
is "$((failed <= 4))" 1 "some are killed, the others do not mind"
rules flaky '* . pass'
osbx pull -q $(seq -f "$flaky/t/o%g:1" 0 9)
is "$status" 0 "the killed ones are pulled again"
is "$(fetched_twice)" "" "what is there is not fetched again"
"$OSBX" gc -q
is "$(inconsistent)" "" "the store is consistent"
for i in $(seq 0 9); do
	same_as "$flaky/t/o$i:1" "o$i" "image $i is whole"
done
done_testing
