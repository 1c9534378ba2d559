#!/bin/sh
# Builds into a folder what amux puts on other machines (amux run --on): its programs for Linux
# on both processors, in far/GOOS-GOARCH.
set -eu
out=$1
: "${GO:=go}"
for arch in amd64 arm64; do
	for program in amux-far amux-shim amux-bridge; do
		GOOS=linux GOARCH=$arch $GO build -trimpath -ldflags "-s -w" -o "$out/far/linux-$arch/$program" "./cmd/$program"
	done
done
