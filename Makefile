# Everything a checkout needs. `make` alone lists the targets; each sets up what it needs itself.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
GENERATED := .demo/eval
EVAL_DIR := $(if $(BLEEDWATCH_EVAL_DATA),$(BLEEDWATCH_EVAL_DATA)/dev,$(GENERATED))
FUZZ_INPUTS ?= 100000
JOBS ?= 2
LOAD := $(if $(MINUTES),--minutes $(MINUTES)) $(if $(RATE),--tokens-per-second $(RATE)) $(if $(URGENT),--urgent)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY) ## Make the virtual environment .venv with everything the other targets need

# The stamp is made last, so an interrupted setup is repeated. PYTHON=... picks an interpreter.
$(READY): pyproject.toml constraints.txt
	@python=""; \
	for candidate in $(or $(PYTHON),python3.11 python3.12 python3.13 python3.14 python3 python); do \
	  if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	      >/dev/null 2>&1; then python="$$candidate"; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "error: no Python 3.11 or later with its venv module was found" >&2; \
	  echo "  next: install one (Debian, Ubuntu: python3.11-venv) or run make PYTHON=/path/to/python" >&2; \
	  exit 2; \
	fi; \
	echo "setting up $(VENV) with $$("$$python" --version); this takes a minute or two"; \
	if ! $(BIN)/python -c 'import pip' >/dev/null 2>&1; then "$$python" -m venv --clear $(VENV); fi; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[dev]'
	@touch $@

.PHONY: demo
demo: $(READY) ## Find planted bleeds in sample traffic
	@mkdir -p .demo
	@$(BIN)/bleedwatch demo --save .demo/findings.jsonl

.PHONY: test
test: $(READY) ## Run all tests (JOBS=2 files at a time, each process with a Kafka of its own)
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

# Kernels are counted where they run as the Python they are written in. Left out are the rounds of
# tests/chaos, as processes that are killed count nothing, and the whole cluster: together they take
# seven minutes. A test that fails does not keep the figures from being printed, but fails the target.
.PHONY: coverage
coverage: $(READY) ## Measure which branches of detector and ingest all tests take: 90 of 100 at least
	@rm -rf .coverage && mkdir .coverage
	@failed=0; \
	$(BIN)/coverage run -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder \
	  --ignore tests/chaos --ignore tests/cluster/test_cluster.py || failed=1; \
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -n $(JOBS) --dist loadfile \
	  -p tests.coverage.plain_kernels $$(grep -l kernels tests/unit/test_*.py) || failed=1; \
	$(BIN)/python -m tests.coverage || failed=1; \
	exit $$failed

.PHONY: lint
lint: $(READY) ## Check style, types and import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: eval
eval: $(READY) $(if $(BLEEDWATCH_EVAL_DATA),,$(GENERATED)/manifest.json) ## Measure recall and false findings (recorded traffic if BLEEDWATCH_EVAL_DATA is set, else generated)
	@$(BIN)/bleedwatch eval $(EVAL_DIR) --json eval.json

