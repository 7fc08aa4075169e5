# make quickstart   train the small model from nothing, evaluate it and write a report
# make test         everything that must hold, as CI runs it

GOLANGCI_LINT := v2.15.0
WORKFLOWCHECK := v0.6.0

# One set of flags for every build: another set would compile the 1,800 packages of the embedded stack again.
export CGO_ENABLED := 0
ROOT  := $(CURDIR)
CACHE := $(ROOT)/.cache
RUN   ?= .run/quickstart

.PHONY: quickstart test build lint clean race fuzz chaos-short bench-quickstart bench-engine bench-sandbox bench-rl soak-sandbox learn learn-short prerequisites check workflowcheck unit

quickstart: prerequisites build
	bin/restar run deploy/recipes/quickstart.yaml --run quickstart --dir $(RUN) --figures .bench/quickstart.json

# The parts in order, each with the result of the one before: a fault is reported by the cheapest test that can see it.
test: prerequisites build
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory chaos-short

build: prerequisites
	@.ci/build.sh $(ROOT)/bin/restar-devserver cmd/restar-devserver .
	@.ci/build.sh $(ROOT)/bin/restar . ./cmd/restar

prerequisites:
	@.ci/prerequisites.sh

# What is checked on every test: formatting, vet, and that workflows are deterministic.
check: workflowcheck
	@files=$$(gofmt -l activities cmd kernels workers workflows); \
	if [ -n "$$files" ]; then echo "not formatted (gofmt -w): $$files"; exit 1; fi
	go vet ./...
	cd cmd/restar-devserver && go vet ./...

workflowcheck: $(CACHE)/workflowcheck-$(WORKFLOWCHECK)/workflowcheck
	$< -config .ci/workflowcheck.yaml ./workflows/...

# Replays of recorded histories are tests of workflows. Sampler and trainer hold on the portable path too, which a processor with
# AVX2 never takes by itself.
unit:
	go test -timeout 30m ./...
	RESTAR_CPU_ISA=generic go test -timeout 30m ./workers/engine ./workers/train
	cd cmd/restar-devserver && go test -timeout 30m ./...

chaos-short: build
	go run ./cmd/restar-chaos

bench-quickstart: build
	rm -rf .run/bench
	bin/restar run deploy/recipes/quickstart.yaml --run quickstart --dir .run/bench --figures .bench/quickstart.json --require-gain 20

# Kernels, training step and sampling beside PyTorch, oneDNN and llama.cpp, which the first run installs into .cache/peers.
bench-engine: prerequisites
	@.ci/build.sh $(ROOT)/bin/restar-bench . ./cmd/restar-bench
	@.ci/peers/install.sh $(CACHE)/peers
	bin/restar-bench engine

# The sandbox service beside code-judge's design (fresh interpreters behind Redis) and beside the prototype that it grew out of,
# where its sources are; bursts, isolation and the verifier.
PROTOTYPE ?= $(wildcard ../shared/prototypes/sandbox)
bench-sandbox: build
	@.ci/build.sh $(ROOT)/bin/restar-bench . ./cmd/restar-bench
	@.ci/peers/code_judge.sh install
	@.ci/peers/prototype.sh "$(PROTOTYPE)" $(CACHE)/sandbox-prototype
	@built=$(CACHE)/sandbox-prototype; ! [ -x $$built/sbx ] || export RESTAR_SANDBOX_PROTOTYPE=$${RESTAR_SANDBOX_PROTOTYPE:-$$built}; \
	bin/restar-bench sandbox

# Where the time of a step goes, the engine while tools run, and choosing and packing a batch of the paper's size.
bench-rl: build
	@.ci/build.sh $(ROOT)/bin/restar-bench . ./cmd/restar-bench
	bin/restar-bench rl

# 20,000 hostile calls; nothing may be left of them.
soak-sandbox: prerequisites
	RESTAR_SOAK=20000 go test -count=1 -timeout 3h -v -run 'TestNothingSurvives$$' ./workers/sandbox

# What is learned on real tool calls: GRPO-RoC beside the ablation without RoC and its relatives, several seeds. An interrupted
# table goes on; runs belong to the commit of the learning code.
learn: build
	@.ci/build.sh $(ROOT)/bin/restar-bench . ./cmd/restar-bench
	bin/restar-bench learn

learn-short: build
	@.ci/build.sh $(ROOT)/bin/restar-bench . ./cmd/restar-bench
	bin/restar-bench learn --short

race: # the one target that needs cgo
	CGO_ENABLED=1 go test -race ./...

# Every fuzz test for FUZZTIME. An input that fails one is written to testdata/fuzz beside it, as a seed of later tests.
FUZZTIME ?= 20s
fuzz: prerequisites
	@.ci/fuzz.sh $(FUZZTIME)

lint: check $(CACHE)/golangci-lint-$(GOLANGCI_LINT)/golangci-lint
	$(CACHE)/golangci-lint-$(GOLANGCI_LINT)/golangci-lint run ./...
	cd cmd/restar-devserver && $(CACHE)/golangci-lint-$(GOLANGCI_LINT)/golangci-lint run ./...

$(CACHE)/golangci-lint-$(GOLANGCI_LINT)/golangci-lint:
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT)

$(CACHE)/workflowcheck-$(WORKFLOWCHECK)/workflowcheck:
	GOBIN=$(@D) go install go.temporal.io/sdk/contrib/tools/workflowcheck@$(WORKFLOWCHECK)

# Runs stay: they are the user's. Remove .run by hand.
clean:
	rm -rf bin .cache .bench
