#!/bin/sh
# Builds and vets for the platforms that the tests do not run on.
set -eu
: "${GO:=go}"
for platform in windows/amd64 darwin/arm64; do
	GOOS=${platform%/*} GOARCH=${platform#*/} $GO vet ./...
	GOOS=${platform%/*} GOARCH=${platform#*/} $GO build ./cmd/... ./plugins/...
	echo "cross: $platform builds and vets"
done
# The source is that of linux/amd64. The libraries of docker and Kubernetes know no processor.
GOOS=linux GOARCH=arm64 $GO build $($GO list ./cmd/... ./plugins/... | grep -v /amux-place-)
echo "cross: linux/arm64 builds"
