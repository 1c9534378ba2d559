#!/bin/sh
# Prints the flag that amux and its plugins are built with: it has them link a copy of go-plugin whose
# servers do not register gRPC's reflection. Nobody asks a plugin for its services, but the
# descriptors of protobuf that reflection links are unpacked whenever a program starts, which took amux
# 0.6 ms and its plugin 0.7, and made each 0.2 to 0.3 MB larger. Whoever builds without this flag gets
# go-plugin as it is published.
set -eu
: "${GO:=go}"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$here/../.cache"
cache=$(cd "$here/../.cache" && pwd)
from=$($GO mod download -json github.com/hashicorp/go-plugin | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
if [ ! "$from" ]; then
	$GO mod download github.com/hashicorp/go-plugin || true # which says why
	exit 1
fi
stamp="$from $(cksum <"$0")"
copy=go-plugin # as the programs say where it comes from: ./.cache/go-plugin
if [ "$(cat "$cache/$copy/.from" 2>/dev/null)" != "$stamp" ]; then
	new=$cache/$copy.$$
	mkdir "$new"
	cp "$from"/*.go "$from"/go.mod "$from"/LICENSE "$new"
	cp -R "$from/internal" "$from/runner" "$new"
	chmod -R u+w "$new"
	sed '/"google.golang.org\/grpc\/reflection"/d; /reflection\.Register(s\.server)/d' "$from/grpc_server.go" >"$new/grpc_server.go"
	if [ "$(wc -l <"$from/grpc_server.go")" != $(($(wc -l <"$new/grpc_server.go") + 2)) ] || grep -q 'reflection\.' "$new"/*server.go; then
		echo "go-plugin registers gRPC's reflection in another way than $0 knows: $from/grpc_server.go" >&2
		rm -rf "$new"
		exit 1
	fi
	echo "$stamp" >"$new/.from"
	rm -rf "${cache:?}/$copy"
	mv "$new" "$cache/$copy"
fi
for part in mod sum; do
	cp "$here/../go.$part" "$cache/goplugin.$part.$$"
	[ $part = sum ] || echo "replace github.com/hashicorp/go-plugin => ./.cache/$copy" >>"$cache/goplugin.$part.$$"
	mv "$cache/goplugin.$part.$$" "$cache/goplugin.$part"
done
flag=-modfile=$cache/goplugin.mod
case $flag in *[[:space:]]*) flag="'$flag'" ;; esac # GOFLAGS may quote a flag
echo "$flag"
