# make setup   the set-up alone: .venv/bin/memex          make run    the daemon on a copy of the demo vault
# make test    lint and the tests                         make run VAULT=~/MyVault    the daemon on that vault
# make test-all  with the slow proofs                     make graph | faults | bench | clients | conformance | man | lint | golden | clean

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := test
.PHONY: setup run test test-all graph faults bench clients conformance man lint format golden clean distclean

# Every path is relative, so a folder with blanks in its name works.
PY := .venv/bin/python
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo "$$python"; break; fi; done)
# What the set-up was made from: other constraints, another folder or another machine make it anew.
KEY := $(shell { cat constraints.txt pyproject.toml; pwd; uname -sm; } | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-16)
STAMP := .venv/.setup-$(KEY)
WORKERS ?= 4
ARGS ?=
export VAULT
# A library must not report to its maker from our tests and set-up either.
export ORT_DISABLE_TELEMETRY := 1
export HF_HUB_DISABLE_TELEMETRY := 1

setup: $(STAMP)

$(STAMP):
	@if [ -z "$(PYTHON)" ]; then echo "Memex needs Python 3.11 or newer: make PYTHON=/path/to/python3" >&2; exit 1; fi
	@echo "Setting up in .venv; the first time takes some minutes"
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(PY) -m index.encoders.onnx_export
	@rm -f .venv/.setup-*
	@touch $@

run: setup
	@if [ -n "$$VAULT" ]; then \
		$(PY) -m syncd.cli init "$$VAULT" > /dev/null; \
		exec $(PY) -m syncd.cli serve --vault "$$VAULT" --connect --any-port $(ARGS); \
	else \
		exec $(PY) -m syncd.cli demo $(ARGS); \
	fi

lint: setup
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy

format: setup
	$(PY) -m ruff check --fix --exit-zero .
	$(PY) -m ruff format .

# Lint runs beside the tests and says what it found after them; a failure of either is one of the target.
define beside_lint
	@said=$$(mktemp); nice $(MAKE) --no-print-directory lint > "$$said" 2>&1 & lint=$$!; \
	trap 'kill $$lint 2>/dev/null || true; rm -f "$$said"' EXIT; \
	tests=0; $(1) || tests=$$?; \
	linted=0; wait $$lint || linted=$$?; \
	cat "$$said"; \
	if [ $$linted != 0 ]; then echo "lint failed, see above" >&2; fi; \
	if [ $$tests != 0 ]; then echo "the tests failed, see above" >&2; fi; \
	exit $$(( tests ? tests : linted ))
endef

# One file's tests stay in one process: they share what is slow to make. Many wait for a process or a clock, so more workers
# than cores are busy. Properties are tried on a share of their examples, the same each time, so that a change is judged by
# what it changes; test-all looks for new ones.
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Each worker, and each command that a test starts, would compile all modules again.
test test-all: export PYTHONDONTWRITEBYTECODE :=

test: setup
	$(call beside_lint,$(PYTEST) --hypothesis-profile=ci -m "not slow and not faults" $(ARGS))

test-all: setup
	$(call beside_lint,$(PYTEST) --hypothesis-profile=default $(ARGS))

# An agent builds a graph of 200 entities from the demo vault, a person edits it, all agree; and what came of it.
graph: setup
	$(PY) -m pytest -q -s tests/integration/test_graph_scenario.py $(ARGS)

faults: setup
	$(PY) -m pytest -m faults $(ARGS)

bench: setup
	$(PY) -m tests.bench $(ARGS)

# Public MCP clients of both protocol eras, on a running daemon, and Mermaid on what is drawn; needs npm, and brings its own Node.
clients: setup npm
	$(PY) -m pytest tests/contract/test_clients.py tests/unit/syncd/graph/test_diagrams.py tests/unit/syncd/consolidation/test_report_note.py $(ARGS)

# The manual page: man -l build/memex.1
man: setup
	@mkdir -p build
	$(PY) -m syncd.cli.manual_page > build/memex.1

# The public conformance suite of the protocol, both eras, on our own server; exits non-zero unless every scored scenario passes.
conformance: setup npm
	$(PY) -W ignore -m tests.conformance

.PHONY: npm
npm:
	@if ! command -v npm >/dev/null; then echo "this needs npm (Node.js): https://nodejs.org" >&2; exit 1; fi
	cd tests/clients && npm ci --no-audit --no-fund

golden: setup
	GOLDEN=write $(PY) -m pytest -q -k golden $(ARGS)
	git diff --stat -- tests

clean:
	rm -rf build dist bench *.egg-info .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv tests/clients/node_modules
