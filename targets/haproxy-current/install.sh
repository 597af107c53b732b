# Builds the newest HAProxy in a package registry, on AWS-LC. Pinned, so that results are comparable; the argument
# `newest` takes today's newest. Debian's stable suite keeps its version for years; its unstable suites carry newer
# versions, but not for long enough to pin them.
set -euo pipefail
. ../common/install.sh

haproxy=3.0.11 # the long-term branch 3.0
suites=(trixie)
aws_lc="=0.47.0" # of aws-lc-sys; AWS-LC 5.12.0
pattern="^${haproxy//./\\.}-"
[[ ${1-} != newest ]] || { aws_lc='*' pattern='^[0-9.]+-' suites=(stable testing unstable experimental); }

stamp="haproxy $haproxy, aws-lc-sys $aws_lc, $(cat install.sh ../common/install.sh | cksum)"
if [[ -z ${1-} && $(cat "$WEIR_INSTALL/stamp" 2>/dev/null) == "$stamp" && -x $WEIR_INSTALL/sbin/haproxy ]]; then
    step "HAProxy is built"
    exit
fi

need cargo cmake cc c++ make
build=$WEIR_INSTALL/build
rm -f "$WEIR_INSTALL/stamp"
mkdir -p "$build"

aws_lc "$aws_lc"
debian_source haproxy "$pattern" "${suites[@]}" ||
    fail "Debian's ${suites[*]} has no HAProxy ${haproxy}; run bash install.sh newest to take the version it has"

step "building HAProxy $source_version"
cd "$source_directory"
quietly "$build/haproxy-build.log" make -j "$jobs" TARGET=linux-glibc USE_OPENSSL=1 USE_OPENSSL_AWSLC=1 \
    SSL_INC="$aws_lc_directory/include" SSL_LIB="$aws_lc_directory/lib" USE_LIBCRYPT= \
    VERSION="$source_version" ADDLIB="-lstdc++ -lpthread"
mkdir -p "$WEIR_INSTALL/sbin"
install -s haproxy "$WEIR_INSTALL/sbin/haproxy"
"$WEIR_INSTALL/sbin/haproxy" -vv | grep -E '^(HAProxy version|Built with OpenSSL|Running on OpenSSL)'
rm -rf "$build"
printf '%s\n' "$stamp" >"$WEIR_INSTALL/stamp"
step "HAProxy is built"
