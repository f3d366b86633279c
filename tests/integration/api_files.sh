#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modes: root user single nested no_openat2
# Files and directories over the execution API: every route, names, identities, races, uploads that are cut short.
. "$(dirname "$0")/lib.sh"

image=oci:${OSBX_TEST_DATA:?}/busybox:1
osbx run -q --network none "$image" true
"$OSBX" run -d --network none --name w -e HERE=/tmp/here -w /root "$image" sleep 100000 >/dev/null </dev/null
sock=$("$OSBX" inspect w | jq -r .execd.socket)
in_w() {
	"$OSBX" exec "$@" </dev/null
}
# api METHOD TARGET [CURL OPTIONS]: body in $out, status in $code
api() {
	method=$1
	target=$2
	shift 2
	code=$(curl -sS -o "$tmp/body" -w '%{http_code}' --unix-socket "$sock" -X "$method" "$@" "http://x$target" 2>"$tmp/err")
	out=$(cat "$tmp/body" 2>/dev/null)
	: >"$tmp/body"
}
# post TARGET JSON
post() {
	api POST "$1" -H 'Content-Type: application/json' -d "$2"
}
# upload PATH CONTENT [METADATA]
upload() {
	printf %s "$2" >"$tmp/content"
	jq -nc --arg p "$1" --argjson m "${3:-{\}}" '{path: $p} + $m' >"$tmp/metadata"
	api POST "${prefix:-}/files/upload" -F "metadata=@$tmp/metadata;type=application/json" -F "file=@$tmp/content"
}
# url TEXT: percent-encoded
url() {
	jq -rn --arg t "$1" '$t | @uri'
}
# info PATH FILTER
info() {
	curl -sS --unix-socket "$sock" "http://x${prefix:-}/files/info?path=$(url "$1")" | jq -r ".[] | $2"
}
# left: names of temporary files that somebody forgot
left() {
	in_w w find / -xdev -name '.osbx-*'
}

# Upload and download.
upload /tmp/up/a.txt 'hello'
is "$code $out" "200 " "upload makes directories"
is "$(in_w w cat /tmp/up/a.txt)" hello "the content is there"
is "$(in_w w stat -c '%a %U %G' /tmp/up/a.txt /tmp/up)" "755 root root
755 root root" "modes of a new file and its directory"
upload /tmp/up/a.txt 'again' '{"mode":600,"owner":null,"group":null}'
is "$code $(in_w w stat -c %a /tmp/up/a.txt)" "200 600" "a mode is set"
upload /tmp/up/a.txt 'more'
is "$(in_w w stat -c %a /tmp/up/a.txt) $(in_w w cat /tmp/up/a.txt)" "600 more" "and kept when none is given"
upload relative.txt x
is "$(in_w w cat /root/relative.txt)" x "relative paths begin at the working directory"
upload '~/home.txt' x
is "$(in_w w cat /root/home.txt)" x "~ is the home directory"
upload '$HERE/${HERE}/v.txt' x
is "$(in_w w cat /tmp/here/tmp/here/v.txt)" x "variables of the sandbox"
upload '$NOWHERE/v.txt' x
like "$code $out" '^400 .*NOWHERE' "one that is not defined is an error"
upload /tmp/up x
like "$code $out" '^500 .*RUNTIME_ERROR' "a directory is no target"
upload / x
like "$code $out" '^500 .*RUNTIME_ERROR' "nor is the root"
upload /etc/passwd/x x
like "$code" '^(404|500)$' "nor what is below a file"
in_w w sh -c 'mkfifo /tmp/fifo; ln -s /tmp/up/a.txt /tmp/link; ln -s /tmp/nothing /tmp/dangling; ln -s loop /tmp/loop'
upload /tmp/fifo x
like "$code $out" '^400 .*not a regular file' "a FIFO does not block"
upload /tmp/link through
is "$code $(in_w w sh -c 'readlink /tmp/link; cat /tmp/up/a.txt')" "200 /tmp/up/a.txt
through" "a link is followed to its file"
upload /tmp/dangling made
is "$code $(in_w w sh -c 'readlink /tmp/dangling; cat /tmp/nothing')" "200 /tmp/nothing
made" "also to one that is not there yet"
upload /tmp/loop x
like "$code" '^500$' "a link to itself is an error"
upload /etc/hosts '127.0.0.1 x'
is "$code $(in_w w cat /etc/hosts)" "200 127.0.0.1 x" "a file that is a mount is written in its place"
api POST /files/upload -H 'Content-Type: application/json' -d '{}'
like "$code $out" '^400 .*INVALID_FILE"' "no form"
is "$(left)" "" "no temporary files"

