# Builds the program with the release asked for, then becomes its JVM.
set -euo pipefail
cd "{{dir}}"
source "{{dir}}/client-{{client_side}}.sh"
source "{{dir}}/upstream-{{upstream_side}}.sh"
bal dist use "{{release}}" >&2
bal build passthrough.bal >&2
cat >Config.toml <<END
listenPort = {{listen_port}}
origin = "$scheme://localhost:{{upstream_port}}"
clientSideTls = $client_tls
upstreamSideTls = $upstream_tls
pool = {{pool}}
cert = "{{cert}}"
key = "{{key}}"
ca = "{{ca}}"
protocolVersion = "TLSv{{tls_version}}"
suite = "{{ciphers_13}}"
END
exec java -Xms{{heap}} -Xmx{{heap}} -XX:+Use{{gc}}GC "-Xlog:gc*:file={{dir}}/gc.log:uptime" -jar passthrough.jar
