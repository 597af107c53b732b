//! Active health checks.

mod grpc;
mod http2;
mod server;

use super::{get, named};
use crate::common::{Certificates, DEADLINE, Message, Peer, Upstream, Weir, poll_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

const LISTENER: &str = "workers = 2\n[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nservice = 'app'\n";
const FAST: &str = "every = '20ms', timeout = '5s', rise = 2, fall = 2";

/// A server that responds to health checks with this status, and to other requests with 200.
fn checked(status: &Arc<AtomicU16>) -> Upstream {
    let status = Arc::clone(status);
    Upstream::start(None, move |peer: &mut Peer| {
        while let Some(Message { head, .. }) = peer.request() {
            let status = if head.starts_with("GET /health ") { status.load(Ordering::SeqCst) } else { 200 };
            peer.answer(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"));
        }
    })
}

#[test]
fn a_server_whose_checks_fail_gets_no_requests_until_they_pass() {
    let status = Arc::new(AtomicU16::new(204));
    let server = checked(&status);
    let config = format!(
        "{LISTENER}[service.app]\nservers = 'http://{}'\nhealth = {{ path = '/health', host = 'check.example', {FAST} }}",
        server.address
    );
    let weir = Weir::configured(&config, 1);
    assert_eq!(get(&weir, "h", "/").status, 200);
    poll_until(DEADLINE, "a check", || {
        server.requests().iter().any(|request| request.head.contains("Host: check.example\r\n"))
    });
    status.store(500, Ordering::SeqCst);
    weir.wait_for_stderr(&["weir: app: http://127.0.0.1:", "is down: status 500"]);
    poll_until(DEADLINE, "both workers know", || {
        (0..8).all(|_| {
            let answer = get(&weir, "h", "/");
            (answer.status, answer.text().contains("no_server")) == (503, true)
        })
    });
    status.store(302, Ordering::SeqCst);
    weir.wait_for_stderr(&["is up"]);
    poll_until(DEADLINE, "both workers know", || (0..8).all(|_| get(&weir, "h", "/").status == 200));
}

#[test]
fn requests_go_to_the_servers_that_are_up() {
    let status = Arc::new(AtomicU16::new(200));
    let bad = checked(&Arc::new(AtomicU16::new(404)));
    let good = checked(&status);
    let config = format!(
        "{LISTENER}[service.app]\nservers = ['http://{}', 'http://{}']\nhealth = {{ path = '/health', {FAST}, status = ['200', '300-399'] }}",
        bad.address, good.address
    );
    let weir = Weir::configured(&config, 1);
    weir.wait_for_stderr(&[&bad.address.to_string(), "is down: status 404"]);
    let served = |server: &Upstream| {
        server.requests().iter().filter(|request| request.head.starts_with("GET /x ")).count()
    };
    poll_until(DEADLINE, "only the other one is asked", || {
        let before = served(&bad);
        assert!((0..8).all(|_| get(&weir, "h", "/x").status == 200));
        served(&bad) == before
    });
    assert!(served(&good) > 0);
}

#[test]
fn without_a_path_a_connection_is_enough() {
    let certificates = Certificates::new();
    let plain = named("a");
    let tls = Upstream::start(Some(certificates.server().core()), |peer: &mut Peer| {
        peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    let foreign = Certificates::new();
    for (servers, down) in [
        (format!("servers = 'http://{}'", plain.address), false),
        (format!("servers = 'https://{}'\ntls.ca = '{}'", tls.address, certificates.ca.display()), false),
        (format!("servers = 'https://{}'\ntls.ca = '{}'", tls.address, foreign.ca.display()), true),
        ("servers = 'http://127.0.0.1:1'".to_owned(), true),
    ] {
        let weir = Weir::configured(&format!("{LISTENER}[service.app]\n{servers}\nhealth = {{ {FAST} }}"), 1);
        match down {
            true => weir.wait_for_stderr(&["is down: "]),
            false => {
                let before = plain.connections() + tls.connections();
                poll_until(DEADLINE, "four checks", || plain.connections() + tls.connections() >= before + 4);
                assert!(!weir.stderr().contains("is down"), "{}", weir.stderr());
            }
        }
    }
}

#[test]
fn a_server_that_does_not_answer_in_time_is_down() {
    let silent = Upstream::start(None, |peer: &mut Peer| {
        peer.read_to_end();
    });
    let config = format!(
        "{LISTENER}[service.app]\nservers = 'http://{}'\nhealth = {{ path = '/', every = '20ms', timeout = '50ms', fall = 1 }}",
        silent.address
    );
    let weir = Weir::configured(&config, 1);
    weir.wait_for_stderr(&["is down: no response within 50ms"]);
    // The health check thread does not delay the exit.
    assert_eq!(weir.stop().code, Some(0));
}

#[test]
fn what_no_check_can_be_is_refused() {
    for (health, fault) in [
        ("path = 'x'", "service.app.health.path: invalid value `x`: expected a path such as /health"),
        ("rise = 0", "service.app.health.rise: invalid value `0`: expected at least 1"),
        ("status = '99'", "service.app.health.status: invalid status `99`: expected one such as 200"),
        ("status = '300-200'", "service.app.health.status: invalid status `300-200`"),
        ("every = '0s'", "service.app.health.every: invalid duration `0s`"),
    ] {
        let found = faults(&format!(
            "{LISTENER}[service.app]\nservers = 'http://127.0.0.1:1'\nhealth = {{ {health} }}"
        ));
        assert!(found.contains(fault), "{health}: {found}");
    }
}

/// The errors of a configuration that `weir check` rejects.
fn faults(config: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    std::fs::write(&file, config).unwrap();
    let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
    assert_eq!(ended.code, Some(2), "{config}");
    ended.stderr
}

/// Waits until all workers respond with `no_server`, or none does.
fn wait_for_status(weir: &Weir, is_down: bool) {
    poll_until(DEADLINE, "both workers know", || {
        (0..8).all(|_| {
            let response = get(weir, "h", "/");
            (response.status == 503 && response.text().contains("no_server")) == is_down
        })
    });
}
