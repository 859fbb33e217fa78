# Needs python3 (3.10 or newer), make and git. `make help` lists the targets; `make PYTHON=python3.12 test` takes another Python.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
TRITON ?= triton==3.6.0
TRITON_VENV := .venv-triton
FRAMEWORKS ?= numba-cuda==0.30.* numpy==2.4.* numba-cuda-mlir==0.6.* nvidia-nvvm nvidia-cutlass-dsl==4.8.* quack-kernels==0.6.* flash-attn-4==4.0.0b36 warp-lang==1.19.* tilelang==0.1.15 helion==1.5.* triton==3.7.* jax==0.12.* jax-cuda13-plugin==0.12.* jax-cuda13-pjrt==0.12.*
FRAMEWORKS_VENV := .venv-frameworks
OLDEST ?= numpy==2.4.* torch==2.11.* triton==3.6.0 numba==0.65.* numba-cuda==0.30.0 nvidia-nvvm==13.0.* cupy-cuda13x==13.6.*
NEWEST ?= numpy==2.4.* torch==2.15.* triton==3.9.0 numba-cuda==0.30.* nvidia-nvvm cupy-cuda13x==14.*
VERSIONS_VENVS := .venv-oldest .venv-newest
DEMO := tutorials/02_missing_cp_async_wait/exercise.cu
DEMO_LAUNCH := --device cpu --grid 2,2 --block 64 --arg f32[3072]=random --arg f32[3072]=random --arg f32[1024]=zeros \
	--arg i32=32 --arg i32=96

# Tests start hundreds of processes: each would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo docs test test-slow test-gpu test-triton test-frameworks test-versions lint lint-installed lint-python lint-cxx clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
		printf 'make %-15s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.cpu ## find a planted bug in a real kernel, on the CPU (consan ends with 66, "violations": that is the point)
	@echo '$$ consan check $(DEMO) $(DEMO_LAUNCH)'
	@status=0; $(BIN)/consan check $(DEMO) $(DEMO_LAUNCH) || status=$$?; \
	if [ $$status -ne 66 ]; then echo "make demo: expected exit status 66, got $$status" >&2; exit 1; fi

test: $(VENV)/.test ## the test suite, without the slow tests; GPU tests are skipped, visibly, where there is no GPU
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --durations=15 -m "not slow"

test-slow: $(VENV)/.test ## the slow tests
	$(BIN)/python -m pytest -n auto --durations=15 -m "slow and not gpu"

# Triton is 190 MB to fetch and 670 MB on disk, so it has an environment of its own. `make TRITON=triton==3.9.0 test-triton` takes another.
test-triton: $(TRITON_VENV)/.test ## the tests with Triton on the CPU
	$(TRITON_VENV)/bin/python -m pytest -n auto --durations=5 -m "not slow and not gpu" -k "triton or 03 or 13" \
		tests/adapters_triton tests/tutorials/test_tutorials.py tests/tutorials/test_snippets.py

# Frameworks that run on the stand-in driver: some GB on disk. One that is not to be had here is left out, and its programs are skipped.
test-frameworks: $(FRAMEWORKS_VENV)/.test ## programs of other frameworks on the CPU
	$(FRAMEWORKS_VENV)/bin/python -m pytest -n auto --durations=5 -k "framework or cute or driver or pallas or 12- or 14-" \
		tests/frameworks tests/pipeline/test_cute_programs.py tests/pipeline/test_driver_programs.py tests/tutorials/test_tutorials.py

# Of each framework the oldest and the newest version that consan knows; of the others of `make test-frameworks` it knows one version.
# Without the tests that count calls, or take a GPU for one without CUPTI: those are for an environment without torch (test-triton).
test-versions: $(VERSIONS_VENVS:=/.test) ## the adapters on the CPU with the oldest and the newest versions of torch, Triton, CuPy and Numba
	for each in $(VERSIONS_VENVS); do $$each/bin/python -m pytest -n auto --durations=5 -m "not slow and not gpu" -k "(triton or installed or numba or cupy_itself) and not triton_gpu and not calls_of" \
		tests/adapters_triton tests/unit/adapters/test_adapters_torch_kernels.py tests/unit/adapters/test_adapters_numba_real.py \
		tests/unit/adapters/test_cupy_driver.py tests/frameworks || exit 1; done

test-gpu: $(VENV)/.test ## the GPU tests, one after another (install the extra cuda12 or cuda13 in the environment first)
	$(BIN)/python -m pytest --durations=15 -m gpu

# The type checker reads an installed copy: only there do the folders instrument/ and reports/ have their real names.
lint: lint-python lint-cxx ## ruff, retired words, mypy on the installed package, and clang-format and clang-tidy on C++ and C (with -j2 side by side)

lint-installed: $(VENV)/.lint
	rm -rf build
	$(PIP) install --no-deps --target build/lint .

lint-python: lint-installed
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/unit/house/test_words.py
	cd build/lint && $(abspath $(BIN))/mypy --config-file $(abspath pyproject.toml) -p consan

lint-cxx: lint-installed
	$(BIN)/clang-format --dry-run --Werror $(wildcard consan/backends/source/* consan/checker/source/*.* consan/checker/source/*/* consan/libcuda/source/* consan/native/source/*)
	$(BIN)/python -m consan.building.libraries build/lint
	$(BIN)/clang-tidy --quiet --config-file=.clang-tidy build/lint/consan/checker/source/replay.cpp -- -std=c++17 \
		$(patsubst %,-Ibuild/lint/%,$(wildcard consan/checker/source consan/checker/source/*/))
	$(BIN)/clang-tidy --quiet --config-file=.clang-tidy consan/native/source/interposer.c consan/backends/source/calls.c consan/libcuda/source/libcuda.c consan/libcuda/source/cudart.c -- -std=gnu11 -Ibuild/lint/consan/backends/source

docs: $(VENV)/.docs ## the documentation as a site, in build/docs/site
	$(BIN)/python tutorials/site.py build/docs
	$(BIN)/python -m mkdocs build -f build/docs/mkdocs.yml

clean: ## remove the environment and what was built
	rm -rf $(VENV) $(TRITON_VENV) $(FRAMEWORKS_VENV) $(VERSIONS_VENVS) build *.egg-info .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.cpu: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[cpu]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[cpu,test]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[docs]'
	@touch $@

$(TRITON_VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(TRITON_VENV)
	$(TRITON_VENV)/bin/python -m pip --disable-pip-version-check --quiet install -e '.[cpu,test]' '$(TRITON)'
	@touch $@

# One by one: one that is not to be had is left out, and what one wants of another one's version does not count.
$(FRAMEWORKS_VENV)/.test: PACKAGES = $(FRAMEWORKS)
.venv-oldest/.test: PACKAGES = $(OLDEST)
.venv-newest/.test: PACKAGES = $(NEWEST)
$(FRAMEWORKS_VENV)/.test $(VERSIONS_VENVS:=/.test): pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --quiet install -e '.[cpu,test]' 'cuda-core==1.2.*'
	for each in $(PACKAGES); do $(@D)/bin/python -m pip --disable-pip-version-check --quiet install "$$each" || true; done
	@touch $@

$(VENV)/.lint: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[lint,test]'
	@touch $@
