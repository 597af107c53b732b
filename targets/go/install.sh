#!/usr/bin/env bash
# Builds main.go into WEIR_INSTALL with the Go on the PATH, whose version is the target's.
set -euo pipefail

command -v go >/dev/null || { echo "go: Go is not on the PATH" >&2; exit 1; }

# It needs only the standard library, so nothing is fetched. The flags strip symbols and local paths. Go's cache keeps
# earlier builds.
echo "go: building with $(go env GOVERSION)"
GOFLAGS= GOPROXY=off go build -p "${WEIR_JOBS:-$(nproc)}" -trimpath -ldflags '-s -w' -o "$WEIR_INSTALL/proxy.new" .
# Move only the finished program into place.
mv "$WEIR_INSTALL/proxy.new" "$WEIR_INSTALL/proxy"
sha256sum go.mod *.go >"$WEIR_INSTALL/sources"
echo "go: $("$WEIR_INSTALL/proxy" -version) is installed"