in_w w sh -c 'seq 1 1000 >/tmp/n; printf 0123456789 >/tmp/d; chmod 640 /tmp/d; : >/tmp/empty'
get() {
	api GET "$@" -D "$tmp/head"
	head=$(tr -d '\r' <"$tmp/head")
}
get "/files/download?path=%2Ftmp%2Fd"
is "$code $out" "200 0123456789" "download"
like "$head" '^[Cc]ontent-[Dd]isposition: attachment; filename="d"$' "with its name"
like "$head" '^[Cc]ontent-[Ll]ength: 10$' "its length"
like "$head" '^[Aa]ccept-[Rr]anges: bytes$' "the offer of ranges"
like "$head" '^[Cc]ontent-[Tt]ype: application/octet-stream$' "and a type"
modified=$(printf '%s\n' "$head" | sed -n 's/^[Ll]ast-[Mm]odified: //p')
like "$modified" '^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT$' "when it was modified"
get "/files/download?path=/tmp/link"
like "$head" '; filename="link"$' "a link's file has the link's name"
get "/files/download?path=/tmp/d" -H 'Range: bytes=2-4'
is "$code $out" "206 234" "a range"
like "$head" '^[Cc]ontent-[Rr]ange: bytes 2-4/10$' "which is told"
get "/files/download?path=/tmp/d" -H 'Range: bytes=-3'
is "$code $out" "206 789" "the last bytes"
get "/files/download?path=/tmp/d" -H 'Range: bytes=10-'
like "$code $out" '^416 .*UNKNOWN' "a range behind the end"
like "$head" '^[Cc]ontent-[Rr]ange: bytes \*/10$' "says how long the file is"
get "/files/download?path=/tmp/d" -H 'Range: chapters=1'
like "$code $out" '^416 .*"UNKNOWN"' "no range at all"
get "/files/download?path=/tmp/d" -H 'Range: bytes=2-4' -H "If-Range: $modified"
is "$code $out" "206 234" "If-Range of this version"
get "/files/download?path=/tmp/d" -H 'Range: bytes=2-4' -H 'If-Range: Thu, 01 Jan 1970 00:00:00 GMT'
is "$code $out" "200 0123456789" "and of another one"
get "/files/download?path=/tmp/n&offset=10&limit=3"
is "$code $out" "200 10
11
12" "lines"
like "$head" '^[Cc]ontent-[Tt]ype: text/plain; charset=utf-8$' "as text"
api GET "/files/download?path=/tmp/n&offset=999"
is "$out" "999
1000" "to the end"
api GET "/files/download?path=/tmp/n&limit=1"
is "$out" 1 "from the beginning"
api GET "/files/download?path=/tmp/n&offset=2000"
is "$code$out" 200 "lines behind the end are none"
for query in offset=0 offset=x limit=0 limit=-1; do
	api GET "/files/download?path=/tmp/n&$query"
	is "$code" 400 "$query"
done
api GET "/files/download?path=/tmp/n&offset=1" -H 'Range: bytes=0-1'
is "$code" 400 "lines and bytes"
api GET "/files/download?path=/tmp/empty"
is "$code$out" 200 "an empty file"
api GET "/files/download?path=/nowhere"
like "$code $out" '^404 .*FILE_NOT_FOUND' "one that is not there"
api GET "/files/download"
like "$code $out" '^400 .*MISSING_QUERY' "no path"
api GET "/files/download?path=/tmp"
like "$code $out" '^500 .*RUNTIME_ERROR' "a directory"
api GET "/files/download?path=/tmp/fifo" --max-time 20
like "$code $out" '^400 .*not a regular file' "a FIFO"
api GET "/files/download?path=/dev/zero" --max-time 20
is "$code" 400 "an endless device"
api GET "/files/download?path=/proc/sys/kernel/ostype"
is "$code $out" "200 Linux" "a file of procfs has content"
api GET "/files/download?path=/proc/self/fd/4" --max-time 20
like "$code" '^(404|500)$' "no magic links"
api GET "/files/download?path=/proc/1/environ" --max-time 20
like "$code" '^500$' "nor the memory of PID 1"
api GET "/files/download?path=/proc/1/root/etc/passwd" --max-time 20
like "$code" '^(404|500)$' "nor a way around"
is "$(curl -sS --unix-socket "$sock" -I 'http://x/files/download?path=/tmp/d' | tr -d '\r' | grep -ci '^content-length: 10$')" 1 "HEAD"

# Names.
for name in 'a b' "q'uo\"te" 'ü€😀' 'per%20cent%zz' 'semi;colon&and=' '-rf' '\back\slash' '#hash?' '{brace}[bracket]*' 'new
line' '+plus'; do
	path=/tmp/names/$name
	what=$(printf %s "$name" | tr '\n' '|')
	upload "$path" "content of $name"
	is "$code $(in_w w cat "$path")" "200 content of $name" "upload of $what"
	get "/files/download?path=$(url "$path")"
	is "$code $out" "200 content of $name" "download of $what"
	is "$(info "$path" .path)" "$path" "info of $what"
	post /files/mv "$(jq -nc --arg p "$path" '[{src: $p, dest: ($p + "2")}]')"
	is "$code" 200 "mv of $what"
	api DELETE "/files?path=$(url "$path"2)"
	is "$code $(in_w w sh -c 'ls -A /tmp/names | wc -l')" "200 0" "delete of $what"
done
upload '/tmp/names/ü"x' x
get "/files/download?path=$(url '/tmp/names/ü"x')"
like "$head" "filename=\"___x\"; filename\*=UTF-8''%C3%BC%22x\$" "a name that is no ASCII"
in_w w sh -c 'printf x >/tmp/names/$(printf "\377\376")'
api GET "/files/download?path=/tmp/names/%FF%FE"
is "$code $out" "200 x" "bytes that are no text"
api GET "/directories/list?path=/tmp/names"
is "$code $(printf %s "$out" | jq length)" "200 2" "in a listing"
long=$(printf '%0255d' 0)
upload "/tmp/names/$long" x
is "$code" 200 "a name of 255 bytes"
upload "/tmp/names/1$long" x
is "$code" 400 "one of 256"
upload "/$(printf '%04100d' 0 | sed 's/000000000/00000000\//g')" x
is "$code" 400 "a path of more than 4096"
in_w w rm -rf /tmp/names

# Info.
is "$(info /tmp/d '"\(.path) \(.type) \(.size) \(.owner) \(.group) \(.mode)"')" "/tmp/d file 10 root root 640" "info"
like "$(info /tmp/d .modified_at)" '^[0-9-]{10}T[0-9:.]+Z$' "times"
is "$(info /tmp '"\(.type) \(.mode)"')" "directory 777" "of a directory"
is "$(info /tmp/link '"\(.type) \(.path)"')" "symlink /tmp/link" "of a link"
is "$(info /tmp/fifo .type)" other "of something else"
is "$(info / '"\(.path) \(.type)"')" "/ directory" "of the root"
is "$(info /tmp/up/../d/ .path)" /tmp/d "a path is cleaned"
api GET '/files/info?path=relative.txt&path=~/home.txt&path=/tmp/d&path=/tmp/d'
is "$code $(printf %s "$out" | jq -c 'keys')" '200 ["/tmp/d","relative.txt","~/home.txt"]' "keys are the paths as given"
is "$(printf %s "$out" | jq -r '."~/home.txt".path')" /root/home.txt "values say where it is"
api GET /files/info
is "$code $out" "200 {}" "no path"
api GET '/files/info?path=/tmp/d&path=/nowhere'
like "$code $out" '^404 .*FILE_NOT_FOUND' "one is missing"
api GET '/files/info?path=%zz'
is "$code" 400 "a query that cannot be decoded"
api GET '/files/info?path='
is "$code" 400 "an empty path"

# Delete.
in_w w sh -c 'mkdir /tmp/del; touch /tmp/del/a /tmp/del/b; ln -s /tmp/d /tmp/del/l'
api DELETE '/files?path=/tmp/del/a&path=/tmp/del/nothing&path=/tmp/del/nowhere/x&path=/tmp/del/l'
is "$code$out $(in_w w ls /tmp/del) $(in_w w cat /tmp/d)" "200 b 0123456789" "files, also missing ones; a link itself"
api DELETE '/files?path=/tmp/del'
like "$code $out" '^500 .*RUNTIME_ERROR' "not a directory"
api DELETE '/files?path=/'
is "$code" 500 "not the root"
api DELETE /files
is "$code" 200 "nothing"

# Permissions.
post /files/permissions '{"/tmp/d":{"owner":null,"group":null,"mode":4711},"/tmp/link":{"mode":640}}'
is "$code $(in_w w stat -c %a /tmp/d /tmp/up/a.txt)" "200 4711
640" "modes, of a link's file"
post /files/permissions '{"/tmp/d":{"owner":"nosuch","group":"nosuch","mode":0}}'
is "$code $(in_w w stat -c '%a %u' /tmp/d)" "200 4711 0" "unknown names and a mode of 0 change nothing"
post /files/permissions '{"/nowhere":{"mode":644}}'
like "$code $out" '^404 .*FILE_NOT_FOUND' "a file that is not there"
for body in '' '{' '[]' '"x"' '{"/tmp/d":5}' '{"/tmp/d":{"mode":888}}' '{"/tmp/d":{"mode":"644"}}' '{"/tmp/d":{},"/tmp/d":{}}'; do
	post /files/permissions "$body"
	like "$code $out" '^400 .*INVALID_REQUEST_BODY' "refused: $body"
done

# mv.
in_w w sh -c 'mkdir -p /tmp/mv/dir; echo 1 >/tmp/mv/1; echo 2 >/tmp/mv/2; ln -s 1 /tmp/mv/l; echo x >/tmp/mv/dir/x'
post /files/mv '[{"src":"/tmp/mv/1","dest":"/tmp/mv/new/deep/1"},{"src":"/tmp/mv/dir","dest":"/tmp/mv/dir2/"}]'
is "$code$out $(in_w w cat /tmp/mv/new/deep/1 /tmp/mv/dir2/x)" "200 1
x" "mv makes directories"
post /files/mv '[{"src":"/tmp/mv/2","dest":"/tmp/mv/new/deep/1"}]'
like "$code $out" '^500 .*RUNTIME_ERROR' "what is there is not replaced"
is "$(in_w w cat /tmp/mv/2 /tmp/mv/new/deep/1)" "2
1" "and both stay"
post /files/mv '[{"src":"/tmp/mv/none","dest":"/tmp/mv/3"}]'
like "$code $out" '^404 .*FILE_NOT_FOUND' "a source that is not there"
post /files/mv '[{"src":"/tmp/mv/l","dest":"/tmp/mv/l2"}]'
is "$code $(in_w w readlink /tmp/mv/l2)" "200 1" "a link is moved, not its file"
post /files/mv '[{"src":"/tmp/mv","dest":"/tmp/mv/in"}]'
is "$code" 500 "not into itself"
post /files/mv '[{"src":"/tmp/mv/2","dest":"/dev/shm/2"},{"src":"/tmp/mv/l2","dest":"/dev/shm/l"}]'
is "$code $(in_w w sh -c 'cat /dev/shm/2; readlink /dev/shm/l; ls /tmp/mv')" "200 2
1
dir2
new" "across file systems"
post /files/mv '[{"src":"/tmp/mv/dir2","dest":"/dev/shm/dir"}]'
is "$code $(in_w w cat /tmp/mv/dir2/x)" "500 x" "a directory is not copied"
for body in '{}' '[5]' '[{"src":"/tmp/d"}]' '[{"dest":"/tmp/d"}]' '[{"src":1,"dest":2}]'; do
	post /files/mv "$body"
	is "$code" 400 "refused: $body"
done

# Search.
in_w w sh -c 'mkdir -p /tmp/s/a/b /tmp/s/.git; touch /tmp/s/1.txt /tmp/s/a/2.txt /tmp/s/a/b/3.md /tmp/s/.git/4.txt; ln -s /tmp/s/a /tmp/s/z; mkdir /tmp/s/dir.txt'
# search QUERY
search() {
	api GET "/files/search?$1"
	out=$(printf %s "$out" | jq -r 'if type == "array" then [.[].path] | join(" ") else .code end')
}
search 'path=/tmp/s&pattern=*.txt'
is "$code $out" "200 /tmp/s/.git/4.txt /tmp/s/1.txt /tmp/s/a/2.txt" "search by the last component, in order, without directories"
search 'path=/tmp/s'
is "$code $out" "200 /tmp/s/.git/4.txt /tmp/s/1.txt /tmp/s/a/2.txt /tmp/s/a/b/3.md /tmp/s/z" "all; links are not entered"
search 'path=/tmp/s&pattern=**/%7B1,3%7D.*'
is "$code $out" "200 /tmp/s/1.txt /tmp/s/a/b/3.md" "braces"
search 'path=/tmp/s&pattern=nothing'
is "$code $out" "200 " "nothing"
search 'path=/tmp/s&pattern=%5B'
is "$code $out" "500 RUNTIME_ERROR" "a bad pattern"
search 'path=/nowhere'
is "$code $out" "404 FILE_NOT_FOUND" "a directory that is not there"
search 'pattern=*'
is "$code $out" "400 MISSING_QUERY" "no path"
api GET '/files/search?path=/proc' --max-time 60
is "$code $(printf %s "$out" | jq 'length > 100')" "200 true" "of what changes meanwhile"

