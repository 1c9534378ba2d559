#!/bin/sh
# Builds and vets for the platforms that the tests do not run on.
set -eu
: "${GO:=go}"
for platform in windows/amd64 darwin/arm64 linux/arm64; do
	GOOS=${platform%/*} GOARCH=${platform#*/} $GO build ./...
	GOOS=${platform%/*} GOARCH=${platform#*/} $GO vet ./...
	echo "cross: $platform builds and vets"
done
