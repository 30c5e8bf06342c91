# Every target sets up its own virtual environment in .venv.
PYTHON ?= $(shell for p in python3.12 python3.13 python3.14 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin

SLOW := $(wildcard tests/test_bayes*.py) tests/test_arviz.py tests/test_notebooks.py erbayes/bayes

.PHONY: test check house demo study docs links
test: house
	$(BIN)/python -m pytest

# Everything but the tests of the size models, which compile for minutes.
check: house
	$(BIN)/python -m pytest $(SLOW:%=--ignore=%)

house: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

study: .venv/test
	$(BIN)/python -m pytest -m study
	$(BIN)/python benchmarks/intervals.py

demo: .venv/datasets
	$(BIN)/erbayes demo

docs: .venv/test .venv/docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs . build/docs
	@echo "wrote build/docs/index.html"

links: .venv/test .venv/docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs -b linkcheck . build/links

# Each stamp is named after the extra that it installs.
.venv/datasets .venv/docs .venv/test: pyproject.toml | .venv/new
	@echo "Installing erbayes[$(@F)] in .venv ..."
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[$(@F)]'
	@touch $@

.venv/new:
	@test -n "$(PYTHON)" || { echo "erbayes needs Python 3.12 or newer"; exit 1; }
	@echo "Setting up .venv (once) ..."
	$(PYTHON) -m venv .venv
	@touch $@