# The manifest is written last.
$(GENERATED)/manifest.json: $(READY) $(wildcard detector/sample/*.py)
	@echo "generating labelled traffic in $(GENERATED)"
	@$(BIN)/python -c 'from pathlib import Path; \
	  from detector.sample.dataset import write_dataset; \
	  from detector.sample.language import load_language; \
	  write_dataset(7, Path("$(GENERATED)"), language=load_language())'

.PHONY: kafka-up
kafka-up: $(READY) ## Start a Kafka node for development; .run/kafka.env holds its address
	@$(BIN)/python -m tests.kafka up

.PHONY: kafka-down
kafka-down: $(READY) ## End it and remove its data
	@$(BIN)/python -m tests.kafka down

.PHONY: tenants
tenants: $(READY) ## Measure the memory of a million tenants in ten thousand pools
	@$(BIN)/python -m tests.bench.tenants

.PHONY: blast-radius-bench
blast-radius-bench: $(READY) ## Count the requests of a pool among ten million rows (ROWS=10000000)
	@$(BIN)/python -m tests.bench.blast_radius $(if $(ROWS),--rows $(ROWS))

.PHONY: bench
bench: $(READY) ## Measure speed and memory on this machine (BENCH=kernels, endtoend, records, trace, JSON=FILE)
	@$(if $(BENCH),$(BIN)/python -m detector.benchmarks $(BENCH) $(if $(JSON),--json $(JSON)),$(BIN)/bleedwatch bench)

.PHONY: long
long: $(READY) ## Run the tests on recorded traffic that take many minutes
	@BLEEDWATCH_TEST_LONG=1 $(BIN)/python -m pytest --timeout=1800 tests/long

.PHONY: dashboards
dashboards: $(READY) ## Write the boards, Prometheus rules and runbooks anew
	@$(BIN)/python -m dashboards.build

.PHONY: dashboard-pictures
dashboard-pictures: $(READY) ## Draw the boards from queries of a system that runs, into docs/images
	@$(BIN)/python -m tests.dashboards

.PHONY: chart
chart: $(READY) ## Write what is generated of the Helm chart anew
	@$(BIN)/python -m helm.build

.PHONY: image-steps
image-steps: $(READY) ## Run the install steps of the Dockerfile without Docker, and measure what they make
	@$(BIN)/python -m tests.chart.image_steps

.PHONY: ledger-long
ledger-long: $(READY) ## Live through random KV leases with faults at every step (LIFECYCLES=20000)
	@BLEEDWATCH_TEST_LIFECYCLES=$(or $(LIFECYCLES),20000) \
	  $(BIN)/python -m pytest -s --timeout=7200 tests/unit/test_kv_lifecycles.py

.PHONY: fuzz
fuzz: $(READY) ## Feed the readers broken input (FUZZ_INPUTS=100000)
	@BLEEDWATCH_TEST_FUZZ_INPUTS=$(FUZZ_INPUTS) $(BIN)/python -m pytest tests/fuzz

.PHONY: scenarios
scenarios: $(READY) ## Re-enact public faults in a simulated cluster and print which rules see them
	@$(BIN)/python -m tests.scenarios

.PHONY: scenarios-clean
scenarios-clean: $(READY) ## Run a simulated day without faults; no sure finding may come
	@$(BIN)/python -m tests.scenarios clean

.PHONY: chaos
chaos: $(READY) ## Kill, stop, freeze and fill up while records flow; nothing may be lost (ROUNDS=30)
	@$(BIN)/python -W ignore -m tests.chaos $(or $(ROUNDS),30)

.PHONY: hostile
hostile: $(READY) ## Send broken and hostile records to a worker; each must be accounted for (RECORDS=100000 on each input)
	@$(BIN)/python -W ignore -m tests.hostile $(or $(RECORDS),100000)

.PHONY: latency-stream
latency-stream: $(READY) ## Measure acknowledged-to-found over Kafka (MINUTES=3, RATE=200000 tokens/s)
	@$(BIN)/python -m tests.load latency $(LOAD)

.PHONY: soak-stream
soak-stream: $(READY) ## Measure what workers sustain on a core each (MINUTES=15, RATE=1000000, SAMPLING=winnow, WORKERS=1)
	@$(BIN)/python -m tests.load soak $(LOAD) $(if $(SAMPLING),--sampling $(SAMPLING)) $(if $(WORKERS),--workers $(WORKERS))

.PHONY: scaling
scaling: $(READY) ## Print what a cluster needs, from measured figures (RATE=10000000 tokens/s)
	@$(BIN)/python -m tests.bench.scaling $(if $(RATE),--tokens-per-second $(RATE))

.PHONY: two-workers
two-workers: $(READY) ## Measure two detectors on a core each beside one alone; needs an idle machine, 2 minutes
	@$(BIN)/python -m tests.bench.two_workers

.PHONY: eval-stream
eval-stream: $(READY) $(if $(BLEEDWATCH_EVAL_DATA),,$(GENERATED)/manifest.json) ## Send the labelled traffic through Kafka and two workers (SET=planted or requests)
	@$(BIN)/python -m tests.load labelled --data $(EVAL_DIR) $(if $(SET),--set $(SET)) $(LOAD)

.PHONY: sidecar-kills
sidecar-kills: $(READY) ## Kill a sidecar under load, on logs of both engines; nothing may be lost (KILLS=50)
	@$(BIN)/python -W ignore -m tests.sidecar $(or $(KILLS),50)

.PHONY: sidecar-outage
sidecar-outage: $(READY) ## Take Kafka away from a sidecar under load and give it back; nothing may be lost (MINUTES=2)
	@$(BIN)/python -W ignore -m tests.sidecar.outage $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: alert-kills
alert-kills: $(READY) ## Kill a sender of alerts while it delivers; nothing may be lost (KILLS=50)
	@$(BIN)/python -W ignore -m tests.alerts $(or $(KILLS),50)

.PHONY: sidecar-figures
sidecar-figures: $(READY) ## Measure what a sidecar costs and what it sustains
	@$(BIN)/python -W ignore -m tests.load.sidecar_figures

.PHONY: api-description
api-description: $(READY) ## Write docs/openapi-api.json anew
	@$(BIN)/python -m tests.http.describe

.PHONY: api-figures
api-figures: $(READY) ## Measure the API with 100,000 findings stored, and its pages in Chromium
	@$(BIN)/python -W ignore -m tests.http.figures

ENGINE := .venv-engine
ENGINE_READY := $(ENGINE)/.ready

# Some 7 GB: the wheel of torch that registries carry is that for GPUs.
$(ENGINE_READY): tests/engine/install.py
	@$(or $(PYTHON),python3) -m venv --clear $(ENGINE)
	@$(ENGINE)/bin/python tests/engine/install.py
	@touch $@

.PHONY: test-engine
test-engine: $(READY) $(ENGINE_READY) ## Run the tests beside a genuine vLLM, which this installs (7 GB) into .venv-engine
	@BLEEDWATCH_TEST_ENGINE=$(ENGINE) $(BIN)/python -m pytest --timeout=1800 tests/engine

.PHONY: tap-figures
tap-figures: $(READY) ## Measure what a tap adds to answers and takes of throughput
	@$(BIN)/python -W ignore -m tests.tap.figures

.PHONY: tap-growth
tap-growth: $(READY) ## Watch the memory of a tap while streams pass (MINUTES=10)
	@$(BIN)/python -W ignore -m tests.tap.growth $(if $(MINUTES),--minutes $(MINUTES))

.PHONY: cluster-demo
cluster-demo: $(READY) ## Run everything on this machine, with a bleed and kept memory that are seen in seconds
	@$(BIN)/python -W ignore -m tests.cluster

.PHONY: soak
soak: $(READY) ## Kill every part of it in turn under load and print a ledger (MINUTES=30, SEED=)
	@$(BIN)/python -W ignore -m tests.cluster soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED))

.PHONY: ci
ci: ## Run what the build server runs
	@.ci/run
