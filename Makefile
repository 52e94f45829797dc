# Works with GNU make 3.81 (macOS) and newer. Needs Python 3.11 or newer and a network.
#   make run PORT=8600      another port
#   make test PYTHON=python3.12 VENV=.venv312

SHELL := /bin/sh
VENV  ?= .venv
# Training wants torch, which neither the app nor its tests need.
TRAIN_VENV ?= .venv-train
PORT  ?= 8501
WORKERS ?= 2

# The first Python that is new enough; the one called python3 is preferred.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python; do \
  "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; exit; }; \
  done)
endif

BIN      := $(VENV)/bin
PY       := $(BIN)/python
APP_OK   := $(VENV)/.app-installed
DEV_OK   := $(VENV)/.dev-installed
TRAIN_OK := $(TRAIN_VENV)/.train-installed
PIP      := $(PY) -m pip install --disable-pip-version-check --quiet
# Only what is there, so that the checks also run on a part of the tree.
TYPED    := $(wildcard rise_core rise_app app.py pages demo benchmarks)

.DEFAULT_GOAL := help
.PHONY: help run install test lint format test-quick test-browser chromium postgresql bench demo-train demo-check clean

help:  ## this list
	@awk -F ':.*## *' '/^[a-z-]+:.*##/ {printf "  make %-14s %s\n", $$1, $$2}' Makefile

run: $(APP_OK)  ## install what the app needs and open it on http://localhost:8501
	@$(BIN)/streamlit run app.py --server.port $(PORT)

install: $(APP_OK)  ## only install what the app needs

test: lint test-quick test-browser  ## everything that must hold: style, types, tests, a real browser

lint: $(DEV_OK)  ## style, docstrings, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(TYPED)

format: $(DEV_OK)  ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test-quick: $(DEV_OK) postgresql  ## all tests but those in a browser
	$(PY) -m pytest -n $(WORKERS) --dist loadgroup -m "not slow and not browser"

test-browser: $(DEV_OK) chromium  ## the tests in a real Chromium
	$(PY) -m pytest -m "browser and not slow"

chromium: $(DEV_OK)
	@$(PY) -m tests.browser.chromium

# Nothing is installed but by root; elsewhere the test that wants it is skipped, and says so.
postgresql: $(DEV_OK)
	@$(PY) -m tests.tracking.servers

bench: $(DEV_OK)  ## times against a plain sort, the bare MLflow client and Fairlearn
	$(PY) -m benchmarks

demo-train: $(TRAIN_OK)  ## train the demo's models again (a quarter of an hour; replaces demo/predictions)
	$(TRAIN_VENV)/bin/python -m demo.train

demo-check: $(TRAIN_OK)  ## test the training: the objectives, and one data set retrained
	$(TRAIN_VENV)/bin/python -m pytest tests/demo

# An environment: .venv/bin/python and .venv-train/bin/python alike.
$(PY) $(TRAIN_VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found. Name one: make run PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than Python 3.11. Name another: make run PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -m venv "$(dir $(@D))" || { rm -rf "$(dir $(@D))"; echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

# A stamp is newer than the requirements it stands for, so nothing is installed twice.
$(APP_OK): requirements.txt | $(PY)
	@echo "Installing the app into $(VENV) (a minute or two the first time) …"
	@$(PIP) -r requirements.txt
	@touch $@

$(DEV_OK): requirements-dev.txt requirements.txt | $(PY)
	@echo "Installing the app and its tests into $(VENV) (a minute or two the first time) …"
	@$(PIP) -r requirements-dev.txt
	@touch $@ $(APP_OK)

$(TRAIN_OK): requirements-train.txt requirements-dev.txt requirements.txt | $(TRAIN_VENV)/bin/python
	@echo "Installing what training needs into $(TRAIN_VENV) …"
	@$(TRAIN_VENV)/bin/python -m pip install --disable-pip-version-check --quiet -r requirements-dev.txt -r requirements-train.txt
	@touch $@

clean:  ## remove the environment, the demo store and all caches
	rm -rf $(VENV) $(TRAIN_VENV) .rise .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
