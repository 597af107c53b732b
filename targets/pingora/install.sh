#!/usr/bin/env bash
# Builds the pass-through into $WEIR_INSTALL/bin. Needs cargo, a C compiler and cmake (aws-lc, zlib-ng).
# Versions are Cargo.lock's.
set -euo pipefail
: "${WEIR_INSTALL:?the directory to fill}"
for tool in cargo cmake; do
    command -v "$tool" >/dev/null || { echo "$tool is not on the PATH" >&2; exit 1; }
done
echo "pingora: building"
CARGO_TARGET_DIR="$WEIR_INSTALL/build" cargo build --quiet --release --locked --jobs "${WEIR_JOBS:-1}"
mkdir -p "$WEIR_INSTALL/bin"
install "$WEIR_INSTALL/build/release/weir-target-pingora" "$WEIR_INSTALL/bin/"
"$WEIR_INSTALL/bin/weir-target-pingora" --version
echo "pingora: installed"
