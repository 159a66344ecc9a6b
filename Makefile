# Every target does its own set-up: a virtual environment in .venv, the dependencies, a check for Java 17.
SHELL := /bin/bash
unexport PYTHONDONTWRITEBYTECODE
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench
DOCS_STAMP := $(VENV)/.installed-docs
EXTRAS := spark,cli,demo,hdfs,objectstore,test
PYTEST := $(BIN)/python -m pytest

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml scripts/check-python
	@scripts/check-python $(PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing dependencies into $(VENV) (once; a minute or two)"
	@scripts/pip-install $(BIN)/python --upgrade pip
	@scripts/pip-install $(BIN)/python --editable '.[$(EXTRAS)]'
	@touch $@

.PHONY: setup
setup: $(STAMP) ## Create .venv with everything in it
	@scripts/ensure-java

.PHONY: demo
demo: setup ## Run the main job: real flights through Spark Connect into a Paimon table, compacted and looked up (PAIMON_DEMO_STORE=s3: on S3)
	@$(if $(filter s3,$(PAIMON_DEMO_STORE)),$(BIN)/python -m tests.stores) $(BIN)/python -m pyspark_paimon.demo $(if $(filter s3,$(PAIMON_DEMO_STORE)),--table s3://tests/warehouse/flights)

.PHONY: test
test: setup lint ## Pass the tests: lint, types, quick tests in process and over Spark Connect (at most 6 minutes on 2 cores)
	@scripts/run-tests $(BIN)/python fast

.PHONY: test-all
test-all: setup lint ## Pass all tests in process and over Spark Connect: before a release or a merge (at most 25 minutes on 2 cores)
	@scripts/run-tests $(BIN)/python all

.PHONY: test-core
test-core: $(STAMP) ## Pass the quick tests of the core in a copy of this tree without its plugins
	@scripts/test-core $(BIN)/python

.PHONY: check
check: $(STAMP) ## Check what changed since main: lint, types and the nearest tests (under 90 s on 2 cores)
	@$(BIN)/python -m tests.check

.PHONY: interop
interop: setup ## Prove the formats against Paimon's Java engine and pypaimon, all features, in both directions and in turns
	@PYSPARK_PAIMON_INTEROP=check $(PYTEST) -q -n 2 --dist worksteal tests/interop

STORE_TESTS := $(addprefix tests/pyspark_paimon/,jobs local stream table)
.PHONY: test-store
test-store: setup ## Run the tests of tables on object stores and catalogs (servers by Maven, Azurite by npm, versitygw by Go), and the long ones of stores
	@$(PYTEST) -q -n 2 -m "not spark and not interop" tests/manifest/storage $(addprefix tests/pyspark_paimon/table/,test_object_store_tables.py test_object_store_faults.py test_azure_tables.py test_versity_tables.py) tests/plugins/hdfs tests/plugins/catalogs
	@$(PYTEST) -q -m spark $(addprefix tests/spark/,test_spark_object_store.py test_spark_on_store.py test_spark_storage_options.py test_spark_exactly_once_store.py test_spark_reads_store.py test_spark_hdfs.py)
	@PAIMON_TEST_STORE=s3 $(PYTEST) -q -n 2 -m "not spark and not interop and not long" $(STORE_TESTS)
	@PAIMON_TEST_STORE=azure $(PYTEST) -q -n 2 -m "not spark and not interop and not long" $(STORE_TESTS)

.PHONY: test-long
test-long: setup ## Run the long tests too (races, soaks), and properties with more examples of a new seed, which is printed
	@$(PYTEST) -q --tier nightly -m "long or hypothesis"

SEEDS ?= 10000-11000
.PHONY: oracle
oracle: setup ## Ask random tables of SEEDS (10000-11000) random questions, and compare the answers with a model
	@$(BIN)/python -m tests.oracle --seeds $(SEEDS)

.PHONY: test-pages
test-pages: setup ## Run the tests of the pages in a real Chromium, which is installed where rights allow
	@scripts/ensure-chromium
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[pages]'
	@PYSPARK_PAIMON_BROWSER=needed $(PYTEST) -q tests/plugins/page

.PHONY: test-thin
test-thin: setup ## Call every public method at a server of this checkout, from thin clients of every Python here (3.11 to 3.13), pandas 2
	@$(BIN)/python tests/spark/thin_clients.py

PYTHONS ?= 3.11 3.12 3.13 3.14
.PHONY: test-pythons
test-pythons: $(STAMP) ## Run the demo and the tests in process on every Python here (PYTHONS="3.12 3.13" chooses)
	@scripts/ensure-java
	@scripts/test-pythons $(EXTRAS) $(PYTHONS)

LOWEST := .venv-lowest
.PHONY: test-lowest
test-lowest: $(STAMP) ## Run the tests in process once at the lowest versions of all dependencies (PYTHON=... chooses the interpreter)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv venv --quiet --clear --python $(PYTHON) $(LOWEST)
	@VIRTUAL_ENV=$(LOWEST) $(BIN)/uv pip install --quiet --resolution lowest-direct --editable '.[cli,client,demo,objectstore,test]'
	@VIRTUAL_ENV=$(LOWEST) $(BIN)/uv pip list | grep -E "^(fastavro|jinja2|numpy|pandas|polars|pyarrow|pydantic|pyroaring|sqlglot|xxhash|zstandard) "
	@$(LOWEST)/bin/python -m pytest -q -n 2 --dist worksteal --tier all -m "not spark" --ignore=tests/spark --ignore=pyspark_paimon/spark/read/stream_reader.py --deselect tests/test_docs.py

SPARK ?= 4.1.0
OTHER_SPARK := .venv-spark
.PHONY: test-spark
test-spark: setup ## Write, change and ask tables with another Spark (SPARK=4.1.0, the oldest that is allowed)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(OTHER_SPARK)
	@VIRTUAL_ENV=$(OTHER_SPARK) $(BIN)/uv pip install --quiet --editable '.[$(EXTRAS)]' 'pyspark[connect]==$(SPARK)' 'pandas<3'
	@$(OTHER_SPARK)/bin/python -m pytest -q --tier all -m spark $(addprefix tests/spark/test_spark_,$(addsuffix .py,names table delete_and_update reads endings))

MINUTES ?= 30
.PHONY: torture
torture: setup ## Kill, fail, race and corrupt for MINUTES (30), and show what was tried and what went wrong; failures can be replayed
	@$(BIN)/python -m tests.torture --minutes $(MINUTES)

NUMBER ?= 500
SEED ?= 1
.PHONY: mutants
mutants: setup ## Change the core at NUMBER (500) random places of SEED (1), and show the changes that no test notices
	@$(BIN)/python -m tests.mutants --number $(NUMBER) --seed $(SEED)

.PHONY: lint
lint: $(STAMP) ## Check style, format, types and the language of docstrings, errors and docs
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy
	@$(BIN)/python scripts/prose.py

.PHONY: format
format: $(STAMP) ## Format the code and mend what ruff can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

$(BENCH_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

$(DOCS_STAMP): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

.PHONY: docs
docs: $(DOCS_STAMP) ## Build the documentation as a site in artifacts/site, strict
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "the site: artifacts/site/index.html"

.PHONY: dist-check
dist-check: $(STAMP) ## Build sdist and wheel, and try each in a fresh environment
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dist]'
	@scripts/check-dist $(BIN)/python

.PHONY: bench-quick
bench-quick: setup $(BENCH_STAMP) ## Measure every workload beside the peers on a tenth of the rows, answers checked (minutes)
	@$(BIN)/python -m benchmarks run --profile quick

.PHONY: bench
bench: setup $(BENCH_STAMP) ## Measure everything at full size (an hour at most; run again to go on) and put the figures into the docs
	@$(BIN)/python -m benchmarks run --profile full --minutes 55
	@$(BIN)/python -m benchmarks docs --profile full

FILES ?= 1000000
.PHONY: bench-scaling
bench-scaling: setup $(BENCH_STAMP) ## Measure how cost grows: 10,000 to FILES (1,000,000) files; 1, 6 and 24 million rows; 10, 100 and 1,000 commits; history; unusual shapes
	@$(BIN)/python -m benchmarks.metadata_scaling --files 10000,100000,$(FILES)
	@$(BIN)/python -m benchmarks.history
	@$(BIN)/python -m benchmarks.shapes
	@$(BIN)/python -m benchmarks.scaling

ROWS ?= 50000000
.PHONY: bench-memory
bench-memory: setup $(BENCH_STAMP) ## Stream in, compact, look up and delete a tenth of ROWS (50,000,000) rows under 1.5 GB, in process and in Spark workers
	@$(BIN)/python -m benchmarks.memory_limit --rows $(ROWS)
	@$(BIN)/python -m benchmarks.memory_limit --rows $(ROWS) --spark

.PHONY: clean
clean: ## Remove what the targets made
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-data spark-warehouse artifacts bench-work
