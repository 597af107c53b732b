//! Each address belongs to one listener.

use super::check::refused;
use crate::common::{Client, Weir};
use std::fs;
use std::net::{TcpListener, ToSocketAddrs as _};

const ROUTE: &str = "[[route]]\nrespond.status = 200\n";

/// Regression test: the kernel distributed connections to both of two listeners, one with TLS and one without.
#[test]
fn an_address_is_listened_on_once_however_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("link")).unwrap();
    let at = folder.path().display();
    let file = |path: &str| format!("unix:{at}/{path}");
    // The gateway binds the first address of the name.
    let first = ("localhost", 8443).to_socket_addrs().unwrap().next().unwrap().to_string();
    for (one, other) in [
        ("127.0.0.1:8443", "127.0.0.1:8443"),
        ("0.0.0.0:8443", "0.0.0.0:8443"),
        ("localhost:8443", "LOCALHOST:8443"),
        (&*first, "localhost:8443"),
        ("[::]:8443", "[0:0::0]:8443"),
        ("[::1]:8443", "[0:0:0:0:0:0:0:1]:8443"),
        ("no-such-name.invalid:8443", "no-such-name.invalid:8443"),
        (&*file("a.sock"), &*file("a.sock")),
        (&*file("a.sock"), &*file("./a.sock")),
        (&*file("a.sock"), &*file("link/a.sock")),
        (&*file("a.sock"), &*file("link/./a.sock")),
        ("unix:/no/such/a.sock", "unix:/no/./such//a.sock"),
    ] {
        let two = format!("[listener.a]\nbind = '{one}'\n[listener.b]\nbind = '{other}'\n{ROUTE}");
        let expected = format!(
            "weir.toml:4: listener.b.bind.0: `{other}` is the address `{one}` of `listener.a.bind.0`"
        );
        refused(&two, &expected);
        let twice = format!("[listener.a]\nbind = ['{one}', '127.0.0.1:1', '{other}']\n{ROUTE}");
        refused(&twice, "weir.toml:2: listener.a.bind.2: `");
        let admin = format!("[listener.a]\nbind = '{one}'\n{ROUTE}[admin]\nbind = '{other}'\n");
        refused(&admin, &format!("admin.bind: `{other}` is the address `{one}` of `listener.a.bind.0`"));
    }
    let usual = format!("[listener.a]\nbind = '127.0.0.1:9901'\n{ROUTE}[admin]\n");
    refused(&usual, "weir.toml:5: admin.bind: `127.0.0.1:9901` is the address `127.0.0.1:9901` of");
    let mapped = format!("[listener.a]\nbind = '[::ffff:127.0.0.1]:80'\n{ROUTE}");
    refused(
        &mapped,
        "listener.a.bind.0: invalid address `[::ffff:127.0.0.1]:80`: IPv4 in the form of IPv6; write 127.0.0.1:80",
    );
}

#[test]
fn flags_name_an_address_once() {
    let listen = ["--listen", "http://localhost:8443", "--listen", "http://LOCALHOST:8443"];
    let ended = Weir::run(&[&["serve", "--to", "http://127.0.0.1:1"][..], &listen].concat());
    assert_eq!(ended.code, Some(2));
    let expected = "--listen: `LOCALHOST:8443` is the address `localhost:8443` of `--listen`";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}

/// A port that is free now. If another process takes it first, the gateway's start fails.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The kernel prefers the listener with the more specific address.
#[test]
fn all_addresses_beside_one_of_them_are_told_apart() {
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let respond = |listener: &str| {
        format!("[[route]]\nlistener = '{listener}'\nrespond = {{ status = 200, body = '{listener}' }}\n")
    };
    let config = format!(
        "workers = 2\n[listener.all]\nbind = ['0.0.0.0:{port}', '[::]:{port}']\n[listener.one]\nbind = '127.0.0.1:{port}'\n\
         [listener.free]\nbind = ['127.0.0.1:0', '127.0.0.1:0']\n{}{}",
        respond("all"),
        respond("one")
    );
    fs::write(&file, config).unwrap();
    let _weir = Weir::of_file(&file, 5);
    for (address, listener) in [("127.0.0.1", "one"), ("127.0.0.2", "all"), ("[::1]", "all")] {
        for _ in 0..20 {
            let address = format!("{address}:{port}").parse().unwrap();
            let answer = Client::connect(address, None).ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(answer.text(), listener, "{address}");
        }
    }
}
