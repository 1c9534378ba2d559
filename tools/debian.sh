#!/bin/sh
# Installs the programs that are named and missing, from Debian's packages of the same
# names, or those behind a colon (PROGRAM:PACKAGE). It does so for root alone, on systems that have apt-get; elsewhere the tests that
# use a program skip, and say what to install.
set -eu
missing=
for program; do
	command -v "${program%%:*}" >/dev/null || missing="$missing ${program##*:}"
done
[ -n "$missing" ] && [ -z "${AMUX_TEST_OFFLINE:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0
mkdir -p .cache
install() { DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >>.cache/debian.log 2>&1; }
# shellcheck disable=SC2086 # each is a word
if apt-get update -qq >.cache/debian.log 2>&1 && install $missing; then
	echo "installed:$missing"
	exit 0
fi
for package in $missing; do # one that this system does not have keeps no other away
	install "$package" || echo "not installed: $package (see .cache/debian.log); its tests skip" >&2
done
