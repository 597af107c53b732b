//! Settings without a separate test file: each test fails if the gateway ignores its setting.

use super::{ask, gateway_to, metric, named};
use crate::common::{Client, DEADLINE, Peer, Upstream, Weir, poll_until};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::time::Duration;
use weir_http::Method;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const ADMIN: &str = "[admin]\nbind = '127.0.0.1:0'\n";

/// Regression test: a tunnel ignored its route's timeout, since it has no exchange.
#[test]
fn a_silent_tunnel_ends_after_its_time() {
    let upstream = Upstream::start(None, |peer: &mut Peer| {
        peer.head();
        peer.answer("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n");
        peer.read_to_end();
    });
    for setting in ["timeouts.tunnel = '100ms'", "[timeouts]\ntunnel = '100ms'"] {
        let weir = gateway_to(&upstream, setting);
        let mut client = Client::connect(weir.address(), None);
        client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n");
        assert_eq!(client.answer(Method::Get).status, 101);
        weir.wait_for_stderr(&["tunnel_idle"]);
    }
}

/// Both responses leave the connection open.
#[test]
fn trace_passes_where_that_is_set() {
    const TRACE: &str =
        "TRACE /x HTTP/1.1\r\nHost: h\r\nAuthorization: Basic eDp5\r\nCookie: a=b\r\nX-A: 1\r\n";
    let upstream = named("a");
    let weir = gateway_to(&upstream, "method = ['GET', 'TRACE', 'OPTIONS']");
    let mut client = Client::connect(weir.address(), None);
    for more in ["", "Max-Forwards: 0\r\n", "Max-Forwards: 1\r\n"] {
        let refused = client.ask(format!("{TRACE}{more}\r\n"));
        assert_eq!(
            (refused.status, refused.fields("allow")),
            (405, vec!["GET, OPTIONS"]),
            "{}",
            refused.head
        );
        assert!(refused.text().contains("trace_not_allowed"));
    }
    assert_eq!(client.ask(GET).status, 200);
    assert_eq!(upstream.requests().len(), 1);
    weir.wait_for_stderr(&["405 trace_not_allowed"]);

    let weir = gateway_to(&upstream, "trace = true");
    let mut client = Client::connect(weir.address(), None);
    let passed = client.ask(format!("{TRACE}Max-Forwards: 5\r\n\r\n"));
    assert!(passed.text().starts_with("a\nTRACE /x HTTP/1.1\r\nHost: h\r\nAuthorization: Basic eDp5\r\n"));
    assert!(passed.text().contains("\r\nMax-Forwards: 4\r\n"), "{}", passed.text());
    let reflected = client.ask(format!("{TRACE}Max-Forwards: 0\r\n\r\n"));
    assert_eq!((reflected.status, reflected.fields("content-type")), (200, vec!["message/http"]));
    assert_eq!(reflected.text(), "TRACE /x HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nMax-Forwards: 0\r\n\r\n");
    assert_eq!(upstream.requests().len(), 2);

    super::check::refused(
        "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\ntrace = true\n",
        "route.0.trace: no effect beside `respond`",
    );
}

