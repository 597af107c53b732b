#!/bin/sh
# Builds the engine in TARGET if the Go in PATH matches engine.toml. Usage: build.sh TARGET
set -eu
cd "$(dirname "$0")"

wanted=$(sed -n 's/^version = "\([^"]*\)".*/\1/p' engine.toml)
found=$(go env GOVERSION)
case $found in
"go$wanted" | "go$wanted".*) ;;
*) echo "go: the Go on the PATH is $found, engine.toml needs $wanted" >&2 && exit 1 ;;
esac

# Fetches neither modules nor a toolchain.
GOFLAGS='' GOPROXY=off GOTOOLCHAIN=local go build -trimpath -o "$1/engine" .
echo "go: built with $found"
