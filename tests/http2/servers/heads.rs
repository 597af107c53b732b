//! Request heads: pseudo-fields, and changes by routes.

use super::{BOTH, Content, Http1, Server, ask, gateway};

#[test]
fn pseudo_fields_of_both_versions() {
    let server = Server::ok();
    let weir = gateway(&[&server], "", "");
    let rows = [
        ("GET", "/", "/"),
        ("GET", "/a?b=c", "/a?b=c"),
        ("OPTIONS", "*", "*"),
        ("HEAD", "/", "/"),
        ("DELETE", "/a/b", "/a/b"),
        ("PATCH", "/%41", "/%41"),
        ("M-SEARCH", "/", "/"),
    ];
    let mut sent = 0;
    for version in BOTH {
        for (method, path, expected) in rows {
            ask(&weir, version, method, path, &[], Content::None);
            sent += 1;
            server.wait_for_complete(sent);
            let request = server.requests().pop().unwrap();
            let pseudo: Vec<_> = request.head.lines().take(4).collect();
            let [of_method, of_path] = [format!(":method: {method}"), format!(":path: {expected}")];
            let (mut pseudo, mut wanted) =
                (pseudo, vec![":authority: h", &of_method, ":scheme: http", &of_path]);
            pseudo.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(pseudo, wanted, "{version:?} {method} {path}");
            assert!(!request.has("host"), "{}", request.head);
        }
    }
    assert_eq!(server.connections(), 1);
}

#[test]
fn the_authority_of_http1_clients() {
    let server = Server::ok();
    let weir = gateway(&[&server], "", "");
    let own = server.address().to_string();
    let rows = [
        ("GET / HTTP/1.1\r\nHost: example.org:8080\r\n\r\n", "example.org:8080"),
        ("GET http://other.org/a HTTP/1.1\r\nHost: example.org\r\n\r\n", "other.org"),
        ("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "[::1]:80"),
        ("GET / HTTP/1.0\r\n\r\n", &own),
        ("OPTIONS http://h HTTP/1.1\r\nHost: h\r\n\r\n", "h"),
    ];
    for (index, (bytes, authority)) in rows.into_iter().enumerate() {
        let answer = Http1::connect(weir.address(), None).ask(bytes);
        assert_eq!((answer.status, answer.text()), (200, "ok"), "{bytes}");
        let request = server.requests()[index].clone();
        assert_eq!(request.field(":authority"), authority, "{bytes}");
        assert!(!request.has("host"), "{}", request.head);
    }
    assert_eq!(server.requests()[4].path(), "*");
}

#[test]
fn routes_change_host_and_path() {
    let server = Server::ok();
    let rest = "path = '/a/*'\nstrip_prefix = '/a'\nadd_prefix = '/b'\n\
                request_headers.set = { Host = 'changed.org', X-Set = '{host}' }\n\
                request_headers.remove = ['X-Gone', 'Cookie']\nrequest_headers.add = { X-Add = 'more' }\n\
";
    let weir = gateway(&[&server], "", rest);
    for (index, version) in BOTH.into_iter().enumerate() {
        let fields: [(&str, &str); 4] = [("x-gone", "1"), ("x-add", "1"), ("cookie", "a=b"), ("x-kept", "2")];
        assert_eq!(ask(&weir, version, "GET", "/a/c?d", &fields, Content::None).text(), "ok");
        let request = server.requests()[index].clone();
        assert_eq!((request.path(), request.field(":authority")), ("/b/c?d", "changed.org"), "{version:?}");
        assert_eq!((request.field("x-set"), request.field("x-kept")), ("h", "2"), "{}", request.head);
        let added: Vec<_> = request.head.lines().filter(|line| line.starts_with("x-add: ")).collect();
        assert_eq!(added, ["x-add: 1", "x-add: more"]);
        assert!(!request.has("x-gone") && !request.has("cookie") && !request.has("host"), "{}", request.head);
    }
}

#[test]
fn long_heads() {
    let server = Server::ok();
    let weir = gateway(&[&server], "", "[limits]\nhead = '256KiB'\nline = '256KiB'\n");
    // The block needs CONTINUATION frames.
    let value = "v".repeat(100_000);
    for (index, version) in BOTH.into_iter().enumerate() {
        let mut client_fields: Vec<(&str, &str)> = vec![];
        let pieces: Vec<_> = (0..value.len()).step_by(10_000).map(|at| &value[at..at + 10_000]).collect();
        let names: Vec<_> = (0..pieces.len()).map(|n| format!("x-long-{n}")).collect();
        client_fields.extend(names.iter().map(String::as_str).zip(pieces.iter().copied()));
        if version == super::Version::Http2 {
            // The client's frames have at most 16 KiB.
            client_fields.truncate(1);
        }
        assert_eq!(ask(&weir, version, "GET", "/", &client_fields, Content::None).status, 200, "{version:?}");
        let request = server.requests()[index].clone();
        for (name, value) in &client_fields {
            assert_eq!(request.field(name), *value, "{version:?} {name}");
        }
    }
}
