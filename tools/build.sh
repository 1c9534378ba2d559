#!/bin/sh
# Builds everything into one folder, in the shape in which it is installed: amux,
# amux-shim, amux-bridge, amux-schema, amux-far, amux-relay, amux-place-docker, amux-place-kubernetes, amux-api, but for Windows amux-sandbox, and each plugin with manifest and
# describe.json. The hashes of the plugins are fixed in amux and amux-api, so that they
# start only those they were built with. The programs that QUICK names are left out unless they are
# there from before. Each command builds several programs, so that they are linked at the same time.
set -eu
out=$1
: "${GO:=go}" "${VERSION:=0.1.0-dev}"
case ${GOFLAGS:-} in
*-overlay=*) ;;
*) export GOFLAGS="${GOFLAGS:-} $(sh tools/lean.sh)" ;;
esac
exe=$($GO env GOEXE)
of=$($GO env GOOS)-$($GO env GOARCH)
native=
[ "$of" != "$($GO env GOHOSTOS)-$($GO env GOHOSTARCH)" ] || native=yes
# build FLAGS FOLDER PROGRAM...
build() {
	flags=$1 into=$2
	shift 2
	mkdir -p "$into"
	$GO build -ldflags "-s -w$flags" -o "$into/" "$@"
}

plugins=.cache/plugins/$of # where they have the names of their folders
folders=
for main in plugins/*/main.go; do
	folders="$folders ./${main%/main.go}"
done
build "" $plugins $folders
hashes=
names=
for dir in $folders; do
	name=${dir#./plugins/}
	to=$out/plugins/$name
	mkdir -p "$to"
	program=$to/amux-plugin-$name$exe
	if ! cmp -s "$plugins/$name$exe" "$program"; then
		cp "$plugins/$name$exe" "$program.new"
		mv "$program.new" "$program"
	fi
	cp "$dir/amux-plugin.toml" "$to/"
	if [ $native ]; then
		"$program" --amux-describe >"$to/describe.json"
	else
		env -u GOOS -u GOARCH $GO run "$dir" --amux-describe >"$to/describe.json"
	fi
	if command -v sha256sum >/dev/null; then
		sum=$(sha256sum "$program")
	else
		sum=$(shasum -a 256 "$program")
	fi
	hashes=$hashes${hashes:+,}$name=${sum%% *}
	names="$names $name"
done

programs="amux-shim amux-bridge amux-schema amux-far amux-relay amux-place-docker amux-place-kubernetes"
[ "$exe" ] || programs="$programs amux-sandbox"
built=
folders=
for own in $programs; do
	case " ${QUICK:-} " in *" $own "*) [ -e "$out/$own$exe" ] || continue ;; esac
	folders="$folders ./cmd/$own"
	built="$built $own,"
done
build "" "$out" $folders

commit=
date=
if [ -e .git ] && command -v git >/dev/null; then
	commit=$(git rev-parse --short HEAD 2>/dev/null || true)
	date=$(git show -s --format=%cs HEAD 2>/dev/null || true)
fi
build " -X main.version=$VERSION -X main.commit=$commit -X main.date=$date -X main.bundledHashes=$hashes" "$out" ./cmd/amux ./cmd/amux/amux-api
cp LICENSE NOTICE "$out/"
echo "built in $out: amux,$built amux-api, and plugins:$names"
