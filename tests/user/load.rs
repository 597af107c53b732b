//! `weir load`: success requires measurements, and errors are reported as text. `weir compare` rejects its results.

use crate::common::load::{NO_EVIDENCE, OK, load, load_well, url};
use crate::common::{Certificates, Ended, Upstream, Weir, origin};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const MEASURED: i32 = 0;
const FAILED: i32 = 1;
const USAGE: i32 = 2;
const BROKEN: i32 = 4;

const SHORT: [&str; 6] = ["-c", "2", "-d", "300ms", "--warmup", "0s"];

/// Runs `weir load` with `args`, which must exit with `code` and a first line on standard error with all of `parts`.
#[track_caller]
fn ends(args: &[&str], code: i32, parts: &[&str]) -> Ended {
    let ended = Weir::run(args);
    assert_eq!(ended.code, Some(code), "{args:?}: {}{}", ended.stdout, ended.stderr);
    let first = ended.stderr.lines().next().unwrap_or_default();
    for part in parts {
        assert!(first.contains(part), "{args:?}: no `{part}` in `{first}`\n{}", ended.stderr);
    }
    for jargon in ["u64", "u32", "usize", "f64", "sequence", "panicked", "target type", "found in string"] {
        assert!(!ended.stderr.contains(jargon), "{args:?}: `{jargon}` in {}", ended.stderr);
    }
    ended
}

/// An upstream that sends 500 for half of the requests.
fn half_broken() -> Upstream {
    Upstream::start(None, |peer| {
        while peer.request().is_some() {
            peer.answer(OK);
            if peer.request().is_none() {
                return;
            }
            peer.answer("HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\noops");
        }
    })
}

#[test]
fn a_run_with_half_of_its_responses_500_is_no_evidence() {
    let server = half_broken();
    let url = url(false, &server);
    let run = [&["load", &url], &SHORT[..]].concat();
    let invalid = ["weir: the result is invalid: errors (", " status)"];
    let ended = ends(&run, NO_EVIDENCE, &invalid);
    assert!(
        ended.stdout.contains("  validity       invalid: errors ("),
        "the table is printed: {}",
        ended.stdout
    );
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);

    // The measurements are still written.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result.json");
    ends(&[&run[..], &["--json", file.to_str().unwrap()]].concat(), NO_EVIDENCE, &invalid);
    let result: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(result["validity"].as_str().unwrap().starts_with("invalid: errors"), "{result}");

    // An assertion about it is undecided, and reported as such.
    let asserted = [&run[..], &["--assert", "errors==0"]].concat();
    let both = ends(&asserted, NO_EVIDENCE, &invalid);
    assert!(both.stderr.contains("\nweir: --assert errors==0: errors is "), "{}", both.stderr);

    ends(&[&run[..], &["--allow-invalid"]].concat(), MEASURED, &[""]);
    ends(&[&asserted[..], &["--allow-invalid"]].concat(), BROKEN, &["weir: --assert errors==0: errors is "]);
}

#[test]
fn a_server_that_resumes_nothing_is_no_evidence_of_resumptions() {
    let server =
        Weir::start(&["origin", "--listen", "https://127.0.0.1:0", "--workers", "1", "--tickets", "0"]);
    let url = format!("{}/bytes/10", server.urls[0]);
    let run = [&["load", &url, "-k", "--new-connection", "--resume", "100"], &SHORT[..]].concat();
    ends(&run, NO_EVIDENCE, &["weir: the result is invalid: ", "negotiated (", "had no session to resume"]);
    ends(&[&run[..], &["--allow-invalid"]].concat(), MEASURED, &[""]);
}

