# The two commands of a fresh machine: `make demo` and `make test`. Everything lives in .venv.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
QUIETLY := --quiet --disable-pip-version-check
PIP := $(BIN)/python -m pip install $(QUIETLY)
BRING_PIP := $(BIN)/python -m ensurepip --default-pip >/dev/null || { \
  echo "Python came without ensurepip: install its venv module (Debian: apt-get install python3-venv)." >&2; \
  exit 1; }
MODEL ?=
PORT ?= 2024
PAGE ?= 8765
CHAT ?=
INBOX ?=

# The tests start some hundred interpreters: without bytecode each compiles LangGraph anew, which
# takes as long as most tests.
unexport PYTHONDONTWRITEBYTECODE

# Workers take over what others have left, so that a server started for a folder is used there.
# Tests against it mostly wait, so there are more workers than cores.
PYTEST := $(BIN)/python -m pytest --dist worksteal
# Storage, locks and warnings as they are without strict msgpack, which the tests otherwise have.
PERMISSIVE := tests/engine/test_answering.py tests/engine/test_plain_state.py \
  tests/history/test_exporting.py tests/reliability/test_storage_failures.py \
  tests/reliability/test_surroundings.py tests/threads/test_first_answer.py

.PHONY: help install format lint types release mypy pyright postgres chromium nginx test long compat demo web studio bench real crash \
  races load docs site notebooks pictures

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/.installed ## create .venv and install everything the other commands need

# The demo runs in this folder, so what it needs is all but the package itself, whose building would
# take a build environment of its own.
DEMO_NEEDS := import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  extras = project["optional-dependencies"]; \
  print(*project["dependencies"], *extras["cli"], *extras["sqlite"], sep="\n")

# Stamps in one environment: what the demo, Studio or the site needs, and everything. To compile a few
# thousand modules for a demo that loads some hundred takes longer than the demo, and so does to bring
# pip into the environment: the machine's own pip fills it, where there is one that can.
# A candidate counts only if it runs: version managers leave shims that do not.
.venv/.demo: pyproject.toml
	@for python in python3 python3.13 python3.12 python3.11 ''; do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
	done; \
	[ -n "$$python" ] || { echo "No Python 3.11 or newer found: install one, then run make again." >&2; exit 1; }; \
	"$$python" -m venv --without-pip .venv; \
	pip=("$$python" -m pip --python $(BIN)/python); \
	"$${pip[@]}" --version >/dev/null 2>&1 || { $(BRING_PIP); pip=($(BIN)/python -m pip); }; \
	$(BIN)/python -c '$(DEMO_NEEDS)' >.venv/demo.txt; \
	"$${pip[@]}" install $(QUIETLY) --no-compile --requirement .venv/demo.txt
	@touch $@

.venv/.pip: .venv/.demo
	@$(BRING_PIP)
	@touch $@

.venv/.studio: .venv/.pip
	$(PIP) --no-compile --editable '.[cli,sqlite,server]'
	@touch $@

.venv/.web: .venv/.pip
	$(PIP) --no-compile --editable '.[cli,sqlite,web]'
	@touch $@

.venv/.site: .venv/.pip
	$(PIP) --no-compile --editable '.[docs]'
	@touch $@

.venv/.installed: .venv/.pip
	$(PIP) --editable '.[dev]'
	@touch .venv/.studio .venv/.web .venv/.site $@

format: install ## rewrite the code in the house format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lint: install ## check format and lint rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install ## check types with mypy and pyright, both strict
	@$(MAKE) --no-print-directory --jobs=2 --output-sync mypy pyright

mypy pyright:
	$(BIN)/$@

# The tests start a server of their own; only its programs must be there.
postgres:
	@if ! command -v initdb >/dev/null && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then \
	  if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	    echo "The tests need PostgreSQL's programs (initdb, pg_ctl): install PostgreSQL first." >&2; exit 1; \
	  fi; \
	  apt-get update -qq; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql; \
	fi

# The page is tested in a real browser.
chromium:
	@if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then \
	  if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	    echo "The tests need Chromium and chromedriver: install them first." >&2; exit 1; \
	  fi; \
	  apt-get update -qq; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver; \
	fi

# The page is tested behind a real proxy.
nginx:
	@if ! command -v nginx >/dev/null && [ ! -x /usr/sbin/nginx ]; then \
	  if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	    echo "The tests need nginx: install it first." >&2; exit 1; \
	  fi; \
	  apt-get update -qq; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nginx-light; \
	fi

test: lint types postgres chromium nginx ## lint, types, and the short part of the tests (see tests/parts.py)
	LANGGRAPH_STRICT_MSGPACK=false $(PYTEST) -n 4 --part short $(PERMISSIVE)
	$(PYTEST) -n 3 --part short --durations 10

slow: install postgres chromium nginx ## the tests that take seconds each: many programs, browsers, servers
	$(PYTEST) -n 4 --part slow --durations 10

long: install postgres chromium nginx ## the other part of the tests: every combination, and more random draws
	$(PYTEST) -n 3 --part long --durations 10

