# Everything runs in a virtual environment that `make` creates; it needs only Python >= 3.11.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/uv pip install --quiet --system-certs --compile-bytecode --python $(BIN)/python -c locked.txt \
	--build-constraints locked.txt
# Tests start hundreds of processes; without bytecode files, each would compile all modules.
unexport PYTHONDONTWRITEBYTECODE
SOURCES := trainjob operator hack tests examples benchmarks

.DEFAULT_GOAL := help
.PHONY: help demo check lint unit test all-tests kind e2e kind-down soak mutation generate lock platforms chart dist manifests sbom bench gpu-carry clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-9s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/train.stamp  ## Train the text example and show its scores
	$(BIN)/python examples/make_docstrings.py
	$(BIN)/trainjob run examples/docstrings.yaml --fresh

check: $(VENV)/dev.stamp  ## Lint, types, imports and the quick unit tests, in three minutes; needs only Python
	@$(MAKE) --no-print-directory --jobs=2 lint unit

unit: $(VENV)/dev.stamp  ## Run the quick unit tests
	$(BIN)/python -m pytest tests/unit -m "not slow" -n 3 --dist loadfile --no-loadscope-reorder

test: $(VENV)/dev.stamp  ## Run all tests except end-to-end and, without NIGHTLY=1, nightly ones; needs Go and a browser
	PYTHONPATH=hack $(BIN)/python -m servers.programs $(if $(NIGHTLY),kueue)
	@$(MAKE) --no-print-directory --jobs=2 lint all-tests

all-tests: $(VENV)/dev.stamp  # together, so that short unit tests fill the end, when other processes have nothing left to do
	$(BIN)/python -m pytest tests/unit tests/browser tests/control_plane tests/chart tests/training \
		$(if $(NIGHTLY),,-m "not nightly") -n 3 --dist loadfile --no-loadscope-reorder

kind: $(VENV)/dev.stamp  ## Create or update a kind cluster with KubeRay, MinIO and this checkout's images and chart
	PYTHONPATH=hack $(BIN)/python -m kind up

e2e: $(VENV)/dev.stamp  ## Run the end-to-end tests on that cluster, or on KUBECONFIG's with the registry REGISTRY; CORE=1: the main ones
	PYTHONPATH=hack $(BIN)/python -m kind $(if $(REGISTRY),install,up)
	$(BIN)/python -m pytest tests/e2e $(if $(CORE),-m core) -n 3 --dist loadfile --no-loadscope-reorder

kind-down: $(VENV)/dev.stamp  ## Remove that cluster
	PYTHONPATH=hack $(BIN)/python -m kind down

soak: $(VENV)/dev.stamp  ## Run fault tests of operator and storage with more jobs, and randomized tests with more examples
	SOAK=1 $(BIN)/python -m pytest -n 2 --dist worksteal \
		tests/control_plane/test_accepted.py tests/control_plane/test_admission.py \
		tests/control_plane/test_faults.py tests/control_plane/test_leadership.py tests/control_plane/test_stories.py \
		tests/training/test_s3_folders.py tests/training/test_object_storage.py tests/unit/runs/test_owner.py \
		tests/unit/api tests/unit/crd tests/unit/data tests/unit/operator tests/unit/predictor

mutation: $(VENV)/dev.stamp  ## Mutate the code and count which mutations the tests notice; FILES: only these files
	PYTHONPATH=hack $(BIN)/python hack/mutation.py $(FILES)

lint: $(VENV)/dev.stamp  ## Lint, and check types and import contracts
	$(BIN)/ruff check --no-cache $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/pyrefly check --summary=none

generate: $(VENV)/dev.stamp  ## Generate the CRD, the reference pages and the schema of the chart's values
	$(BIN)/python -m trainjob.crd
	$(BIN)/python hack/generate.py

lock: $(VENV)/dev.stamp  ## Write locked.txt: the packages of constraints.txt with the digests of their files
	$(BIN)/uv pip compile --quiet --system-certs --universal --no-deps --generate-hashes --no-header --no-annotate \
		constraints.txt --output-file locked.txt
	@$(MAKE) --no-print-directory platforms

platforms: $(VENV)/dev.stamp  ## Check that both images can be built for amd64 and arm64 without a compiler
	set -e; for machine in x86_64 aarch64; do $(BIN)/uv pip install --quiet --dry-run --system-certs --only-binary :all: \
		--python-version 3.11 --python-platform $$machine-unknown-linux-gnu --target build/none -r pyproject.toml \
		--extra operator --extra train --extra compress --extra serve --extra head --extra mlflow -c locked.txt; done

chart: $(VENV)/dev.stamp  ## Check the Helm chart and pack it into dist/
	helm=$$(PYTHONPATH=hack $(BIN)/python -c 'from servers.programs import program; print(program("helm"))'); \
		$$helm lint --strict charts/trainjob && $$helm package charts/trainjob --destination dist

dist: $(VENV)/dev.stamp  ## Build the Python package into dist/
	$(BIN)/uv build --quiet --system-certs --build-constraints locked.txt --out-dir dist

manifests: $(VENV)/dev.stamp  ## Write dist/install.yaml, the chart's objects for clusters without Helm
	PYTHONPATH=hack $(BIN)/python hack/install_manifest.py dist/install.yaml

sbom: $(VENV)/dev.stamp  ## Write bills of materials (CycloneDX) of the images of `make kind` to build/
	PYTHONPATH=hack $(BIN)/python -m kind.sbom trainjob-operator trainjob-trainer

bench: $(VENV)/dev.stamp  ## Run most benchmarks (see docs/benchmarks.md)
	$(BIN)/python examples/make_docstrings.py
	$(BIN)/python benchmarks/baseline_tfidf.py examples/data/docstrings/train.csv examples/data/docstrings/test.csv \
		--text docstring --label package
	set -e; for name in text_throughput beside_hf loop_overhead startup images memory language_model small_models serving tuning; do $(BIN)/python benchmarks/$$name.py; done
	PYTHONPATH=hack:tests $(BIN)/python benchmarks/operator_figures.py

gpu-carry: $(VENV)/dev.stamp  ## Pack the packages that benchmarks/gpu.py needs on a machine without network
	$(BIN)/python benchmarks/gpu_carry.py

clean:  ## Remove the virtual environment and generated files
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp says that its extras are installed as pyproject.toml and locked.txt want them.
$(VENV)/train.stamp: $(BIN)/uv pyproject.toml locked.txt
	@echo "Installing trainjob into $(VENV) (PyTorch and Ray take a few minutes)"
	$(INSTALL) -e '.[train]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/train.stamp
	$(INSTALL) -e '.[train,compress,serve,operator,dev]'
	@touch $@

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "trainjob needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "Python's venv module is missing: install it (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	sed -n '/^uv==/,/[^\\]$$/p' locked.txt > $(VENV)/uv.txt
	$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