#[test]
fn a_rate_that_cannot_be_sent_is_no_evidence() {
    let certificates = Certificates::new();
    let server = origin(false, &certificates);
    let delayed = |ms: u32| format!("{}/bytes/10?delay_ms={ms}", server.urls[0]);
    let run = |url: &str, more: &[&str]| {
        ends(
            &[&["load", url, "-c", "1", "--rate", "1000"], more].concat(),
            NO_EVIDENCE,
            &["weir: the result is invalid: ", "pacer (sent ", "of the planned arrivals"],
        )
    };
    // One connection gets five responses per second.
    let some = run(&delayed(200), &["-d", "500ms", "--warmup", "0s"]);
    assert!(some.stdout.contains("  unsent "), "{}", some.stdout);
    // The response to the warm-up's request arrives after the window, so no arrival of the window is sent.
    run(&delayed(2000), &["-d", "200ms", "--warmup", "200ms"]);
}

#[test]
fn a_rate_without_an_arrival_in_the_window_is_no_evidence() {
    let certificates = Certificates::new();
    let server = origin(false, &certificates);
    let run = ["load", &server.urls[0], "-c", "1", "--rate", "0.01", "-d", "100ms", "--warmup", "10ms"];
    ends(&run, NO_EVIDENCE, &["no arrival was planned within the window"]);
}

#[test]
fn a_run_that_cannot_start_is_a_failure_and_help_has_all_codes() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    ends(&["load", &format!("http://{free}/")], FAILED, &["refused", &free.to_string()]);
    let help = Weir::run(&["load", "--help"]).stdout;
    let (_, codes) = help.split_once("Exit codes:\n").expect("a paragraph of exit codes");
    let codes: Vec<&str> = codes.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let first: String =
        codes.iter().filter_map(|line| line.chars().next()).filter(char::is_ascii_digit).collect();
    assert_eq!(first, "01234", "{codes:?}");
    assert!(help.contains("--allow-invalid"), "{help}");
}

#[test]
fn an_unsupported_protocol_is_rejected_before_sending() {
    let server = Upstream::start(None, |peer| _ = peer.read_to_end());
    let url = format!("https://{}/", server.address);
    let expected = ["--alpn", "invalid value `h2`: expected http/1.1, the protocol of --http 1.1"];
    ends(&["load", &url, "-k", "--alpn", "h2"], USAGE, &expected);
    ends(&["load", &url, "-k", "--alpn", "http/1.1,h2"], USAGE, &expected);
    assert_eq!(server.connections(), 0);
    let experiment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/quickstart.toml");
    let plan = ["plan", experiment.to_str().unwrap(), "--set", "load.alpn=h2"];
    ends(&plan, USAGE, &["load.alpn", "invalid value `h2`: expected http/1.1"]);
}

#[test]
fn the_95th_percentile_is_available() {
    let certificates = Certificates::new();
    let server = origin(false, &certificates);
    let url = format!("{}/bytes/10", server.urls[0]);
    let result = load_well(&[&[url.as_str()], &SHORT[..]].concat());
    if result.response.count >= 200 {
        let [p90, p95] = [result.response.p90_us, result.response.p95_us].map(Option::unwrap);
        assert!(p90 <= p95 && p95 <= result.response.max_us, "{:?}", result.response);
    }
    let run = [&["load", &url], &SHORT[..]].concat();
    let held = ends(&[&run[..], &["--assert", "p95_us<1h"]].concat(), MEASURED, &[""]);
    assert!(held.stdout.contains("p90       p95       p99"), "{}", held.stdout);
    ends(&[&run[..], &["--assert", "p95_us<0"]].concat(), BROKEN, &["--assert p95_us<0: p95_us is "]);
}

/// A shell that keeps a core busy; dropping it kills it.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The busiest thread's use of its core depends on the machine's other work, but its name does not.
#[test]
fn the_busiest_thread_of_a_server_is_named() {
    let (certificates, busy) = (Certificates::new(), Busy::start());
    let server = origin(false, &certificates);
    let pid = busy.0.id().to_string();
    let run = [&[server.urls[0].as_str(), "--think", "10ms", "--pid", &pid], &SHORT[..]].concat();
    let result = load_well(&run);
    let thread = result.servers[0].busiest_thread.as_ref().expect("it ran throughout the window");
    assert_eq!(thread.name, "sh");
    assert!(thread.utilisation > 0.0, "{thread:?}");
    if thread.utilisation >= weir_load::limit::FULL {
        assert_eq!(result.limit.to_string(), "gateway");
    }
}

