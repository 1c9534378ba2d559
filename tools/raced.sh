#!/bin/sh
# Prints the packages whose tests run under the race detector: those of library, sdk and
# command line that start a goroutine or share something between them, in their code or
# their tests. Adapters start none of their own: a few stand for all.
set -eu
: "${GO:=go}"
$GO list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./host/... ./sdk/... ./pluginapi/... ./internal/... ./cmd/amux/... \
	./plugins/claude ./plugins/others/internal/demo ./plugins/others/internal/remote ./plugins/others/internal/opencode-http |
	while read -r package dir; do
		case $package in
		*/plugins/*) echo "$package" ;;
		*) ! grep -Eqs '(^|[[:space:]])go (func|[A-Za-z_.]+\()|"sync("|/)' "$dir"/*.go || echo "$package" ;;
		esac
	done
