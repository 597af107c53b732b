# Builds the pass-through with both of the study's releases into WEIR_INSTALL/RELEASE. Needs Ballerina on the PATH,
# whose own tool fetches the releases. Written from its documentation; the project has not run it.
set -euo pipefail
. ../common/install.sh

releases=(2201.11.0 2201.12.4)

need bal java
# Rebuilds only if the sources changed.
sources=$(sha256sum install.sh passthrough.bal | sha256sum)
for release in "${releases[@]}"; do
    home=$WEIR_INSTALL/$release
    if [[ $(cat "$home/sources" 2>/dev/null) == "$sources" ]]; then
        step "ballerina $release is installed"
        continue
    fi
    step "ballerina $release: building"
    rm -rf "$home" && mkdir -p "$home"
    # Pulling a release also selects it.
    bal dist use "$release" || bal dist pull "$release"
    cp passthrough.bal "$home/"
    (cd "$home" && bal build passthrough.bal)
    bal version >"$home/version"
    echo "$sources" >"$home/sources"
done
step "ballerina is installed"
