//! Twelve planted problems and five services without any: each problem is found, and nothing that is not there.

use super::faults::ALONE;
use super::services::Language::{Go, GoUnoptimised, Java, Node, Python};
use super::services::Presents::{Leaf, Nothing, Root, Rsa4096};
use super::services::{Language, Presents, Service, advice, ids};
use crate::common::{Certificates, Weir, origin, peer};
use crate::servers::Server;
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;

/// A service that is looked at; `None` if a peer program is missing.
type Look = fn() -> Option<Value>;

/// A problem, the service that has it, and its finding.
type Planted = (&'static str, Look, &'static str);

const PLANTED: [Planted; 12] = [
    ("no upstream keep-alive", || behind(|nginx, _| nginx.pid().to_string()), "upstream-keep-alive"),
    ("RSA-4096", || alone(Java, "none", Rsa4096), "rsa-certificate"),
    ("tickets off", || alone(Python, "resumption-off", Leaf), "resumption-off"),
    ("Connection: close by the proxy in front", || behind(|_, node| node.pid()), "proxy-closes"),
    ("slow JSON", || with_process(Node, "slow-json", Nothing), APPLICATION),
    ("a debug build", || with_process(GoUnoptimised, "none", Leaf), "debug-build"),
    ("TLS 1.2 only", || nginx("ssl_protocols TLSv1.2;"), "no-tls-1.3"),
    ("a superfluous root", || alone(Go, "none", Root), "root-sent"),
    ("delayed acknowledgements", || alone(Java, "nagle", Leaf), "delayed-ack"),
    (
        "too few sockets",
        || before_origin("too-few-sockets", Nothing, "/bytes/100?delay_ms=5"),
        "too-few-sockets",
    ),
    ("too many sockets", || before_origin("too-many-sockets", Nothing, "/bytes/100"), "too-many-sockets"),
    (
        "OCSP fetched per handshake",
        || before_origin("ocsp-per-handshake", Leaf, "/"),
        "connection-per-handshake",
    ),
];

const CLEAN: [(&str, Look); 5] = [
    ("Go", || with_process(Go, "none", Leaf)),
    ("Java", || with_process(Java, "none", Leaf)),
    ("Node.js", || with_process(Node, "none", Leaf)),
    ("Python", || with_process(Python, "none", Leaf)),
    ("nginx", || nginx("ssl_protocols TLSv1.2 TLSv1.3;")),
];

/// The first line's advice, which is no finding.
const APPLICATION: &str = "look at the application first";

/// True of the machine: runtimes and nginx may come with it.
const OLD_LIBRARY: &str = "openssl-3.0";

/// Each waits for an idle connection most of the time.
const AT_ONCE: usize = 6;

