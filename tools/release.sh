#!/bin/sh
# Builds what a release of amux consists of into a folder: archives for six platforms,
# the packages for Linux, a Homebrew formula and a Scoop manifest with the archives'
# checksums, and SHA256SUMS of all. The file that AMUX_SIGNING_KEY names, a secret key of
# minisign without a password, signs SHA256SUMS. It needs GNU tar and zip. PLATFORMS, for a
# try, names fewer systems; what is left out has no checksum then.
set -eu
out=$1
: "${GO:=go}" "${VERSION:=0.1.0-dev}" "${PLATFORMS:=linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}"
if ! echo "$VERSION" | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?'; then
	echo "invalid VERSION \"$VERSION\": expected a version such as 1.2.3" >&2
	exit 2
fi
export GO VERSION CGO_ENABLED=0 TZ=UTC
epoch=$(git show -s --format=%ct HEAD 2>/dev/null || date +%s)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
echo "s/@version@/$VERSION/g" >"$work/fill"
for platform in $PLATFORMS; do
	os=${platform%/*} arch=${platform#*/}
	export GOOS=$os GOARCH=$arch
	name=amux_${VERSION}_${os}_$arch
	if [ $os = linux ]; then
		sh tools/packages.sh "$work/packages" >/dev/null
		mv "$work/packages"/*.deb "$work/packages"/*.rpm "$work/packages"/*.apk "$out"
		cp -R .cache/packages/lib "$work/$name"
	else
		sh tools/build.sh "$work/$name" >/dev/null
		[ $os = windows ] || sh tools/far.sh "$work/$name"
	fi
	mkdir -p "$work/$name/completions" "$work/$name/man/man1"
	cp .cache/packages/amux.bash .cache/packages/amux.zsh .cache/packages/amux.fish "$work/$name/completions"
	cp .cache/packages/man/*.1.gz "$work/$name/man/man1"
	find "$work/$name" -exec touch -d "@$epoch" {} +
	if [ $os = windows ]; then
		file=$name.zip
		(cd "$work" && find "$name" -type f | LC_ALL=C sort | zip -qX "$out/$file" -@)
	else
		file=$name.tar.gz
		tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$name" | gzip -n >"$out/$file"
	fi
	sum=$(sha256sum "$out/$file")
	echo "s/@${os}_$arch@/${sum%% *}/g" >>"$work/fill"
	rm -rf "${work:?}/$name"
	echo "built $file"
done
unset GOOS GOARCH
sed -f "$work/fill" packaging/homebrew.rb >"$out/amux.rb"
sed -f "$work/fill" packaging/scoop.json >"$out/amux.json"
(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
if [ -n "${AMUX_SIGNING_KEY:-}" ]; then
	$GO run ./cmd/amux/internal/signfile "$AMUX_SIGNING_KEY" "$out/SHA256SUMS" "amux $VERSION"
	echo "signed SHA256SUMS"
else
	echo "not signed: AMUX_SIGNING_KEY names no key"
fi
