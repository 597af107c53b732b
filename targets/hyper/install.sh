#!/usr/bin/env bash
# Builds the pass-through into $WEIR_INSTALL/bin. Needs cargo and a C compiler (aws-lc).
set -euo pipefail
. ../common/rust.sh

rust_program hyper Cargo.toml Cargo.lock build.rs src/*.rs
