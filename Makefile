# make, or make help, lists the targets. Development tools are pinned in
# tools/go.mod and built on first use.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

TOOL := go tool -modfile=tools/go.mod
PKG ?= ./...
FUZZ_TIME ?= 30s
CRASH_CYCLES ?= 200
CRASH_RUNS ?= 102
SOAK_TIME ?= 1h
BENCH ?= .
BENCH_COUNT ?= 1
BENCH_FLAGS ?=
BENCH_OUT ?= bin/bench.txt
PROFILES ?= bin/profiles

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/caprouter, without cgo and debug information
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/caprouter ./cmd/caprouter

.PHONY: test
test: ## Run the tests (PKG=./matcher/...)
	go test $(PKG)

.PHONY: race
race: ## Run the tests with the race detector, in random order
	go test -race -shuffle=on -count=1 $(PKG)

.PHONY: lint
lint: ## Run go vet, golangci-lint and the search for dead code
	go vet ./...
	$(TOOL) golangci-lint run ./...
	@dead=$$($(TOOL) deadcode -test ./...); echo "$${dead:-no dead code}"; [ -z "$$dead" ]

.PHONY: fmt
fmt: ## Format the code and sort the imports
	$(TOOL) golangci-lint fmt ./...

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZ_TIME; a failing input stays in testdata/fuzz
	FUZZ_TIME=$(FUZZ_TIME) .ci/fuzz $(PKG)

.PHONY: bench
bench: ## Run the benchmarks (BENCH=regexp BENCH_COUNT=6), then measure whole processes (BENCH_FLAGS='-only agent'); BENCH_OUT=file
	@mkdir -p $(dir $(BENCH_OUT))
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCH_COUNT) \
		$$(grep -rl --include='*_test.go' '^func Benchmark' . | xargs -n1 dirname | sort -u) | tee $(BENCH_OUT)
	go run ./test/bench $(BENCH_FLAGS) -text $(BENCH_OUT)

.PHONY: bench-compare
bench-compare: ## Compare two files that make bench wrote (OLD=file NEW=file)
	$(TOOL) benchstat $(or $(OLD),$(error OLD is not set)) $(or $(NEW),$(error NEW is not set))

.PHONY: bench-profile
bench-profile: ## Write CPU profiles of whole processes into PROFILES and print what the time is spent on (BENCH_FLAGS='-only agent')
	go run ./test/bench $(BENCH_FLAGS) -profile $(PROFILES)

.PHONY: engines
engines: ## Compare the storage engine with others, with the records of the audit log
	go -C test/engines run .

.PHONY: crash
crash: ## Kill the router CRASH_CYCLES times, also with a full store, a failing disk and an external store, and check that nothing is lost or done twice
	go run ./test/crash -cycles $(CRASH_CYCLES) -cluster $(CRASH_CYCLES) -open 10000

.PHONY: crash-planted
crash-planted: ## Check that the crash driver finds each of the errors that it plants in a router, with a fixed seed
	go test -count=1 -v -run 'TestTestbed_WithRouter/planted' ./test/crash

.PHONY: crash-runs
crash-runs: ## Kill the router CRASH_RUNS times during orchestrations, after each event in turn, and as many replicas, and check that no call is repeated
	CAPROUTER_KILLS=$(CRASH_RUNS) go test ./cmd/caprouter -run 'TestOrchestrations_Survive(KillAtEveryEvent|KilledReplica)' -v -count=1 -timeout 30m

.PHONY: cluster
cluster: build ## End and suspend routers that share a cluster of NATS servers, under load, and check that nothing is lost or done twice
	go run ./test/cluster -binary bin/caprouter

.PHONY: overload
overload: build ## Drive the router to five times its peak, open slow connections, and let one tenant flood it beside another
	go run ./test/overload -binary bin/caprouter

.PHONY: fleet
fleet: build ## Route requests while 1,000 agents register, 10,000 send heartbeats and the registry file is reloaded
	go run ./test/fleet -binary bin/caprouter

.PHONY: soak
soak: build ## Run a mixed load of several tenants at the limits of the store for SOAK_TIME, and check that the heap stays flat
	go run ./test/overload -only soak -for $(SOAK_TIME) -binary bin/caprouter

.PHONY: quality
quality: build ## Print how well the lexical classifier does on the data sets of ../shared, where they are
	.ci/quality bin/caprouter

.PHONY: quality-small
quality-small: build ## Print the same for the small registries alone, beside the goals
	.ci/quality-small bin/caprouter

.PHONY: masking
masking: ## Print how much personal data and how many secrets are masked, by kind (../shared, examples of gitleaks)
	@mkdir -p bin
	.ci/secret-examples bin/secret-examples.jsonl
	SECRET_EXAMPLES=$(CURDIR)/bin/secret-examples.jsonl go test -count=1 -v -run '^TestMaskText_(Synthetic|Recognizer|National|Other|SecretExamples)' ./internal/redact

.PHONY: cover
cover: ## Show test coverage by function; the HTML page is bin/cover.html
	@mkdir -p bin
	go test -coverprofile=bin/cover.out -coverpkg=./... $(PKG)
	go tool cover -html=bin/cover.out -o bin/cover.html
	go tool cover -func=bin/cover.out | tail -n 1

.PHONY: demo
demo: ## Start the demonstration: sample agents, sample requests, then serve
	go run ./cmd/caprouter demo

.PHONY: ci
ci: ## Everything a change must pass
	.ci/run
