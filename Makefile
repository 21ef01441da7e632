# Every target does its own set-up: a fresh clone needs nothing but make and Python >= 3.11.
# Another interpreter than python3: make test PYTHON=python3.13

PYTHON ?= python3
HOUSE ?= library
PIP_INSTALL = bin/python -m pip install --quiet --constraint constraints.txt

# Never run kernels compiled from another state of the code: see tools/cache_folder.py. Tests get
# the same folder from conftest.py.
KERNELS = NUMBA_CACHE_DIR=$$($(PYTHON) -B tools/cache_folder.py .numba_cache src/gvf lab/src/gvf_lab)
export MPLBACKEND := Agg
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Stamps: what is installed in each environment. A target waits only for what it needs. The library
# is tested where the laboratory is not installed.
base := .venv/.installed-base
quick := .venv/.installed-quick
dev := .venv/.installed-dev
library := .venv-library/.installed-test
bench := .venv-bench/.installed-bench
bench_logs := .venv-bench-logs/.installed-bench
extras := .venv-extras/.installed-extras
wheels := .venv-wheels/.installed-build

# What `make quick` looks at.
code_library := src
code_lab := lab/src
tests_library := src tests
tests_lab := lab/src lab/tests
$(if $(code_$(HOUSE)),,$(error HOUSE is library or lab, not $(HOUSE)))

# Lint and docs at the same time, before the tests.
MAKEFLAGS += --jobs=2

.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: bench bench-logs clean dist distclean docs help lint quick reproduce test test-extras \
	test-lab test-library

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

reproduce: $(base) ## Redraw the paper's figures and judge its claims: gvf-results/report.html
	$(KERNELS) .venv/bin/gvf reproduce

quick: $(quick) ## Check one house in a minute, without PyTorch and Ray: make quick HOUSE=library|lab
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/pyright --project tools/pyright-quick.json $(code_$(HOUSE))
	GVF_QUICK=1 .venv/bin/python -m pytest --numprocesses=2 --dist=loadfile --quiet \
		-m "not slow and not extras and not long" $(tests_$(HOUSE))

# Both parts of the tests run, whatever the first one finds.
test: lint docs ## Check everything: lint, docs, test-library, test-lab
	@failed=0; for part in library lab; do $(MAKE) test-$$part || failed=1; done; exit $$failed

test-library: $(library) ## Test the library alone, where the laboratory is not installed
	.venv-library/bin/python -m pytest --numprocesses=2 --dist=loadfile src tests

test-lab: $(dev) ## Test the laboratory, the documentation, the examples and torcs
	.venv/bin/python -m pytest --numprocesses=2 --dist=loadfile \
		lab/src lab/tests torcs/src torcs/tests

test-extras: $(extras) ## Test with Minari, pandas, polars, DuckDB (in an environment of its own)
	.venv-extras/bin/python -m pytest -m extras tests/log

lint: $(dev) ## Check style and types only
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/pyright

docs: $(dev) ## Build the documentation: docs/_build/html/index.html
	$(KERNELS) .venv/bin/python -m sphinx --fail-on-warning --fresh-env --keep-going --quiet \
		docs docs/_build/html

dist: $(wheels) ## Build both distributions into dist/, install them without the source, and try them
	rm -rf dist .venv-wheels/both
	.venv-wheels/bin/python -m build --outdir dist .
	.venv-wheels/bin/python -m build --outdir dist lab
	.venv-wheels/bin/python tools/try_wheels.py dist .venv-wheels/both constraints.txt

bench: $(bench) ## Measure against packaged replay buffers (in an environment of its own)
	$(KERNELS) .venv-bench/bin/python -m benchmarks

bench-logs: $(bench_logs) ## Measure answers from logs beside d3rlpy and SCOPE-RL (in an environment of its own)
	$(KERNELS) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
		.venv-bench-logs/bin/python -m benchmarks --only logs

clean: ## Remove what was built and cached
	rm -rf .hypothesis .numba_cache .pytest_cache .ruff_cache dist docs/_build
	find benchmarks docs examples experiments lab src tests tools torcs -name __pycache__ -prune -exec rm -rf {} +

distclean: clean ## Remove the environments too
	rm -rf .venv .venv-bench .venv-bench-logs .venv-extras .venv-library .venv-wheels

%/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gvf needs Python >= 3.11, and $(PYTHON) is " + sys.version.split()[0] + ": name another one, as in make test PYTHON=python3.13")'
	@echo "Setting up $* (once)"
	$(PYTHON) -m venv $*
	$*/$(PIP_INSTALL) --upgrade pip
	@touch $@

$(base): pyproject.toml lab/pyproject.toml constraints.txt | .venv/.created
	.venv/$(PIP_INSTALL) --editable . --editable ./lab
	@touch $@

$(quick): $(base)
	.venv/$(PIP_INSTALL) --group quick
	@touch $@

$(dev): $(quick) torcs/pyproject.toml
	.venv/$(PIP_INSTALL) --editable ".[ray,torch]" --editable "./lab[racing]" --editable ./torcs \
		--group dev
	@touch $@

$(library): pyproject.toml constraints.txt | .venv-library/.created
	.venv-library/$(PIP_INSTALL) --editable ".[ray,torch]" --group test
	@touch $@

$(bench): pyproject.toml lab/pyproject.toml torcs/pyproject.toml constraints.txt | .venv-bench/.created
	.venv-bench/$(PIP_INSTALL) --editable . --editable ./lab --editable ./torcs --group bench
	@touch $@

$(bench_logs): pyproject.toml lab/pyproject.toml constraints.txt | .venv-bench-logs/.created
	.venv-bench-logs/$(PIP_INSTALL) --editable . --editable ./lab --group bench-logs
	@touch $@

$(extras): pyproject.toml constraints.txt | .venv-extras/.created
	.venv-extras/$(PIP_INSTALL) --editable ".[minari]" --group extras
	@touch $@

$(wheels): | .venv-wheels/.created
	.venv-wheels/$(PIP_INSTALL) "build>=1.3"
	@touch $@
