# One command per chore; `make` alone lists them.
PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow check format docs nemesis bench bench-quick lock clean

help: ## list the chores
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{split($$1, name, ":"); printf "  make %-12s %s\n", name[1], $$2}'

.venv/.ready: requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Gossamer needs Python 3.11 or newer; try: make setup PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	@echo "Making .venv with the package and its tools (once) …"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv-peers/.ready: benchmarks/requirements-peers.txt
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r benchmarks/requirements-peers.txt
	@touch $@

setup: .venv/.ready ## make .venv with the package and its tools

demo: .venv/.ready ## crawl a small shop that is served on this machine
	@$(BIN)/gossamer demo

test: .venv/.ready ## all tests but the slow ones
	@$(BIN)/python -m pytest -q -m "not slow"

test-slow: .venv/.ready ## the slow and chaotic tests
	@$(BIN)/python -m pytest -q -m slow --timeout 1800

nemesis: .venv/.ready ## faults against a cluster on real stores; SEEDS=1-20 KINDS=kill_worker,fail_over
	@$(BIN)/python -m gossamer.testing.nemesis --seeds $(or $(SEEDS),1-2) $(if $(KINDS),--kinds $(KINDS)) --results .bench/nemesis.jsonl

check: .venv/.ready ## format, lint, types, rooms, dead code, figures of style
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/vulture
	@$(BIN)/python tools/style.py gossamer tests

format: .venv/.ready ## bring all files into the one format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: .venv/.ready ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/.ready .venv-peers/.ready ## measure against peers side by side; writes benchmarks/RESULTS.md
	@$(BIN)/python -m benchmarks.compare

bench-quick: .venv/.ready .venv-peers/.ready ## the same with small sites, to see that it works
	@$(BIN)/python -m benchmarks.compare --quick

lock: .venv/.ready ## renew the locked dependencies (hashes, no index address)
	@$(BIN)/uv pip compile benchmarks/requirements-peers.in --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-annotate --no-header --quiet -o benchmarks/requirements-peers.txt
	@$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-annotate --no-header --quiet -o requirements/dev.lock

clean: ## remove what can be made again
	@rm -rf .venv .venv-peers site build dist .pytest_cache .mypy_cache .ruff_cache .bench gossamer-demo
