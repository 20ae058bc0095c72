# Two commands set everything up on a fresh machine with Rust: `make demo` and `make test`.

CARGO ?= cargo
THRONG := target/release/throng

CLIENTS := crates/throng-cli/tests/clients

.PHONY: all demo pictures test count lint bench dist conformance conformance-tls fuzz miri loom clean page clients

all: $(THRONG)

$(THRONG): FORCE page
	$(CARGO) build --release --locked -p throng-cli

# The pages that the binary carries, if there is npm: the chat of `throng serve channels`, and the
# report of a run. A build without them has pages that say what is missing.
page:
	@if command -v npm >/dev/null; then \
		$(MAKE) --silent --no-print-directory page/dist/index.html ui/dist/index.html \
			|| echo "page: npm could not bundle it"; \
	else echo "page: npm is not here, the pages are left out"; fi

page/dist/index.html: page/package-lock.json page/build.js $(wildcard page/src/*)
ui/dist/index.html: ui/package-lock.json ui/index.html ui/vite.config.ts $(wildcard ui/src/*)
page/dist/index.html ui/dist/index.html:
	cd $(@D)/.. && npm ci --ignore-scripts --prefer-offline --no-audit --no-fund --loglevel=error \
		&& npm run --silent build

# The real clients that tests start: npm's phoenix, a browser, a Python client, tsung.
clients: page
	@sh $(CLIENTS)/install.sh

# Shows in a minute and on one screen what throng does: three ways to accept connections, side by
# side, with as much load as this machine has room for. Succeeds only if the result is valid.
demo: $(THRONG)
	@$(THRONG) lab demo --keep target/demo --report

# The pictures of the README, from real runs, in a minute: docs/pictures. A quiet machine gives fair
# ones.
pictures: $(THRONG) clients
	cd $(CLIENTS)/node && THRONG=$(CURDIR)/$(THRONG) node pictures.js

# Everything that must hold before a change lands: each test binary by itself, the doc tests,
# `make lint` and `make loom`. Failures are listed at the end, with what was slow and what could not
# be judged. Generated cases are the same in every run here; `cargo test` alone makes new ones each
# time. A crate, a suite or a test alone: make test ONLY=walls
test: export PROPTEST_RNG_SEED ?= 1
test: export CARGO := $(CARGO)
# A machine of a pipeline builds once: what a second build would reuse costs it time only.
ifdef CI
test: export CARGO_INCREMENTAL ?= 0
endif
test:
	$(CARGO) build --locked --workspace --bin xtask --quiet
	$(or $(CARGO_TARGET_DIR),target)/debug/xtask test $(ONLY)

lint: export RUSTDOCFLAGS := -D warnings
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets --quiet -- -D warnings
	$(CARGO) doc --locked --workspace --no-deps --quiet

# The instructions of five hot loops, which no neighbour disturbs: at most 3 % over those in
# bench/instructions.json. Renew them: make count COUNT=--write. Those of a release: COUNT=--release
count:
	$(CARGO) build --locked --workspace --bin xtask --quiet
	$(or $(CARGO_TARGET_DIR),target)/debug/xtask count $(COUNT)

# Side by side with its peers, in one run: see bench/README.md.
bench: $(THRONG)
	$(CARGO) run --release --locked --quiet -p xtask -- bench $(BENCH)

# One static file for x86_64 and one for aarch64, packed, in target/dist: packaging/dist.sh. One of
# them alone: make dist MACHINES=aarch64
dist: export CARGO := $(CARGO)
dist: page
	@sh packaging/dist.sh $(MACHINES)

# Every Autobahn case against both of our ends, the compressed ones included: about ten minutes. The
# report is left in target/conformance. `make test` runs a part of it. Needs Python 3.10; the rest is
# installed under target/.
conformance:
	$(CARGO) run --release --locked --quiet -p xtask -- conformance --keep conformance/verdicts.txt

# BoringSSL's test suite against the TLS of both roles, and tlsfuzzer's scripts against the server:
# two minutes. Needs Go, Python, and the sources of both, which git fetches from GitHub:
# conformance/README.md. Not a part of `make test`.
conformance-tls: $(THRONG)
	$(CARGO) run --release --locked --quiet -p xtask -- conformance-tls --keep conformance $(SUITES)

# Every parser that faces the network, for a bounded time each: see fuzz/README.md.
FUZZ_SECONDS ?= 20
FUZZ := cd fuzz && RUSTUP_TOOLCHAIN=nightly $(CARGO) fuzz

fuzz:
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-fuzz
	@$(FUZZ) build --fuzz-dir .
	@set -e; for target in $(basename $(notdir $(wildcard fuzz/targets/*.rs))); do \
		echo "fuzz $$target: $(FUZZ_SECONDS) s"; mkdir -p fuzz/found/$$target; \
		($(FUZZ) run --fuzz-dir . $$target found/$$target corpus/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=16384 -timeout=30 -verbosity=0); \
	done

# Everything that cores share, in every interleaving of their threads:
# `crates/throng-driver/src/models.rs`. A part of `make test`.
loom: export RUSTFLAGS := --cfg loom
loom:
	$(CARGO) test --profile loom --locked --quiet --target-dir target/loom -p throng-driver --lib models::

# The crates without a system call, under an interpreter that finds undefined behaviour. Needs Miri,
# a component of a nightly toolchain.
MIRI_CASES ?= 4
MIRI := $(CARGO) +nightly miri test --locked --quiet --target-dir target/miri

miri: export MIRIFLAGS := -Zmiri-disable-isolation
miri: export PROPTEST_CASES := $(MIRI_CASES)
miri:
	@$(CARGO) +nightly miri --version >/dev/null 2>&1 || { \
		echo "miri: it is not here: rustup toolchain install nightly --component miri rust-src"; exit 1; }
	$(MIRI) -p throng-base -p throng-proto -p throng-pubsub --lib
	$(MIRI) -p throng-driver --lib netlink::

FORCE:
