#!/bin/sh
# Prints the flags that amux is compiled with. They leave out of each program what gRPC and
# go-plugin link and amux does not use: the trace of gRPC in a browser, and packages of the standard
# library that a few functions in tools/lean stand for, which fail. Without net/rpc and the trace
# a plugin is 10.8 MB instead of 14.5; without the readers of programs amux is 16.6 instead of 16.8.
# What reads programs itself, such as go tool pprof, is built without these flags.
#
# No package is compiled with what a debugger needs of it: the programs do not have it, and without
# it everything compiles in 6 % less time and the cache of packages is a quarter smaller. A debugger
# asks for it when it compiles.
set -eu
: "${GO:=go}"
here=$(cd "$(dirname "$0")" && pwd)
std=$($GO env GOROOT)/src
mkdir -p "$here/../.cache"
overlay=$(cd "$here/../.cache" && pwd)/lean.json
{
	printf '{"Replace": {'
	comma=
	for package in net/rpc debug/elf debug/macho debug/pe; do
		with=$(echo "$here/lean/${package#*/}"/*.go)
		for file in "$std/$package"/*.go; do
			case $file in *_test.go) continue ;; esac
			printf '%s\n"%s": "%s"' "$comma" "$file" "$with"
			comma=, with=
		done
	done
	printf '}}\n'
} >"$overlay.$$"
mv "$overlay.$$" "$overlay"
flag=-overlay=$overlay
case $flag in *[[:space:]]*) flag="'$flag'" ;; esac # GOFLAGS may quote a flag
echo "-trimpath -tags=grpcnotrace -gcflags=all=-dwarf=false $flag"
