#!/bin/sh
# Prints the flag that amux and its plugins are built with: it has them link copies of two modules that do less
# when a program starts. Whoever builds without this flag gets both as they are published.
#
# The servers of go-plugin register gRPC's reflection. Nobody asks a plugin for its services, but the
# descriptors of protobuf that reflection links are unpacked whenever a program starts, which took amux
# 0.6 ms and its plugin 0.7, and made each 0.2 to 0.3 MB larger. The copy is without the two lines.
#
# semver compiles six regular expressions whenever a program starts, which took amux 0.5 ms. In the copy
# each is compiled when it is first used.
set -eu
: "${GO:=go}"
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$here/../.cache"
cache=$(cd "$here/../.cache" && pwd)
goplugin=github.com/hashicorp/go-plugin semver=github.com/Masterminds/semver/v3

# fetched MODULE prints the folder of the module as it is published.
fetched() {
	dir=$($GO mod download -json "$1" | sed -n 's/^.*"Dir": "\(.*\)",*$/\1/p')
	if [ ! "$dir" ]; then
		$GO mod download "$1" || true # which says why
		exit 1
	fi
	echo "$dir"
}

# changed FROM TO says that a file has another shape than this script knows.
changed() {
	echo "$1 is not as $0 knows it: $2" >&2
	rm -rf "$new"
	exit 1
}

from=$(fetched $goplugin)
versions=$(fetched $semver)
stamp="$from $versions $(cksum <"$0")"
copies=modules # as the programs say where they come from: ./.cache/modules/go-plugin
if [ "$(cat "$cache/$copies/.from" 2>/dev/null)" != "$stamp" ]; then
	new=$cache/$copies.$$
	mkdir "$new" "$new/go-plugin" "$new/semver"
	cp "$from"/*.go "$from"/go.mod "$from"/LICENSE "$new/go-plugin"
	cp -R "$from/internal" "$from/runner" "$new/go-plugin"
	cp "$versions"/*.go "$versions"/go.mod "$versions"/LICENSE.txt "$new/semver"
	chmod -R u+w "$new"
	rm -f "$new"/*/*_test.go

	server=$new/go-plugin/grpc_server.go
	sed '/"google.golang.org\/grpc\/reflection"/d; /reflection\.Register(s\.server)/d' "$from/grpc_server.go" >"$server"
	if [ "$(wc -l <"$from/grpc_server.go")" != $(($(wc -l <"$server") + 2)) ] || grep -q 'reflection\.' "$server"; then
		changed "$from/grpc_server.go" "it registers gRPC's reflection in another way"
	fi

	for file in version constraints; do
		sed '/^	"regexp"$/d; s/\*regexp\.Regexp/*whenUsed/; s/regexp\.MustCompile(/compiled(/' "$versions/$file.go" >"$new/semver/$file.go"
	done
	if [ "$(cat "$new"/semver/*.go | grep -c ' = compiled(')" != 6 ] || grep -q 'regexp\.' "$new"/semver/*.go; then
		changed "$versions" "it has other regular expressions"
	fi
	cat >"$new/semver/when_used.go" <<'END'
package semver

import (
	"regexp"
	"sync"
)

// whenUsed is a regular expression that is compiled when it is first used.
type whenUsed struct{ get func() *regexp.Regexp }

func compiled(text string) *whenUsed {
	return &whenUsed{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

func (w *whenUsed) MatchString(s string) bool { return w.get().MatchString(s) }

func (w *whenUsed) FindAllString(s string, n int) []string { return w.get().FindAllString(s, n) }

func (w *whenUsed) FindStringSubmatch(s string) []string { return w.get().FindStringSubmatch(s) }

func (w *whenUsed) FindAllStringSubmatch(s string, n int) [][]string {
	return w.get().FindAllStringSubmatch(s, n)
}
END
	echo "$stamp" >"$new/.from"
	rm -rf "${cache:?}/$copies"
	mv "$new" "$cache/$copies"
fi
for part in mod sum; do
	cp "$here/../go.$part" "$cache/modules.$part.$$"
	[ $part = sum ] || printf 'replace (\n\t%s => ./.cache/%s/go-plugin\n\t%s => ./.cache/%s/semver\n)\n' $goplugin $copies $semver $copies >>"$cache/modules.$part.$$"
	mv "$cache/modules.$part.$$" "$cache/modules.$part"
done
flag=-modfile=$cache/modules.mod
case $flag in *[[:space:]]*) flag="'$flag'" ;; esac # GOFLAGS may quote a flag
echo "$flag"