#[test]
fn interim_responses_are_bounded() {
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    // Sends the number of hints given in the path.
    let upstream = Upstream::start(None, move |peer: &mut Peer| {
        while let Some(request) = peer.request() {
            let count = request.head.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
            let end = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            peer.answer(format!("{}{end}", hint.repeat(count)));
        }
    });
    for (settings, most) in [
        ("", 8),
        ("interim_responses = 2", 2),
        ("interim_responses = 0", 0),
        ("interim_responses = 20", 20),
        ("interim_responses = 20\ninterim_bytes = 512", 512 / hint.len()),
        ("interim_responses = 20\nhead = 512", 512 / hint.len()),
        ("interim_responses = 20\nhead = 512\ninterim_bytes = '1KiB'", 20),
    ] {
        let weir = gateway_to(&upstream, &format!("{ADMIN}[limits]\n{settings}"));
        for (version, passed) in [("1.1", most), ("1.0", 0)] {
            for (count, status) in [(most, 200), (most + 1, 502)] {
                let mut client = Client::connect(weir.address(), None);
                client.send(format!("GET /{count} HTTP/{version}\r\nHost: h\r\n\r\n"));
                let mut answer = client.answer(Method::Get);
                for _ in 0..passed {
                    assert_eq!(answer.status, 103, "{settings}");
                    answer = client.answer(Method::Get);
                }
                assert_eq!(answer.status, status, "{settings} {version} {count}: {}", answer.head);
                assert_eq!(answer.text().contains("upstream_interim_responses"), status == 502);
            }
        }
        assert_eq!(metric(&weir, "weir_ended_early_total"), 2, "{settings}");
    }
    for (setting, why) in [
        ("interim_responses = 1001", "limits.interim_responses: invalid value `1001`: expected 0 to 1000"),
        ("interim_bytes = 511", "limits.interim_bytes: invalid value `511`: expected 512 to 1048576"),
    ] {
        let route = "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n";
        super::check::refused(&format!("{route}[limits]\n{setting}\n"), why);
    }
}

#[test]
fn options_go_as_far_as_they_may() {
    let upstream = named("a");
    let weir = gateway_to(&upstream, "");
    let mut client = Client::connect(weir.address(), None);
    let mut ask =
        |method: &str, field: &str| client.ask(format!("{method} / HTTP/1.1\r\nHost: h\r\n{field}\r\n"));
    let last = ask("OPTIONS", "Max-Forwards: 0\r\n");
    assert_eq!(
        (last.status, last.fields("allow")),
        (204, vec!["GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"]),
        "{}",
        last.head
    );
    assert_eq!(upstream.requests().len(), 0);
    for (method, field, passed) in [
        ("OPTIONS", "max-forwards: 1\r\n", "\r\nMax-Forwards: 0\r\n"),
        ("OPTIONS", "Max-Forwards: 1\r\nConnection: max-forwards\r\n", "\r\nMax-Forwards: 0\r\n"),
        ("GET", "Max-Forwards: 0\r\n", "\r\nMax-Forwards: 0\r\n"),
        ("GET", "Max-Forwards: x\r\n", "\r\nMax-Forwards: x\r\n"),
    ] {
        let answer = ask(method, field);
        assert_eq!(answer.status, 200, "{method} {field}");
        assert!(answer.text().contains(passed), "{method} {field}: {}", answer.text());
        assert_eq!(
            answer.text().to_ascii_lowercase().matches("max-forwards").count(),
            1,
            "{}",
            answer.text()
        );
    }
    let refused = ask("OPTIONS", "Max-Forwards: x\r\n");
    assert!(refused.status == 400 && refused.text().contains("bad_max_forwards"), "{}", refused.head);
    assert_eq!(upstream.requests().len(), 4);
}

#[test]
fn a_client_that_does_not_close_is_waited_for_as_long_as_is_set() {
    let upstream = named("a");
    for (linger, left) in [("100ms", 0), ("1h", 1)] {
        let weir = gateway_to(&upstream, &format!("{ADMIN}[timeouts]\nlinger = '{linger}'"));
        let mut client = Client::connect(weir.address(), None);
        client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        assert_eq!(client.answer(Method::Get).status, 200);
        poll_until(DEADLINE, "the connection is closed, or kept", || metric(&weir, "weir_clients") == left);
    }
}

/// The slow head's timeout fires while the idle client may still send a request.
#[test]
fn idle_clients_are_kept_in_a_drain_as_long_as_is_set() {
    let upstream = named("a");
    let weir = gateway_to(&upstream, "[timeouts]\ndrain_idle = '20s'\nhead = '1500ms'");
    let mut idle = Client::connect(weir.address(), None);
    assert_eq!(idle.ask(GET).status, 200);
    let mut slow = Client::connect(weir.address(), None);
    slow.send("GET / HT");
    weir.terminate();
    assert_eq!(slow.answer(Method::Get).status, 408);
    let last = idle.ask(GET);
    assert!(last.status == 200 && last.says_close());
    drop((idle, slow));
    assert_eq!(weir.wait().code, Some(0));
}

