#!/usr/bin/env bash
# Builds the pass-through for both releases of the transport into $WEIR_INSTALL/RELEASE/{wso2-transport.jar,lib/}.
# Needs a JDK 17 or newer and Maven on the PATH. Writes nothing outside WEIR_INSTALL except Maven's own cache.
set -euo pipefail
: "${WEIR_INSTALL:?the directory to fill; weir targets install sets it}"

# Why these two: 6.0.234 (2018, Netty 4.1.19) is one of the first with the API of 6.3.60 (Netty 4.2.9), the newest, so
# both build from one source.
releases=(6.0.234 6.3.60)

for tool in java mvn; do
    command -v "$tool" >/dev/null || { echo "$tool is not on the PATH (a JDK 17 and Maven are needed)" >&2; exit 1; }
done

# Rebuilds only if the sources changed. The lab also reads their hashes.
sources=$(find pom.xml install.sh src -type f | LC_ALL=C sort | xargs sha256sum)

for release in "${releases[@]}"; do
    home=$WEIR_INSTALL/$release
    if [[ $(cat "$home/sources" 2>/dev/null) == "$sources" ]]; then
        echo "wso2-transport $release is installed"
        continue
    fi
    echo "wso2-transport $release: building"
    build=$WEIR_INSTALL/build-$release
    rm -rf "$home" "$build"
    mvn --batch-mode --quiet --file pom.xml -Drelease="$release" -Dout="$build" package
    mkdir -p "$home"
    mv "$build/wso2-transport.jar" "$build/lib" "$home/"
    rm -rf "$build"
    java -cp "$home/wso2-transport.jar:$home/lib/*" weir.PassThrough --version
    echo "$sources" >"$home/sources"
done
echo "wso2-transport is installed"
