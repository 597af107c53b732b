//! Unix sockets: for clients, for servers, and for the admin address.

use super::{ask, get, named};
use crate::common::{DEADLINE, Weir, poll_until};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A gateway that listens on a Unix socket, in front of a named upstream.
fn on_socket(path: &Path, server: &str, lines: &str) -> Weir {
    let config = format!(
        "workers = 2
        [listener.web]
        bind = 'unix:{}'
        {lines}
        [service.app]
        servers = '{server}'
        [[route]]
        service = 'app'",
        path.display()
    );
    Weir::configured(&config, 1)
}

/// A gateway that listens on a port, in front of a Unix socket.
fn to_socket(path: &Path) -> Weir {
    let service = format!("[service.app]\nservers = 'unix:{}'", path.display());
    Weir::configured(
        &format!("[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n{service}"),
        1,
    )
}

pub(super) fn exchange(path: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn requests_pass_through_a_socket_and_keep_what_a_trusted_proxy_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.sock");
    let upstream = named("a");
    let server = format!("http://{}", upstream.address);
    let inner = on_socket(&path, &server, "mode = '600'\ntrusted_proxies = 'unix'");
    assert_eq!(inner.urls, [format!("unix:{}", path.display())]);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let outer = to_socket(&path);
    for _ in 0..20 {
        let answer = get(&outer, "h", "/");
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("X-Forwarded-For: 127.0.0.1\r\n"), "{}", answer.text());
    }
    // HTTP/1.0 without Host: a socket has no authority.
    let answer = ask(&outer, "GET / HTTP/1.0\r\n\r\n");
    assert!(answer.text().contains("Host: localhost\r\n"), "{}", answer.text());
    assert_eq!(outer.stop().code, Some(0));
    assert_eq!(inner.stop().code, Some(0));
    assert!(!path.exists(), "the socket goes with the gateway");
}

#[test]
fn a_client_on_a_socket_has_no_address_and_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.sock");
    let upstream = named("a");
    let _inner = on_socket(&path, &format!("http://{}", upstream.address), "");
    let request = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.1\r\nConnection: close\r\n\r\n";
    let answer = exchange(&path, request);
    assert!(
        answer.contains("X-Forwarded-Proto: http\r\n") && !answer.contains("X-Forwarded-For"),
        "{answer}"
    );
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
}

#[test]
fn a_socket_without_a_server_is_a_502_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let weir = to_socket(&path);
    assert_eq!(get(&weir, "h", "/").status, 502);
    let upstream = named("a");
    let _app = on_socket(&path, &format!("http://{}", upstream.address), "");
    poll_until(DEADLINE, "the server is found", || get(&weir, "h", "/").status == 200);
}

#[test]
fn the_admin_address_may_be_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    let upstream = named("a");
    let config = format!(
        "[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'
        [admin]\nbind = 'unix:{}'\nmode = '600'",
        upstream.address,
        path.display()
    );
    let weir = Weir::configured(&config, 1);
    assert_eq!(get(&weir, "h", "/").status, 200);
    let answer = exchange(&path, "GET /ready HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
    assert!(answer.ends_with("\r\n\r\nready\n"), "{answer}");
    let place = format!("unix:{}", path.display());
    let top = Weir::run(&["top", "--admin", &place, "--once", "--every", "0.1"]);
    assert!(top.code == Some(0) && top.stdout.contains(&place), "{}{}", top.stdout, top.stderr);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    weir.stop();
    assert!(!path.exists(), "the socket goes with the gateway");
}
