# What the install scripts of targets that are Rust programs of this repository share; they source it.
. ../common/install.sh

# rust_program NAME SOURCE..: builds the program in the target's folder into WEIR_INSTALL/bin. What is there already was
# built of these sources, or is built again; versions are Cargo.lock's. The sources' hashes stay in WEIR_INSTALL/sources,
# where the lab reads them.
rust_program() {
    local name=$1 program=weir-target-$1 sources
    shift
    need cargo
    sources=$(sha256sum "$@")
    if [[ $(cat "$WEIR_INSTALL/sources" 2>/dev/null) == "$sources" ]]; then
        step "$name: is there"
        return
    fi
    step "$name: building"
    CARGO_TARGET_DIR="$WEIR_INSTALL/build" cargo build --quiet --release --locked --jobs "$jobs"
    mkdir -p "$WEIR_INSTALL/bin"
    install "$WEIR_INSTALL/build/release/$program" "$WEIR_INSTALL/bin/"
    "$WEIR_INSTALL/bin/$program" --version
    echo "$sources" >"$WEIR_INSTALL/sources"
    rm -rf "$WEIR_INSTALL/build"
    step "$name: installed"
}
