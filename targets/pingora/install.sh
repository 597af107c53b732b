#!/usr/bin/env bash
# Builds the pass-through into $WEIR_INSTALL/bin. Needs cargo, a C compiler and cmake (aws-lc, zlib-ng).
# Versions are Cargo.lock's. Two files are those of the target hyper.
set -euo pipefail
: "${WEIR_INSTALL:?the directory to fill}"
for tool in cargo cmake; do
    command -v "$tool" >/dev/null || { echo "$tool is not on the PATH" >&2; exit 1; }
done

# What is there already was built of these sources, or is built again.
sources=$(sha256sum Cargo.toml Cargo.lock build.rs src/*.rs ../hyper/src/{settings,tls}.rs | sha256sum)
if [[ $(cat "$WEIR_INSTALL/sources" 2>/dev/null) == "$sources" ]]; then
    echo "pingora: is there"
    exit 0
fi
echo "pingora: building"
CARGO_TARGET_DIR="$WEIR_INSTALL/build" cargo build --quiet --release --locked --jobs "${WEIR_JOBS:-1}"
mkdir -p "$WEIR_INSTALL/bin"
install "$WEIR_INSTALL/build/release/weir-target-pingora" "$WEIR_INSTALL/bin/"
"$WEIR_INSTALL/bin/weir-target-pingora" --version
echo "$sources" >"$WEIR_INSTALL/sources"
rm -rf "$WEIR_INSTALL/build"
echo "pingora: installed"