/// Lines have the maximum length, so that a few thousand requests exceed the log's queue.
#[test]
fn requests_wait_for_a_log_that_is_full() {
    const REQUESTS: usize = 2000;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    // Opened first, in non-blocking mode, so that it does not wait for a writer.
    let reader = OpenOptions::new().read(true).custom_flags(0o4000).open(&file).unwrap();
    let upstream = named("a");
    let log =
        format!("{ADMIN}[log]\naccess = '{}'\nformat = '{{target}}'\nwhen_full = 'wait'\n", file.display());
    let weir = gateway_to(&upstream, &log);
    let address = weir.address();
    let asking = std::thread::spawn(move || {
        let mut client = Client::connect(address, None);
        let request = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(8000));
        for _ in 0..REQUESTS {
            assert_eq!(client.ask(&request).status, 200);
        }
    });
    // Reads nothing until no further request gets through. Stopping too early would only make the test weaker.
    let (mut served, mut same) = (0, 0);
    while same < 50 && !asking.is_finished() {
        std::thread::park_timeout(Duration::from_millis(10));
        let now = upstream.requests().len();
        same = if now == served { same + 1 } else { 0 };
        served = now;
    }
    let mut lines = BufReader::new(std::fs::File::open(&file).unwrap()).lines();
    drop(reader);
    for _ in 0..REQUESTS {
        assert_eq!(lines.next().unwrap().unwrap().len(), 8001);
    }
    asking.join().unwrap();
    assert_eq!(metric(&weir, "weir_access_log_lost_lines_total"), 0);
}

#[test]
fn a_server_that_was_ejected_returns_as_slowly_as_is_set() {
    for (slow_return, fast) in [("1ms", true), ("1h", false)] {
        let flaky = Upstream::start(None, |peer: &mut Peer| {
            while peer.request().is_some() {
                if peer.index == 0 {
                    return;
                }
                peer.answer("HTTP/1.1 200 OK\r\nX-Server: flaky\r\nContent-Length: 0\r\n\r\n");
            }
        });
        let good = named("good");
        let config = format!(
            "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\n[service.app]\nservers = ['http://{}', 'http://{}']\n\
             eject = {{ failures = 1, for = '100ms', slow_return = '{slow_return}' }}\n[[route]]\nservice = 'app'\n{ADMIN}",
            flaky.address, good.address
        );
        let weir = Weir::configured(&config, 1);
        poll_until(DEADLINE, "it is ejected", || ask(&weir, GET).status == 502);
        poll_until(DEADLINE, "it returns", || metric(&weir, "weir_server_ejected") == 0);
        let mut client = Client::connect(weir.address(), None);
        let by_flaky = (0..60).filter(|_| client.ask(GET).fields("x-server") == ["flaky"]).count();
        // Half of the requests, or an eleventh.
        assert_eq!(by_flaky > 20, fast, "{slow_return}: {by_flaky}");
    }
}

/// A token of Kerberos size passes if only `limits.head` is larger.
#[test]
fn heads_and_chunk_extensions_are_as_long_as_is_set() {
    let upstream = named("a");
    let field = |bytes: usize| format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(bytes));
    let fields = |count: usize| format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "X: 1\r\n".repeat(count - 1));
    let extension = |bytes: usize| {
        let extension = format!(";{}", "x".repeat(bytes - 1));
        format!(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1{extension}\r\na\r\n0\r\n\r\n"
        )
    };
    for (settings, passed, refused, reason) in [
        ("", field(32_000), field(33_000), "431 head_too_long"),
        ("head = '96KiB'", field(64 << 10), field(97 << 10), "431 head_too_long"),
        ("line = 256", field(256 - "X: \r\n".len()), field(257 - "X: \r\n".len()), "431 field_line_too_long"),
        ("", fields(100), fields(101), "431 too_many_fields"),
        ("fields = 3", fields(3), fields(4), "431 too_many_fields"),
        ("", extension(256), extension(257), "400 chunk_extension_too_long"),
        ("chunk_extension = '4KiB'", extension(4096), extension(4097), "400 chunk_extension_too_long"),
    ] {
        let weir = gateway_to(&upstream, &format!("[limits]\n{settings}"));
        let (status, reason) = reason.split_once(' ').unwrap();
        assert_eq!(ask(&weir, &passed).status, 200, "{settings} {reason}");
        let answer = ask(&weir, &refused);
        assert_eq!(answer.status.to_string(), status, "{settings} {reason}");
        assert!(answer.text().contains(reason), "{settings}: {}", answer.text());
    }
    for (setting, why) in [
        ("line = 255", "limits.line: invalid value `255`: expected 256 to 1048576"),
        ("fields = 1001", "limits.fields: invalid value `1001`: expected 1 to 1000"),
        ("chunk_extension = '65KiB'", "limits.chunk_extension: invalid value `66560`: expected 0 to 65536"),
    ] {
        let route = "[listener.web]\nbind = '127.0.0.1:0'\n[[route]]\nrespond.status = 200\n";
        super::check::refused(&format!("{route}[limits]\n{setting}\n"), why);
    }
}

