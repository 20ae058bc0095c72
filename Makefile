# Two commands set everything up on a fresh machine with Rust: `make demo` and `make test`.

CARGO ?= cargo
THRONG := target/release/throng

.PHONY: all demo test lint bench conformance clean

all: $(THRONG)

$(THRONG): FORCE
	$(CARGO) build --release --locked -p throng-cli

# A real experiment with both ends on this machine: the Stressgrid article, sized to it, in about a minute.
demo: $(THRONG)
	$(THRONG) lab stressgrid-100k --seconds 12

# Everything that must hold before a change lands.
test: lint
	$(CARGO) test --locked --workspace --quiet

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets --quiet -- -D warnings

# Side by side with its peers, in one run: see bench/README.md.
bench: $(THRONG)
	$(CARGO) run --release --locked --quiet -p xtask -- bench $(BENCH)

FORCE:
