# Every task of this repository. `make help` lists them.
# Nothing needs an activated virtualenv: make keeps its own in .venv. Variables pass through to what
# is run, so `make serve EDGE_PORT=9000` and `make test ARGS="-k speech -x"` do what they look like.

MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

EXTRAS := edge,tts,embedded,video,dev
BIN := .venv/bin
PY := $(BIN)/python
ARGS ?=

# The first interpreter that really runs and is new enough (a pyenv shim may exist and not run).
PYTHON ?= $(shell for p in python3.11 python3 python3.13 python3.12; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; \
	done)

# Named by the content of pyproject.toml: touching it or switching branches reinstalls nothing.
INSTALLED := .venv/.installed-$(shell cksum < pyproject.toml | tr ' ' '-')
# A Node that is there brings its own npm, which Debian's package would not go with.
DEBIAN = $(if $(shell command -v npm),,npm) ffmpeg chromium
SUDO = $(if $(filter 0,$(shell id -u)),,sudo)
BASELINES := $(wildcard contracts/baseline/*.binpb)
# Every tool that writes a committed file, and can compare it with what it would write.
GENERATORS := $(filter-out message_schemas,$(basename $(notdir \
	$(wildcard tools/draw_*.py tools/*_schemas.py tools/*_reference.py tools/generate_*.py))))

FAST := not slow and not soak and not gpu and not compose
SLOW := slow and not soak and not gpu and not compose
ALL := not soak and not gpu and not compose

##@ Use
.PHONY: setup
setup: $(INSTALLED) ## Make .venv and install everything that is needed

.PHONY: apt
apt: ## Install Debian packages: npm (Chinese voices); for tests ffmpeg and chromium
	@echo "installing Debian packages (as root): $(DEBIAN)"
	@$(SUDO) apt-get -qq update
	@$(SUDO) apt-get -qq install --yes --no-install-recommends $(DEBIAN)

.PHONY: models
models: $(INSTALLED) ## Fetch the voices into .models (TTS_MODEL_DIR changes the folder)
	@$(PY) -m services.tts.models fetch

.PHONY: demo
demo: $(INSTALLED) ## Speak English and Chinese token by token, make a steered video; files land in .demo
	@exec $(PY) -m tools.demo $(ARGS)

.PHONY: serve
serve: $(INSTALLED) ## Run the services in the foreground; the edge on 127.0.0.1:8000 (EDGE_PORT)
	@exec $(PY) -m tools.serve $(ARGS)

##@ Test
.PHONY: test
test: $(INSTALLED) ## Run the fast tests
	@$(PY) -m pytest -m "$(FAST)" $(ARGS)

.PHONY: test-slow
test-slow: $(INSTALLED) ## Run what `make test` leaves out: real voices, minutes of work
	@$(PY) -m pytest -m "$(SLOW)" $(ARGS)

.PHONY: test-all
test-all: $(INSTALLED) ## Run the fast and the slow tests
	@$(PY) -m pytest -m "$(ALL)" $(ARGS)

.PHONY: diffusers
diffusers: $(INSTALLED) ## Install torch and diffusers, for the helios and anyflow_far video models
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[diffusers]'

.PHONY: listening
listening: $(INSTALLED) ## Install and fetch what listens to the voices in the slow tests
	@PYTHONWARNINGS=ignore $(PY) -m pip install --quiet --disable-pip-version-check \
		--editable '.[listening]'
	@$(PY) -m services.tts.models fetch kokoro voices test

.PHONY: bench
bench: $(INSTALLED) ## Measure every figure the project states (ARGS="--help" lists them)
	@$(PY) -m benchmarks $(ARGS)

##@ Check
.PHONY: check
check: lint types imports protos drift ## Run every check below

.PHONY: lint
lint: $(INSTALLED) ## Lint, and check the formatting of, the Python code
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

.PHONY: types
types: $(INSTALLED) ## Check the types
	@$(BIN)/mypy
	@$(BIN)/mypy deploy/probe.py

.PHONY: imports
imports: $(INSTALLED) ## Check the direction of the dependencies
	@$(BIN)/lint-imports --no-cache

.PHONY: protos
protos: $(INSTALLED) ## Lint and format-check the protos; compare them with every released version
	@$(BIN)/buf lint
	@$(BIN)/buf format --diff --exit-code
	@for image in $(BASELINES); do \
		echo "buf breaking --against $$image"; $(BIN)/buf breaking --against "$$image"; done
	@test -n "$(BASELINES)" || { echo "no released wire version in contracts/baseline" >&2; exit 1; }

.PHONY: drift
drift: $(INSTALLED) ## Check that every generated file is what its generator writes
	@for tool in $(GENERATORS); do echo "tools.$$tool --check"; $(PY) -m tools.$$tool --check; done

##@ Change
.PHONY: format
format: $(INSTALLED) ## Format the Python code and the protos
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/buf format --write

.PHONY: stubs
stubs: $(INSTALLED) ## Generate the stubs of the protos again
	@$(PY) -m tools.generate_stubs

.PHONY: generate
generate: $(INSTALLED) ## Generate every generated file again
	@for tool in $(GENERATORS); do echo "tools.$$tool"; \
		case $$tool in generate_*) write=;; *) write=--write;; esac; \
		$(PY) -m tools.$$tool $$write; done

.PHONY: clean
clean: ## Remove caches, builds and the demo's files
	@rm -rf .demo .cache build dist *.egg-info .coverage
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## Remove the virtualenv and the fetched voices as well
	@rm -rf .venv .models

##@ Help
.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.venv/.made:
	@test -n "$(PYTHON)" || { echo "Weir needs Python 3.11 or newer: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than Python 3.11: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "making .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade pip
	@touch $@

$(INSTALLED): | .venv/.made
	@echo "installing what pyproject.toml names into .venv (a minute or two the first time)"
	@# An editable install warns that folders here shadow packages, which is what it is for.
	@PYTHONWARNINGS=ignore $(PY) -m pip install --quiet --disable-pip-version-check \
		--editable '.[$(EXTRAS)]'
	@rm -f .venv/.installed-*
	@touch $@
