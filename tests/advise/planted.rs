//! Twelve planted problems and five services without one: `weir advise` finds each problem, and nothing else.
//!
//! Each case must be decided by measurements, or its test fails. An attempt with too few requests or samples is
//! repeated with longer loads.

use super::faults::ALONE;
use super::services::Language::{Go, GoUnoptimised, Java, Node, Python};
use super::services::Presents::{Leaf, Nothing, Root, Rsa4096};
use super::services::{Language, Presents, Service, WINDOW, advice, ids, output};
use crate::common::{Certificates, origin, peer};
use crate::servers::Server;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Advises on a service after loads of a duration such as `500ms`; `None` if a peer program is missing.
type Look = fn(&str) -> Option<Value>;

/// A service with a planted problem, and the finding for it.
type Planted = (&'static str, Look, &'static str);

const PLANTED: [Planted; 12] = [
    (
        "no upstream keep-alive",
        |window| behind(window, |nginx, _| nginx.pid().to_string()),
        "upstream-keep-alive",
    ),
    ("RSA-4096", |window| alone(window, Java, "none", Rsa4096), "rsa-certificate"),
    ("tickets off", |window| alone(window, Python, "resumption-off", Leaf), "resumption-off"),
    (
        "Connection: close by the proxy in front",
        |window| behind(window, |_, node| node.pid()),
        "proxy-closes",
    ),
    ("slow JSON", |window| with_process(window, Node, "slow-json", Nothing), APPLICATION),
    ("a debug build", |window| with_process(window, GoUnoptimised, "none", Leaf), "debug-build"),
    ("TLS 1.2 only", |window| nginx(window, "ssl_protocols TLSv1.2;"), "no-tls-1.3"),
    ("a superfluous root", |window| alone(window, Go, "none", Root), "root-sent"),
    ("delayed acknowledgements", |window| alone(window, Java, "nagle", Leaf), "delayed-ack"),
    (
        "too few sockets",
        |window| before_origin(window, "too-few-sockets", Nothing, "/bytes/100?delay_ms=5"),
        "too-few-sockets",
    ),
    (
        "too many sockets",
        |window| before_origin(window, "too-many-sockets", Nothing, "/bytes/100"),
        "too-many-sockets",
    ),
    (
        "OCSP fetched per handshake",
        |window| before_origin(window, "ocsp-per-handshake", Leaf, "/"),
        "connection-per-handshake",
    ),
];

const CLEAN: [(&str, Look); 5] = [
    ("Go", |window| with_process(window, Go, "none", Leaf)),
    ("Java", |window| with_process(window, Java, "none", Leaf)),
    ("Node.js", |window| with_process(window, Node, "none", Leaf)),
    ("Python", |window| with_process(window, Python, "none", Leaf)),
    ("nginx", |window| nginx(window, "ssl_protocols TLSv1.2 TLSv1.3;")),
];

/// The advice in the first line, which is not a finding.
const APPLICATION: &str = "look at the application first";

/// A finding that may be true of the machine: runtimes and nginx may use this library.
const OLD_LIBRARY: &str = "openssl-3.0";

/// The number of concurrent cases: each mostly waits for an idle connection. More loads would starve each other on two
/// cores.
const AT_ONCE: usize = 2;

/// The duration of the loads, by attempt: a busy machine completes few requests in a short load.
const WINDOWS: [&str; 5] = [WINDOW, "1s", "3s", "9s", "27s"];

/// If a service waited for a core longer than this share of the time, its problem may not show.
const STARVED: f64 = 0.4;

#[test]
#[ignore = "its loads would starve the tests beside it; .ci/run has a step of its own for it"]
fn each_planted_problem_is_found_and_nothing_else() {
    judge_all(&PLANTED, |(name, look, id)| judge(name, look, Some(id)));
}

#[test]
#[ignore = "its loads would starve the tests beside it; .ci/run has a step of its own for it"]
fn nothing_is_found_where_nothing_is_planted() {
    judge_all(&CLEAN, |(name, look)| judge(name, look, None));
}

