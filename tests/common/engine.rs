//! A TLS engine as a shell script.

/// The `engine.toml`; `build` is a TOML list.
pub fn description(build: &str) -> String {
    format!(
        "stack = 'fake'
version = '1.0'
crypto = 'none'
language = 'sh'
build = {build}
run = ['sh', '{{engine}}/run.sh']
[abilities]
do = ['handshake']
versions = ['1.3']
resumptions = ['none']
certificates = ['ecdsa-p256']
groups = ['x25519', 'p256']
suites = ['aes128-gcm']
tickets = [2]
"
    )
}

/// The `run.sh`, which reports that a run of the scenario took a microsecond.
pub const RUNNER: &str = r#"
while read -r key value; do
    case $key in group) group=$value ;; suite) suite=$value ;; version) version=$value ;; esac
done
echo '{"type":"facts","stack":"fake","tls":"fake 1.0","crypto":"none","compiler":"sh","allocator":"system","build":"release"}'
for side in client server; do
    echo '{"type":"negotiated","side":"'$side'","version":"'$version'","kind":"full","suite":"'$suite'","group":"'$group'","signature":null,"count":1}'
    echo '{"type":"samples","thread":0,"side":"'$side'","ns":[1000]}'
done
echo '{"type":"thread","thread":0,"units":1,"wall_ns":10,"cpu_ns":10}'
echo '{"type":"done"}'
"#;
