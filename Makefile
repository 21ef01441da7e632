# Every target does its own set-up: a fresh clone needs nothing but make and Python >= 3.11.
# Another interpreter than python3: make test PYTHON=python3.13

PYTHON ?= python3
PIP_INSTALL = bin/python -m pip install --quiet --constraint constraints.txt

# Never run kernels compiled from another state of the source: see tools/cache_folder.py.
export NUMBA_CACHE_DIR := $(shell $(PYTHON) -B tools/cache_folder.py src/gvf .numba_cache)
export MPLBACKEND := Agg
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Stamps: what is installed in each environment. A target waits only for what it needs.
base := .venv/.installed-base
dev := .venv/.installed-dev
bench := .venv-bench/.installed-bench
bench_logs := .venv-bench-logs/.installed-bench
extras := .venv-extras/.installed-extras

# Lint and docs at the same time, before the tests.
MAKEFLAGS += --jobs=2

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: bench bench-logs clean distclean docs help lint reproduce test test-extras

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

reproduce: $(base) ## Redraw the paper's figures and judge its claims: gvf-results/report.html
	.venv/bin/gvf reproduce

test: lint docs ## Check everything: ruff, pyright, docs, tests, examples
	.venv/bin/python -m pytest --numprocesses=2 --dist=loadfile

test-extras: $(extras) ## Test with Minari, pandas, polars, DuckDB, scikit-learn (in an environment of its own)
	.venv-extras/bin/python -m pytest -m extras tests/log tests/behaviour

lint: $(dev) ## Check style and types only
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/pyright

docs: $(dev) ## Build the documentation: docs/_build/html/index.html
	.venv/bin/python -m sphinx --fail-on-warning --fresh-env --keep-going --quiet docs docs/_build/html

bench: $(bench) ## Measure against packaged replay buffers (in an environment of its own)
	.venv-bench/bin/python -m benchmarks

bench-logs: $(bench_logs) ## Measure answers from logs beside d3rlpy and SCOPE-RL (in an environment of its own)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-bench-logs/bin/python -m benchmarks --only logs

clean: ## Remove what was built and cached
	rm -rf .hypothesis .numba_cache .pytest_cache .ruff_cache dist docs/_build
	find benchmarks docs examples src tests tools torcs -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## Remove the environments too
	rm -rf .venv .venv-bench .venv-bench-logs .venv-extras

%/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gvf needs Python >= 3.11, and $(PYTHON) is " + sys.version.split()[0] + ": name another one, as in make test PYTHON=python3.13")'
	@echo "Setting up $* (once)"
	$(PYTHON) -m venv $*
	$*/$(PIP_INSTALL) --upgrade pip
	@touch $@

$(base): pyproject.toml constraints.txt | .venv/.created
	.venv/$(PIP_INSTALL) --editable .
	@touch $@

$(dev): $(base) torcs/pyproject.toml
	.venv/$(PIP_INSTALL) --editable ".[racing,ray,torch]" --editable ./torcs --group dev
	@touch $@

$(bench): pyproject.toml torcs/pyproject.toml constraints.txt | .venv-bench/.created
	.venv-bench/$(PIP_INSTALL) --editable . --editable ./torcs --group bench
	@touch $@

$(bench_logs): pyproject.toml constraints.txt | .venv-bench-logs/.created
	.venv-bench-logs/$(PIP_INSTALL) --editable . --group bench-logs
	@touch $@

$(extras): pyproject.toml constraints.txt | .venv-extras/.created
	.venv-extras/$(PIP_INSTALL) --editable ".[minari]" --group extras
	@touch $@
