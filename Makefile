# Every target prepares what it needs, so any of them works as the first command in a fresh clone.
SHELL := /bin/sh
STACK ?= local
# More options, such as ARGS="--target '**::my-service'"; `make pulumi ARGS="up --help"` lists them.
ARGS ?=
# YES=1: `make up` and `make down` replace and delete without asking.
YES ?=
NAME ?=
# existing: `make new-stack` for a cluster that is there already.
CLUSTER ?=
POD ?=
# The tests that `make test` runs, by their marks.
SELECTED = not nightly
BASE ?= main
VENV_PYTHON := .venv/bin/python
SET_UP := .venv/.set-up

# Newer versions of pip do not matter here, and no user setting may weaken the hash-checked install.
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without compiled files, every worker and every process of the tests compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up pulumi test test-all tests-alone test-fast crash-test properties preview diff refresh down stop status kubeconfig kubectl logs new-stack docs check style types format bench lock wheels image set-up binaries control-plane prometheus clean

help: ## Show this list
	@echo "usage: make TARGET [STACK=local] [YES=1] [ARGS=\"--target URN ...\"]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' Makefile

up: set-up control-plane ## Create or update the stack: from nothing to a load balancer that answers
	@$(VENV_PYTHON) -m local up --stack $(STACK) $(YES:%=--yes) $(ARGS)

preview: set-up ## Show what `make up` would change
	@$(VENV_PYTHON) -m local preview --stack $(STACK) $(ARGS)

diff: set-up ## Show what this checkout changes of every stack, without a cloud (BASE=main)
	@$(VENV_PYTHON) -m cloud_stacks diff --base $(BASE) $(ARGS)

refresh: set-up ## Read what exists into the stack's state, and show drift
	@$(VENV_PYTHON) -m local refresh --stack $(STACK) $(ARGS)

down: set-up ## Destroy the stack, then stop the local site
	@$(VENV_PYTHON) -m local down --stack $(STACK) $(YES:%=--yes) $(ARGS)

stop: set-up ## Stop the local site's processes and keep all data; `make up` continues from there
	@$(VENV_PYTHON) -m local stop --stack $(STACK)

status: set-up ## Show the site, machines, nodes, the leader, pods that are not ready, load balancers
	@$(VENV_PYTHON) -m local status --stack $(STACK)

kubeconfig: set-up ## Write a kubeconfig for the stack's cluster; eval "$(make kubeconfig)" makes kubectl use it
	@$(VENV_PYTHON) -m local kubeconfig --stack $(STACK)

kubectl: set-up ## Run kubectl on the stack's cluster: make kubectl ARGS="get pods -A"
	@$(VENV_PYTHON) -m local kubectl --stack $(STACK) -- $(ARGS)

logs: set-up ## Print a pod's log, without kubectl (POD=NAMESPACE/NAME; ARGS=--follow)
	@$(VENV_PYTHON) -m local logs --stack $(STACK) --pod "$(POD)" $(ARGS)

pulumi: set-up ## Run Pulumi's CLI on the stack: make pulumi ARGS="stack output"; builds it where it is missing
	@$(VENV_PYTHON) -m local pulumi --stack $(STACK) -- $(ARGS)

test: set-up style binaries prometheus ## Run the checks and the tests, without those of every night
	@# The type checker uses one processor, and the first tests often wait.
	@$(MAKE) --no-print-directory -j 2 types tests-alone SELECTED="$(SELECTED)"

tests-alone:
	@# Python and pytest compile the tests once; otherwise every worker would. What cannot be collected fails below.
	@$(VENV_PYTHON) -m pytest -qq --collect-only >/dev/null || true
	@# Three times as many as two processors, because whole stacks often wait; a file's tests, and those of a unit (tests/distribution.py), share what they start.
	@$(VENV_PYTHON) -m pytest -n 6 --dist loadfile --no-loadscope-reorder -m "$(SELECTED)"

test-all: SELECTED =
test-all: test ## Run the checks and every test

test-fast: set-up ## Run the tests that start no process and no simulated cloud (a minute and a half)
	@$(VENV_PYTHON) -m pytest -n logical --maxprocesses 8 -m "not integration"

