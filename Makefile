# make setup   everything that is needed, from nothing but python3 and make
# make up      a private Slurm lab with a fleet that has faults, and Nodeworthy watching it
# make test    all checks that CI runs
# make bench   the full measurements; rewrites docs/benchmarks.md
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PURE := tests/unit tests/cases tests/properties tests/docs tests/api

.PHONY: help setup packages up test unit lint fix bench lock docs clean

help:  ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

setup: $(STAMP)  ## install everything into .venv (safe to repeat)

$(STAMP): requirements.lock pyproject.toml tools/setup.sh
	bash tools/setup.sh $(VENV)
	touch $@

packages: setup  ## install the Debian packages and Slurm versions of the integration tests (root on Debian; else says what is missing)
	PYTHON=$(BIN)/python bash tools/debian-packages.sh newer

up: setup  ## start a private Slurm lab with faults and Nodeworthy watching it
	bash tools/debian-packages.sh
	$(BIN)/python -m labs.up

# Tests of one process share the two cores; those that start services or measure run alone, and last.
test: setup packages lint  ## lint, types, layers and all tests
	$(BIN)/pytest -q -n 2 --dist worksteal $(PURE)
	$(BIN)/pytest -q --durations=15 $(addprefix --ignore=,$(PURE))

unit: setup  ## only the tests that need no service (under a minute)
	$(BIN)/pytest -q -n 2 --dist worksteal $(PURE)

lint: setup  ## format, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: setup  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup  ## regenerate the reference pages
	$(BIN)/python -m docs.generate

bench: setup packages  ## run every full measurement and write docs/benchmarks.md
	$(BIN)/python -m benchmarks.run

lock: setup  ## resolve pyproject.toml into requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	    --extra dev --custom-compile-command "make lock" pyproject.toml -o requirements.lock

clean:  ## remove what setup and the tests made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
