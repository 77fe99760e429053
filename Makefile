# make test | test-quick | test-slow | torture | fuzz | soak | test-designate | test-openstack-clients | test-migration | demo | lint | audit | docs | sample | coverage | bench: each does its own set-up, and quickly the second time.
# Another one, say python3.13, gets a virtual environment of its own.
PYTHON ?= python3
VENV ?= .venv$(patsubst python3%,%,$(notdir $(PYTHON)))
BIN = $(VENV)/bin
PYTEST_ARGS ?=
# A benchmark, or quick for all of them at their smallest; and where the JSON goes.
BENCH ?= quick
RESULTS ?= benchmarks/results
# Tests start hundreds of programs: without what Python keeps of their source, each compiles all of it again.
unexport PYTHONDONTWRITEBYTECODE
BENCH_ARGS ?=
# Of make torture: how many seeds, and on which databases (postgresql,mariadb; all when it says none).  MINUTES is how
# long one seed of torture takes, or all of fuzz; HOURS how long soak does.
SEEDS ?= 1
BACKENDS ?=
TORTURE_ARGS ?=
CODE = designate_pool migrations testing tests benchmarks doc tools
SCRIPTS = tools/packages .ci/run devstack/settings $(wildcard devstack/*.sh tests/fixtures/*.sh)

# The servers that the functional tests start are Debian packages; the rest needs Python alone.
SERVERS = $(VENV)/.servers-installed
PYTHON_PACKAGES = $(VENV)/.python-packages-installed
FUZZ_PACKAGES = $(VENV)/.fuzz-packages-installed
# Designate's tests want libraries of their own.
DESIGNATE_VENV ?= .designate-venv
DESIGNATE_PACKAGES = $(DESIGNATE_VENV)/.packages-installed
# So do Neutron and Heat.
CLIENTS_VENV ?= .clients-venv
CLIENTS_PACKAGES = $(CLIENTS_VENV)/.packages-installed
# So does Designate itself.
MIGRATION_VENV ?= .migration-venv
MIGRATION_PACKAGES = $(MIGRATION_VENV)/.packages-installed

.PHONY: help test test-quick test-slow test-designate test-openstack-clients test-migration torture torture-selftest fuzz soak demo lint audit docs sample coverage bench packages clean

help:
	@sed -n '1s/^# //p' Makefile

# Two cores are busy with four at once.
test: $(SERVERS) $(PYTHON_PACKAGES)
	$(BIN)/pytest -n 4 --dist loadfile -m 'not slow' $(PYTEST_ARGS)

# Unit tests and house rules, with what pip installs alone: no name server, database server or broker.  Properties are
# tried with half of the examples that make test takes.
test-quick: $(PYTHON_PACKAGES)
	$(BIN)/pytest -n 3 --dist loadfile --hypothesis-profile quick -m 'not slow' tests/unit tests/test_house.py $(PYTEST_ARGS)

# What takes too long for every change: the two together are the whole suite.
test-slow: $(SERVERS) $(PYTHON_PACKAGES)
	$(BIN)/pytest -n 5 --dist loadfile -m slow $(PYTEST_ARGS)

# The tests that Designate has for its API and its client; what is known not to pass is in tests/designate/not_passing.txt.
test-designate: $(PYTHON_PACKAGES) $(DESIGNATE_PACKAGES)
	$(BIN)/python -m tests.designate --tempest $(DESIGNATE_VENV) $(TEMPEST_ARGS)

# Neutron's own DNS driver and Heat's own DNS resources against our API.
test-openstack-clients: $(SERVERS) $(PYTHON_PACKAGES) $(CLIENTS_PACKAGES)
	$(BIN)/python -m tests.designate.client_services --venv $(CLIENTS_VENV)

# The way over from Designate, on the tables that Designate itself makes.
test-migration: $(SERVERS) $(PYTHON_PACKAGES) $(MIGRATION_PACKAGES)
	$(BIN)/python -m tests.designate.takeover --designate $(MIGRATION_VENV)

# The torture kit finds each bug that it plants; an hour and more.  It takes root.
torture-selftest: $(SERVERS) $(PYTHON_PACKAGES)
	$(BIN)/python -m tests.torture.selftest $(SELFTEST_ARGS)

# Coverage-guided: each reader of outside input in turn, from the corpus in tests/fuzz; what breaks one goes to .fuzz/.
fuzz: MINUTES ?= 10
fuzz: $(FUZZ_PACKAGES)
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

# Faults of all kinds in network namespaces, and a checker of what clients and servers were told.  It takes root.
torture: MINUTES ?= 2
torture: $(SERVERS) $(PYTHON_PACKAGES)
	$(BIN)/python -m tests.torture --seeds $(SEEDS) --minutes $(MINUTES) $(BACKENDS:%=--backends %) $(TORTURE_ARGS)

# Steady load with faults now and then; what every process holds against time, as JSON.
soak: HOURS ?= 8
soak: $(SERVERS) $(PYTHON_PACKAGES)
	mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.soak --hours $(HOURS) --json $(RESULTS)/soak.json $(BENCH_ARGS)

demo: $(PYTHON_PACKAGES)
	$(BIN)/python tools/demo.py

lint: $(SERVERS) $(PYTHON_PACKAGES)
	$(BIN)/flake8 $(CODE)
	$(BIN)/isort --check --diff $(CODE)
	$(BIN)/mypy
	shellcheck --external-sources $(SCRIPTS)

# No library with a known hole is asked for or installed.
audit: $(PYTHON_PACKAGES)
	$(BIN)/python tools/audit.py

docs: $(PYTHON_PACKAGES)
	$(BIN)/sphinx-build -q -W --keep-going -b html doc/source doc/build/html

sample: $(PYTHON_PACKAGES)
	$(BIN)/oslo-config-generator --config-file etc/config-generator.conf
	$(BIN)/oslopolicy-sample-generator --config-file etc/policy-generator.conf

coverage: $(SERVERS) $(PYTHON_PACKAGES)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(PYTEST_ARGS)
	$(BIN)/coverage combine
	$(BIN)/coverage report

bench: $(SERVERS) $(PYTHON_PACKAGES)
	mkdir -p $(RESULTS)
	$(BIN)/python -m benchmarks.$(BENCH) --json $(RESULTS)/$(BENCH).json $(BENCH_ARGS)

packages:
	PYTHON=$(PYTHON) tools/packages $(VENV) test

$(SERVERS): bindep.txt tools/packages
	PYTHON=$(PYTHON) tools/packages $(VENV) test
	touch $@

$(PYTHON_PACKAGES): setup.cfg pyproject.toml
	PYTHON=$(PYTHON) tools/packages $(VENV)
	$(BIN)/pip install --quiet --editable '.[test,doc]'
	touch $@

$(FUZZ_PACKAGES): $(PYTHON_PACKAGES)
	$(BIN)/pip install --quiet --editable '.[fuzz]'
	touch $@

$(DESIGNATE_PACKAGES): tests/designate/requirements.txt
	$(PYTHON) -m venv $(DESIGNATE_VENV)
	$(DESIGNATE_VENV)/bin/pip install --quiet --requirement $<
	touch $@

$(CLIENTS_PACKAGES): tests/designate/clients_requirements.txt
	$(PYTHON) -m venv $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/pip install --quiet --requirement $<
	touch $@

$(MIGRATION_PACKAGES): tests/designate/takeover_requirements.txt
	$(PYTHON) -m venv $(MIGRATION_VENV)
	$(MIGRATION_VENV)/bin/pip install --quiet --requirement $<
	touch $@

clean:
	rm -rf $(VENV) $(DESIGNATE_VENV) $(CLIENTS_VENV) $(MIGRATION_VENV) .fuzz build dist doc/build *.egg-info .mypy_cache .pytest_cache
