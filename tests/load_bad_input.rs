//! Mistakes of `weir load` users, servers that fail throughout a run, and Ctrl-C: each ends the run soon, with a
//! message that names the fault and an exit code.

use crate::common::load::{NO_EVIDENCE, adds_up, ends_as_judged, load, load_well, served};
use crate::common::{self, Certificates, DEADLINE, Ended, Upstream, Weir, origin, poll_until};
use rustix::process::Signal;
use std::fs;
use std::net::TcpListener;
use weir_load::result::LoadResult;

/// Failed.
const FAILED: i32 = 1;
/// Wrong usage.
const USAGE: i32 = 2;
/// An assertion failed.
const BROKEN: i32 = 4;

/// A URL that is never contacted, since the process fails first.
const CLEARTEXT: &str = "http://127.0.0.1:1/";
const TLS: &str = "https://127.0.0.1:1/";

/// Runs `weir load ARGS` for longer than a test waits, so that the message must come before the run: it must exit
/// with `code` and a message that contains all of `parts`, without a result or a panic.
fn ends(args: &[&str], code: i32, parts: &[&str]) {
    ends_as_it_is(&[args, &["-d", "60s"]].concat(), code, parts);
}

fn ends_as_it_is(args: &[&str], code: i32, parts: &[&str]) {
    let ended = Weir::run(&[&["load"], args].concat());
    assert_eq!(ended.code, Some(code), "{args:?}: {}{}", ended.stdout, ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{args:?}: {}", ended.stderr);
    assert_eq!(ended.stdout, "", "{args:?}: no result expected");
    for part in parts {
        assert!(ended.stderr.contains(part), "{args:?}: no `{part}` in {}", ended.stderr);
    }
}

#[test]
fn unknown_names_in_tls_list_the_known_ones() {
    let suites = ["rot13", "aes128-gcm-sha256", "ecdhe-ecdsa-aes128-gcm-sha256"];
    ends(&[TLS, "--suite", "rot13"], USAGE, &[&["--suite"], &suites[..]].concat());
    ends(&[TLS, "--suite", "aes128-gcm-sha256,rot13"], USAGE, &suites);
    let groups = ["--group", "p-257", "x25519", "p256", "p384", "x25519mlkem768"];
    ends(&[TLS, "--group", "p-257"], USAGE, &groups);
    ends(&[TLS, "--signature", "md5"], USAGE, &["--signature", "md5", "ecdsa-p256-sha256", "rsa-pss-sha256"]);
    for version in ["1.1", "1.3-1.2", "1.2-"] {
        ends(&[TLS, "--tls", version], USAGE, &["--tls", version, "1.2", "1.3"]);
    }
}

#[test]
fn invalid_values_name_the_flag_and_the_expected_values() {
    for rate in ["0", "-5", "fast", "1000:", "1000:60s,", "1000:60s,0:60s", "1000:soon", "nan", "inf"] {
        ends_as_it_is(&[CLEARTEXT, &format!("--rate={rate}")], USAGE, &["--rate"]);
    }
    // The steps have their own durations.
    ends(&[CLEARTEXT, "--rate", "10:60s,20:60s"], USAGE, &["-d", "--rate"]);
    ends(&[CLEARTEXT, "--rate", "10", "--arrivals", "often"], USAGE, &["often", "constant", "poisson"]);
    ends(&[CLEARTEXT, "--arrivals", "poisson"], USAGE, &["--rate"]);
    ends(&[CLEARTEXT, "--rate", "10", "--think", "1s"], USAGE, &["--think"]);
    for resume in ["101", "-1", "all"] {
        ends(&[TLS, "--new-connection", &format!("--resume={resume}")], USAGE, &["--resume", resume]);
    }
    ends(&[CLEARTEXT, "--new-connection", "--resume", "50"], USAGE, &["--resume", "https"]);
    ends(&[TLS, "--resume", "50"], USAGE, &["--resume", "--new-connection"]);
    ends(
        &[TLS, "--new-connection", "--resume", "50", "--resume-by", "luck"],
        USAGE,
        &["luck", "id", "ticket"],
    );
    ends(&[CLEARTEXT, "--handshake-only"], USAGE, &["--handshake-only", "https"]);
    ends(&[CLEARTEXT, "--chunked"], USAGE, &["--chunked", "--data"]);
    ends(&[CLEARTEXT, "--data", "5", "--chunked=0"], USAGE, &["--chunked", "1 to 1GiB"]);
    ends(&[CLEARTEXT, "--error-budget", "101"], USAGE, &["--error-budget", "0 to 100 percent"]);
    for number in ["0", "5-2", "x", "1-"] {
        ends(
            &[CLEARTEXT, "--requests-per-connection", number],
            USAGE,
            &["--requests-per-connection", number],
        );
    }
    ends(&[CLEARTEXT, "--close", "softly"], USAGE, &["softly", "graceful", "fin", "rst"]);
    ends(&[CLEARTEXT, "--expect-sha256", "abc"], USAGE, &["--expect-sha256", "abc"]);
    ends(&[CLEARTEXT, "--source", "nowhere"], USAGE, &["--source", "nowhere"]);
    ends(&[CLEARTEXT, "--resolve", "a:b"], USAGE, &["--resolve", "a:b"]);
    ends(&[CLEARTEXT, "--connect-to", "a"], USAGE, &["--connect-to"]);
    ends(&[CLEARTEXT, "--pid", "client=1"], USAGE, &["--pid", "client", "gateway", "origin"]);
    ends(&[CLEARTEXT, "--pid", "999999999"], USAGE, &["--pid", "999999999"]);
    ends(&[CLEARTEXT, "http://127.0.0.1:2/"], USAGE, &["127.0.0.1:2"]);
    ends(&[CLEARTEXT, "http://127.0.0.1:1/b", "--weights", "1"], USAGE, &["--weights"]);
    ends(&[CLEARTEXT, "--unix-socket", "/no/such/socket"], FAILED, &["/no/such/socket"]);
}

#[test]
fn errors_in_a_file_of_requests_name_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.jsonl");
    let name = file.to_str().unwrap();
    for (line, parts) in [
        ("no JSON", &[][..]),
        (r#"{"path": 7}"#, &["path"]),
        (r#"{"path": "b"}"#, &["path", "b"]),
        (r#"{"path": "/", "methods": "GET"}"#, &["methods", "method"]),
        (r#"{"path": "/", "method": "GE T"}"#, &["GE T"]),
        (r#"{"path": "/", "headers": {"a b": "c"}}"#, &["a b"]),
        (r#"{"path": "/", "headers": {"Content-Length": "5"}}"#, &["Content-Length"]),
        (r#"{"path": "/", "weight": 0}"#, &["weight", "0"]),
        (r#"{"path": "/", "expect": {"status": 99}}"#, &["status", "99"]),
        (r#"{"path": "/", "expect": {"sha256": "xyz"}}"#, &["sha256", "xyz"]),
        (r#"["/"]"#, &[]),
    ] {
        fs::write(&file, format!("{{\"path\": \"/\"}}\n{line}\n")).unwrap();
        ends(&[CLEARTEXT, "--requests", name], USAGE, &[&[name, "line 2"], parts].concat());
    }
    fs::write(&file, "").unwrap();
    ends(&[CLEARTEXT, "--requests", name], USAGE, &[name]);
    ends(&[CLEARTEXT, "--requests", "/no/such/file"], USAGE, &["/no/such/file"]);
}

/// A trial connection detects them before the measurement.
#[test]
fn unreachable_servers_are_reported_before_the_run() {
    let certificates = Certificates::new();
    ends(&["http://no-such-host.invalid/"], FAILED, &["no-such-host.invalid"]);
    ends(&["https://no-such-host.invalid/", "-k"], FAILED, &["no-such-host.invalid"]);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    ends(&[&format!("http://{free}/")], FAILED, &[&free.to_string(), "refused"]);
    ends(&[&format!("https://{free}/"), "-k"], FAILED, &[&free.to_string(), "refused"]);

    let cleartext = origin(false, &certificates);
    let address = cleartext.address().to_string();
    ends(&[&format!("https://{address}/"), "-k"], FAILED, &[&address, "TLS"]);
    let silent = Upstream::start(None, |peer| _ = peer.read_to_end());
    let address = silent.address.to_string();
    ends(&[&format!("https://{address}/"), "-k", "--timeout", "300ms"], FAILED, &[&address]);

    // A server that speaks TLS, but shares no settings with this client.
    let tls = origin(true, &certificates);
    let url = format!("{}/", tls.urls[0]);
    ends(&[&url], FAILED, &[&tls.address().to_string(), "certificate"]);
    let others = Certificates::new();
    ends(&[&url, "--cacert", others.ca.to_str().unwrap()], FAILED, &["certificate"]);
    ends(&[&url, "-k", "--suite", "ecdhe-rsa-aes128-gcm-sha256"], FAILED, &[&tls.address().to_string()]);
    ends(
        &[&url, "--cacert", certificates.ca.to_str().unwrap(), "--sni", "other.example"],
        FAILED,
        &["other.example"],
    );
}

/// Every request got a response, but none was correct.
#[test]
fn a_run_without_success_is_no_evidence_and_counts_its_error_classes() {
    let certificates = Certificates::new();
    let origin = origin(false, &certificates);
    let url = format!("{}/no-such-path", origin.urls[0]);
    let args = [url.as_str(), "-c", "2", "--rate", "100", "-d", "500ms", "--warmup", "0s"];
    let loaded = load(&args);
    assert_eq!(loaded.code, Some(NO_EVIDENCE), "{:?}", loaded.result.validity);
    assert_eq!((loaded.result.requests, loaded.result.errors["status"]), (0, 50));
    assert_eq!(loaded.result.error_ratio, 1.0);
    assert!(loaded.stderr.contains("50 status"), "{}", loaded.stderr);
    assert!(loaded.stderr.contains("no correct response within the window"), "{}", loaded.stderr);
    let table = Weir::run(&[&["load"], &args[..]].concat());
    assert_eq!(table.code, Some(NO_EVIDENCE));
    assert!(table.stdout.contains("50 status"), "the table is printed: {}", table.stdout);
}

#[test]
fn assertions_hold_or_fail_or_are_invalid() {
    let certificates = Certificates::new();
    let origin = origin(false, &certificates);
    let url = format!("{}/bytes/10", origin.urls[0]);
    let run = |assertions: &[&str]| -> Ended {
        let assertions = assertions.iter().flat_map(|text| ["--assert", *text]);
        let args = ["load", url.as_str(), "-c", "2", "-d", "300ms", "--warmup", "0s"];
        Weir::run(&args.into_iter().chain(assertions).collect::<Vec<_>>())
    };
    let holds = run(&["p50_us>0", "error_ratio<=0"]);
    assert_eq!(holds.code, Some(0), "{}{}", holds.stdout, holds.stderr);
    let broken = run(&["p50_us>0", "p50_us<0"]);
    assert_eq!(broken.code, Some(BROKEN), "{}{}", broken.stdout, broken.stderr);
    assert!(broken.stderr.contains("p50_us<0"), "{}", broken.stderr);
    assert!(broken.stdout.contains("validity"), "the result is printed nevertheless: {}", broken.stdout);
    // An assertion fails on a percentile with too few samples.
    let few = [
        "load",
        &url,
        "-c",
        "1",
        "--think",
        "50ms",
        "-d",
        "500ms",
        "--warmup",
        "0s",
        "--assert",
        "p99_us<1e9",
    ];
    let few = Weir::run(&few);
    assert_eq!(few.code, Some(BROKEN), "{}{}", few.stdout, few.stderr);
    for (text, parts) in [
        ("luck>1", &["luck", "p99_us"][..]),
        ("p99_us", &["p99_us"]),
        ("p99_us<", &["p99_us<"]),
        ("p99_us<soon", &["soon"]),
        ("p99_us=~5", &["p99_us=~5"]),
    ] {
        ends(&[&url, "--assert", text], USAGE, &[&["--assert"], parts].concat());
    }
}

#[test]
fn unwritable_results_name_the_path() {
    let certificates = Certificates::new();
    let origin = origin(false, &certificates);
    let url = format!("{}/bytes/10", origin.urls[0]);
    for flag in ["--json", "--csv"] {
        let ended = Weir::run(&["load", &url, "-d", "50ms", "--warmup", "0s", flag, "/no/such/folder/x"]);
        assert_eq!(ended.code, Some(FAILED), "{flag}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(flag) && ended.stderr.contains("/no/such/folder/x"),
            "{}",
            ended.stderr
        );
    }
}

/// Ctrl-C in the window: the run ends at once and reports its result so far, marked as partial.
#[test]
fn ctrl_c_reports_the_result_so_far() {
    let certificates = Certificates::new();
    for flags in [&[][..], &["--rate", "1000"], &["--new-connection"]] {
        let origin = origin(false, &certificates);
        let url = format!("{}/bytes/10", origin.urls[0]);
        let run = [&["load", &url, "-c", "4", "-d", "60s", "--warmup", "0s"], flags].concat();
        let weir = Weir::spawn(&[&run[..], &["--json", "-"]].concat());
        poll_until(DEADLINE, "requests", || served(origin.address()) > 1000);
        weir.signal(Signal::INT);
        let ended = weir.wait();
        let result: LoadResult = serde_json::from_str(&ended.stdout).unwrap();
        // A pacer may be late on a busy machine.
        ends_as_judged(&ended, &result);
        assert!(result.partial, "{flags:?}");
        assert!(result.window_s > 0.0 && result.window_s < 60.0, "{flags:?}: {} s", result.window_s);
        assert!(result.requests > 0 && result.response.count > 0, "{flags:?}");
        assert_eq!(result.errors.len(), 0, "{flags:?}: {:?}", result.error_examples);
        adds_up(&result);
        if let Some(pacer) = &result.pacer {
            let planned = 1000.0 * result.window_s;
            assert!((pacer.planned as f64 - planned).abs() < 20.0, "{} planned of {planned}", pacer.planned);
        }
    }
}

#[test]
fn ctrl_c_shows_in_the_table() {
    let certificates = Certificates::new();
    let origin = origin(false, &certificates);
    let weir = Weir::spawn(&["load", &format!("{}/bytes/10", origin.urls[0]), "-d", "60s", "--warmup", "0s"]);
    poll_until(DEADLINE, "requests", || served(origin.address()) > 1000);
    weir.signal(Signal::INT);
    let ended = weir.wait();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("a signal ended the window after "), "{}", ended.stderr);
    assert!(ended.stdout.contains("partial"), "{}", ended.stdout);
}

/// The run does not wait for outstanding responses.
#[test]
fn ctrl_c_does_not_wait_for_the_server() {
    let server = Upstream::start(None, |peer| {
        // The run starts after the first response.
        peer.request();
        peer.answer(common::load::OK);
        peer.read_to_end();
    });
    let url = common::load::url(false, &server);
    let weir = Weir::spawn(&["load", &url, "-c", "4", "-d", "90s", "--timeout", "90s", "--warmup", "0s"]);
    poll_until(DEADLINE, "connections", || server.requests().len() == 4);
    weir.signal(Signal::INT);
    let ended = weir.wait();
    assert!(ended.code.is_some() && !ended.stderr.contains("panicked"), "{:?} {}", ended.code, ended.stderr);
}

/// Before the measurement there is no result to report, but the run ends.
#[test]
fn ctrl_c_in_the_warm_up_ends_the_run() {
    let certificates = Certificates::new();
    let origin = origin(false, &certificates);
    let url = format!("{}/bytes/10", origin.urls[0]);
    let weir = Weir::spawn(&["load", &url, "-c", "4", "--warmup", "60s"]);
    poll_until(DEADLINE, "requests", || served(origin.address()) > 1000);
    weir.signal(Signal::INT);
    let ended = weir.wait();
    assert!(ended.code.is_some() && !ended.stderr.contains("panicked"), "{:?} {}", ended.code, ended.stderr);
    let after = load_well(&[&url, "-c", "4", "-d", "100ms", "--warmup", "0s"]);
    assert!(!after.partial, "a run that completes");
}
