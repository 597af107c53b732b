#!/usr/bin/env bash
# Builds Caddy from its Go module into WEIR_INSTALL. Another version is the first argument; `newest` is the newest.
set -euo pipefail

version=${1:-v2.11.9}
jobs=${WEIR_JOBS:-$(nproc)}
module=github.com/caddyserver/caddy/v2
program=$WEIR_INSTALL/bin/caddy

command -v go >/dev/null || { echo "caddy: Go is not on the PATH" >&2; exit 1; }
if [[ $version == newest ]]; then
    version=$(go list -m -f '{{.Version}}' "$module@latest")
fi
if [[ -x $program && $("$program" version) == "$version" ]]; then
    echo "caddy $version is installed"
    exit 0
fi

# `go install` takes the versions of all dependencies from Caddy's own go.mod and moves only a finished program into
# place; Go's cache keeps the work of an interrupted build. The flags strip symbols and local paths. Caddy detects its
# own version only as a dependency of another program, so set it.
echo "caddy: building $module@$version with $(go env GOVERSION), $jobs jobs"
GOBIN=$WEIR_INSTALL/bin go install -p "$jobs" -trimpath -ldflags "-s -w -X $module.CustomVersion=$version" \
    "$module/cmd/caddy@$version"
[[ $("$program" version) == "$version" ]] || { echo "caddy: the built program is not $version" >&2; exit 1; }
echo "caddy $version is installed"
