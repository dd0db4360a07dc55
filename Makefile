# `make` sets up .venv and reproduces everything; `make test` runs every test. Both need only Python 3.11+ and make.
.DEFAULT_GOAL := all
.PHONY: all test docs embedded bench lint lock clean

PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --constraints requirements.lock --build-constraints requirements.lock
BENCHMARKS := $(filter-out %/measure.py %/figure.py, $(wildcard benchmarks/*.py))
CHECKED := fishpool scripts tests benchmarks docs examples

all: .venv/core
	$(BIN)/fishpool check
	$(BIN)/snakemake

test: .venv/dev
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# The manual, in results/docs/index.html; it needs no network to be read.
docs: .venv/dev
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir results/docs/.cache docs results/docs

# Asks the packaged model itself, in place of its published replies; results are in results/embedded.
embedded: .venv/embedded
	$(BIN)/snakemake --configfile config/embedded.yaml

bench: .venv/dev
	for benchmark in $(BENCHMARKS); do $(BIN)/python $$benchmark || exit; done
	$(BIN)/python benchmarks/figure.py

lint: .venv/dev
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/snakefmt --check workflow
	$(BIN)/snakemake --lint

# The lock holds names, versions and hashes of all extras, for every platform, and no address.
lock: .venv/dev
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url --output-file requirements.lock $(UPGRADE) pyproject.toml

# Removes what a run makes and the environment. Sources stay, and so does what cannot be made again: the replies of models,
# which were paid for, and the games of people and of the arena.
clean:
	rm -rf .snakemake .venv
	test ! -d results || find results -type f ! -name 'journal.sqlite*' ! -name 'arena.sqlite*' ! -execdir test -e RECORDED \; -delete
	test ! -d results || find results -type d -empty -delete

# uv, itself from the lock and checked against its hash, installs the rest of the lock in seconds.
$(BIN)/uv: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "make: Python 3.11 or later is needed, " \
	  + sys.executable + " is " + sys.version.split()[0] + "; run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > .venv/uv.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement .venv/uv.txt
	touch $@

.venv/core: pyproject.toml requirements.lock $(BIN)/uv
	$(UV) --editable .
	touch $@

.venv/embedded: .venv/core
	$(UV) --editable '.[embedded]'
	touch $@

.venv/dev: .venv/core
	$(UV) --editable '.[dev,reference,embedded,arena,cluster]'
	touch $@
