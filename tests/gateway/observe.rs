//! Observability of a running gateway: the access log, metrics, health.

use super::{ask, get, named};
use crate::common::{Certificates, Client, DEADLINE, Peer, Upstream, Weir, poll_until};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// A gateway with these lines, a service `app` at an address, and its admin address.
fn observed(lines: &str, upstream: SocketAddr) -> (Weir, SocketAddr) {
    let config = format!(
        "workers = 2
        [listener.web]
        bind = '127.0.0.1:0'
        [service.app]
        servers = 'http://{upstream}'
        [[route]]
        service = 'app'
        [admin]
        bind = '127.0.0.1:0'
        {lines}"
    );
    let weir = Weir::configured(&config, 1);
    let admin = weir.admin();
    (weir, admin)
}

fn admin(at: SocketAddr, path: &str) -> (u16, String) {
    let answer = Client::connect(at, None).ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    (answer.status, answer.text().to_owned())
}

/// Waits until a file has this many lines.
fn lines(file: &Path, count: usize) -> Vec<String> {
    let read = || fs::read_to_string(file).unwrap_or_default();
    poll_until(DEADLINE, &format!("{count} lines"), || read().lines().count() >= count);
    read().lines().map(str::to_owned).collect()
}

#[test]
fn every_request_has_a_line_in_the_access_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            if request.head.starts_with("GET /gone") {
                return;
            }
            peer.answer("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    let (weir, _) = observed(&format!("[log]\naccess = '{}'", file.display()), upstream.address);
    let post = "POST /a?b=\\\"c HTTP/1.1\r\nHost: h.example\r\nUser-Agent: test\tagent\r\nReferer: http://r\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(ask(&weir, &post.replace("\\\"", "%22")).status, 201);
    assert_eq!(get(&weir, "h", "/gone").status, 502);
    assert_eq!(ask(&weir, "GET / HTTP/1.1\r\n\r\n").status, 400);
    let lines: Vec<Value> =
        lines(&file, 3).iter().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let find = |status: u64| lines.iter().find(|line| line["status"] == status).unwrap();
    let line = find(201);
    for (name, value) in [
        ("client", "127.0.0.1"),
        ("listener", "web"),
        ("method", "POST"),
        ("host", "h.example"),
        ("target", "/a?b=%22c"),
        ("service", "app"),
        ("user_agent", "test\tagent"),
        ("referer", "http://r"),
    ] {
        assert_eq!(line[name], value, "{name} of {line}");
    }
    assert_eq!((&line["received"], &line["sent"]), (&Value::from(3), &Value::from(5)));
    assert_eq!(line["server"], upstream.address.to_string());
    for name in ["connect_ms", "wait_ms", "transfer_ms", "total_ms"] {
        assert!(line[name].as_f64().is_some_and(|ms| (0.0..30_000.0).contains(&ms)), "{name} of {line}");
    }
    assert!(line["time"].as_str().is_some_and(|time| time.len() == 24 && time.ends_with('Z')), "{line}");
    assert!(line.get("reason").is_none() && line.get("tls_version").is_none(), "{line}");
    assert_eq!(find(502)["reason"], "upstream_closed");
    assert_eq!(find(400)["reason"], "missing_host");
}

#[test]
fn a_template_is_a_line_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let upstream = named("a");
    let format = "{client} {{{method}}} \"{target}\" {status} {sent} {tls_version} \"{user_agent}\"";
    let (weir, _) =
        observed(&format!("[log]\naccess = '{}'\nformat = '{format}'", file.display()), upstream.address);
    let request = "HEAD /x HTTP/1.1\r\nHost: h\r\nUser-Agent: a\"b\r\nConnection: close\r\n\r\n";
    let mut client = Client::connect(weir.address(), None);
    client.send(request);
    assert_eq!(client.answer(weir_http::Method::Head).status, 200);
    assert_eq!(lines(&file, 1), ["127.0.0.1 {HEAD} \"/x\" 200 0 - \"a\\x22b\""]);
}

/// Log rotation renames the file; the gateway creates a new one under the old name.
#[test]
fn a_renamed_log_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let upstream = named("a");
    let (weir, _) = observed(&format!("[log]\naccess = '{}'", file.display()), upstream.address);
    get(&weir, "h", "/first");
    lines(&file, 1);
    let old = folder.path().join("access.log.1");
    fs::rename(&file, &old).unwrap();
    poll_until(DEADLINE, "a new file", || file.exists());
    get(&weir, "h", "/second");
    assert!(lines(&file, 1)[0].contains("/second"));
    assert_eq!(lines(&old, 1).len(), 1);
}

#[test]
fn lines_that_cannot_be_written_are_counted() {
    if !Path::new("/dev/full").exists() {
        println!("skipped: there is no /dev/full");
        return;
    }
    let upstream = named("a");
    let (weir, at) = observed("[log]\naccess = '/dev/full'", upstream.address);
    for _ in 0..3 {
        assert_eq!(get(&weir, "h", "/").status, 200);
    }
    weir.wait_for_stderr(&["log.access: /dev/full: No space left", "lines are lost"]);
    poll_until(DEADLINE, "three lines are counted", || {
        admin(at, "/metrics").1.contains("weir_access_log_lost_lines_total 3\n")
    });
}

