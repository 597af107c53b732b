#!/usr/bin/env bash
# Builds Traefik from its Go module into WEIR_INSTALL. Another version is the first argument; `newest` is the newest.
set -euo pipefail

version=${1:-v3.6.12}
jobs=${WEIR_JOBS:-$(nproc)}
module=github.com/traefik/traefik/v3
program=$WEIR_INSTALL/bin/traefik
source=$WEIR_INSTALL/source

command -v go >/dev/null || { echo "traefik: Go is not on the PATH" >&2; exit 1; }
if [[ $version == newest ]]; then
    version=$(go list -m -f '{{.Version}}' "$module@latest")
fi
if [[ -x $program ]] && "$program" version | grep -qx "Version: *${version#v}"; then
    echo "traefik $version is installed"
    exit 0
fi

echo "traefik: fetching $module@$version"
fetched=$(go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
[[ -d $fetched ]] || { echo "traefik: the module's source is not in Go's cache" >&2; exit 1; }

# `go install` rejects a module with replace directives, such as Traefik's, so build it as the main module, from a copy.
# The program embeds its dashboard from webui/static, which must not be empty, as it is in the module. A placeholder is
# enough, since no dashboard is served here.
rm -rf "$source"
mkdir -p "$source" "$WEIR_INSTALL/bin"
cp -R "$fetched/." "$source"
chmod -R u+w "$source"
mkdir -p "$source/webui/static"
echo "no dashboard" >"$source/webui/static/index.html"

# The flags strip symbols and local paths, and set the version as Traefik's own build does.
echo "traefik: building with $(go env GOVERSION), $jobs jobs"
(
    cd "$source"
    CGO_ENABLED=0 go build -p "$jobs" -trimpath -ldflags "-s -w -X $module/pkg/version.Version=${version#v}" \
        -o "$program.new" ./cmd/traefik
)
mv "$program.new" "$program"
rm -rf "$source"
"$program" version | grep -qx "Version: *${version#v}" ||
    { echo "traefik: the built program is not $version" >&2; exit 1; }
echo "traefik $version is installed"
