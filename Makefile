# make demo   sets everything up and types into a sample repository
# make check  runs the checks and the tests of single modules, for while you work
# make test   sets everything up and runs all checks and tests
# A second run starts at once: what is set up stays in .venv, models stay in the user's cache folder.

VENV := .venv
# Where a virtual environment has its programs; untried on Windows.
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
EDITORS := .editors
FLEET := .fleet
PEERS := .peers
MODEL := qwen2.5-coder-0.5b
# Tests start hundreds of interpreters, and each one would compile all sources again; images for containers set this.
unexport PYTHONDONTWRITEBYTECODE
# Many tests wait for programs, which leaves two more workers room on two cores; some hold 1.5 GB of a model.
WORKERS := 4
GPU_TARGET := qwen2.5-coder-1.5b
LONG := --start-line 330 --set multiline=always --set deadlineMs=0 tests/scripts/distillation/test_distillation.py

# The first interpreter of a version that is locked for; `make PYTHON=/path/to/python3 ...` chooses another.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
RUNS_US := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))
PYTHON := $(shell for python in $(CANDIDATES); do \
	if $$python -c '$(RUNS_US)' 2>/dev/null; then command -v $$python; break; fi; done)

# Everything by its hash, out of the locks; torch apart.
# Twice quiet: errors are shown, warnings about unreachable extra indexes are not.
QUIET := --pip-argument=--quiet --pip-argument=--quiet
INSTALL := $(BIN)/python -I scripts/install.py $(QUIET) --locks . --also build
# Tests start hundreds of interpreters, so all cores compile all modules; tests of packages are left out. A module of a
# package that cannot be compiled is nobody's error until it is imported, as with pip.
COMPILE := $(BIN)/python -I -m compileall -qq -j 0 -x '/test(s|ing)/' $(VENV) || true
LOCKS := requirements.lock requirements-torch.lock requirements-build.lock requirements-test.lock

.PHONY: demo test tested check lint style types kernels fuzz mutation test-arm test-gpu test-fleet front editors llama-server bench-gpu distill-gpu
.PHONY: lock lock-check sbom clean help release

help:
	@sed -n '1,4s/^# //p' Makefile

demo: $(VENV)/installed
	@$(BIN)/python -m scripts.demo
	@echo "Next: $(BIN)/slipstream doctor, and editors/README.md for your editor."

# Types and style are checked while tests wait.
test:
	@$(MAKE) --no-print-directory -j 3 style tested types types-darwin types-win32

tested: editors front kernels
	$(BIN)/python -m pytest -n $(WORKERS)

# Other systems run only the packages that ship.
SHIPPED := -p ngram_cache -p completion_engine -p lsp_server

# The fast loop while you work: types, style and contracts, then the tests of single modules. They need no model, no
# editor and no network. `make test` has all of it.
UNIT := tests/ngram_cache tests/lsp_server/engine tests/lsp_server/protocol tests/lsp_server/scripted_typing \
	tests/lsp_server/workspace $(addprefix tests/completion_engine/,choice context drafting prompting cutting \
	target_model) $(wildcard tests/completion_engine/test_*.py)
check: style
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 $(UNIT)

# What can be said without running anything: three times types, as long as all else together; and style and contracts.
lint: style types types-darwin types-win32

style: $(VENV)/installed-test
	$(BIN)/python -P -m scripts.check
	$(BIN)/python -P -m scripts.prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/installed-test
	nice $(BIN)/mypy

types-%: $(VENV)/installed-test
	nice $(BIN)/mypy --config-file scripts/other_systems.ini --platform $* --cache-dir .mypy_cache/$* $(SHIPPED)

# The model that many tests run, and what would be compiled for it by the first of them.
kernels: $(VENV)/installed-test
	@$(BIN)/slipstream models pull $(MODEL)
	@$(BIN)/python -m tests.own_folders

# Changes what is decided in a few files, in a copy under mutants/, and names the changes that no test notices.
mutation: $(VENV)/installed-test
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/mutmut run --max-children $(WORKERS)
	$(BIN)/python tests/mutation.py

# 200,000 hostile inputs of all kinds; GUIDED=--guided lets coverage choose them, by atheris in the same environment.
# Then new examples for each property that tests check with the same ones each time.
fuzz: $(VENV)/installed-test
	$(BIN)/python -m tests.fuzz --inputs 200000 $(GUIDED)
	$(BIN)/python -m pytest -q -n 2 --hypothesis-profile others $(shell grep -rl 'import.* given' tests)

# Kernels, exactness, the index and the server on ARM: an interpreter for it runs in qemu, in .aarch64. Kernels are
# compiled here for it and stay there; all else is emulated and takes up to an hour.
test-arm: $(VENV)/installed-test
	@tests/aarch64/run.sh .aarch64 $(CURDIR)/$(BIN)/python

test-gpu: $(VENV)/installed-test
	@$(BIN)/slipstream models pull $(MODEL)
	$(BIN)/python -m pytest tests/completion_engine/gpu tests/e2e/test_gpu.py

# Real servers of a team: vLLM for CPUs (3.4 GB) and HAProxy. 200 editors type for a minute while a replica is lost.
test-fleet: $(VENV)/installed-test
	@tests/fleet/install/all.sh $(FLEET) $(BIN)/python
	@$(BIN)/slipstream models pull $(MODEL)
	SLIPSTREAM_FLEET_EDITORS=200 SLIPSTREAM_FLEET_SECONDS=60 $(BIN)/python -m pytest tests/fleet

# The front of a fleet alone, which is small; replicas are set up by `make test-fleet`.
front: $(VENV)/installed-test
	@tests/fleet/install/all.sh $(FLEET) $(BIN)/python haproxy

# What this machine cannot have is named, and the tests that need it are skipped.
editors: $(VENV)/installed-test
	@tests/editors/install/all.sh $(EDITORS) $(BIN)/python

# A real llama-server, which `python -m tests.benchmarks.keystrokes` times beside Slipstream.
llama-server: $(VENV)/installed-test
	@tests/benchmarks/keystrokes/install/all.sh $(PEERS) $(BIN)/python

# Needs a GPU: its tests, every speed, exactness over 500 prompts, and what a person feels, also behind 4,000 tokens
# where blocks of 64 are written: first with every answer awaited, then with keys that come in between and cancel.
bench-gpu: test-gpu
	@$(BIN)/slipstream models pull $(GPU_TARGET)
	$(BIN)/python -m tests.benchmarks.gpu --target $(GPU_TARGET) --dtype bfloat16 --dtype int8 --plot gpu.svg
	$(BIN)/python -m tests.benchmarks.exactness --prompts 500 --target $(GPU_TARGET)
	$(BIN)/slipstream replay --target $(GPU_TARGET) lsp_server/workspace/session.py
	$(BIN)/slipstream replay --target $(GPU_TARGET) $(LONG)
	$(BIN)/slipstream replay --target $(GPU_TARGET) --pace 20 $(LONG)

# Needs a GPU and code to learn from: make distill-gpu CODE=folder
distill-gpu: $(VENV)/installed-test
	@test -n "$(CODE)" || { echo "Name a folder of code: make distill-gpu CODE=folder" >&2; exit 1; }
	$(BIN)/slipstream models pull $(GPU_TARGET)
	$(BIN)/python -m scripts.distillation $(CODE) --device cuda --target $(GPU_TARGET) --tokens 20000000 --steps 10000 \
		--out completion_engine/drafters/$(GPU_TARGET)
	$(BIN)/python -m tests.benchmarks.acceptance_plot completion_engine/drafters/$(GPU_TARGET)

$(BIN)/python:
	@test -n "$(PYTHON)" || { \
		echo "Slipstream needs Python 3.11 to 3.14, and none is on the PATH." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

# Makes the locks anew from pyproject.toml, for all platforms; `make lock UPGRADE=--upgrade` takes the newest versions.
lock: $(VENV)/installed-test
	$(BIN)/python -P -m scripts.lock $(UPGRADE)

# Fails where the locks do not fit pyproject.toml; needs no network.
lock-check: $(VENV)/installed-test
	$(BIN)/python -P -m scripts.check

# Wheel, source archive, VS Code extension and Neovim archive of the last commit in dist/, built and checked; the
# same bytes each time, which `make release TWICE=--twice` shows. Needs npm on the path.
release: $(VENV)/installed-test
	$(BIN)/python -P -m scripts.release $(TWICE)

# What a release stands on, for those who ship it.
sbom: $(VENV)/installed
	@mkdir -p dist
	$(BIN)/python -P -m scripts.sbom > dist/slipstream.cdx.json

$(VENV)/installed: pyproject.toml $(LOCKS) | $(BIN)/python
	@echo "Installing Slipstream and what it needs; the first time this takes some minutes"
	@$(INSTALL) .
	@$(COMPILE)
	@touch $@

$(VENV)/installed-test: pyproject.toml $(LOCKS) | $(BIN)/python
	@echo "Installing Slipstream and its test tools; the first time this takes some minutes"
	@$(INSTALL) --also test .
	@$(COMPILE)
	@touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) $(EDITORS) $(FLEET) $(PEERS) .kernels .aarch64 mutants build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
