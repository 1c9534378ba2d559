#!/bin/sh
# Runs the tests of what is Windows' own under Wine. What Wine cannot prove is skipped
# by the tests themselves, and said at the end. Without Wine everything is. With the
# argument prepare it installs Wine and makes its folders, and runs nothing.
set -eu
: "${GO:=go}"
root=$(pwd)
cache=$root/.cache/wine
mkdir -p "$cache"

if ! command -v wine >/dev/null && [ "${AMUX_WINE_INSTALL:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	(apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
		wine wine64 binutils-mingw-w64-x86-64) >"$cache/install.log" 2>&1 || true
fi
if ! command -v wine >/dev/null; then
	echo "wine: skipped, nothing of Windows was run: wine is not installed (apt install wine wine64 binutils-mingw-w64-x86-64)"
	exit 0
fi

export WINEPREFIX="$cache/prefix" WINEDEBUG=-all WINEARCH=win64 DISPLAY= \
	WINEDLLOVERRIDES="mscoree=;mshtml=;winemenubuilder.exe=d"
# Wine's server outlives what it serves, and has its stdout: files, never pipes.
trap 'wineserver -k >/dev/null 2>&1 || true' EXIT
if [ ! -d "$WINEPREFIX" ]; then
	timeout 600 wineboot -i >"$cache/boot.log" 2>&1 </dev/null || { rm -rf "$WINEPREFIX"; cat "$cache/boot.log" >&2; exit 1; }
fi

# Wine 8 lacks a library that every Go program needs: one that forwards to another.
dll=$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll
if [ ! -e "$dll" ]; then
	if ! command -v x86_64-w64-mingw32-ld >/dev/null; then
		echo "wine: skipped, nothing of Windows was run: this Wine needs x86_64-w64-mingw32-ld (apt install binutils-mingw-w64-x86-64)"
		exit 0
	fi
	printf 'LIBRARY bcryptprimitives.dll\nEXPORTS\n  ProcessPrng = advapi32.SystemFunction036\n' >"$cache/forward.def"
	x86_64-w64-mingw32-ld -shared --entry=0 -o "$dll" "$cache/forward.def"
fi

[ "${1:-}" != prepare ] || exit 0

export GOOS=windows GOARCH=amd64 CGO_ENABLED=0
sh tools/build.sh "$cache/bin" >/dev/null
export AMUX_TEST_BIN="$cache/bin"
passed=0 failed=0
: >"$cache/skipped"
for package in internal/sys/namedpipe internal/process internal/pty internal/lines internal/vt cmd/amux/internal/render host/internal/spawn test/wine; do
	name=$(echo "$package" | tr / -)
	$GO test -c -o "$cache/$name.exe" "./$package"
	only=. code=0
	[ "$package" != host/internal/spawn ] || only='^TestCmdExe' # the others are of all systems
	(cd "$package" && timeout 1200 wine "$cache/$name.exe" -test.v -test.run "$only" -test.timeout 19m) >"$cache/$name.out" 2>&1 </dev/null || code=$?
	passed=$((passed + $(grep -c '^--- PASS' "$cache/$name.out" || true)))
	grep -h -B1 '^--- SKIP' "$cache/$name.out" | tr -d '\r' | sed -n 's/^ *[a-z_]*\.go:[0-9]*: //p; s/^--- SKIP: \([^ ]*\).*/  \1/p' >>"$cache/skipped" || true
	if [ $code -ne 0 ]; then
		failed=1
		tail -n 40 "$cache/$name.out" >&2
		echo "wine: $package failed ($code)" >&2
	fi
done
[ $failed = 0 ] || exit 1
echo "wine: $passed tests passed under $(wine --version 2>/dev/null), skipped:"
cat "$cache/skipped"
