#!/bin/sh
# Prints the flags that amux is compiled with. They leave out of each program what gRPC and
# go-plugin link and amux does not use: the trace of gRPC in a browser, and net/rpc, for which
# tools/lean has a few functions that fail. Together they made a plugin 14.5 MB instead of 10.8.
set -eu
: "${GO:=go}"
here=$(cd "$(dirname "$0")" && pwd)
of=$($GO env GOROOT)/src/net/rpc
mkdir -p "$here/../.cache"
overlay=$(cd "$here/../.cache" && pwd)/lean.json
printf '{"Replace": {"%s/server.go": "%s/lean/rpc.go", "%s/client.go": "", "%s/debug.go": ""}}\n' "$of" "$here" "$of" "$of" >"$overlay.$$"
mv "$overlay.$$" "$overlay"
flag=-overlay=$overlay
case $flag in *[[:space:]]*) flag="'$flag'" ;; esac # GOFLAGS may quote a flag
echo "-trimpath -tags=grpcnotrace $flag"
