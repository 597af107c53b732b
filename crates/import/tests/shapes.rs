//! Configurations of common shapes: their losses, and the gateway's acceptance of the result.

mod accepted;

use accepted::check;
use std::path::Path;
use weir_import::{Files, Imported, import};

fn shape(name: &str) -> Imported {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shapes").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    import(&text, Path::new(name), None, &Files).unwrap()
}

#[track_caller]
fn assert_shape(name: &str, losses: &[&str], parts: &[&str]) {
    let Imported { toml, losses: found } = shape(name);
    let found: Vec<_> = found.iter().map(|loss| format!("{}: {}", loss.line, loss.directive)).collect();
    assert_eq!(found, losses, "{toml}");
    for part in parts {
        assert!(toml.contains(part), "no `{part}` in\n{toml}");
    }
    check(&toml);
}

#[test]
fn a_hub_with_websockets() {
    assert_shape(
        "nginx-websocket.conf",
        &[],
        &[
            "bind = [\"0.0.0.0:80\", \"[::]:80\"]",
            "redirect = { to = \"https\", status = 301 }",
            "tls.sessions = 32000",
            "response_headers.add = { Strict-Transport-Security = \"max-age=15552000; includeSubDomains\" }",
            "# nginx-websocket.conf:27\n[[route]]\nlistener = \"https\"\nservice = \"127-0-0-1-8123\"\n",
        ],
    );
}

#[test]
fn a_site_and_its_api() {
    assert_shape(
        "nginx-site-and-api.conf",
        &[],
        &[
            "host = \"www.shop.example\"\nredirect = { to = \"http://shop.example{target}\", status = 301 }",
            "respond = { status = 200, body = \"<p>alive</p>\", content_type = \"text/html\" }",
            "path = \"/api/*\"\nservice = \"shop_api\"\nstrip_prefix = \"/api\"",
            "path = \"/api\"\nredirect = { to = \"/api/\", status = 301 }",
            "request_headers.set = { Host = \"{upstream}\" }",
            "eject.failures = 2\neject.for = \"5s\"\npool.max_idle = 16",
            "format = \"{client} \\\"{method} {target} {protocol}\\\" {status} {total_ms}s\"",
        ],
    );
}

#[test]
fn a_blog_in_php() {
    assert_shape(
        "nginx-cms.conf",
        &[
            "7: limit_req_zone $binary_remote_addr zone=login:1m rate=1r/s",
            "12: root /srv/blog",
            "16: gzip on",
            "25: location ~ \\.php$",
            "31: location ~* \\.(css|js|png)$",
            "35: location ~ /\\.ht",
        ],
        &["host = \"www.blog.example.com\"\nredirect", "respond = { status = 404 }"],
    );
}

#[test]
fn a_forge_on_a_unix_socket() {
    assert_shape(
        "nginx-forge.conf",
        &["27: proxy_cache store"],
        &[
            "servers = \"unix:/run/forge/workhorse.socket\"\neject.failures = 0",
            "path = [\"/assets/*\", \"/uploads/*\"]",
            "max_body = \"1024TiB\"",
            "404 = \"/opt/forge/errors/404.html\"",
            "503 = \"/opt/forge/errors/502.html\"",
        ],
    );
}

#[test]
fn dashboards_below_a_path() {
    assert_shape(
        "nginx-dashboards.conf",
        &["31: auth_basic Operators"],
        &[
            "path = \"/dash/api/live/*\"\nservice = \"dash-internal-3000\"\nstrip_prefix = \"/dash\"\ntimeouts.response = \"1d\"\ntimeouts.tunnel = \"1d\"",
            "client = [\"10.20.0.0/16\", \"192.0.2.17\"]\nservice",
            "path = \"/metrics*\"\nrespond = { status = 403 }",
            "path = \"/alerts/*\"\nrespond = { status = 403 }",
        ],
    );
}

#[test]
fn an_identity_provider() {
    assert_shape(
        "nginx-identity.conf",
        &["34: proxy_set_header X-Client-Cert $ssl_client_escaped_cert"],
        &[
            "tls.client_certificates = \"optional\"\ntls.client_crl = \"/etc/idp/people.crl\"",
            "tls.groups = [\"x25519\", \"p384\"]",
            "tls.ca = \"/etc/idp/internal-ca.pem\"\ntls.name = \"idp.internal\"",
            "[service.idp-2]",
            "tls.insecure = true",
            "X-Client-DN = \"{client_subject}\"",
            "method = [\"GET\", \"HEAD\"]\nservice = \"idp-2\"",
        ],
    );
}

