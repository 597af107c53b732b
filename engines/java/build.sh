#!/bin/sh
# Compiles the engine into TARGET if the JDK in PATH matches engine.toml. Usage: build.sh TARGET
set -eu
cd "$(dirname "$0")"

wanted=$(sed -n 's/^version = "\([^"]*\)".*/\1/p' engine.toml)
# Both: one JDK may compile and another run.
for found in "$(javac -version 2>&1 | sed 's/^javac //')" "$(java --version | sed -n '1s/^[^ ]* \([^ ]*\).*/\1/p')"; do
    case $found in
    "$wanted" | "$wanted".*) ;;
    *) echo "java: the JDK on the PATH is $found, engine.toml needs $wanted" >&2 && exit 1 ;;
    esac
done

rm -rf "$1/classes"
javac -Xlint:all -Werror -d "$1/classes" src/*.java
echo "java: built with $found"
