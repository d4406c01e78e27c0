# One entry point for people and for continuous integration. `make` alone lists the targets.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= pytorch,tensorflow,onnxruntime,keras-import,images,tensorboard,mpi,fleet,htcondor,dev
TEST_PROCESSES ?= 2
TESTS_ALONE = tests/architecture/test_lazy_imports.py tests/unit/measure/sampling tests/unit/measure/environment/test_noise.py \
    tests/unit/measure/metrics/test_wallclock_time.py tests/unit/measure/metrics/test_resident_memory.py \
    tests/unit/workloads/_operator_check/test_measuring.py tests/unit/cli/test_main.py tests/unit/cli/test_process.py \
    $(addprefix tests/unit/distributed/,test_launch.py scaling/test_processes.py scaling/test_exchange_recorder.py) \
    $(addprefix tests/conformance/test_,measurement_validity.py workloads.py faults.py survivors.py survivor_recipes.py slurm.py) \
    $(addprefix tests/conformance/test_,distributed.py distributed_recipes.py torch_distributed.py)
FRAMEWORKS ?= pytorch tensorflow onnxruntime reference
PYTEST_ARGS ?=
SANITIZE_ARGS ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.deep500-is-installed
LOG := $(VENV)/install.log
NATIVE_SOURCES := '*.h' '*.hpp' '*.cpp' '*.cc' '*.cu' '*.cuh'

.PHONY: help setup quickstart test lint check sanitize bench

help: ## List the targets
	@printf 'Usage: make TARGET [PYTHON=python3.11] [VENV=.venv] [PYTEST_ARGS="-k name"]\n\n'
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/\1\t\2/' | expand -t 14

setup: $(STAMP) ## Make the virtual environment .venv and install Deep500 with its frameworks in it

quickstart: setup ## Train one recipe under every framework, each with a verdict
	@for framework in $(FRAMEWORKS); do \
	    printf '\n$$ deep500 run recipes/digits_lenet.py --framework %s\n' "$$framework"; \
	    $(BIN)/deep500 run recipes/digits_lenet.py --framework "$$framework"; \
	done

# Tests that measure times, send signals or look at processes run by themselves; the others at once. One thread each: the
# libraries' own threads would fight for the cores. The order is the folders', in which the files that take long come
# first. Code 5: options such as -k left nothing of one part.
test: setup ## Run the tests (PYTEST_ARGS adds options)
	@status=0; \
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder \
	    $(addprefix --ignore=,$(TESTS_ALONE)) $(PYTEST_ARGS) || [ $$? -eq 5 ] || status=1; \
	$(BIN)/python -m pytest $(TESTS_ALONE) $(PYTEST_ARGS) || [ $$? -eq 5 ] || status=1; \
	exit $$status

lint: setup ## Check style, types, the import rule and C++ formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@files=$$(git ls-files -- $(NATIVE_SOURCES)); \
	if [ -n "$$files" ]; then \
	    echo '$(BIN)/clang-format --dry-run --Werror (C++ and CUDA sources)'; \
	    printf '%s\n' "$$files" | xargs -d '\n' $(BIN)/clang-format --dry-run --Werror; \
	fi

check: test lint ## Run the tests, then the linters

sanitize: setup ## Call native operators with generated inputs under AddressSanitizer (SANITIZE_ARGS adds options)
	@$(BIN)/python -m tests.sanitizer $(SANITIZE_ARGS)

bench: setup ## Run every measured comparison in benchmarks/
	@shopt -s nullglob; files=(benchmarks/[!_]*.py); \
	if [ $${#files[@]} -eq 0 ]; then echo 'There are no benchmarks yet.'; fi; \
	for file in "$${files[@]}"; do echo "== $$file"; $(BIN)/python -m "benchmarks.$$(basename "$$file" .py)"; done

# Redone only when what is installed has changed. pip's full output goes to a log; a person sees one moving line.
$(STAMP): pyproject.toml setup.py constraints.txt deep500/_version.py
	@command -v $(PYTHON) >/dev/null || { echo 'Deep500 needs Python 3.10 or newer; "$(PYTHON)" was not found. Try: make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
	    { echo "Deep500 needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.11" >&2; exit 1; }
	@echo "[1/2] Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || \
	    { echo 'Could not make a virtual environment; on Debian and Ubuntu, install the package python3-venv first.' >&2; exit 1; }
	@echo '[2/2] Installing Deep500 with $(EXTRAS); the first time takes some minutes (details: $(LOG))'
	@PYTHONUNBUFFERED=1 $(BIN)/python -m pip install --no-input --disable-pip-version-check --progress-bar off \
	    -e '.[$(EXTRAS)]' -c constraints.txt </dev/null 2>&1 | tee $(LOG) | while IFS= read -r line; do \
	        case "$$line" in Collecting*|*Downloading*|Installing*) ;; *) continue ;; esac; \
	        if [ -t 1 ]; then printf '\r\033[K      %.70s' "$$line"; \
	        elif [[ "$$line" == Installing* ]]; then printf '      %.70s ...\n' "$$line"; fi; \
	    done || { printf '\n'; tail -n 30 $(LOG); echo 'The installation failed; the last lines of pip are above.' >&2; exit 1; }
	@if [ -t 1 ]; then printf '\r\033[K'; fi; touch $@; echo "      Ready. Use it with: source $(BIN)/activate"
