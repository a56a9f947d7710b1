# Each target builds its own virtual environment when it is missing or out of date: python3, make and a package index suffice.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# Real rating data, if there is any beside the checkout; without it, tests and studies that need it are skipped with a reason.
ALBATROSS_DATA ?= $(if $(wildcard ../shared/data),$(abspath ../shared/data))
export ALBATROSS_DATA

.PHONY: demo test docs notebooks lint bench bench-all bench-service bench-page chaos chaos-cluster cluster-demo soak golden mutants dist matrix tag peers clean

demo: $(READY)  ## compare four policies on a world without ratings
	$(BIN)/albatross demo

test: lint  ## lint, types, import direction, doctests and tests
	$(BIN)/pytest -q -n auto

docs: $(READY)  ## the documentation site, into out/site; a broken link or anchor is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

notebooks: $(READY)  ## run the notebooks, and store their output
	PYTHONPATH=tests $(BIN)/python -m documentation.notebooks

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

bench: $(READY)  ## speed, as ratios of things measured in one run
	$(BIN)/python -m benchmarks

bench-all: $(READY)  ## the same over all ranks and sizes, and every policy; up to 6 GB of memory
	$(BIN)/python -m benchmarks --all

bench-service: $(READY)  ## recommendations and durable feedbacks per second, and where the time goes; needs an idle machine
	$(BIN)/python -m benchmarks.serving.service

bench-page: $(READY)  ## the page in a real browser: frames of the map, and a log of a million events; ten minutes
	$(BIN)/python -m benchmarks page-map page-million

chaos: $(READY)  ## the fault tests of the service, in full: 2,000 kills, 500 with PostgreSQL, 10,000 hostile bodies, 10,000 damaged snapshots
	PYTHONPATH=tests:. $(BIN)/python -m faults.chaos 2000
	PYTHONPATH=tests:. $(BIN)/python -m faults.chaos 500 postgres
	PYTHONPATH=tests:. $(BIN)/python -m faults.hostile 10000
	PYTHONPATH=tests:. $(BIN)/python -m faults.damage 10000 100000

cluster-demo: $(READY)  ## PostgreSQL, Ray, four shards and two fronts on this machine, simulated visitors, and one shard killed
	$(BIN)/albatross cluster demo

chaos-cluster: $(READY)  ## a thousand faults in a cluster of four shards: kill -9, nodes lost, PostgreSQL restarted, owners paused; half an hour
	PYTHONPATH=tests:tests/service:. $(BIN)/python -m faults.cluster 1000

soak: $(READY)  ## ten minutes of honest clients among hostile ones, and ten times more requests than can be answered
	PYTHONPATH=tests:. $(BIN)/python -m faults.overload
	PYTHONPATH=tests:. $(BIN)/python -m faults.soak 600

dist: $(READY)  ## wheel and source archive, tried in separate environments: without extras, and with each
	rm -rf dist
	PYTHONPATH=tests $(BIN)/python -m distribution dist

matrix: $(READY)  ## the wheel with every supported Python found on this machine; names the missing ones
	PYTHONPATH=tests $(BIN)/python -m matrix

tag: $(READY)  ## tag this commit with its version, if all versions agree
	PYTHONPATH=tests $(BIN)/python -m releasing

golden: $(READY)  ## record the results of short trials again, after a change that is meant to change them
	PYTHONPATH=tests $(BIN)/python -m golden

mutants: $(READY)  ## put the listed faults in, one at a time, and check that the tests fail; can be resumed
	PYTHONPATH=tests $(BIN)/python -m mutants

peers: $(READY)  ## other libraries on the same ratings, in a separate environment
	$(BIN)/python -m benchmarks.peers .venv-peers

clean:
	rm -rf .venv .venv-peers

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