#[test]
fn a_listener_and_a_service_have_limits_of_their_own() {
    let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 2\r\n\r\nok", "x".repeat(3000));
    let upstream = Upstream::start(None, move |peer: &mut Peer| peer.serve(head.as_str()));
    let server = upstream.address;
    let weir = Weir::configured(
        &format!(
            "workers = 1
            limits.head = '2KiB'
            [listener.general]
            bind = '127.0.0.1:0'
            [listener.small]
            bind = '127.0.0.1:0'
            limits = {{ fields = 2, chunk_extension = 3 }}
            [listener.tokens]
            bind = '127.0.0.1:0'
            limits.head = '96KiB'
            [service.general]
            servers = 'http://{server}'
            [service.large]
            servers = 'http://{server}'
            limits.head = '4KiB'
            [[route]]
            path = '/general'
            service = 'general'
            [[route]]
            service = 'large'"
        ),
        3,
    );
    let ask = |listener: usize, path: &str, more: &str| {
        let request = format!("POST {path} HTTP/1.1\r\nHost: h\r\n{more}");
        let address = weir.urls[listener].strip_prefix("http://").unwrap().parse().unwrap();
        let answer = Client::connect(address, None).ask(request);
        let reason = answer.text().split([';', '\n']).next().unwrap_or_default().to_owned();
        (answer.status, reason.rsplit(' ').next().unwrap_or_default().to_owned())
    };
    let token = |bytes: usize| format!("Content-Length: 0\r\nX: {}\r\n\r\n", "x".repeat(bytes));
    let chunk =
        |extension: &str| format!("Transfer-Encoding: chunked\r\n\r\n1;{extension}\r\na\r\n0\r\n\r\n");
    let (passes, fails) = ((200, "ok".to_owned()), |status, reason: &str| (status, reason.to_owned()));
    assert_eq!(ask(0, "/large", &token(2100)), fails(431, "head_too_long"));
    assert_eq!(ask(2, "/large", &token(90_000)), passes);
    assert_eq!(ask(2, "/large", &token(99_000)), fails(431, "head_too_long"));
    assert_eq!(ask(0, "/large", &chunk("long")), passes);
    assert_eq!(ask(1, "/large", &chunk("s")), passes);
    assert_eq!(ask(1, "/large", &chunk("long")), fails(400, "chunk_extension_too_long"));
    assert_eq!(ask(1, "/large", &token(10)), fails(431, "too_many_fields"));
    assert_eq!(ask(0, "/general", &token(10)), fails(502, "bad_response"));
    let route = "[[route]]\nrespond.status = 200\n[listener.web]\nbind = '127.0.0.1:0'\n";
    for (setting, why) in [
        ("limits.head = 511", "listener.web.limits.head: invalid value `511`: expected 512 to 1048576"),
        ("limits.body = 1", "listener.web.limits.body: unknown field `body`, expected one of"),
    ] {
        super::check::refused(&format!("{route}{setting}\n"), why);
    }
}
