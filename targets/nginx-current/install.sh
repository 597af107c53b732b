# Builds the newest nginx in a package registry, on AWS-LC. Pinned, so that results are comparable; the argument
# `newest` takes today's newest. The crate nginx-src carries the source of the stable branch; Debian's unstable suites
# carry newer versions, but not for long enough to pin them.
set -euo pipefail
. ../common/install.sh

nginx="=1.28.5" # of the crate; nginx 1.28.3
aws_lc="=0.47.0" # of aws-lc-sys; AWS-LC 5.12.0
[[ ${1-} != newest ]] || nginx='*' aws_lc='*'

stamp="nginx-src $nginx, aws-lc-sys $aws_lc, $(cat install.sh ../common/install.sh | cksum)"
if [[ -z ${1-} && $(cat "$WEIR_INSTALL/stamp" 2>/dev/null) == "$stamp" && -x $WEIR_INSTALL/sbin/nginx ]]; then
    step "nginx is built"
    exit
fi

need cargo cmake cc c++ make
build=$WEIR_INSTALL/build
rm -f "$WEIR_INSTALL/stamp"
mkdir -p "$build"

aws_lc "$aws_lc"
if [[ ${1-} == newest ]] && debian_source nginx . testing unstable experimental; then
    source=$source_directory version=$source_version configure=./configure
else
    step "fetching nginx-src $nginx"
    crate nginx-src "$nginx"
    source=$crate_directory/nginx version=${crate_version#*+} configure=./auto/configure
fi

# AWS-LC lacks only this function. nginx uses it to compare the name in a resumed session with the one in the handshake,
# and only if it verifies client certificates, which no target does.
cat >"$build/aws-lc.h" <<'HEADER'
#define SSL_SESSION_get0_hostname(session) NULL
HEADER
grep -q SSL_SESSION_get0_hostname "$aws_lc_directory/include/openssl/ssl.h" && : >"$build/aws-lc.h"

step "building nginx $version"
cd "$source"
# Rewriting and compression, which need further libraries, are not used. Distributions build with -O2.
quietly "$build/nginx-configure.log" "$configure" --prefix="$WEIR_INSTALL" --with-http_ssl_module --with-http_v2_module \
    --without-http_rewrite_module --without-http_gzip_module \
    --with-cc-opt="-O2 -I$aws_lc_directory/include -include $build/aws-lc.h" \
    --with-ld-opt="-L$aws_lc_directory/lib -lstdc++ -lpthread"
quietly "$build/nginx-build.log" make -j "$jobs"
mkdir -p "$WEIR_INSTALL/sbin"
install objs/nginx "$WEIR_INSTALL/sbin/nginx"
"$WEIR_INSTALL/sbin/nginx" -V 2>&1 | head -n 3
rm -rf "$build"
printf '%s\n' "$stamp" >"$WEIR_INSTALL/stamp"
step "nginx is built"
