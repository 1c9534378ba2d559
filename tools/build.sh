#!/bin/sh
# Builds everything into one folder, in the shape in which it is installed: amux,
# amux-shim, amux-bridge, amux-schema, amux-far, amux-relay, amux-place-docker, amux-place-kubernetes, amux-api, but for Windows amux-sandbox, and each plugin with manifest and
# describe.json. The hashes of the plugins are fixed in amux and amux-api, so that they
# start only those they were built with. The programs that QUICK names are left out unless they are
# there from before.
set -eu
out=$1
: "${GO:=go}" "${VERSION:=0.1.0-dev}"
exe=$($GO env GOEXE)
native=
[ "$($GO env GOOS)/$($GO env GOARCH)" != "$($GO env GOHOSTOS)/$($GO env GOHOSTARCH)" ] || native=yes
hashes=
names=
for main in plugins/*/main.go; do
	dir=${main%/main.go}
	name=${dir#plugins/}
	to=$out/plugins/$name
	mkdir -p "$to"
	$GO build -trimpath -ldflags "-s -w" -o "$to/amux-plugin-$name$exe" "./$dir"
	cp "$dir/amux-plugin.toml" "$to/"
	if [ $native ]; then
		"$to/amux-plugin-$name$exe" --amux-describe >"$to/describe.json"
	else
		env -u GOOS -u GOARCH $GO run "./$dir" --amux-describe >"$to/describe.json"
	fi
	if command -v sha256sum >/dev/null; then
		sum=$(sha256sum "$to/amux-plugin-$name$exe")
	else
		sum=$(shasum -a 256 "$to/amux-plugin-$name$exe")
	fi
	hashes=$hashes${hashes:+,}$name=${sum%% *}
	names="$names $name"
done
programs="amux-shim amux-bridge amux-schema amux-far amux-relay amux-place-docker amux-place-kubernetes"
[ "$($GO env GOOS)" = windows ] || programs="$programs amux-sandbox"
built=
for own in $programs; do
	case " ${QUICK:-} " in *" $own "*) [ -e "$out/$own$exe" ] || continue ;; esac
	$GO build -trimpath -ldflags "-s -w" -o "$out/$own$exe" "./cmd/$own"
	built="$built $own,"
done
commit=
date=
if [ -e .git ] && command -v git >/dev/null; then
	commit=$(git rev-parse --short HEAD 2>/dev/null || true)
	date=$(git show -s --format=%cs HEAD 2>/dev/null || true)
fi
$GO build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.commit=$commit -X main.date=$date -X main.bundledHashes=$hashes" -o "$out/amux$exe" ./cmd/amux
$GO build -trimpath -ldflags "-s -w -X main.version=$VERSION -X main.commit=$commit -X main.date=$date -X main.bundledHashes=$hashes" -o "$out/amux-api$exe" ./cmd/amux/amux-api
cp LICENSE NOTICE "$out/"
echo "built in $out: amux,$built amux-api, and plugins:$names"
