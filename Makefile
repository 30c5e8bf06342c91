# Every target sets up its own virtual environment in .venv.
PYTHON ?= $(shell for p in python3.12 python3.13 python3.14 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin

.PHONY: test demo study docs links
test: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest

study: .venv/ready
	$(BIN)/python -m pytest -m study
	$(BIN)/python benchmarks/intervals.py

demo: .venv/ready
	$(BIN)/erbayes demo

docs: .venv/docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs . build/docs
	@echo "wrote build/docs/index.html"

links: .venv/docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs -b linkcheck . build/links

.venv/docs: .venv/ready
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

.venv/ready: pyproject.toml
	@echo "Setting up .venv (once) ..."
	@test -n "$(PYTHON)" || { echo "erbayes needs Python 3.12 or newer"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[test,datasets]'
	@touch $@