# Replace.
in_w w sh -c 'printf "a.b.a" >/tmp/r1; chmod 604 /tmp/r1; printf "none" >/tmp/r2; ln -s r1 /tmp/rl'
post '/files/replace?verbose=true' '{"/tmp/r1":{"old":"a","new":"longer"},"/tmp/r2":{"old":"x","new":"y"}}'
is "$code $(printf %s "$out" | jq -c .)" '200 {"/tmp/r1":{"replacedCount":2},"/tmp/r2":{"replacedCount":0}}' "replace counts"
is "$(in_w w sh -c 'cat /tmp/r1; stat -c " %a" /tmp/r1')" "longer.b.longer 604" "and keeps the mode"
post '/files/replace?verbose=false' '{"/tmp/rl":{"old":"longer","new":""}}'
is "$code$out $(in_w w sh -c 'readlink /tmp/rl; cat /tmp/r1')" "200 r1
.b." "through a link, to nothing, without an answer"
post /files/replace '{"/tmp/r1":{"old":"","new":"x"}}'
like "$code $out" '^400 .*INVALID_REQUEST_BODY' "an empty text"
post /files/replace '{"/nowhere":{"old":"a","new":"x"}}'
like "$code $out" '^404 .*FILE_NOT_FOUND' "a file that is not there"
post /files/replace '{"/tmp":{"old":"a","new":"x"}}'
is "$code" 500 "a directory"
post /files/replace '{"/tmp/fifo":{"old":"a","new":"x"}}'
is "$code" 500 "a FIFO"
# 8 MiB of a text that lies across all edges of what is read at once
in_w w sh -c 'yes needle.. | head -c 8388608 | tr -d "\n" >/tmp/big; wc -c </tmp/big' >"$tmp/n"
post '/files/replace?verbose=true' '{"/tmp/big":{"old":"needle..needle","new":"N"}}'
is "$code $(printf %s "$out" | jq -c '.[].replacedCount')" "200 466033" "a large file"
is "$(in_w w sh -c 'grep -o "needle" /tmp/big | wc -l')" 1 "is replaced at every edge, but for the odd last one"
is "$(left)" "" "no temporary files"

# Directories.
post /directories '{"/tmp/md/a/b":{"mode":700},"/tmp/md/c":{"mode":644},"/tmp/md/d":{}}'
is "$code$out $(in_w w stat -c '%a' /tmp/md /tmp/md/a /tmp/md/a/b /tmp/md/c /tmp/md/d | tr '\n' ' ')" "200 755 755 700 644 755 " "directories with exact modes"
post /directories '{"/tmp/md/c":{"mode":777},"/tmp":{"mode":755}}'
is "$code $(in_w w stat -c %a /tmp/md/c /tmp | tr '\n' ' ')" "200 644 1777 " "existing ones stay as they are"
post /directories '{"/tmp/d":{"mode":755}}'
is "$code" 500 "not over a file"
post /directories '{"/tmp/d/x":{"mode":755}}'
like "$code" '^(404|500)$' "nor below one"
post /directories '[]'
is "$code" 400 "no object"
in_w w sh -c 'touch /tmp/md/a/b/f /tmp/md/z; ln -s /tmp/md/a /tmp/md/link'
# list QUERY
list() {
	api GET "/directories/list?$1"
	out=$(printf %s "$out" | jq -r 'if type == "array" then [.[] | "\(.path[8:]):\(.type)"] | join(" ") else .code end')
}
list path=/tmp/md
is "$code $out" "200 a:directory c:directory d:directory link:symlink z:file" "list"
list 'path=/tmp/md&depth=3'
is "$code $out" "200 a:directory a/b:directory a/b/f:file c:directory d:directory link:symlink z:file" "children behind their parent"
list 'path=/tmp/md&depth=2'
is "$code $out" "200 a:directory a/b:directory c:directory d:directory link:symlink z:file" "only as deep as asked for"
list 'path=/tmp/md&depth=0'
is "$code $out" "200 " "not at all"
for query in path=/tmp/md\&depth=-1 path=/tmp/md\&depth=x path=/tmp/md/link path=/tmp/md/z; do
	list "$query"
	is "$code" 400 "refused: $query"