/// Without a URL: the proxy's requests are the service's own load.
#[test]
#[ignore = "its loads would starve the tests beside it; .ci/run has a step of its own for it"]
fn a_proxy_that_closes_is_seen_under_the_services_own_load() {
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let Some((nginx, node, _certificates)) = closing_proxy() else { return };
    let needs_profile = peer("perf").is_some();
    let load = Load::start(&format!("http://{}/", nginx.address(false)));
    let advice = WINDOWS.into_iter().find_map(|window| {
        let advice = output(&["--pid", &node.pid(), "-d", window, "--json", "-"]);
        let advice: Value = serde_json::from_str(&advice).unwrap();
        let is_measured = !needs_profile || is_profiled(&advice);
        if !is_measured {
            println!("repeated: loads of {window}: {}", advice["notes"]);
        }
        is_measured.then_some(advice)
    });
    drop(load);
    let advice = advice.expect("a profile with enough samples in one of the attempts");
    assert!(ids(&advice).contains(&"short-connections"), "{}", advice["facts"]);
    if needs_profile {
        let words = advice["split"]["words"].as_str().unwrap();
        assert!(words.contains("under its own load"), "{words}");
    }
}

/// The first lines of the text output.
#[test]
#[ignore = "its loads would starve the tests beside it; .ci/run has a step of its own for it"]
fn the_text_begins_with_where_the_cpu_time_goes() {
    if peer("perf").is_none() {
        return;
    }
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let Some(service) = Service::start(Node, "slow-json", Nothing, None) else { return };
    let text = WINDOWS.into_iter().find_map(|window| {
        let text = output(&[&service.url, "--pid", &service.pid(), "-d", window]);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let is_measured = !["No profile", "too few samples"].iter().any(|words| text.contains(words));
        if !is_measured {
            println!("repeated: loads of {window}: {text}");
        }
        is_measured.then_some(text)
    });
    let text = text.expect("a profile with enough samples in one of the attempts");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, rest) = words.split_once(APPLICATION).unwrap_or_else(|| panic!("{words}"));
    assert!(first.contains("% of its CPU time is the application's own code"), "{words}");
    assert!(rest.contains("mostly ") && rest.contains("Json"), "{words}");
}

/// Judges all cases, and prints their number: cases that need a missing peer program are left out.
fn judge_all<T: Copy + Send + Sync>(all: &[T], judge: impl Fn(T) -> Option<Result<(), String>> + Sync) {
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let (left, verdicts) = (Mutex::new(all.to_vec()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(one) = { left.lock().unwrap().pop() } {
                    let verdict = judge(one);
                    verdicts.lock().unwrap().extend(verdict);
                }
            });
        }
    });
    let verdicts = verdicts.into_inner().unwrap();
    println!("{} of {} cases judged", verdicts.len(), all.len());
    let wrong: Vec<String> = verdicts.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{} cases were wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Judges a service with one expected finding, or with none; `None` if a peer program is missing.
fn judge(name: &str, look: Look, expected: Option<&str>) -> Option<Result<(), String>> {
    let needs_profile = expected == Some(APPLICATION);
    if needs_profile {
        peer("perf")?;
    }
    let mut missing = Vec::new();
    for window in WINDOWS {
        let advice = look(window)?;
        let found = ids(&advice);
        let wrong = |what: &str| {
            let Value::Object(facts) = &advice["facts"] else { panic!("{advice}") };
            let facts =
                facts.iter().map(|(fact, of)| format!("\n  {fact} {} ({})", of["value"], of["source"]));
            let facts: String = facts.collect();
            Some(Err(format!("{name}, loads of {window}: {what}: {found:?} {}{facts}", advice["split"])))
        };
        // A finding must be true even if little was measured.
        if found.iter().any(|id| *id != OLD_LIBRARY && Some(*id) != expected) {
            return wrong("a finding that is not there");
        }
        let is_found = match expected {
            Some(APPLICATION) => is_application(&advice),
            Some(id) => found.contains(&id),
            None => true,
        };
        match unmeasured(&advice, needs_profile) {
            None if is_found => return Some(Ok(())),
            None if !is_starved(&advice) => return wrong("not found"),
            None => missing.push(format!("loads of {window}: the service waited for a core")),
            Some(what) => missing.push(format!("loads of {window}: {what}: {}", advice["notes"])),
        }
    }
    println!("not measured: {name}: {missing:?}");
    Some(Err(format!("{name}: {} attempts, none measured it: {missing:?}", WINDOWS.len())))
}

