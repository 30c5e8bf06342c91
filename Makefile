# Every target sets up its own virtual environment in .venv.
PYTHON ?= $(shell for p in python3.12 python3.13 python3.14 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

# Tests that fit models, start Spark or a browser, or repeat long simulations have the mark `slow`.
# The search for examples loads PyMC with the room of models, and with every name that `erbayes` can load.
QUICK := -m 'not slow and not notebook and not page and not study' --ignore=erbayes/bayes --ignore=erbayes/__init__.py

.PHONY: test check house quick every estimate work research examples kernel lowest drawn demo study notebooks pages docs links address
# Style and types take one core for a minute. They run beside the tests, so that no core waits for them.
test: .venv/test
	$(MAKE) --no-print-directory --jobs=2 house every

check: .venv/test
	$(MAKE) --no-print-directory --jobs=2 house quick

# Two tests run at a time: more threads would wait for each other. tests/conftest.py says which go together.
# PyTensor would run a C compiler for a second for each of some operations, of which tests need each once, and
# note the lines of code that made each symbol.
every: export OMP_NUM_THREADS := 1
every: export PYTENSOR_FLAGS := cxx=,traceback__limit=0
every: .venv/test
	$(BIN)/python -m pytest --numprocesses=2 --no-loadscope-reorder $(PART)

# The four parts of `every`, jobs of their own in the gate: tests by the rooms that they import, and examples.
estimate: PART := tests --ring=estimate
work: PART := tests --ring=work
research: PART := tests --ring=research
examples: PART := erbayes
estimate work research examples: every

quick: export OMP_NUM_THREADS := 1
quick: export PYTHONWARNDEFAULTENCODING := 1
# where nothing keeps what is compiled, each process takes five seconds to compile the tests
quick every: export PYTHONDONTWRITEBYTECODE :=
quick: .venv/test
	$(BIN)/python -m pytest -q --numprocesses=2 --no-loadscope-reorder $(QUICK)

# Another processor adds in another order: OpenBLAS and NumPy without AVX stand for it. Only tests of numbers can notice.
kernel: export OMP_NUM_THREADS := 1
kernel: export OPENBLAS_CORETYPE := Prescott
kernel: export NPY_DISABLE_CPU_FEATURES := X86_V3 X86_V4
kernel: .venv/test
	$(BIN)/python -m pytest -q --numprocesses=2 -m 'kernel and not page and not study' tests

# These start processes or repeat simulations for minutes, and say nothing about a version that the others do not.
LONG := cover or device or chance_decides or killed or terminate or not_loaded

# The lowest versions that pyproject.toml admits, and the newest ones on a day drawn at random, which `make drawn DAY=...`
# takes again. Each has an environment of its own, without the extra `bayes`.
DAY ?= $(eval DAY := $(shell $(PYTHON) -c 'import datetime as d, random; first = d.date(2026, 7, 1); \
	print(first + random.randrange((d.date.today() - first).days) * d.timedelta(1))'))$(DAY)
lowest: WHICH := --resolution lowest-direct
drawn: WHICH = --exclude-newer $(DAY)
lowest drawn: export OMP_NUM_THREADS := 1
lowest drawn: %: .venv-%/made
	.venv-$@/bin/python -m pytest -q --numprocesses=2 -m lowest -k 'not ($(LONG))' tests

.PHONY: .venv-drawn/made
.venv-lowest/made .venv-drawn/made: pyproject.toml
	@echo "Installing versions for $(WHICH) in $(@D) ..."
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --disable-pip-version-check --quiet uv
	$(@D)/bin/uv pip install --quiet --python $(@D)/bin/python $(WHICH) --editable '.[quick]'
	@touch $@

house: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

notebooks: .venv/test
	$(BIN)/python -m pytest -m notebook tests/test_notebooks.py

study: .venv/test
	$(BIN)/python -m pytest -m study
	$(BIN)/python benchmarks/intervals.py
	$(BIN)/python benchmarks/stopping.py
	$(BIN)/python benchmarks/reach.py

demo: .venv/bayes,plots
	$(BIN)/erbayes demo

pages: .venv/test
	$(BIN)/python -m pytest -q -m page tests/test_pages.py

docs: .venv/docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs . build/docs
	@echo "wrote build/docs/index.html"

links: .venv/test .venv/docs
	$(BIN)/sphinx-build -q -W --keep-going -c docs -b linkcheck . build/links

# Each stamp is named after the extra that it installs. What pip says is shown if it fails.
.venv/bayes,plots .venv/docs .venv/test: pyproject.toml | .venv/new
	@echo "Installing erbayes[$(@F)] in .venv, which takes one to three minutes, once ..."
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[$(@F)]' 2>.venv/pip.log \
		|| { cat .venv/pip.log; exit 1; }
	@touch $@

.venv/new:
	@test -n "$(PYTHON)" || { echo "erbayes needs Python 3.12 or newer"; exit 1; }
	@$(PYTHON) -m venv .venv
	@touch $@

address:
	sed -i 's#https://example.org/erbayes#$(AT)#; s#](\([A-Za-z]*[/.]\)#]($(AT)/blob/main/\1#g' pyproject.toml CITATION.cff README.md
