#!/bin/sh
# Runs every fuzz test for a while, one after the other.
set -eu
time=$1
: "${GO:=go}"
grep -rl --exclude-dir=.cache --include='*_test.go' '^func Fuzz' . | sed 's|/[^/]*$||' | sort -u | while read -r dir; do
	for name in $(grep -rhoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/func //'); do
		printf 'fuzz %s %s\n' "$dir" "$name"
		$GO test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$dir" >.cache/fuzz.log 2>&1 || {
			cat .cache/fuzz.log
			exit 1
		}
	done
done