/// The missing measurement, if requests timed out or were too few for a median.
fn unmeasured(advice: &Value, needs_profile: bool) -> Option<&'static str> {
    let facts = ["load.p50_us", "http.response_ms"].into_iter();
    let is_missing = needs_profile && !is_profiled(advice);
    facts.filter(|fact| advice["facts"][*fact].is_null()).chain(is_missing.then_some("profile")).next()
}

/// Whether a profile has enough samples to be divided.
fn is_profiled(advice: &Value) -> bool {
    let words = advice["split"]["words"].as_str();
    words.is_some_and(|words| !words.starts_with("too few samples"))
}

fn is_starved(advice: &Value) -> bool {
    advice["facts"]["load.queued"]["value"].as_f64().is_some_and(|share| share >= STARVED)
}

fn is_application(advice: &Value) -> bool {
    let split = &advice["split"];
    let named = |word: &str| {
        split["functions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["symbol"].as_str().unwrap().contains(word))
    };
    split["first"] == "application" && split["words"].as_str().unwrap().contains(APPLICATION) && named("Json")
}

/// Advice from outside, by URL alone.
fn alone(window: &str, language: Language, fault: &str, presents: Presents) -> Option<Value> {
    Some(Service::start(language, fault, presents, None)?.advice_within(window, "/", &[]))
}

fn with_process(window: &str, language: Language, fault: &str, presents: Presents) -> Option<Value> {
    let service = Service::start(language, fault, presents, None)?;
    Some(service.advice_within(window, "/", &["--pid", &service.pid()]))
}

/// A service in Node.js with an upstream.
fn before_origin(window: &str, fault: &str, presents: Presents, path: &str) -> Option<Value> {
    let certificates = Certificates::new();
    let origin = origin(true, &certificates);
    let service = Service::start(Node, fault, presents, Some(&format!("https://{}", origin.address())))?;
    Some(service.advice_within(window, path, &["--pid", &service.pid()]))
}

/// nginx with TLS and these settings.
fn nginx(window: &str, settings: &str) -> Option<Value> {
    let certificates = Certificates::new();
    let settings = format!("{settings} ssl_session_cache shared:S:10m; keepalive_timeout 75s;");
    let nginx = Server::nginx_of_sessions(&certificates, &settings)?;
    let url = format!("https://{}", nginx.address(true));
    Some(advice(&url, &certificates.ca, window, &["--pid", &nginx.pid().to_string()]))
}

/// nginx in front of a service in Node.js, with a connection for each request.
fn closing_proxy() -> Option<(Server, Service, Certificates)> {
    let certificates = Certificates::new();
    let node = Service::start(Node, "none", Nothing, None)?;
    let nginx = Server::nginx_closing_before(node.address(), &certificates)?;
    Some((nginx, node, certificates))
}

/// The same, with the process on one of the two sides.
fn behind(window: &str, pid: fn(&Server, &Service) -> String) -> Option<Value> {
    let (nginx, node, certificates) = closing_proxy()?;
    let url = format!("http://{}", nginx.address(false));
    Some(advice(&url, &certificates.ca, window, &["--pid", &pid(&nginx, &node)]))
}

/// A load that continues until it is dropped.
struct Load(Child);

impl Load {
    fn start(url: &str) -> Self {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.args(["load", url, "-c", "8", "-d", "1h"]);
        Self(weir.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // An error means that it has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