#[test]
#[ignore = "it loads the machine for a minute or more, which disturbs the tests beside it"]
fn each_planted_problem_is_found_and_nothing_else() {
    let wrong = judged(&PLANTED, |(name, look, expected)| {
        let advice = complete(name, look)?;
        let found = ids(&advice);
        let is_found = match expected {
            // Only a profile shows it, and a busy machine leaves few samples.
            APPLICATION => advice["profile"].is_null() || is_too_short(&advice) || is_application(&advice),
            id => found.contains(&id),
        };
        let others: Vec<&&str> = found.iter().filter(|id| ![expected, OLD_LIBRARY].contains(*id)).collect();
        let is_right = is_found && others.is_empty();
        (!is_right).then(|| format!("{name}: {found:?} {}\n{}", advice["split"], advice["facts"]))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "it loads the machine for a minute or more, which disturbs the tests beside it"]
fn nothing_is_found_where_nothing_is_planted() {
    let wrong = judged(&CLEAN, |(name, look)| {
        let advice = complete(name, look)?;
        let found = ids(&advice);
        let is_right = found.iter().all(|id| *id == OLD_LIBRARY);
        (!is_right).then(|| format!("{name}: {found:?}\n{}", advice["facts"]))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Without a URL: the proxy's requests are the service's own load.
#[test]
#[ignore = "it loads the machine for a minute or more, which disturbs the tests beside it"]
fn a_proxy_that_closes_is_seen_under_the_services_own_load() {
    let _beside = ALONE.read().unwrap();
    let Some((nginx, node, _certificates)) = closing_proxy() else { return };
    let load = Load::start(&format!("http://{}/", nginx.address(false)));
    let ended = Weir::run(&["advise", "--pid", &node.pid(), "-d", "500ms", "--json", "-"]);
    drop(load);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let advice: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(ids(&advice).contains(&"short-connections"), "{}", advice["facts"]);
    if peer("perf").is_some() && !advice["split"].is_null() {
        let words = advice["split"]["words"].as_str().unwrap();
        assert!(words.contains("under its own load") || words.contains("too few samples"), "{words}");
    }
}

/// The first lines of the text.
#[test]
#[ignore = "it loads the machine for a minute or more, which disturbs the tests beside it"]
fn the_text_begins_with_where_the_cpu_time_goes() {
    if peer("perf").is_none() {
        return;
    }
    let _beside = ALONE.read().unwrap();
    let Some(service) = Service::start(Node, "slow-json", Nothing, None) else { return };
    let ended = Weir::run(&["advise", &service.url, "--pid", &service.pid(), "-d", "500ms"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    if ["No profile", "too few samples"].iter().any(|words| ended.stdout.contains(words)) {
        println!("skipped: perf does not sample here, or too little");
        return;
    }
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ended.stdout);
    let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, rest) = words.split_once(APPLICATION).unwrap_or_else(|| panic!("{words}"));
    assert!(first.contains("% of its CPU time is the application's own code"), "{words}");
    assert!(rest.contains("mostly ") && rest.contains("Json"), "{words}");
}

/// The most attempts at a complete measurement.
const LOOKS: usize = 3;

/// Advice with a load that was measured; `None` on a machine so busy that requests time out, or are too few for a median.
fn complete(name: &str, look: Look) -> Option<Value> {
    for _ in 0..LOOKS {
        let advice = look()?;
        if ["load.p50_us", "http.response_ms"].iter().all(|fact| !advice["facts"][*fact].is_null()) {
            return Some(advice);
        }
    }
    println!("skipped: {name}: this machine is too busy to measure it");
    None
}

/// Judges all, several at once; what was wrong.
fn judged<T: Copy + Send + Sync>(all: &[T], judge: impl Fn(T) -> Option<String> + Sync) -> Vec<String> {
    let _beside = ALONE.read().unwrap();
    let (left, wrong) = (Mutex::new(all.to_vec()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(one) = { left.lock().unwrap().pop() } {
                    let verdict = judge(one);
                    wrong.lock().unwrap().extend(verdict);
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

/// Whether it has too few samples to say how they divide.
fn is_too_short(advice: &Value) -> bool {
    advice["split"]["words"].as_str().is_some_and(|words| words.starts_with("too few samples"))
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

/// From outside.
fn alone(language: Language, fault: &str, presents: Presents) -> Option<Value> {
    Some(Service::start(language, fault, presents, None)?.advice("/", &[]))
}

fn with_process(language: Language, fault: &str, presents: Presents) -> Option<Value> {
    let service = Service::start(language, fault, presents, None)?;
    Some(service.advice("/", &["--pid", &service.pid()]))
}

/// A service in Node.js with an upstream.
fn before_origin(fault: &str, presents: Presents, path: &str) -> Option<Value> {
    let certificates = Certificates::new();
    let origin = origin(true, &certificates);
    let service = Service::start(Node, fault, presents, Some(&format!("https://{}", origin.address())))?;
    Some(service.advice(path, &["--pid", &service.pid()]))
}

/// nginx with TLS and these settings.
fn nginx(settings: &str) -> Option<Value> {
    let certificates = Certificates::new();
    let settings = format!("{settings} ssl_session_cache shared:S:10m; keepalive_timeout 75s;");
    let nginx = Server::nginx_of_sessions(&certificates, &settings)?;
    let url = format!("https://{}", nginx.address(true));
    Some(advice(&url, &certificates.ca, &["--pid", &nginx.pid().to_string()]))
}

/// nginx in front of a service in Node.js, with a connection for each request.
fn closing_proxy() -> Option<(Server, Service, Certificates)> {
    let certificates = Certificates::new();
    let node = Service::start(Node, "none", Nothing, None)?;
    let nginx = Server::nginx_closing_before(node.address(), &certificates)?;
    Some((nginx, node, certificates))
}

/// The same, looked at from one of the two sides.
fn behind(pid: fn(&Server, &Service) -> String) -> Option<Value> {
    let (nginx, node, certificates) = closing_proxy()?;
    let url = format!("http://{}", nginx.address(false));
    Some(advice(&url, &certificates.ca, &["--pid", &pid(&nginx, &node)]))
}

/// A load that goes on until it is dropped.
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
