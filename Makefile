# Many Devices, One Model.  `make help` lists what there is.
#
#   PYTHON=/path/to/python3.11   make the environment from this Python
#   DEVICE=cpu|gpu               with this MXNet, whatever the machine has
#   VENV=.venv                   in this folder

VENV ?= .venv
PYTHON ?=
DEVICE ?=
CHAPTERS ?=
STALE ?=
FRESH ?=
FLOAT64 ?=
ARGS ?=
export VENV PYTHON DEVICE

# Kernels start from the environment alone: no kernel, setting, start-up file or
# package of the reader's home takes part, and nothing is written there.
export JUPYTER_PREFER_ENV_PATH := 1
export JUPYTER_CONFIG_DIR := $(abspath $(VENV))/etc/jupyter
export JUPYTER_DATA_DIR := $(abspath $(VENV))/share/jupyter
export IPYTHONDIR := $(abspath $(VENV))/ipython
export PYTHONNOUSERSITE := 1
# Else the debugger in each kernel prints that it cannot see frozen modules.
export PYDEVD_DISABLE_FILE_VALIDATION := 1
unexport PYTHONWARNINGS PYTHONPATH PYTHONHOME PYTHONSTARTUP
# Else each of some hundred processes compiles MXNet's Python anew, in seconds.
unexport PYTHONDONTWRITEBYTECODE

RUN := $(VENV)/bin/python
# More files at a time than cores: half of what they do is waiting. The long ones first:
# tests in the order of tests/conftest.py; chapters by name, not by their number of cells,
# as the longest, of which most waits, has few.
SIDE_BY_SIDE := -n 3 --dist loadfile --no-loadscope-reorder
TESTS_BESIDE = $(subst -n 3,-n 4,$(SIDE_BY_SIDE))
RUN_TESTS := $(RUN) tools/run_tests.py

.DEFAULT_GOAL := help
.PHONY: help book html test check rerun stale chapter stress result bench bench-pipeline bench-peers peers lint-workflows
.PHONY: engine pdf release course slides a11y box map lock doctor check-gpu-set venv clean distclean
.NOTPARALLEL:

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*  ## /  make \1|/p' Makefile | awk -F'|' \
	    '{ printf "%-18s %s\n", $$1, $$2 }'

book: venv  ## show the book, then execute every chapter here, and show each as it is done
	@$(RUN) tools/book.py execute

engine: venv  ## bring Python for the editors in the pages (npm, 14 MB)
	@$(RUN) -m bookkit.lab.engine

html: venv  ## render the stored outputs, execute nothing; check the pages, in a browser
	@$(RUN) -m bookkit.lab.engine
	@$(RUN) tools/book.py render
	@D2L_EXT_HTML=_build/html $(RUN) -m pytest -n 2 tests/book/test_html.py tests/book/test_api_pages.py \
	    tests/book/test_frameworks.py \
	    tests/tools/test_slides.py
	@D2L_EXT_HTML=_build/html $(RUN_TESTS) --about=2 --side-by-side="-n 2" \
	    tests/book/test_pages_in_browser.py tests/book/test_lab_in_browser.py \
	    tests/book/test_two_browsers.py

pdf: venv  ## the whole book as one PDF, or CHAPTERS=chapters/….ipynb (Chromium)
	@$(RUN) tools/pdf.py $(CHAPTERS)

release: venv  ## a zip of the last commit, and of the PDF if there is one
	@$(RUN) tools/release.py

course: venv  ## assignments, and the same with solutions, made from the chapters
	@$(RUN) tools/course.py

slides: venv  ## slides of each chapter's main path, made from the stored outputs
	@$(RUN) tools/slides.py

a11y: html  ## pa11y over every page, in light and dark (Node 20, Chromium)
	@cd tools/a11y && npm ci --silent
	@node tools/a11y/check.mjs _build/html

test: venv  ## style, spelling, the library's tests, every chapter's stored outputs
	@$(RUN) -m ruff check --quiet .
	@$(RUN) -m codespell_lib
	@said=$$($(VENV)/bin/lint-imports --no-cache) || { echo "$$said"; exit 1; }
	@$(RUN_TESTS) --about=14 --side-by-side="$(TESTS_BESIDE)" -pno:nbval tests
	@$(RUN_TESTS) --about=6 --side-by-side="$(SIDE_BY_SIDE)" chapters \
	    --nbval --nbval-current-env --nbval-cell-timeout=1200 \
	    --nbval-sanitize-with=tests/book/nbval_sanitize.cfg

