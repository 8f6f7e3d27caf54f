# make run and make test do all of their own set-up (packaging/setup.sh); the second time it takes under two seconds.
PYTHON ?= python3
PY := .venv/bin/python
export PYTHON

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test test-long check format bench clean setup setup-dev setup-long

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: setup ## open the window (ARGS="run --prompt Hello" for a subcommand); with no display, walk the main job offscreen
	@sh packaging/run.sh $(ARGS)

test: setup-dev ## the tests, under 15 minutes on two cores (ARGS="-k rope" to choose, "-n 0" for one process)
	@$(PY) -m pytest -n auto --dist loadfile --max-worker-restart 0 $(ARGS)

test-long: setup-long ## every test: also the slow ones, and those for a GPU where there is one
	@$(PY) -m pytest -m "" $(ARGS)

check: setup-dev ## format, lint, types and import rules
	@$(PY) -m ruff format --check
	@$(PY) -m ruff check
	@$(PY) -m mypy
	@.venv/bin/lint-imports

format: setup-dev ## rewrite in the house format and mend what ruff can
	@$(PY) -m ruff check --fix
	@$(PY) -m ruff format

bench: setup-dev ## speed and memory as ratios, with their bounds, into out/bench.md (ARGS="--only grid --repeats 9")
	@$(PY) -m tests.bench $(ARGS)

clean: ## remove what was built here; the user's cache with the default model stays
	rm -rf .venv build dist out *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find app model assets tests packaging -name __pycache__ -prune -exec rm -rf {} +

setup:
	@sh packaging/setup.sh run

setup-dev:
	@sh packaging/setup.sh dev

setup-long:
	@sh packaging/setup.sh long
