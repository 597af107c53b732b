//! Every directive is translated, known to need no counterpart, or reported.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use weir_import::{Files, Kind, import};

/// The lists of names in a Rust file, by identifier; and the file without them.
fn lists(text: &str) -> (Vec<(String, Vec<String>)>, String) {
    let (mut found, mut rest) = (Vec::new(), String::new());
    let mut text = text;
    while let Some(at) = text.find("const ") {
        let (before, after) = text.split_at(at);
        rest.push_str(before);
        let (name, kind) = after["const ".len()..].split_once(": ").unwrap();
        let is_list =
            ["READ", "TRANSLATED", "QUIET", "QUIET_FAMILIES", "VALUED", "VALUED_TOO"].contains(&name);
        if !(is_list && kind.starts_with("[&str;")) {
            rest.push_str("const ");
            text = &after["const ".len()..];
            continue;
        }
        let (list, behind) = after.split_once("];").unwrap();
        let (_, names) = list.split_once('=').unwrap();
        let names = names.split('"').skip(1).step_by(2).map(str::to_owned).collect();
        found.push((name.to_owned(), names));
        text = behind;
    }
    rest.push_str(text);
    (found, rest)
}

/// The dialect's code reads each directive that a list calls translated, and no other list contains the directive.
#[test]
fn what_is_called_translated_is_read() {
    for (language, least) in [("nginx", 80), ("haproxy", 70)] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(language);
        let files =
            fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        let files: Vec<_> = files.map(|text| lists(&text)).collect();
        let code: String = files.iter().map(|(_, rest)| rest.as_str()).collect();
        let mut count = 0;
        for (found, _) in &files {
            let read = || found.iter().filter(|(name, _)| matches!(name.as_str(), "READ" | "TRANSLATED"));
            for name in read().flat_map(|(_, names)| names) {
                assert!(code.contains(&format!("\"{name}\"")), "{language}: `{name}` is read nowhere");
                count += 1;
            }
        }
        assert!(count >= least, "{language}: only {count} names");
    }
}

/// For each key that the importer writes, some test expects it, and the gateway's types check that test's result. So a
/// key that the gateway renames fails a test.
#[test]
fn each_key_is_in_a_checked_result() {
    let texts = |folders: &[&str]| -> String {
        let folders = folders.iter().map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
        let entries =
            folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap()).collect()
    };
    let (code, tests) = (
        texts(&["src", "src/nginx", "src/haproxy"]),
        texts(&["tests", "tests/directives", "tests/directives/nginx", "tests/directives/haproxy"]),
    );
    let calls = [".text(\"", ".texts(\"", ".number(\"", ".flag(\"", ".set(\"", " key(\""];
    let keys =
        calls.iter().flat_map(|call| code.split(call).skip(1)).filter_map(|text| text.split('"').next());
    let keys: BTreeSet<_> = keys.collect();
    assert!(keys.len() >= 60, "only {keys:?}");
    let tests = tests.replace("\\n", " ");
    for key in keys {
        let is_expected = tests.match_indices(key).any(|(at, _)| {
            // A table within another has dotted keys.
            let is_whole = [" = ", "."].iter().any(|end| tests[at + key.len()..].starts_with(end));
            is_whole && tests[..at].ends_with(['"', ' ', '.'])
        });
        assert!(is_expected, "no test expects `{key}`");
    }
}

/// Each of these directives, which the importer cannot translate, is reported as a loss at its line.
#[test]
fn what_is_not_done_is_reported() {
    let losses = |text: &str, kind| import(text, Path::new("x"), Some(kind), &Files).unwrap().losses;
    let server = |line: &str| {
        format!("server {{\n listen 80;\n {line}\n location / {{ proxy_pass http://127.0.0.1:1; }}\n}}\n")
    };
    assert!(losses(&server(""), Kind::Nginx).is_empty());
    for line in [
        "frob on;",
        "frob off;",
        "recursive_error_pages off;",
        "charset utf-8;",
        "ignore_invalid_headers off;",
        "merge_slashes off;",
        "proxy_pass_request_body off;",
        "proxy_pass_request_headers off;",
        "proxy_next_upstream off;",
        "proxy_request_buffering on;",
        "mirror /copy;",
        "limit_req zone=a;",
        "location ~* ^/a/ { proxy_pass http://127.0.0.1:1; }",
    ] {
        let found = losses(&server(line), Kind::Nginx);
        assert!(found.iter().any(|loss| loss.line == 3), "{line}: {found:?}");
    }
    let proxy = |line: &str| {
        format!(
            "global\ndefaults\n mode http\n timeout client 9s\nlisten a\n bind :80\n {line}\n server s 127.0.0.1:1\n"
        )
    };
    assert!(losses(&proxy(""), Kind::Haproxy).is_empty());
    for line in [
        "frob x",
        "option frob",
        "option checkcache",
        "option transparent",
        "timeout frob 1s",
        "http-check connect port 81",
        "log-format %ci",
        "rate-limit sessions 10",
        "maxconn 10",
        "bind :81 interface eth1",
        "bind :81 transparent",
        "http-request set-header X-A \"${HOME}\"",
        "http-request set-header X-A b if { path_end .x }",
        "http-request set-header X-A b if { path_beg -i /x }",
        "http-request deny if { path_beg -i /a } { hdr(x) -i b }",
    ] {
        let found = losses(&proxy(line), Kind::Haproxy);
        assert!(found.iter().any(|loss| loss.line >= 5), "{line}: {found:?}");
    }
    for line in ["frob x", "setenv A b", "ssl-default-server-options ssl-min-ver TLSv1.0", "maxsessrate 10"] {
        let found = losses(&proxy("").replace("global\n", &format!("global\n {line}\n")), Kind::Haproxy);
        assert!(found.iter().any(|loss| loss.line == 2), "{line}: {found:?}");
    }
}
