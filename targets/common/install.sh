# Shared by the install scripts, which source it. Needs no root, and writes nothing outside WEIR_INSTALL except the
# package tools' caches.

: "${WEIR_INSTALL:?the directory to fill; weir targets install sets it}"
jobs=${WEIR_JOBS:-$(nproc)}

step() {
    printf '%s\n' "$*"
}

fail() {
    printf 'failed: %s\n' "$*" >&2
    exit 1
}

# need PROGRAM..: fails unless all of them are installed.
need() {
    local program missing=()
    for program in "$@"; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    ((${#missing[@]} == 0)) || fail "not on the PATH: ${missing[*]}"
}

# quietly LOG COMMAND..: logs a build to a file; on failure prints its last lines.
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2 && fail "$1 (full log: $log)"; }
}

# crate NAME REQUIREMENT: fetches the source of a crate; cargo verifies the registry's checksum. Sets crate_directory
# and crate_version.
crate() {
    local name=$1 requirement=$2 place=$WEIR_INSTALL/build/crate-$1 manifest
    rm -rf "$place" && mkdir -p "$place/src" && : >"$place/src/lib.rs"
    # Its own workspace: WEIR_INSTALL may be inside another one.
    printf '[package]\nname = "source"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n[dependencies]\n%s = "%s"\n' \
        "$name" "$requirement" >"$place/Cargo.toml"
    (cd "$place" && quietly "$place/log" cargo vendor --versioned-dirs vendor)
    crate_directory=$(echo "$place/vendor/$name"-[0-9]*)
    crate_version=${crate_directory##*/"$name"-}
}

# aws_lc REQUIREMENT: builds static, optimised libssl and libcrypto from the source in the crate aws-lc-sys into
# WEIR_INSTALL/aws-lc. Reuses the build of an interrupted install of the same version. Sets aws_lc_directory.
aws_lc() {
    local build=$WEIR_INSTALL/build/aws-lc
    aws_lc_directory=$WEIR_INSTALL/aws-lc
    crate aws-lc-sys "$1"
    if [[ $(cat "$aws_lc_directory/crate" 2>/dev/null) == "$crate_version" ]]; then
        step "AWS-LC of aws-lc-sys $crate_version is built"
        return
    fi
    step "building AWS-LC of aws-lc-sys $crate_version"
    rm -rf "$aws_lc_directory" "$build"
    # The crate includes the assembly that Perl and Go would generate.
    quietly "$WEIR_INSTALL/build/aws-lc-configure.log" cmake -S "$crate_directory/aws-lc" -B "$build" \
        -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DBUILD_TOOL=OFF \
        -DDISABLE_PERL=ON -DDISABLE_GO=ON -DCMAKE_INSTALL_PREFIX="$aws_lc_directory" -DCMAKE_INSTALL_LIBDIR=lib
    quietly "$WEIR_INSTALL/build/aws-lc-build.log" cmake --build "$build" --parallel "$jobs" --target install
    printf '%s\n' "$crate_version" >"$aws_lc_directory/crate"
}

# debian_source PACKAGE PATTERN SUITE..: unpacks the newest source package of these suites whose version matches the
# pattern (a regular expression) and which the mirror still has. apt verifies the archive's signature on the index and
# the index's hash of every file. Uses a private configuration and private lists, but this machine's mirror and keys.
# A mirror keeps upstream's archive while it replaces Debian's patches to it: then upstream's source alone is unpacked.
# Sets source_directory and source_version; false if there is no such package.
debian_source() {
    local package=$1 pattern=$2 place=$WEIR_INSTALL/build/apt mirror version options
    local keys=/usr/share/keyrings/debian-archive-keyring.gpg
    shift 2
    need apt-get apt-cache dpkg-source
    # shellcheck disable=SC2016  # $(..) is apt's here
    mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -Em1 '/debian/?$') ||
        fail "no Debian mirror among this machine's apt sources"
    rm -rf "$place" && mkdir -p "$place"/{parts,lists/partial,cache/archives/partial,sources}
    printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: main\n' "$mirror" "$*" >"$place/parts/source.sources"
    [[ ! -e $keys ]] || printf 'Signed-By: %s\n' "$keys" >>"$place/parts/source.sources"
    options=(-o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$place/parts"
        -o "Dir::State::Lists=$place/lists" -o "Dir::Cache=$place/cache" -o "APT::Sandbox::User=$(id -un)")
    step "reading the index of Debian's $*"
    quietly "$place/update.log" apt-get "${options[@]}" update
    for version in $(apt-cache "${options[@]}" madison "$package" | awk '$NF == "Sources" { print $3 }' |
        grep -E "$pattern" | sort -rVu); do
        if (cd "$place/sources" && apt-get "${options[@]}" source --only-source "$package=$version") \
            >"$place/source.log" 2>&1; then
            source_directory=$(find "$place/sources" -mindepth 1 -maxdepth 1 -type d)
            source_version=$version
            step "unpacked Debian's $package $version"
            return 0
        fi
        rm -rf "$place/sources" && mkdir "$place/sources"
        if (cd "$place/sources" && apt-get "${options[@]}" source --tar-only --only-source "$package=$version" &&
            tar -xf ./*.orig.tar.*) >>"$place/source.log" 2>&1; then
            source_directory=$(find "$place/sources" -mindepth 1 -maxdepth 1 -type d)
            source_version=${version%-*}
            step "unpacked upstream's $package $source_version, without Debian's patches, which the mirror no longer has"
            return 0
        fi
        step "the mirror no longer has $package $version"
        rm -rf "$place/sources" && mkdir "$place/sources"
    done
    return 1
}
