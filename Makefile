# make lab   opens the course; make test   runs every test; make bench   measures.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
ROOT_FLAG := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: lab test lint bench notebooks gallery clean

lab: $(READY)
	jupyter lab --ServerApp.ip=localhost --ServerApp.root_dir="$(CURDIR)" \
	  --LabApp.default_url=/lab/tree/notebooks/0_start.ipynb $(ROOT_FLAG) $(LAB_FLAGS)

test: $(READY)
	python -m pytest -n 2 --dist loadfile

lint: $(READY)
	ruff check . && ruff format --check .

bench: $(READY)
	python bench/bench.py
	python bench/scaling.py

notebooks: $(READY)
	python tools/execute.py

gallery: $(READY)
	python tools/gallery.py

clean:
	rm -rf $(VENV) .runs

$(READY): requirements.txt pyproject.toml tools/lab_overrides.json
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; say which with: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "This Python cannot make environments; on Debian: sudo apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	mkdir -p $(VENV)/share/jupyter/lab/settings
	cp tools/lab_overrides.json $(VENV)/share/jupyter/lab/settings/overrides.json # no news, no look for updates
	touch $(READY)
