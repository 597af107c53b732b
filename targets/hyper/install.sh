#!/usr/bin/env bash
# Builds the pass-through into $WEIR_INSTALL/bin. Needs cargo and a C compiler (aws-lc). Versions are Cargo.lock's.
set -euo pipefail
: "${WEIR_INSTALL:?the directory to fill}"
command -v cargo >/dev/null || { echo "cargo is not on the PATH" >&2; exit 1; }

# What is there already was built of these sources, or is built again.
sources=$(sha256sum Cargo.toml Cargo.lock build.rs src/*.rs | sha256sum)
if [[ $(cat "$WEIR_INSTALL/sources" 2>/dev/null) == "$sources" ]]; then
    echo "hyper: is there"
    exit 0
fi
echo "hyper: building"
CARGO_TARGET_DIR="$WEIR_INSTALL/build" cargo build --quiet --release --locked --jobs "${WEIR_JOBS:-1}"
mkdir -p "$WEIR_INSTALL/bin"
install "$WEIR_INSTALL/build/release/weir-target-hyper" "$WEIR_INSTALL/bin/"
"$WEIR_INSTALL/bin/weir-target-hyper" --version
echo "$sources" >"$WEIR_INSTALL/sources"
rm -rf "$WEIR_INSTALL/build"
echo "hyper: installed"
