.DEFAULT_GOAL := help
PY := .venv/bin/python
.PHONY: help setup dev plan verify preflight bundle clean fmt check test e2e bench

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## tools, engine, artefacts and machine image; seconds when they are there
	@bash lab/setup.sh

dev: setup ## a cluster of 3 masters and 2 workers on this computer
	@bash lab/dev.sh

plan: setup ## what STACK (dev) would be, in words; needs no engine
	@$(PY) -m stacks Pulumi.$(or $(STACK),dev).yaml

verify: ## the acceptance check on the cluster of STACK (dev)
	@$(PY) -m operations.verify $(or $(STACK),dev)

preflight: ## look at every machine of STACK (dev) and list all its problems; changes nothing
	@$(PY) -m operations.preflight $(or $(STACK),dev)

bundle: setup ## the air-gap bundle of the pinned versions
	@$(PY) -m artifacts.bundle --link .local/bundle

clean: ## destroy the dev cluster and whatever this checkout left, lab images too; keeps the cache
	@bash lab/clean.sh

fmt: ## format what can be formatted
	@$(PY) -m ruff format . && $(PY) -m ruff check --fix . && .venv/bin/shfmt -i 2 -ci -w $$(git ls-files '*.sh')

check: ## lint and types; changes nothing
	@$(PY) -m ruff format --check . && $(PY) -m ruff check . && $(PY) -m mypy . && .venv/bin/shfmt -i 2 -ci -d $$(git ls-files '*.sh') && .venv/bin/shellcheck -x $$(git ls-files '*.sh')

test: setup ## fast tiers and the core stories on the lab
	@bash lab/host.sh install tests
	@$(PY) -m tests.run core

e2e: setup ## every story, or one: STORY=name
	@bash lab/host.sh install tests
	@$(PY) -m tests.run all $(STORY)

bench: setup ## time of a create against the bare path of its steps; let nothing else run here
	@$(PY) -m bench.create
