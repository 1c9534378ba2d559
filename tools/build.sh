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
modules=$(sh tools/modules.sh)
export GOFLAGS="$GOFLAGS $modules"
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

# place FILE TO puts a program in its place, unless it is there already. It is written in pieces
# of 64 KB, and not as the linker wrote it, in smaller ones: Linux keeps it in its cache so, and starts
# it a millisecond sooner. Of larger pieces it would map more than is used.
place() {
	if ! cmp -s "$1" "$2"; then
		if ! copied=$(dd if="$1" of="$2.new" bs=65536 2>&1); then
			echo "$copied" >&2
			rm -f "$2.new"
			exit 1
		fi
		chmod 755 "$2.new"
		mv "$2.new" "$2"
	fi
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
	place "$plugins/$name$exe" "$program"
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
# wanted PROGRAM says whether one of amux's own is built.
wanted() {
	case " ${QUICK:-} " in *" $1 "*) [ -e "$out/$1$exe" ] ;; esac
}
for own in $programs; do
	if wanted $own; then
		folders="$folders ./cmd/$own"
		built="$built $own,"
	fi
done
# What goes elsewhere may be of another version, and be built at the same time.
made=.cache/programs/$of
if [ "$out" != bin ]; then
	made=$(mktemp -d)
	trap 'rm -rf "$made"' EXIT
fi
build "" "$made" $folders

commit=
date=
if [ -e .git ] && command -v git >/dev/null; then
	commit=$(git rev-parse --short HEAD 2>/dev/null || true)
	date=$(git show -s --format=%cs HEAD 2>/dev/null || true)
fi
folders=./cmd/amux
if wanted amux-api; then
	folders="$folders ./cmd/amux/amux-api"
	built="$built amux-api,"
fi
build " -X main.version=$VERSION -X main.commit=$commit -X main.date=$date -X main.bundledHashes=$hashes" "$made" $folders
for name in amux $built; do
	place "$made/${name%,}$exe" "$out/${name%,}$exe"
done
cp LICENSE NOTICE "$out/"
echo "built in $out: amux,$built and plugins:$names"
