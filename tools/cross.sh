#!/bin/sh
# Builds and vets for the platforms that the tests do not run on.
set -eu
: "${GO:=go}"
modules=$(sh tools/modules.sh)
export GOFLAGS="${GOFLAGS:-} $modules" # as tools/build.sh has it, so that it is compiled once
for platform in windows/amd64 darwin/arm64; do
	GOOS=${platform%/*} GOARCH=${platform#*/} $GO vet ./...
	GOOS=${platform%/*} GOARCH=${platform#*/} $GO build ./cmd/... ./plugins/...
	echo "cross: $platform builds and vets"
done
# The source is that of linux/amd64. The programs for Docker and Kubernetes are left out:
# their libraries take most of the time, and make release builds them.
GOOS=linux GOARCH=arm64 $GO build $($GO list ./cmd/... ./plugins/... | grep -v /amux-place-)
echo "cross: linux/arm64 builds"
