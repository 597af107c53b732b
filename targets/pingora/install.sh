#!/usr/bin/env bash
# Builds the pass-through into $WEIR_INSTALL/bin. Needs cargo, a C compiler and cmake (aws-lc, zlib-ng). Shares three
# files with the target hyper.
set -euo pipefail
. ../common/rust.sh

need cmake
rust_program pingora Cargo.toml Cargo.lock src/*.rs ../hyper/{build.rs,src/{settings,tls}.rs}