release: ## check VERSION=x.y.z: changelog, pages, sdist, wheel; write the notes; print how to tag and upload
	.ci/release $(VERSION)

compat: install postgres chromium nginx ## the short part on the lowest and newest versions, oldest and newest Python
	.ci/compat

# Commands that ask a served model begin with this: without an address, a small model is started.
SMALL := $(HOME)/.cache/graph-retry
SERVED := if [ -z "$${OPENAI_BASE_URL:-}" ]; then \
    $(PIP) xllamacpp; mkdir -p $(SMALL); \
    echo "Starting a small model. At the first time 470 MB are downloaded; its log: $(SMALL)/server.log"; \
    $(BIN)/python -m bench.real.serve >$(SMALL)/server.log 2>&1 & server=$$!; \
    trap "kill $$server" EXIT; \
    export OPENAI_BASE_URL=http://127.0.0.1:8095/v1; \
    until curl -fs $$OPENAI_BASE_URL/models >/dev/null; do kill -0 $$server; sleep 1; done; \
  fi;

demo: .venv/.demo $(if $(MODEL),.venv/.pip) ## review a failing model call in the terminal; MODEL=local (or openai:...) asks a real model
	@$(if $(filter local,$(MODEL)),$(SERVED)) \
	$(BIN)/python -m examples.demo $(if $(MODEL),--model '$(MODEL)') || [ $$? = 130 ] # Ctrl-C

web: .venv/.web ## answer the demo's reviews in a browser; PAGE=8766 for another port
	@$(BIN)/python -m examples.reviews --port $(PAGE) || [ $$? = 130 ] # Ctrl-C

# Nothing is sent anywhere: no analytics, no version check, no traces. Studio is a page that comes
# from the web and talks to the server on this machine. The server's own log would scroll the
# addresses away: LOG_LEVEL=INFO shows it.
studio: export LANGGRAPH_CLI_NO_ANALYTICS := 1
studio: export LANGGRAPH_NO_VERSION_CHECK := 1
studio: export LANGSMITH_TRACING := false
studio: export LOG_LEVEL ?= WARNING
studio: .venv/.studio ## serve the graphs of nodes/ to Studio and chat UIs; PORT=2025 elsewhere
	@url=http://127.0.0.1:$(PORT); \
	echo "Studio:         https://smith.langchain.com/studio/?baseUrl=$$url"; \
	echo "Agent Chat UI:  deployment URL $$url, graph id extract, chat, image or review_agent"; \
	echo "Agent Inbox:    deployment URL $$url, graph id as above"; \
	echo "API docs:       $$url/docs"; \
	echo 'Example input:  {"messages": [{"role": "user", "content": "Vendor: Ada\nTotal: EUR 7.25\nDue: 1 May 2030"}]}'; \
	echo "What to try:    docs/studio.md. Ctrl-C stops the server and keeps the threads."
	@exec $(BIN)/python -m langgraph_cli dev --no-browser --no-reload \
	  --host 127.0.0.1 --port $(PORT)

bench: install ## measure, beside other libraries: print all tables and write bench/results.md
	$(PIP) '.[bench]'
	@! command -v npm >/dev/null || npm install --silent --no-save --prefix .venv jsonrepair
	$(BIN)/python -m bench.report | tee bench/results.tmp
	@mv bench/results.tmp bench/results.md

real: install ## ask a real model (OPENAI_BASE_URL=…; else a small one is started, 470 MB at the first time), print tables
	@$(SERVED) $(BIN)/python -m bench.real

crash: install postgres ## end a process at every write of every scene, and compare what goes on
	$(BIN)/python -m bench.crash

races: install postgres ## let 8 processes answer the same reviews, on SQLite and PostgreSQL
	$(BIN)/python -m bench.races

load: install postgres ## 1,000 waiting threads, a wide `Send`, and what months bring
	$(BIN)/python -m bench.load
	$(BIN)/python -m bench.months
	$(BIN)/python -m bench.fleet

docs: install ## run every example of README, docs, docstrings, examples and notebooks
	$(BIN)/python -m pytest tests/test_docs.py tests/test_examples.py tests/test_notebooks.py

# Without its advice about other programs, and strictly: a dead link or an unlisted page fails.
site: export NO_MKDOCS_2_WARNING := 1
site: .venv/.site ## build the site into site/; open site/index.html, no network needed
	$(BIN)/python -m mkdocs build --strict --quiet

notebooks: install ## run the notebooks, and keep their outputs in them
	$(BIN)/jupyter execute --inplace --NbClient.record_timing=False notebooks/*.ipynb

# CHAT=http://127.0.0.1:3000 and INBOX=… are clients that run, built from their own repositories.
pictures: install chromium ## draw the pictures of the terminal and the page anew, with CHAT=url and INBOX=url those of clients
	$(BIN)/python -m docs.images.draw
	$(BIN)/python -m docs.images.page
	$(if $(CHAT)$(INBOX),$(BIN)/python -m docs.images.clients \
	  $(if $(CHAT),--chat '$(CHAT)') $(if $(INBOX),--inbox '$(INBOX)'))