#[test]
fn a_log_that_cannot_be_opened_is_reported_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let config = "[listener.web]\nbind = '127.0.0.1:0'\n[log]\naccess = '/no/such/folder/access.log'\n";
    fs::write(&file, config).unwrap();
    let ended = Weir::run(&["serve", "--config", file.to_str().unwrap()]);
    assert!(
        ended.code == Some(2)
            && ended.stderr.contains("log.access: /no/such/folder/access.log: No such file"),
        "{}",
        ended.stderr
    );
}

#[test]
fn metrics_count_what_happens() {
    let upstream = named("a");
    let (weir, at) = observed("", upstream.address);
    let mut client = Client::connect(weir.address(), None);
    for _ in 0..3 {
        assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    }
    assert_eq!(ask(&weir, "GET / HTTP/1.1\r\n\r\n").status, 400);
    let (status, text) = admin(at, "/metrics");
    assert_eq!(status, 200);
    let server = upstream.address;
    for line in [
        "weir_connections_total 2",
        "weir_requests_total 3",
        "weir_responses_total{class=\"2xx\"} 3",
        "weir_responses_total{class=\"4xx\"} 1",
        "weir_ended_early_total{reason=\"missing_host\"} 1",
        "weir_request_seconds_count 4",
        "weir_upstream_connections_total 1",
        &format!("weir_server_responses_total{{service=\"app\",server=\"{server}\",class=\"2xx\"}} 3"),
        &format!("weir_server_idle_connections{{service=\"app\",server=\"{server}\"}} 1"),
    ] {
        assert!(text.lines().any(|found| found == line), "no `{line}` in {text}");
    }
    // The exposition declares each family once, and every sample belongs to one.
    let mut families = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(family) => families.push(family.split(' ').next().unwrap()),
            None if line.starts_with('#') => {}
            None => assert!(families.last().is_some_and(|family| line.starts_with(family)), "{line}"),
        }
    }
    let status: Value = serde_json::from_str(&admin(at, "/status").1).unwrap();
    assert_eq!(
        (&status["requests"], &status["servers"][0]["service"]),
        (&Value::from(3), &Value::from("app"))
    );
    assert!(admin(at, "/config").1.contains("any host /* -> service app"));
    assert_eq!((admin(at, "/health").0, admin(at, "/").0, admin(at, "/nothing").0), (200, 200, 404));
    let answer = Client::connect(at, None)
        .ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(answer.status, 405);
}

#[test]
fn a_gateway_that_drains_is_not_ready() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        peer.read_to_end();
    });
    let (weir, at) = observed("", upstream.address);
    assert_eq!(admin(at, "/ready"), (200, "ready\n".to_owned()));
    let mut waiting = Client::connect(weir.address(), None);
    waiting.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    poll_until(DEADLINE, "the request is at the upstream", || upstream.received_bytes() > 0);
    weir.terminate();
    poll_until(DEADLINE, "it drains", || admin(at, "/ready") == (503, "draining\n".to_owned()));
}

#[test]
fn tls_is_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let certificates = Certificates::new();
    let config = format!(
        "[listener.web]\nbind = '127.0.0.1:0'\ntls = {{}}\n[[certificate]]\nchain = '{}'\nkey = '{}'\n[[route]]\nrespond.status = 200\n[log]\naccess = '{}'",
        certificates.cert.display(),
        certificates.key.display(),
        file.display()
    );
    let weir = Weir::configured(&config, 1);
    let mut client = Client::connect(weir.address(), Some(certificates.session()));
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    let line: Value = serde_json::from_str(&lines(&file, 1)[0]).unwrap();
    assert_eq!(line["protocol"], "HTTP/1.1");
    assert_eq!((&line["tls_version"], &line["tls_handshake"]), (&Value::from("1.3"), &Value::from("full")));
}

#[test]
fn top_shows_rates_and_servers() {
    let upstream = named("a");
    let (weir, at) = observed("", upstream.address);
    let url = format!("http://{at}");
    let busy = std::sync::atomic::AtomicBool::new(true);
    let shown = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::connect(weir.address(), None);
            let begun = std::time::Instant::now();
            while busy.load(std::sync::atomic::Ordering::SeqCst) && begun.elapsed() < DEADLINE {
                client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            }
        });
        let mut shown = String::new();
        poll_until(DEADLINE, "a rate is shown", || {
            let ended = Weir::run(&["top", "--admin", &url, "--once", "--every", "0.2"]);
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            shown = ended.stdout;
            let rate =
                shown.lines().find_map(|line| line.strip_prefix("requests/s")?.split_whitespace().next());
            rate.is_some_and(|rate| rate.parse::<f64>().unwrap() > 0.0)
        });
        busy.store(false, std::sync::atomic::Ordering::SeqCst);
        shown
    });
    let server = upstream.address.to_string();
    assert!(
        shown.lines().any(|line| line.starts_with("app ") && line.contains(&server) && line.contains(" up "))
    );
    assert!(shown.lines().all(|line| line.len() <= 100), "{}", shown);
    let nobody = Weir::run(&["top", "--admin", "http://127.0.0.1:1", "--once"]);
    assert!(
        nobody.code == Some(1)
            && nobody.stderr.contains("Connection refused")
            && nobody.stderr.contains("[admin]"),
        "{}",
        nobody.stderr
    );
}