#[test]
fn one_address_for_many_names() {
    assert_shape(
        "nginx-sni.conf",
        &[],
        &[
            "[listener.tcp-5432]\nbind = \"0.0.0.0:5432\"\ntcp = { service = \"10-0-0-8-5432\", idle = \"10min\" }",
            "{ name = \"*.lab.example.org\", service = \"lab\" }",
            "{ name = [\"old.example.org\", \"www.old.example.org\"], service = \"10-0-0-9-443\" }",
            "{ name = \"*\", service = \"web\" }",
            "bind = \"127.0.0.1:8443\"\nproxy_protocol = \"127.0.0.1\"",
            "tunnel = \"10min\"",
        ],
    );
}

#[test]
fn a_build_server() {
    assert_shape(
        "nginx-builds.conf",
        &[
            "6: return 444",
            "11: server_name ~^ci-.+\\.example\\.org$",
            "11: server_name ci.*",
            "12: ignore_invalid_headers off",
            "24: add_header Via-Cache $upstream_cache_status",
            "27: location ~ ^/static/[0-9a-fA-F]{8}/(.*)$",
        ],
        &[
            "host = \"builds.example.org\"",
            "servers = \"https://builder.internal:9443\"",
            "X-Forwarded-Port = \"80\"",
            "request_id = \"X-Request-ID\"",
        ],
    );
}

#[test]
fn a_balancer_with_two_backends() {
    assert_shape(
        "haproxy-two-backends.cfg",
        &[],
        &[
            "health.path = \"/ready\"\nhealth.status = \"200\"\nhealth.every = \"1s\"\nhealth.rise = 1\nhealth.fall = 2",
            "{ url = \"http://127.0.0.1:9002\", backup = true }",
            "sticky = \"SEAT\"\nmax_connections = 200",
            "path = [\"/api/*\", \"/graphql*\"]\nservice = \"api\"\nstrip_prefix = \"/api\"",
            "response_headers.remove = \"Server\"",
            "head = \"5s\"",
        ],
    );
}

#[test]
fn one_door_for_several_sites() {
    assert_shape(
        "haproxy-hosts.cfg",
        &["45: listen numbers"],
        &[
            "chain = \"/etc/haproxy/certs/sites.pem\"",
            "tls.tickets = 0",
            "bind = \"0.0.0.0:80\"\nredirect = { to = \"https\", status = 301 }",
            "host = \"*.tenants.example.org\"\npath = \"/admin*\"\nclient = [\"198.51.100.0/24\", \"2001:db8:7::/48\"]\nservice = \"tenants\"",
            "host = \"wiki.example.org\"\npath = \"/admin*\"\nrespond = { status = 403 }",
            "tls.name = \"tenants.internal\"",
            "respond = { status = 404, body = \"no such site\", content_type = \"text/plain\" }",
        ],
    );
}

#[test]
fn a_door_that_does_not_decrypt() {
    assert_shape(
        "haproxy-sni.cfg",
        &[],
        &[
            "tcp = { service = \"database\", idle = \"30min\" }",
            "bind = [\"[::]:443\", \"0.0.0.0:443\"]",
            "{ name = \"console.example.org\", service = \"console\" }",
            "{ name = \"*.apps.example.org\", service = \"apps\" }",
            "{ name = \"*\", service = \"legacy\" }",
            "proxy_protocol = \"v2\"",
            "tunnel = \"30min\"",
        ],
    );
}

#[test]
fn a_gateway_for_an_api() {
    assert_shape(
        "haproxy-api.cfg",
        &["37: balance uri"],
        &[
            "rate = { requests = 100, per = \"10s\" }",
            "path = \"/alive\"\nrespond = { status = 200 }",
            "headers = { X-Channel = \"beta\" }\nservice = \"beta\"",
            "method = [\"POST\", \"PUT\", \"PATCH\", \"DELETE\"]\nrespond = { status = 403 }",
            "service = \"old\"\nadd_prefix = \"/legacy\"",
            "hash = \"header:X-User\"",
            "X-Port = \"8000\"",
        ],
    );
}