done
list path=/nowhere
is "$code $out" "404 FILE_NOT_FOUND" "one that is not there"
list ''
is "$code $out" "400 MISSING_QUERY" "no path"
api GET '/directories/list?path=/'
is "$(printf %s "$out" | jq -r '.[].path' | grep -cx /tmp)" 1 "paths below the root have one slash"
api DELETE '/directories?path=/tmp/md&path=/tmp/missing&path=/nowhere/x'
is "$code$out $(in_w w ls -d /tmp/md 2>&1 | grep -c 'No such')" "200 1" "removed, missing ones too"
in_w w sh -c 'mkdir -p /tmp/rm/x; ln -s /tmp/s /tmp/rm/l; ln -s /tmp/s /tmp/rml; d=/tmp/rm/x; for i in $(seq 300); do d=$d/dddddddd; mkdir $d || break; done'
api DELETE '/directories?path=/tmp/rm'
is "$code $(in_w w sh -c 'ls -d /tmp/rm 2>&1 | grep -c No; ls /tmp/s/a/2.txt')" "200 1
/tmp/s/a/2.txt" "deep ones, without following links"
api DELETE '/directories?path=/tmp/rml'
is "$code $(in_w w sh -c 'ls -d /tmp/rml 2>&1 | grep -c No; ls -d /tmp/s')" "200 1
/tmp/s" "a link itself"
api DELETE '/directories?path=/'
is "$code" 500 "not the root"
# deeper than a path is long
in_w w sh -c 'for top in /tmp/dd /tmp/de; do d=$top; for i in $(seq 300); do d=$d/dddddddddd; done; mkdir -p $d; done; cd $d && mv /tmp/dd . && mv /tmp/de /tmp/dd'
list 'path=/tmp/dd&depth=100000'
like "$code $(printf %s "$out" | wc -w)" '^200 3[0-9][0-9]$' "a tree that is deeper than a path is long is listed as far as paths go"
api DELETE '/directories?path=/tmp/dd'
is "$code $(in_w w sh -c 'ls -d /tmp/dd 2>&1 | grep -c No')" "200 1" "and removed"

# What curl cannot send.
python3 "$here/../helpers/files_driver.py" "$sock" >"$tmp/driver" 2>"$tmp/err"
status=$?
while read -r verdict what; do
	if [ "$verdict" = pass ]; then ok "$what"; else not_ok "$what"; fi
done <"$tmp/driver"
[ "$status" = 0 ] || note "$(cat "$tmp/err")"
is "$status" 0 "the driver ended by itself"
is "$(left)" "" "no temporary files"

