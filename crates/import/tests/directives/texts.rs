//! Texts of a configuration remain texts in the result: they add no keys, and refer to no variables.

use crate::haproxy::frontend;
use crate::{assert_all, assert_servers, translated};
use weir_import::Kind;

/// Text from a file cannot end the comment or the string that contains it in the result.
#[test]
fn texts_stay_texts() {
    let text = "server { server_name a; return 200 \"x\ny\\\"\\\\ \u{7}\"; add_header A \"b\nworkers = 7\" always; frob \"c\nworkers = 8\"; }";
    let (toml, _) = translated(text, Kind::Nginx);
    let table: toml::Table = toml.parse().unwrap();
    assert!(!table.contains_key("workers"), "{toml}");
}

/// Regression test: the gateway replaced `${PATH}` in an imported text with its environment variable.
#[test]
fn texts_name_no_variables_of_the_environment() {
    assert_servers(&[
        ("listen unix:/run/${PATH}.sock; return 200;", &["bind = \"unix:/run/$${PATH}.sock\""], &[]),
        ("return 301 https://a/$$host;", &["to = \"https://a/$${host}\""], &[]),
        ("location / { proxy_set_header X-A $$host; proxy_pass http://a; }", &["X-A = \"$${host}\""], &[]),
        ("add_header X-A '$${' always; return 200;", &["X-A = \"$$${{\""], &[]),
    ]);
    for (rule, part) in [
        ("http-request return status 200 string '${PATH} ${B:-c} ${'", "body = \"$${PATH} $${B:-c} $${\""),
        ("http-request set-header X-A '$${PATH}'", "X-A = \"$$${{PATH}}\""),
        ("http-response add-header X-A ${PATH}", "\"$${{PATH}}\""),
        ("http-request redirect location '/a?${PATH}'", "to = \"/a?$${{PATH}}\""),
        ("use_backend b if { hdr(X-A) '${PATH}' }", "\"$${PATH}\""),
        ("bind :443 ssl crt '/etc/${PATH}.pem'", "chain = \"/etc/$${PATH}.pem\""),
    ] {
        let text = frontend(&format!("{rule}; default_backend b"));
        assert_all(Kind::Haproxy, &[(&text, &[part], &[])]);
    }
    let text =
        frontend("http-request return status 200 content-type text/plain string '${PATH} $${PATH} ${'");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.toml");
    std::fs::write(&path, translated(&text, Kind::Haproxy).0).unwrap();
    let checked = weir_gateway::read(&path).unwrap();
    let body = checked.config.routes.iter().find_map(|route| route.respond.as_ref()?.body.clone());
    assert_eq!(body.as_deref(), Some("${PATH} $${PATH} ${"));
}
