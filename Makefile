# The commands of amux's developers; `make help` says each in a line.
GO       ?= go
VERSION  ?= 0.1.0-dev
FUZZTIME ?= 10s
COUNT    ?= 10
PREFIX   ?= $(HOME)/.local
PROMPT   ?= Say in one sentence what you see in this folder.

export CGO_ENABLED = 0
export GO VERSION
# Everything is compiled with one set of flags, and so once.
export GOFLAGS := $(if $(findstring -overlay=,$(GOFLAGS)),$(GOFLAGS),$(strip $(filter-out -trimpath,$(GOFLAGS)) $(shell sh tools/lean.sh)))

# The linter, and what is not amux's own, is built without the overlay of tools/lean.sh. The other flags are the same, so that no package is compiled twice.
PLAIN  = GOFLAGS="-trimpath -gcflags=all=-dwarf=false"

TOOL  = $(GO) -C tools tool
# The real agents begin first: they wait more than they work, and the rest fills that.
TESTS = ./test/real ./...

.PHONY: help build far run check test race fuzz sim sim-bugs lint words generate check-generated cross wine bench compare soak chaos chaos-minute test-real kubernetes drift proof docs install uninstall packages release licenses clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

build: ## build bin/amux with its own programs and bin/plugins
	@sh tools/build.sh bin

far: build ## build what amux puts on Linux machines of another kind (amux run --on) into bin/far
	@sh tools/far.sh bin

# With nothing compiled before a prompt has its answer in three quarters of the time: amux-api, which it does not need, comes after it.
PLACES = amux-place-docker amux-place-kubernetes
LATER := $(if $(wildcard bin/amux-api*),,amux-api)

run: ## build all but what containers and clusters need, and run the main job with the agent you have, or else with the demo
	@QUICK="$(LATER) $(PLACES)" sh tools/build.sh bin
	@sh tools/demo.sh "$(PROMPT)"; code=$$?; test -z "$(LATER)" || \
		{ echo "building $(LATER), which amux top, agents and plugin need" && QUICK="$(PLACES)" sh tools/build.sh bin; } && exit $$code

test: room build agents ## every test, with what they need; of real agents that are unchanged since their proof only the core (AMUX_TEST_OFFLINE=1: none)
	@sh tools/debian.sh zip rpm chromium bwrap:bubblewrap ssh:openssh-client sshd:openssh-server dockerd:docker.io busybox:busybox-static \
		podman newuidmap:uidmap crun /usr/libexec/podman/catatonit:catatonit
	@$(GO) mod graph >/dev/null # a workspace of somebody's plugin asks for more of it than a build
	@rm -f .cache/real.txt
	@export AMUX_TEST_REPORT=$(CURDIR)/.cache/real.txt AMUX_TEST_CHANGED=1; { $(GO) -C tools test -json ./...; $(GO) test -json -timeout 60m $(TESTS); } | $(GO) run -C tools ./testcount -timeout 60m

check: build lint ## build, lint, and the tests that need neither the real agents nor a long time
	@$(GO) test -short -json -timeout 30m $$($(GO) list ./... | grep -v -e /test/real -e /test/chaos -e /test/bench) | $(GO) run -C tools ./testcount -short -timeout 30m

test-real: build agents ## all tests of the real agents against the fake model; AGENT=x for one
	@export AMUX_TEST_REPORT=$(CURDIR)/.cache/real.txt AMUX_TEST_AGENT=$(AGENT); $(GO) test -json -count=1 -timeout 60m ./test/real/... | $(GO) run -C tools ./testcount

kubernetes: build ## runs in a real Kubernetes cluster of one node, which is built from source at first (minutes, 2 GB; root)
	@sh tools/debian.sh containerd runc etcd:etcd-server ip:iproute2 nsenter:util-linux busybox:busybox-static /usr/lib/cni/ptp:containernetworking-plugins
	@cd internal/test/kubernetes/node && $(PLAIN) $(GO) build -ldflags "-s -w" -o $(CURDIR)/.cache/kubernetes/node .
	@export AMUX_TEST_KUBERNETES=1; $(GO) test -json -v -count=1 -timeout 40m -run '^TestKubernetes$$' ./test/place | $(GO) run -C tools ./testcount -timeout 40m

drift: build agents ## the real agents' newest versions against the pinned ones; AGENT=x for one
	@$(GO) run ./test/real/drift $(if $(AGENT),-agent $(AGENT))

.PHONY: room
room:
	@sh tools/room.sh "make test" 4 . "$${TMPDIR:-/tmp}" "$$($(GO) env GOCACHE)"

.PHONY: agents
agents:
	@test -n "$$AMUX_TEST_OFFLINE" || $(GO) run ./test/real/install

race: build ## the tests of library, sdk and command line under the race detector
	@export CGO_ENABLED=1; $(GO) test -race -short -json -timeout 20m $$(sh tools/raced.sh) | $(GO) run -C tools ./testcount -race -short -timeout 20m

fuzz: ## every fuzz test for FUZZTIME (10s)
	@sh tools/fuzz.sh $(FUZZTIME)

# One seed, or many: until the time is over if there is one.
SIM = -sim.seed=$(or $(SEED),1) -sim.seeds=$(or $(SEEDS),$(if $(SEED),1,$(if $(MINUTES),0,10000))) -sim.minutes=$(or $(MINUTES),0) \
	-sim.workers=$(if $(SEED),1,$(or $(shell getconf _NPROCESSORS_ONLN),1)) $(if $(TRACE),-sim.trace)

