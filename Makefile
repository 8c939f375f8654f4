# Everything a person does with the source tree. `make run` and `make test` are all it takes.

SHELL := /bin/sh
# rustup's programs are found even where no login shell has put them in PATH.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin
CARGO ?= cargo
export CARGO
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
HAS_DISPLAY := $(DISPLAY)$(WAYLAND_DISPLAY)$(WAYLAND_SOCKET)
SAMPLE := Try it: copy a folder on this computer, md5 verified

.DEFAULT_GOAL := help
.PHONY: help run test agent lint fmt doc audit bench msrv rust

help:
	@echo 'make run     install what is missing, build, open the window'
	@echo 'make test    install what the tests need, run all tests'
	@echo 'make agent   the far-end agent as one static file, beside the program'
	@echo 'make lint    format and lint checks     make doc     the documentation of the code'
	@echo 'make audit   licences and bans          make bench   side by side with other programs'
	@echo 'make msrv    the agent with Debian'\''s Rust 1.85'

# The window's crates need Rust 1.95; an older one fails late and with less clear words.
rust:
	@command -v $(CARGO) >/dev/null || { \
		echo 'Rust is missing. Install it from https://rustup.rs, then try again.' >&2; exit 1; }
	@v=$$(rustc --version | sed 's/^rustc 1\.\([0-9]*\).*/\1/'); [ "$$v" -ge 95 ] || { \
		echo "Rust 1.95 or newer is needed, this is $$(rustc --version). Try: rustup update" >&2; exit 1; }

run: rust
ifneq ($(HAS_DISPLAY),)
	@packaging/install-deps.sh build run
else
	@packaging/install-deps.sh build
endif
	@echo 'Building. The first time takes some minutes.'
	@packaging/agent.sh
	$(CARGO) build --locked --release --bin transload
ifneq ($(HAS_DISPLAY),)
	$(TARGET_DIR)/release/transload
else
	@echo 'There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so the window'
	@echo 'cannot open. The bundled sample profile runs on the command line instead:'
	$(TARGET_DIR)/release/transload run '$(SAMPLE)'
endif

test: rust
	@packaging/install-deps.sh build run test
	$(CARGO) test --locked --no-fail-fast

agent: rust
	@packaging/install-deps.sh build
	@packaging/agent.sh

# If you change this, change .ci/run too.
lint: rust
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --no-default-features --lib --bin transload-agent -- \
		-D warnings -D clippy::incompatible_msrv

fmt: rust
	$(CARGO) fmt

doc: rust
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps --document-private-items

audit: rust
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny --locked check licenses bans sources

bench: rust
	@packaging/install-deps.sh build run bench
	@packaging/agent.sh
	$(CARGO) build --locked --release --bin transload
	benches/peers/run.py $(BENCH)

msrv:
	packaging/check-msrv.sh
