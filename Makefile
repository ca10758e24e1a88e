# Every target first sets up what it needs in .venv, once: with uv where it works, else with venv and pip.
VENV := .venv
BACKENDS := .backends
PYTHON := $(VENV)/bin/python
ARGS :=

# Asked for its version, because a version manager's placeholder for uv exists and does not run.
UV := $(shell uv --version >/dev/null 2>&1 && echo uv)
PYTHONS := python3 python3.14 python3.13 python3.12 python3.11 python
CHECKED := $(wildcard guardrail adapters tests examples)

.PHONY: help install demo test adapters bench backends lint ruff mypy pyright clean
.DEFAULT_GOAL := help

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile

install: $(VENV)/.development  ## set up .venv with everything for development

demo: $(VENV)/.runtime  ## show the guard at work on a small shop
	$(VENV)/bin/guardrail demo $(ARGS)

test: $(VENV)/.development  ## run the tests, ARGS="-k name" for some of them
	$(PYTHON) -m pytest --numprocesses auto --dist worksteal $(ARGS)

adapters: $(VENV)/.development  ## run the contract of adapters in every framework, each in its environment
	rm -rf .nox/results
	$(PYTHON) -m nox $(ARGS)

bench: $(VENV)/.development  ## measure, as JSON lines
	PYTHONPATH=tests $(PYTHON) tests/benchmarks/run.py $(ARGS)

backends: $(VENV)/.development $(BACKENDS)/phoenix/.installed $(BACKENDS)/mlflow/.installed  ## show runs in Phoenix and MLflow, ARGS=--stay to look
	$(PYTHON) examples/observability/backends.py \
	  --phoenix $(BACKENDS)/phoenix/bin/phoenix --mlflow $(BACKENDS)/mlflow/bin/mlflow $(ARGS)

lint: ruff mypy pyright  ## ruff, mypy and pyright

ruff: $(VENV)/.development
	$(PYTHON) -m ruff check $(CHECKED)
	$(PYTHON) -m ruff format --check $(CHECKED)

mypy: $(VENV)/.development
	$(PYTHON) -m mypy

pyright: $(VENV)/.development
	$(PYTHON) -m pyright --pythonpath $(PYTHON)

clean:  ## remove .venv and whatever tools left behind
	rm -rf $(VENV) $(BACKENDS) .nox dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

ifdef UV
installer := $(PYTHON)
pip_install = $(UV) pip install --quiet --python $(PYTHON) --constraints constraints.txt --build-constraints constraints.txt

backend_venv = $(UV) venv --quiet --clear --python $(PYTHON)
backend_install = $(UV) pip install --quiet --python $(1)

$(PYTHON):
	$(UV) venv --quiet --python '>=3.11' $(VENV)
else
installer := $(VENV)/.pip
backend_venv = $(PYTHON) -m venv --clear
backend_install = $(1) -m pip install --quiet
pip_install = $(PYTHON) -m pip install --quiet --constraint constraints.txt --build-constraint constraints.txt

$(PYTHON):
	@for python in $(PYTHONS); do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    exec $$python -m venv $(VENV); \
	  fi; \
	done; echo 'guardrail needs Python 3.11 or newer; none of these is it: $(PYTHONS)' >&2; exit 1

# The pip that comes with Python may know no dependency groups, and an environment that uv made has none.
$(VENV)/.pip: | $(PYTHON)
	$(PYTHON) -m ensurepip >/dev/null
	$(PYTHON) -m pip install --quiet --constraint constraints.txt --upgrade pip
	@touch $@
endif

$(VENV)/.runtime: pyproject.toml constraints.txt | $(installer)
	$(pip_install) --editable .
	@touch $@

$(VENV)/.development: $(VENV)/.runtime
	$(pip_install) --group dev
	@touch $@

# Backends have dependencies of their own, so each lives apart.
$(BACKENDS)/phoenix/.installed: package := arize-phoenix
$(BACKENDS)/mlflow/.installed: package := mlflow
$(BACKENDS)/%/.installed: examples/observability/constraints-%.txt | $(VENV)/.runtime
	$(backend_venv) $(BACKENDS)/$*
	$(call backend_install,$(BACKENDS)/$*/bin/python) --constraint $< $(package)
	@touch $@
