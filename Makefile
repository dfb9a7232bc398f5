# make setup | demo | test | quick | check | bench | clean; `make help` says what each does.

# The first Python that is new enough; `make setup PYTHON=python3.12` chooses another.
NEW_ENOUGH = import sys; sys.exit(sys.version_info < (3, 10))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
	command -v $$p >/dev/null 2>&1 && $$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done)
BIN = .venv/bin
READY = .venv/setup-done
ARGS ?=
# Most of a scenario is waiting for real processes, so two files are tried at a time; ARGS="-n 0" tries one.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: help setup demo test test-systemd test-boards quick check types types-oldest lint format bench clean

help:
	@echo 'make setup            make .venv with everything pinned in constraints.txt (done by the others when needed)'
	@echo 'make demo [ARGS=...]  equal against adaptive on emulated boards; ARGS="--help" lists the options'
	@echo 'make test [ARGS=...]  the whole test suite; ARGS goes to pytest'
	@echo 'make test-systemd     install, upgrade and crash the services under a real systemd (root; minutes)'
	@echo 'make test-boards      arm64, riscv64 and x86 boards train together under emulation (root; a quarter of an hour)'
	@echo 'make quick            the tests without the slow ones and without a real broker'
	@echo 'make check            ruff (lint and format) and mypy --strict'
	@echo 'make bench [ONLY=x]   the figures of benchmarks/, or of benchmarks/x.py alone'
	@echo 'make clean            remove .venv, caches and build output; runs and recordings stay'

setup: $(READY)

$(READY): pyproject.toml constraints.txt scripts/install-torch
	@test -n '$(PYTHON)' || { \
		echo 'setup: no Python 3.10 or newer found; install one, or name it: make setup PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo 'setup: $(PYTHON) is not there, or older than 3.10' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo 'setup: $(PYTHON) cannot make environments; on Debian, Ubuntu or Raspberry Pi OS: sudo apt install python3-venv' >&2; exit 1; }
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	$(BIN)/python scripts/install-torch
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[coordinator,data,dev]'
	@touch $@

demo: setup
	$(BIN)/edged-coordinator demo $(ARGS)

test: setup
	$(PYTEST) -m 'not boots and not boards' $(ARGS)

# Debian: apt install systemd-container mmdebstrap. The tree is made once, in ~/.cache/edged-tests.
test-systemd: setup
	$(BIN)/python -m pytest -m boots $(ARGS)

# Debian: apt install qemu-user-static mmdebstrap mosquitto. Trees lie in ~/.cache/edged-tests, 1.8 GB in all.
# ARGS="-m 'boards and not slow'" leaves training and torch out.
test-boards: setup
	$(BIN)/python -m pytest -m boards $(ARGS)

quick: setup
	$(PYTEST) -m 'not slow and not server' $(ARGS)

# All of them, so that one run tells everything, two at a time. The second mypy sees what the oldest Python
# supported sees; there numpy's types are partly Any, hence its options.
check: setup
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync types types-oldest lint format

types:
	$(BIN)/mypy

types-oldest:
	$(BIN)/mypy --python-version 3.10 --no-warn-return-any --no-warn-unused-ignores

lint:
	$(BIN)/ruff check .

format:
	$(BIN)/ruff format --check .

# One process a file: a figure must not depend on what ran before it.
bench: setup
	@set -e; for file in benchmarks/$(or $(ONLY),[a-z]*).py; do \
		name=$$(basename $$file .py); echo "== $$name"; $(BIN)/python -m benchmarks.$$name $(ARGS); done

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