sim: ## simulate SEEDS (10000) or MINUTES of crashes, full disks, power cuts; SEED=n plays one again, with TRACE=1 step by step
	@$(GO) test ./host -count=1 -timeout 0 -v -run '^TestSimulate$$' $(SIM)

sim-bugs: ## plant bugs in the code and see that the simulation finds each
	@$(GO) test ./host -count=1 -timeout 60m -v -run '^TestPlantedBugs$$' -sim.bugs

lint: check-generated ## gofmt, go vet, staticcheck, generated code, workflow, vocabulary
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "$$unformatted" >&2; exit 1; }
	@$(GO) vet ./...
	@$(PLAIN) $(GO) -C tools build -o ../.cache/staticcheck honnef.co/go/tools/cmd/staticcheck
	@$(PLAIN) .cache/staticcheck ./... # it reads no overlay, and reads programs
	@$(TOOL) actionlint $(addprefix ../,$(wildcard .github/workflows/*.yml))
	@$(GO) run -C tools ./words
	@echo "lint: clean"

words: ## check the vocabulary, and lower the numbers in tools/words/allowance.txt
	@$(GO) run -C tools ./words -lower

proof: build agents ## run all tests of the real agents and record in test/real/proof.txt what passed, for docs/agents.md and make test; AGENT=x for one
	@AMUX_TEST_AGENT=$(AGENT) $(GO) test -count=1 -timeout 60m ./test/real -update; code=$$?; $(MAKE) -s docs && exit $$code

docs: build ## regenerate what is generated in docs: pages, the schemas, the types of the clients
	@$(GO) test ./test/docs -update >/dev/null && echo "docs/agents.md is written"
	@$(GO) test ./test/http -run '^TestDocument$$' -update >/dev/null && $(GO) test ./test/contract -run '^TestGenerated$$' -update >/dev/null && echo "docs/schema is written"

generate: ## regenerate the Go code of the protocol from its proto file
	@$(GO) -C tools run ./protogen ../pluginapi/amuxplugin1 amuxplugin1.proto

check-generated:
	@cp pluginapi/amuxplugin1/amuxplugin1.pb.go .cache/pb.before 2>/dev/null || (mkdir -p .cache && cp pluginapi/amuxplugin1/amuxplugin1.pb.go .cache/pb.before)
	@$(MAKE) -s generate
	@cmp -s pluginapi/amuxplugin1/amuxplugin1.pb.go .cache/pb.before || (echo "generated code was not up to date: make generate" >&2; exit 1)

cross: ## build and vet for the other platforms
	@sh tools/cross.sh

wine: ## the tests of what is Windows' own, under Wine; AMUX_WINE_INSTALL=1 has apt install that
	@sh tools/wine.sh

bench: build ## the rows of docs/performance.md, each beside its floor
	@$(GO) run ./test/bench -count $(COUNT)

compare: build ## amux beside acpx from npm, agent-mux (AGENT_MUX=.../amux.js) and the bare agent; medians of SAMPLES (5), for docs/compare.md
	@$(GO) run ./test/compare -count $(or $(SAMPLES),5) $(if $(AGENT_MUX),-agent-mux $(AGENT_MUX))

soak: build ## an hour (FOR) with 50 runs at a time, kills and readers that stall: fails if anything grows, and draws docs/soak.svg
	@$(GO) run ./test/soak -for $(or $(FOR),60m) -picture docs/soak.svg

RACES = TestStopAgainst|TestTwoHosts|TestRacesOfTheEnd|TestSendAgainstEnd|TestApprovedTwice

chaos: build ## kill everything at random, many times (an hour or two)
	@AMUX_CHAOS=1 $(GO) test -json -count=1 -timeout 120m ./test/chaos/... ./host/... ./internal/... | $(GO) run -C tools ./testcount
	@AMUX_CHAOS=1 CGO_ENABLED=1 $(GO) test -race -json -count=1 -timeout 90m -run '$(RACES)' ./host | $(GO) run -C tools ./testcount

chaos-minute: build ## one minute of what lasts five in make chaos: 200 runs, everything killed at random; and every shape of survivor once
	@export AMUX_TEST_ALONE=1; $(GO) test -json -count=1 -timeout 20m -run '^TestNothingSurvives$$' ./test/chaos | $(GO) run -C tools ./testcount -timeout 20m
	@export AMUX_CHAOS=1m; $(GO) test -json -count=1 -timeout 20m -run '^TestDetachedRunsInChaos$$' ./test/chaos | $(GO) run -C tools ./testcount -timeout 20m

install: build ## copy to PREFIX/lib/amux and link PREFIX/bin/amux (default ~/.local)
	@mkdir -p $(PREFIX)/lib/amux $(PREFIX)/bin
	@cp -R bin/. $(PREFIX)/lib/amux/
	@ln -sf $(PREFIX)/lib/amux/amux $(PREFIX)/bin/amux
	@echo "installed $(PREFIX)/bin/amux"

uninstall: ## remove what make install has copied to PREFIX
	@rm -rf $(PREFIX)/lib/amux
	@rm -f $(PREFIX)/bin/amux
	@echo "removed $(PREFIX)/bin/amux and $(PREFIX)/lib/amux; your runs and settings stay in ~/.agent-mux"

packages: ## deb, rpm and apk packages with manual pages and completions, in dist
	@sh tools/packages.sh dist

release: ## archives for all systems, packages, Homebrew formula, Scoop manifest, checksums in .cache/release; VERSION=1.2.3
	@sh tools/release.sh .cache/release

licenses: ## write the licences of all linked modules to NOTICE
	@$(GO) run ./test/deps/notice NOTICE

clean: ## remove what was built and downloaded
	@rm -rf bin .cache