crash-test: set-up binaries ## Kill the daemon after each call that changes something, drop each answer, and print what survived
	@CRASH_POINTS=all $(VENV_PYTHON) -m pytest -q -n 3 tests/crash/test_crash_points.py tests/crash/test_volume_crash_points.py \
		tests/crash/test_aws_crash_points.py tests/cloud_controller/clouds/aws/test_*_crashes.py tests/contract/test_interruptions.py

properties: set-up ## Test the properties of controllers with many more random sequences than the tests (minutes)
	@HYPOTHESIS_PROFILE=thorough $(VENV_PYTHON) -m pytest -q --timeout 7200 tests/cloud_controller/clouds/mycloud/test_*_any_history.py

check: style types ## Run the linters of code and workflows, the format check, the layer check and the type checker

style: set-up
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/lint-imports --no-logo
	@! git grep -nE '^(<{7}|>{7}) ' || { echo 'error: a merge left its markers'; exit 1; }
	@$(VENV_PYTHON) -m local.control_plane.actionlint .github/workflows/*.yml
	@.venv/bin/zizmor --offline --quiet .

types: set-up
	@.venv/bin/mypy

format: set-up ## Format the code and apply the linter's fixes
	@.venv/bin/ruff format
	@.venv/bin/ruff check --fix

new-stack: ## Create a stack file from the commented template (NAME=x; CLUSTER=existing for a cluster that you have)
	@tools/new-stack "$(NAME)" $(CLUSTER)

docs: set-up ## Generate what comes from code: pages of annotations, doctor, rules and checklist, the stack files' schema, the dashboard, the differences from Go controllers
	@$(VENV_PYTHON) -m cloud_controller.cli.annotation_docs > docs/.new && mv docs/.new docs/annotations.md
	@$(VENV_PYTHON) -m cloud_controller.cli.doctor_docs page > docs/.new && mv docs/.new docs/doctor-checks.md
	@$(VENV_PYTHON) -m cloud_controller.cli.doctor_docs checks > policy/data/.new && mv policy/data/.new policy/data/doctor.json
	@$(VENV_PYTHON) -m policy.checklist_page lines > docs/.new && mv docs/.new docs/checklist.md
	@$(VENV_PYTHON) -m policy.checklist_page rules > docs/.new && mv docs/.new docs/policy-rules.md
	@$(VENV_PYTHON) -m components.stack_schema > stacks/.new && mv stacks/.new stacks/schema.json
	@$(VENV_PYTHON) -m tools.dashboard > docs/.new && mv docs/.new cloud_controller/monitoring/dashboard.json
	@$(VENV_PYTHON) -m tests.compatibility.aws_page
	@$(VENV_PYTHON) -m tests.compatibility.alicloud_page
	@$(VENV_PYTHON) -m tests.compatibility.openstack_page

bench: set-up binaries ## Run the benchmarks: one JSON object per line (NAME=x for one)
	@$(VENV_PYTHON) -m benchmarks $(NAME)

lock: set-up ## Resolve the dependencies into the locked requirements again (UPGRADE=1 for newer versions)
	@tools/lock $(if $(UPGRADE),--upgrade)

wheels: set-up ## Build the wheels into dist: the controllers; the components and `cloud-stacks` for other Pulumi programs
	@tools/wheels

image: set-up ## Build the daemon's image, with podman or docker, from locked wheels (RELEASE=1 PYTHON_IMAGE=NAME:TAG@DIGEST)
	@RELEASE=$(RELEASE) PYTHON_IMAGE=$(PYTHON_IMAGE) tools/image

set-up: $(SET_UP) ## Create .venv with the locked dependencies (every other target does so when needed)

	@:

$(SET_UP): requirements.txt pyproject.toml tools/set-up
	@tools/set-up
	@touch $@

control-plane: set-up
	@$(VENV_PYTHON) -m local.control_plane build

binaries: control-plane ## Build the control plane, Pulumi's CLI and its Kubernetes provider where they are missing (minutes, once per machine)
	@$(VENV_PYTHON) -m local.pulumi.kubernetes_provider

prometheus: set-up
	@$(VENV_PYTHON) -m local.control_plane.prometheus

clean: ## Remove .venv and the tools' caches, but neither a running site nor its state
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis *.egg-info
