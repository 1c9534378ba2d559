#!/bin/sh
# Builds and vets for the platforms that the tests do not run on.
set -eu
: "${GO:=go}"
# With the flag that wine and the plugins' own packaging have, so that they share what
# is compiled.
export GOFLAGS="${GOFLAGS:-} -trimpath"
for platform in windows/amd64 darwin/arm64 linux/arm64; do
	GOOS=${platform%/*} GOARCH=${platform#*/} $GO build ./...
	GOOS=${platform%/*} GOARCH=${platform#*/} $GO vet ./...
	echo "cross: $platform builds and vets"
done