check: venv  ## at every change: style, imports, and the tests that it can reach
	@$(RUN) tools/check.py $(ARGS)

chapter: venv  ## the skeleton of a new one: PART=data_parallel NAME=gossip, and LESSON=1
	@$(RUN) tools/new_chapter.py $(PART) $(NAME) $(if $(LESSON),--lesson)

rerun: venv  ## store what changes in outputs: CHAPTERS=chapters/….ipynb, or STALE=1; FRESH=1: all
	@$(RUN) tools/rerun.py $(if $(STALE),--stale) $(if $(FRESH),--fresh) $(CHAPTERS)

stale: venv  ## name the chapters whose code was changed since their outputs were stored
	@$(RUN) tools/rerun.py --list

box: venv  ## a shell on the head of a cluster of three hosts, here (ARGS="--hosts 5")
	@$(RUN) -m netbox up $(ARGS)
	@$(RUN) -m netbox shell head || true
	@$(RUN) -m netbox down

stress: venv  ## 200 jobs of the launcher, 120 with a killed or stopped process, 30 faulty rings
	@$(RUN) tests/helpers/stress_launch.py cut 120
	@$(RUN) tests/helpers/stress_launch.py jobs 100
	@$(RUN) tests/helpers/stress_launch.py jobs 100 --resend
	@$(RUN) tests/helpers/stress_ring.py 30

bench: venv  ## measure two devices against one (options: ARGS=…)
	@$(RUN) -m benchmarks.data_parallel.lenet $(ARGS)

bench-pipeline: venv  ## measure the LSTM on one device and as a pipeline on two
	@$(RUN) -m benchmarks.pipeline.lstm_pipeline $(ARGS)

race: venv  ## seconds until a network has learned: each change of a step, and what it is worth
	@MXNET_CPU_PARALLEL_RAND_COPY=16 $(RUN) -m benchmarks.data_parallel.ladder $(ARGS)

result: venv  ## measure anew what the book quotes as NAME=seldom_10, and store it
	@$(RUN) -m bookkit.stored $(NAME)

bench-peers:  ## PyTorch and JAX in .venv-bench, for the comparison (Python 3.11)
	@python3.11 -m venv .venv-bench
	@.venv-bench/bin/python -m pip install --quiet -r requirements/bench.txt

peers: venv  ## run each tab of PyTorch and JAX, compare, store: NAME=part/name, FLOAT64=1
	@[ -n "$$D2L_EXT_PEER_PYTHON" ] || [ -x .venv-bench/bin/python ] || $(MAKE) bench-peers
	@$(RUN) -m peers $(if $(FLOAT64),--float64) $(NAME)

lint-workflows:  ## check .github, containers and .devcontainer (Python 3.11)
	@tools/lint_workflows.sh

map: venv  ## write the map of the library into the README, from its docstrings
	@$(RUN) tools/house.py

licences: venv  ## write reference/licences.md anew (other environments: ARGS=…/site-packages)
	@$(RUN) tools/licences.py $(ARGS)

lock:  ## pin all packages anew, with uv (newest: ARGS=--upgrade)
	@tools/lock.sh $(ARGS)

doctor:  ## say whether the book can run here, on what, and why not on more
	@if [ -x $(RUN) ]; then python=$(RUN); \
	else python=$$(NEED_VENV=no tools/find_python.sh); fi && \
	$$python -m bookkit.doctor $(ARGS)

check-gpu-set:  ## install the GPU set beside this, check that it loads (2.4 GB to download)
	@tools/check_gpu_set.sh

venv:  ## make the environment, if it is not there; the others do this themselves
	@tools/make_venv.sh

clean:  ## remove what was built, and caches
	@rm -rf _build .pytest_cache .ruff_cache .hypothesis
	@find . -name '.venv*' -prune -o -name __pycache__ -prune -exec rm -rf {} +

distclean: clean  ## remove the environment as well
	@if [ ! -e "$(VENV)" ] || [ -e "$(VENV)/.made-by-make" ]; then \
	    rm -rf "$(VENV)" *.egg-info; \
	else echo "$(VENV) was not made by make; it stays." >&2; exit 1; fi
