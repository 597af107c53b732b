# Shared by the install scripts of the Rust targets in this repository, which source it.
. ../common/install.sh

# rust_program NAME SOURCE..: builds the program in the target's directory into WEIR_INSTALL/bin, unless it was built
# from the same sources. Cargo.lock pins the versions. WEIR_INSTALL/sources keeps the sources' hashes for the lab.
rust_program() {
    local name=$1 program=weir-target-$1 sources
    shift
    need cargo
    sources=$(sha256sum "$@")
    if [[ $(cat "$WEIR_INSTALL/sources" 2>/dev/null) == "$sources" ]]; then
        step "$name is installed"
        return
    fi
    step "$name: building"
    CARGO_TARGET_DIR="$WEIR_INSTALL/build" cargo build --quiet --release --locked --jobs "$jobs"
    mkdir -p "$WEIR_INSTALL/bin"
    install "$WEIR_INSTALL/build/release/$program" "$WEIR_INSTALL/bin/"
    "$WEIR_INSTALL/bin/$program" --version
    echo "$sources" >"$WEIR_INSTALL/sources"
    rm -rf "$WEIR_INSTALL/build"
    step "$name is installed"
}
