#!/bin/sh
# Builds everything into one folder, in the shape in which it is installed:
# amux, amux-shim, and each plugin with manifest and describe.json. The hashes of
# the plugins are fixed in amux, so that it starts only those it was built with.
set -eu
out=$1
: "${GO:=go}" "${VERSION:=0.1.0-dev}"
exe=$($GO env GOEXE)
mkdir -p "$out"
hashes=
for dir in plugins/*/; do
	name=$(basename "$dir")
	[ -f "plugins/$name/main.go" ] || continue
	to=$out/plugins/$name
	mkdir -p "$to"
	$GO build -trimpath -ldflags "-s -w" -o "$to/amux-plugin-$name$exe" "./plugins/$name"
	cp "plugins/$name/amux-plugin.toml" "$to/"
	"$to/amux-plugin-$name$exe" --amux-describe >"$to/describe.json"
	sum=$(sha256sum "$to/amux-plugin-$name$exe" 2>/dev/null || shasum -a 256 "$to/amux-plugin-$name$exe")
	hashes=$hashes${hashes:+,}$name=${sum%% *}
done
$GO build -trimpath -ldflags "-s -w" -o "$out/amux-shim$exe" ./cmd/amux-shim
$GO build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.bundledHashes=$hashes" -o "$out/amux$exe" ./cmd/amux
