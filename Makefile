# amux: make help says what there is.
GO        ?= go
VERSION   ?= 0.1.0-dev
export CGO_ENABLED = 0

PLUGINS   := claude others
LDFLAGS   := -s -w

.PHONY: help build run test
help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

build: ## bin/amux, bin/amux-shim and bin/plugins
	@VERSION=$(VERSION) GO=$(GO) sh tools/build.sh bin
	@echo "built bin/amux, bin/amux-shim, bin/plugins: $(PLUGINS)"

generate: ## generated code of the protocol, from its proto file
	@cd tools && $(GO) run ./protogen ../pluginapi/amuxplugin1 amuxplugin1.proto