# The bytes of requests and answers, of every route.
"$OSBX" run -d --network none --name wire -w /tmp "$image" sleep 100000 >/dev/null </dev/null
in_w wire sh -c 'mkdir -p /tmp/wire/d/sub; cd /tmp/wire; printf 0123456789 >ten; printf "one\ntwo\nthree\n" >lines; chmod 640 ten; touch d/b.txt d/sub/a.txt; ln -s ten link'
wire=$(cd "$here/../wire" && pwd)
# A path may be too long for a socket's address: from within its directory.
(cd "$(dirname "$("$OSBX" inspect wire | jq -r .execd.socket)")" && python3 "$wire/run" execd.sock "$wire"/files/*.txt) >"$tmp/wire"
while IFS= read -r line; do
	case $line in
	"ok "*) ok "${line#ok * - }" ;;
	"not ok "*) not_ok "${line#not ok * - }" ;;
	*) note "$line" ;;
	esac
done <"$tmp/wire"
is "$(grep -c '^ok' "$tmp/wire")" "$(($(ls "$wire"/files/*.txt | wc -l) * 2))" "all transcripts were played"
"$OSBX" rm -f wire >/dev/null 2>&1

# 1 GiB up and down: PID 1 has none of it.
rss() {
	in_w w sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' /proc/1/status
}
before=$(rss)
truncate -s 1G "$tmp/gib"
echo '{"path":"/tmp/gib"}' >"$tmp/metadata"
api POST /files/upload -F "metadata=@$tmp/metadata;type=application/json" -F "file=@$tmp/gib"
is "$code $(in_w w stat -c %s /tmp/gib)" "200 1073741824" "1 GiB up"
n=$(curl -sS --unix-socket "$sock" 'http://x/files/download?path=/tmp/gib' | wc -c)
is "$n" 1073741824 "1 GiB down"
after=$(rss)
note "RSS of PID 1: $before kB before, $after kB after"
[ "$((after - before))" -lt 4096 ] && ok "PID 1 has none of it" || not_ok "PID 1 has grown from $before to $after kB"
api DELETE '/files?path=/tmp/gib'
rm -f "$tmp/gib"

# Others in the sandbox exchange names while root works there. What they have no right to must stay.
in_w w sh -c 'echo secret >/root/secret; chmod 600 /root/secret; mkdir -m 777 /tmp/race'
case $OSBX_TEST_MODE in single | nested) swapper= ;; *) swapper='-u app' ;; esac
if [ -n "$swapper" ]; then
	# shellcheck disable=SC2086 # words
	"$OSBX" exec -w / $swapper w sh -c 'cd /tmp/race; while [ ! -e stop ]; do ln -s /root/secret t 2>/dev/null; rm -rf t; mkdir t 2>/dev/null; touch t/f; rm -rf t; ln -s /root t 2>/dev/null; rm -rf t; echo mine >t 2>/dev/null; done' >/dev/null 2>&1 </dev/null &
	i=0
	while [ "$i" -lt 60 ]; do
		upload /tmp/race/t intruder
		post /files/replace '{"/tmp/race/t":{"old":"secret","new":"taken"}}'
		post /files/permissions '{"/tmp/race/t":{"mode":666}}'
		post /files/mv '[{"src":"/tmp/race/t","dest":"/tmp/race/moved"}]'
		api DELETE '/directories?path=/tmp/race/t&path=/tmp/race/moved'
		i=$((i + 1))
	done
	is "$(in_w w sh -c 'cat /root/secret; stat -c %a /root/secret; ls -d /root/home.txt')" "secret
600
/root/home.txt" "nobody is led to a file by a link that another user swaps"
	in_w w touch /tmp/race/stop
	wait
	api DELETE '/directories?path=/tmp/race'
	is "$code $(left)" "200 " "no temporary files"
	in_w -w / -u app w sh -c 'mkdir -m 777 /tmp/open; ln -s /root/secret /tmp/open/trap; ln -s /root/secret /tmp/trap'
	for target in /tmp/trap /tmp/open/trap; do
		upload "$target" x
		is "$code $(in_w w cat /root/secret)" "500 secret" "a link of another user is not followed to what is not theirs"
	done
	post /files/permissions '{"/tmp/open/trap":{"mode":666}}'
	is "$code $(in_w w stat -c %a /root/secret)" "500 600" "nor for its mode"

	# Identities.
	in_w w sh -c 'mkdir -m 700 /home/app/own; chown app:app /home/app /home/app/own; mkdir /tmp/grp; chgrp extra /tmp/grp; chmod 2770 /tmp/grp'
	prefix=/v1/filesystem/1000/1000
	upload /home/app/own/x mine
	is "$code $(in_w w stat -c '%U %G' /home/app/own/x)" "200 app app" "an upload as app"
	upload '~/y' mine
	is "$(in_w w cat /home/app/y)" mine "its home"
	upload '$HERE/y' mine
	is "$code" 400 "no variables of the main process"
	upload tmp/rel mine
	is "$code $(in_w w stat -c %U /tmp/rel)" "200 app" "relative paths begin at /"
	upload /tmp/grp/z mine
	is "$code $(in_w w stat -c '%U %G' /tmp/grp/z)" "200 app extra" "its groups count"
	upload /root/no mine
	is "$code" 500 "it has no more rights than that"
	upload /home/app/own/root mine '{"owner":"root"}'
	is "$code $(in_w w ls /home/app/own)" "500 x" "nobody gives files away"
	api GET "$prefix/files/download?path=/root/secret"
	is "$code" 500 "cannot read"
	api GET "$prefix/files/search?path=/root"
	is "$code" 500 "nor search"
	post "$prefix/files/permissions" '{"/tmp/d":{"mode":777}}'
	is "$code" 500 "nor change"
	post "$prefix/files/mv" '[{"src":"/etc/passwd","dest":"/tmp/passwd"}]'
	is "$code" 500 "nor move"
	api DELETE "$prefix/directories?path=/tmp/s"
	is "$code $(in_w w ls -d /tmp/s/a)" "500 /tmp/s/a" "nor remove"
	post "$prefix/directories" '{"/tmp/appdir":{"mode":750}}'
	is "$code $(in_w w stat -c '%U %a' /tmp/appdir)" "200 app 750" "but make"
	in_w w sh -c 'printf shared >/tmp/grp/s; chown root:extra /tmp/grp/s; chmod 660 /tmp/grp/s'
	post "$prefix/files/replace" '{"/tmp/grp/s":{"old":"shared","new":"ours"}}'
	is "$code $(in_w w sh -c 'cat /tmp/grp/s; stat -c " %U %G %a" /tmp/grp/s')" "200 ours root extra 660" "replace keeps the owner of a file of the group"
	prefix=/v1/filesystem/4321/4322
	upload /tmp/nameless x
	is "$code $(in_w w stat -c '%u %g' /tmp/nameless)" "200 4321 4322" "an account without a name"
	is "$(info /tmp/nameless '"\(.owner) \(.group)"')" "4321 4322" "and its files"
	upload /tmp/grp/n x
	is "$code" 500 "has no groups"
	prefix=
	for ids in 1000/x x/1000 1000/-1 4294967295/0 0/4294967295 01x/0 99999999999/1; do
		api GET "/v1/filesystem/$ids/files/info?path=/tmp"
		is "$code" 400 "no identity: $ids"
	done
	upload /tmp/owned x '{"owner":"app","group":"extra","mode":640}'
	is "$code $(in_w w stat -c '%U %G %a' /tmp/owned)" "200 app extra 640" "owner and group of an upload"
	upload /tmp/nobody x '{"owner":"nobody","group":"nogroup"}'
	is "$(info /tmp/nobody '"\(.owner) \(.group)"')" "nobody nogroup" "by names of the sandbox"
	post /files/permissions '{"/tmp/owned":{"owner":"root","group":"root","mode":600}}'
	is "$code $(in_w w stat -c '%U %G %a' /tmp/owned)" "200 root root 600" "and of permissions"
	# a sandbox whose user is not root
	"$OSBX" run -d --network none --name u -u app -w /home/app "$image" sleep 100000 >/dev/null </dev/null
	main_sock=$sock
	sock=$("$OSBX" inspect u | jq -r .execd.socket)
	upload /tmp/mine x
	is "$code $(in_w u stat -c '%U %G' /tmp/mine)" "200 app app" "the main process's user is the default"
	upload /etc/no x
	is "$code" 500 "with its rights"
	api GET '/files/download?path=/proc/1/environ'
	is "$code" 500 "which do not reach PID 1"
	inside() {
		in_w -w / u sh -c "wget -S -q -O - 'http://127.0.0.1:44772$1' 2>&1" | grep -o 'HTTP/1.1 [0-9]*' | head -n 1 | cut -d ' ' -f 2
	}
	is "$(inside '/files/info?path=/tmp')" 200 "from inside files are served as the main process's user"
	is "$(inside '/v1/filesystem/1000/1000/files/info?path=/tmp')" 200 "also when it is named"
	for ids in 0/0 1000/0 0/1000 1001/1000; do
		is "$(inside "/v1/filesystem/$ids/files/info?path=/tmp")" 403 "not as another: $ids"
	done
	prefix=/v1/filesystem/0/0
	upload /etc/yes x
	is "$code $(in_w -u root u stat -c %U /etc/yes)" "200 root" "from outside others can be asked for"
	prefix=
	sock=$main_sock
	"$OSBX" kill u >/dev/null 2>&1
else
	prefix=/v1/filesystem/0/0
	upload /tmp/id0 x
	is "$code" 200 "the identity of the only user"
	prefix=/v1/filesystem/1000/1000
	upload /tmp/id1000 x
	is "$code" 400 "there is no other one"
	prefix=
fi
api GET '/files/download?path=/proc/self/oom_score_adj'
is "$code $out" "200 $(in_w w cat /proc/self/oom_score_adj)" "short of memory, the kernel takes a request rather than PID 1"
"$OSBX" kill w >/dev/null 2>&1
"$OSBX" wait w >/dev/null 2>&1
done_testing