#[test]
fn invalid_numbers_are_reported_with_flag_value_and_expected_range() {
    for (flag, value, expected) in [
        ("-c", "many", "a whole number, 1 to 1000000"),
        ("-c", "1.5", "a whole number, 1 to 1000000"),
        ("-c", "99999999999", "a whole number, 1 to 1000000"),
        ("-c", "0", "1 to 1000000"),
        ("-t", "two", "a whole number, 1 to 1024"),
        ("--weights", "heavy", "a whole number, 1 to 1000000"),
        ("--weights", "0", "1 to 1000000"),
        ("--rate", "fast", "requests per second, such as 5000"),
        ("--rate", "0", "requests per second"),
        ("--seed", "x", "a whole number from 0"),
        ("--expect-status", "OK", "a whole number, 200 to 999"),
        ("--expect-length", "1KiB", "a whole number of bytes"),
        ("--error-budget", "few", "0 to 100 percent"),
        ("-d", "10", "such as 500ms"),
    ] {
        ends(&["load", "http://127.0.0.1:1/", flag, value], USAGE, &[value, expected]);
    }
}

#[test]
fn wrong_json_types_in_a_file_of_requests_are_reported_with_line_key_and_value() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mix.jsonl");
    let name = file.to_str().unwrap();
    for (line, parts) in [
        (
            r#"{"path": "/", "weight": "3"}"#,
            [", weight: invalid value `\"3\"`", "a whole number, 1 to 1000000"],
        ),
        (
            r#"{"path": "/", "weight": 2.0}"#,
            [", weight: invalid value `2.0`", "a whole number, 1 to 1000000"],
        ),
        (r#"{"path": ["/"]}"#, [", path: invalid value `[\"/\"]`", "a path starting with `/`"]),
        (
            r#"{"path": "/", "expect": {"status": "200"}}"#,
            [", expect.status: invalid value `\"200\"`", "a whole number"],
        ),
        (r#"{"method": "GET"}"#, [": missing key `path`", "a path starting with `/`"]),
        (r#"{"path": "/""#, ["", "JSON, one object per line"]),
    ] {
        fs::write(&file, format!("{{\"path\": \"/\"}}\n{line}\n")).unwrap();
        let place = format!("--requests: {name}, line 2");
        let parts = [place.as_str(), parts[0], parts[1]];
        ends(&["load", "http://127.0.0.1:1/", "--requests", name], USAGE, &parts);
    }
}

#[test]
fn results_of_load_are_no_results_to_compare_and_the_error_has_the_experiment_that_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (a, b, directory) = (file("a.json"), file("b.json"), file(""));
    let certificates = Certificates::new();
    let server = origin(false, &certificates);
    let result = load(&[&[server.urls[0].as_str(), "--allow-invalid"], &SHORT[..]].concat()).result;
    for name in [&a, &b] {
        fs::write(name, serde_json::to_string(&result).unwrap()).unwrap();
    }
    let parts = ["not a directory", "allow no verdict", "repeat both in one experiment"];
    let ended = ends(&["compare", &a, &b], USAGE, &[&[a.as_str()][..], &parts].concat());
    ends(&["compare", &directory, &b], USAGE, &[&[b.as_str()][..], &parts].concat());

    // The suggested command is valid.
    let command = ended.stderr.split_once("then `weir run ").unwrap().1.split_once('`').unwrap().0;
    let command = command.replace('\'', "").replace("before", "weir").replace("after", "floor");
    let plan: Vec<&str> = ["plan"].into_iter().chain(command.split_whitespace()).collect();
    ends(&plan, MEASURED, &[]);
}
