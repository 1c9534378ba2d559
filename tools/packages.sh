#!/bin/sh
# Builds the packages of amux into a folder: deb, rpm and apk, with manual pages and
# completions, and their checksums; for this processor, or the one of GOARCH. The same
# source gives the same packages: all times in them are that of the commit.
set -eu
out=$1
: "${GO:=go}" "${VERSION:=0.1.0-dev}"
ARCH=$($GO env GOARCH)
SOURCE_DATE_EPOCH=$(git show -s --format=%ct HEAD 2>/dev/null || date +%s)
export ARCH VERSION SOURCE_DATE_EPOCH CGO_ENABLED=0
parts=.cache/packages # packaging/nfpm.yaml reads it
rm -rf $parts
mkdir -p $parts "$out"
sh tools/build.sh $parts/lib >/dev/null
sh tools/far.sh $parts/lib
here="env -u GOOS -u GOARCH $GO run" # what runs now, also if the packages are for another processor
$here ./cmd/amux/internal/manpages $parts/man "$VERSION" "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d)"
gzip -9n $parts/man/*.1
for shell in bash zsh fish; do
	$here ./cmd/amux completion $shell >$parts/amux.$shell
done
find $parts -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
env -u GOOS -u GOARCH $GO -C tools build -o ../.cache/nfpm github.com/goreleaser/nfpm/v2/cmd/nfpm
rm -f "$out"/*.deb "$out"/*.rpm "$out"/*.apk
for format in deb rpm apk; do
	.cache/nfpm package --config packaging/nfpm.yaml --packager $format --target "$out/" >/dev/null
done
cd "$out"
sha256sum -- *.deb *.rpm *.apk >SHA256SUMS
cat SHA256SUMS
