//! Each listener presents the certificates of its own servers.

use super::assert_all;
use weir_import::Kind;

/// An nginx server with TLS.
fn server(listen: &str, certificate: &str) -> String {
    format!(
        "server {{ {listen} ssl_certificate {certificate}; ssl_certificate_key k; server_name n.test; return 200; }} "
    )
}

/// Regression test: every listener presented the certificates of all others, also for names that it does not serve.
#[test]
fn listeners_present_their_own_certificates() {
    let [a, b] = ["listen 443 ssl;", "listen 8443 ssl;"];
    let both = "listen 443 ssl; listen 8443 ssl;";
    let first = "[listener.https]\nbind = \"0.0.0.0:443\"\ncertificates = ";
    let second = "[listener.port-8443]\nbind = \"0.0.0.0:8443\"\ncertificates = ";
    let with = |listener: &str, list: &str| format!("{listener}{list}\ntls = {{}}");
    for (text, parts) in [
        // All listeners present all certificates, so neither needs a list of names.
        (server(a, "a.pem"), vec!["!certificates =".to_owned(), "!name =".to_owned()]),
        (server(both, "a.pem") + &server(both, "b.pem"), vec!["!certificates =".to_owned()]),
        (
            server(a, "a.pem") + &server(b, "b.pem"),
            vec![
                with(first, "\"a\""),
                with(second, "\"b\""),
                "[[certificate]]\nname = \"a\"\nchain = \"a.pem\"".to_owned(),
            ],
        ),
        (
            server(both, "a.pem") + &server(b, "b.pem"),
            vec![with(first, "\"a\""), with(second, "[\"a\", \"b\"]")],
        ),
        // The default server's certificate is the first one.
        (
            server(both, "a.pem") + &server("listen 443 ssl; listen 8443 ssl default_server;", "b.pem"),
            vec![with(first, "[\"a\", \"b\"]"), with(second, "[\"b\", \"a\"]")],
        ),
        (
            server(a, "/x/a.test/fullchain.pem") + &server(b, "/x/b.test/fullchain.pem"),
            vec![with(first, "\"a-test\""), with(second, "\"b-test\"")],
        ),
        (server(a, "/x/a.pem") + &server(b, "/y/a.pem"), vec![with(first, "\"a\""), with(second, "\"a-2\"")]),
        (
            server(a, "a.pem")
                + "stream { server { listen 5432 ssl; ssl_certificate b.pem; ssl_certificate_key k; proxy_pass h:1; } }",
            vec![with(first, "\"a\""), "bind = \"0.0.0.0:5432\"\ncertificates = \"b\"\ntcp".to_owned()],
        ),
    ] {
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
        assert_all(Kind::Nginx, &[(&text, &parts, &[])]);
    }
    // A listener without its own certificate must not present that of another listener.
    let text = server(a, "a.pem") + &server(b, "$name.pem");
    let parts = [
        &with(second, "\"port-8443\""),
        "name = \"port-8443\"\nchain = \"port-8443.pem\"",
        "replace port-8443.pem, without which Weir does not start",
    ];
    assert_all(Kind::Nginx, &[(&text, &parts, &["1: ssl_certificate $name.pem"])]);
}

#[test]
fn binds_present_their_own_certificates() {
    let text = |mode: &str, binds: [&str; 2]| {
        let [a, b] = binds;
        format!(
            "defaults\n mode {mode}\nlisten l\n bind :443 ssl {a}\n bind :8443 ssl {b}\n server s 127.0.0.1:1\n"
        )
    };
    let first = "bind = \"0.0.0.0:443\"\ncertificates = \"a\"\n";
    let second = "bind = \"0.0.0.0:8443\"\ncertificates = [\"b\", \"a\"]\n";
    let differ = ["crt /c/a.pem", "crt /c/b.pem crt /c/a.pem"];
    assert_all(Kind::Haproxy, &[(&text("http", differ), &[first, second], &[])]);
    assert_all(Kind::Haproxy, &[(&text("tcp", differ), &[first, second], &[])]);
    let same = ["crt /c/a.pem", "crt /c/a.pem"];
    assert_all(Kind::Haproxy, &[(&text("http", same), &["!certificates =", "!name ="], &[])]);
}
