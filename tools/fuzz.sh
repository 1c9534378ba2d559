#!/bin/sh
# Runs every fuzz test for a while, two at a time: one builds while another fuzzes.
set -eu
time=$1
: "${GO:=go}"
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
grep -rl --exclude-dir=.cache --include='*_test.go' '^func Fuzz' . | sed 's|/[^/]*$||' | sort -u | while read -r dir; do
	for name in $(grep -rhoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/func //'); do
		echo "$dir $name"
	done
done >"$logs/list"
[ -s "$logs/list" ] || { echo "fuzz: there is no fuzz test" >&2; exit 1; }
cat >"$logs/one" <<'END'
log=$logs/$(echo "$1.$2" | tr / -)
fuzz() { "$GO" test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -parallel 1 "$1" >"$log" 2>&1; }
# On a busy machine go test may take its own deadline for a failure, which names no input.
late() { grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; }
fuzz "$@" || { late && fuzz "$@"; } || { cat "$log"; exit 1; }
echo "fuzz $1 $2"
END
export GO logs time
xargs -P 2 -n 2 sh "$logs/one" <"$logs/list"
echo "fuzz: $(wc -l <"$logs/list") tests of $time each found nothing"
