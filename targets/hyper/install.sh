#!/usr/bin/env bash
# Builds the pass-through into $WEIR_INSTALL/bin. Needs cargo and a C compiler (aws-lc). Versions are Cargo.lock's.
set -euo pipefail
: "${WEIR_INSTALL:?the directory to fill}"
command -v cargo >/dev/null || { echo "cargo is not on the PATH" >&2; exit 1; }
echo "hyper: building"
CARGO_TARGET_DIR="$WEIR_INSTALL/build" cargo build --quiet --release --locked --jobs "${WEIR_JOBS:-1}"
mkdir -p "$WEIR_INSTALL/bin"
install "$WEIR_INSTALL/build/release/weir-target-hyper" "$WEIR_INSTALL/bin/"
"$WEIR_INSTALL/bin/weir-target-hyper" --version
echo "hyper: installed"
