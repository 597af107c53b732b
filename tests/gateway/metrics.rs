//! `[metrics]`: an address for monitoring, without the admin address's privileges.

use super::held_back;
use super::unix::exchange;
use super::upgrade::{Line, UPGRADE, answering};
use crate::common::{Answer, Client, DEADLINE, Switch, Weir, is_gone, poll_until};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;

const WEB: &str = "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n";

fn address(weir: &Weir) -> SocketAddr {
    let stdout = weir.stdout();
    let mut places = stdout.lines().filter_map(|line| line.strip_prefix("metrics on http://"));
    places.next_back().expect("a metrics address").parse().unwrap()
}

fn ask(at: SocketAddr, request: &str) -> Answer {
    let mut client = Client::connect(at, None);
    client.send(format!("{request} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    client.answer(if request.starts_with("HEAD") { weir_http::Method::Head } else { weir_http::Method::Get })
}

#[test]
fn it_shows_state_and_changes_nothing() {
    for admin in ["", "[admin]\nbind = '127.0.0.1:0'\n"] {
        let weir = Weir::configured(&format!("{WEB}{admin}[metrics]\nbind = '127.0.0.1:0'\n"), 1);
        let at = address(&weir);
        for (request, status, text) in [
            ("GET /metrics", 200, "weir_build_info{"),
            ("HEAD /metrics", 200, ""),
            ("GET /status", 200, "\"draining\":false"),
            ("GET /health", 200, "healthy"),
            ("GET /ready", 200, "ready"),
            ("GET /", 404, "expected one of /metrics, /status, /health, /ready"),
            ("GET /config", 404, ""),
            ("GET /services", 404, ""),
            ("GET /services/app/servers/a", 404, ""),
            ("GET /reload", 404, ""),
            ("POST /reload", 404, "expected one of /metrics, /status, /health, /ready"),
            ("POST /upgrade", 404, ""),
            ("POST /services/app/servers/a?state=drain", 404, ""),
            ("POST /metrics", 405, "expected GET or HEAD: nothing can be changed"),
            ("DELETE /metrics", 405, "nothing can be changed"),
        ] {
            let answer = ask(at, request);
            assert_eq!(answer.status, status, "{request}: {}", answer.text());
            assert!(answer.text().contains(text), "{request}: {}", answer.text());
            let allowed = if status == 405 { &["GET, HEAD"][..] } else { &[] };
            assert_eq!(answer.fields("allow"), allowed, "{request}");
        }
        assert!(weir.successors().is_empty());
        let reloads = ask(at, "GET /metrics");
        assert!(reloads.text().contains("weir_reloads_total{result=\"taken\"} 0\n"));
    }
}

/// As on the admin address, the gateway rejects pages whose name resolves to this machine.
#[test]
fn it_serves_its_own_hosts_alone() {
    let weir =
        Weir::configured(&format!("{WEB}[metrics]\nbind = '127.0.0.1:0'\nhosts = 'weir.internal'\n"), 1);
    for (host, status) in [
        ("localhost", 200),
        ("10.0.0.1:9902", 200),
        ("weir.internal", 200),
        ("evil.example", 421),
        ("weir.internal.evil.example", 421),
    ] {
        let answer = Client::connect(address(&weir), None)
            .ask(format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(answer.status, status, "{host}");
        assert!(
            status == 200 || answer.text().contains("`hosts` in the [metrics] table"),
            "{}",
            answer.text()
        );
    }
}

#[test]
fn it_may_be_a_unix_socket_and_has_a_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.sock");
    let config = format!("{WEB}[metrics]\nbind = 'unix:{}'\nmode = '600'\n", path.display());
    let weir = Weir::configured(&config, 1);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let answer = exchange(&path, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("weir_clients "), "{answer}");
    drop(weir);
    let file = folder.path().join("weir.toml");
    fs::write(&file, format!("{WEB}[metrics]\n")).unwrap();
    let shown = Weir::run(&["check", "--explain", "--config", file.to_str().unwrap()]);
    assert!(shown.stdout.contains("metrics at 127.0.0.1:9902\n"), "{}", shown.stdout);
    for (wrong, why) in
        [("port = 1", "unknown field `port`"), ("bind = 9902", "bind"), ("bind = '9902'", "missing host")]
    {
        fs::write(&file, format!("{WEB}[metrics]\n{wrong}\n")).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
        assert!(ended.code == Some(2) && ended.stderr.contains(why), "{wrong}: {}", ended.stderr);
    }
    fs::write(&file, format!("{WEB}[admin]\nbind = 'localhost:9902'\n[metrics]\n")).unwrap();
    let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
    assert!(ended.code == Some(2) && ended.stderr.contains("metrics.bind: "), "{}", ended.stderr);
}

#[test]
fn an_upgrade_hands_it_over_and_a_reload_cannot_move_it() {
    let with = |port: u16| format!("{}[metrics]\nbind = '127.0.0.1:{port}'\n", answering("a"));
    let line = Line::new(&with(0), 1);
    let at = address(&line.weir);
    let before = line.pids().last().copied().unwrap();
    assert_eq!(line.ask(UPGRADE).status, 200);
    poll_until(DEADLINE, "the one before is gone", || is_gone(before));
    assert_eq!(address(&line.weir), at);
    assert!(ask(at, "GET /metrics").text().contains("weir_upgrades_total{result=\"taken\"} 1\n"));
    line.write(&with(1));
    let refused = line.ask("POST /reload HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(refused.status == 409 && refused.text().contains("metrics.bind"), "{}", refused.text());
}

#[test]
fn it_shows_a_drain_to_its_end() {
    let answer = Switch::default();
    let upstream = held_back(&answer, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold");
    let config = super::config_to(&upstream, "[metrics]\nbind = '127.0.0.1:0'\n");
    let mut weir = Weir::configured(&config, 1);
    let at = address(&weir);
    let mut client = Client::connect(weir.address(), None);
    client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    upstream.wait_for_requests(1);
    weir.terminate();
    poll_until(DEADLINE, "it drains", || ask(at, "GET /ready").status == 503);
    assert_eq!((ask(at, "GET /health").status, ask(at, "GET /metrics").status), (200, 200));
    answer.throw();
    assert_eq!(client.answer(weir_http::Method::Get).text(), "old");
    assert_eq!(weir.exit_code(), Some(0));
}
