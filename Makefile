# One entry point for people and CI. `make` alone prints the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
TORCH ?= torch==2.13.0
# For the kernel tests under the interpreter. A CUDA build of torch brings the version that it needs; a CPU build brings none.
TRITON ?= triton>=3.9
HAS_TRITON = $(PY) -c 'import triton' 2>/dev/null
STAMP := $(VENV)/.installed
UV := $(shell command -v uv 2>/dev/null)

HOST ?= 127.0.0.1
PORT ?= 8000
MODEL ?= atom-tiny
ARGS ?=
PART ?= all
TESTS ?= tests

.PHONY: help setup generate check-generated fix lint type layers aiter-contract shape test test-gpu soak-gpu conformance bench bench-gpu serve check clean builtin-model eval

help:  ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(STAMP)  ## create .venv and install everything that development needs

# The serving packages first and alone, so that `make serve` need not wait for the development tools.
$(VENV)/.serving: pyproject.toml
ifeq ($(UV),)
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check $(TORCH) hatchling editables
	$(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation -e .
else
	@test -x $(PY) || $(UV) venv --quiet --python $(PYTHON) $(VENV)
	$(UV) pip install --quiet --python $(PY) $(TORCH) hatchling editables
	$(UV) pip install --quiet --python $(PY) --no-build-isolation -e .
endif
	@touch $@

$(STAMP): $(VENV)/.serving
ifeq ($(UV),)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[dev]'
	@$(HAS_TRITON) || $(PY) -m pip install --quiet --disable-pip-version-check '$(TRITON)'
else
	$(UV) pip install --quiet --python $(PY) --no-build-isolation -e '.[dev]'
	@$(HAS_TRITON) || $(UV) pip install --quiet --python $(PY) '$(TRITON)'
endif
	@touch $@

generate: $(STAMP)  ## derive generated/ and the tables in docs/ from spec/
	$(PY) spec/codegen

check-generated: $(STAMP)  ## fail on one byte of drift between spec/ and generated/
	$(PY) spec/codegen --check

fix: $(STAMP)  ## format and repair what ruff can repair
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

lint: $(STAMP)  ## ruff, without edits
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

type: $(STAMP)  ## mypy --strict on everything that holds no tensors
	$(VENV)/bin/mypy

layers: $(STAMP)  ## import-linter: imports go downwards only
	$(VENV)/bin/lint-imports

aiter-contract: $(STAMP)  ## our calls into AITER against the pinned wheel's sources (fetched once, read, not run)
	$(PY) -m tools.aiter_contract $(ARGS)

shape: $(STAMP)  ## file and function sizes, module docstrings
	$(PY) -m pytest -q tests/architecture

test: $(STAMP)  ## the test suite, on the CPU
	$(PY) -m pytest -q -n 2 $(TESTS)

test-gpu: $(STAMP)  ## the tests that need a GPU
	$(PY) -m pytest -q -n 8 -m 'gpu and not soak' tests

soak-gpu: $(STAMP)  ## five minutes of mixed load on a GPU; ATOM_SOAK_SECONDS
	$(PY) -m pytest -q -s -m soak tests/model_engine/test_soak.py

conformance: $(STAMP)  ## every wire format at every chunking, and the HTTP contract against a live server
	$(PY) -m conformance $(ARGS)
	$(if $(ARGS),,$(PY) -m conformance.http)

bench: $(STAMP)  ## benchmarks; PART=name runs one
	$(PY) -m benchmarks $(PART) $(ARGS)

bench-gpu: $(STAMP)  ## benchmarks that need a GPU
	$(PY) -m benchmarks gpu $(ARGS)

serve: $(VENV)/.serving  ## serve a model; HOST= PORT= MODEL= ARGS="..."
	$(PY) -m atom.entrypoints.openai_server --model $(MODEL) --host $(HOST) --server-port $(PORT) $(ARGS)

builtin-model: $(STAMP)  ## train the shipped model; a smoke run on a CPU, the real one with GPU=1
	$(PY) -m tools.builtin_model $(if $(GPU),--gpu) $(ARGS)

$(VENV)/.bench: $(STAMP)
ifeq ($(UV),)
	$(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[bench]'
else
	$(UV) pip install --quiet --python $(PY) --no-build-isolation -e '.[bench]'
endif
	@touch $@

eval: $(VENV)/.bench  ## the shipped model's score by every way to it; they must be one number
	$(PY) -m tools.eval $(ARGS)

check: check-generated lint type layers aiter-contract shape test conformance  ## everything that must hold before a push

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .cache build dist
