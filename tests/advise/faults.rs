//! Services with one fault at a time.

use super::services::Language::{Go, Node, Python};
use super::services::Presents::{Copies, Leaf, Nothing, Root, Rsa4096};
use super::services::{Language, Presents, Service, ids};
use crate::common::peer;
use serde_json::Value;
use std::sync::{Mutex, RwLock};
use std::thread;

/// A service, its fault, its certificate, the requested path, and the finding.
type Case = (Language, &'static str, Presents, &'static str, &'static str);

const CASES: [Case; 27] = [
    (Go, "keep-alive-off", Leaf, "/", "client-keep-alive"),
    (Node, "keep-alive-off", Leaf, "/", "client-keep-alive"),
    (Python, "keep-alive-off", Leaf, "/", "client-keep-alive"),
    (Go, "keep-alive-too-short", Leaf, "/", "keep-alive-too-short"),
    (Node, "keep-alive-too-short", Leaf, "/", "keep-alive-too-short"),
    (Python, "keep-alive-too-short", Leaf, "/", "keep-alive-too-short"),
    (Node, "few-requests", Leaf, "/", "few-requests-per-connection"),
    (Go, "resumption-off", Leaf, "/", "resumption-off"),
    (Python, "resumption-off", Leaf, "/", "resumption-off"),
    // Node.js stores only sessions that are in tickets.
    (Node, "resumption-off", Leaf, "/", "resumption-fails"),
    (Go, "ticket-keys-change", Leaf, "/", "resumption-fails"),
    (Node, "ticket-keys-change", Leaf, "/", "resumption-fails"),
    (Python, "ticket-keys-change", Leaf, "/", "resumption-fails"),
    (Go, "hello-retry", Leaf, "/", "hello-retry"),
    (Node, "hello-retry", Leaf, "/", "hello-retry"),
    (Python, "hello-retry", Leaf, "/", "hello-retry"),
    (Go, "tls-1.2-only", Leaf, "/", "no-tls-1.3"),
    (Node, "tls-1.2-only", Leaf, "/", "no-tls-1.3"),
    (Python, "tls-1.2-only", Leaf, "/", "no-tls-1.3"),
    (Node, "none", Rsa4096, "/", "rsa-certificate"),
    (Go, "none", Root, "/", "root-sent"),
    (Python, "none", Copies, "/", "redundant-chain"),
    (Python, "many-tickets", Leaf, "/", "many-tickets"),
    (Node, "small-records", Leaf, "/large", "small-records"),
    (Python, "small-records", Leaf, "/large", "small-records"),
    (Go, "nagle", Leaf, "/", "delayed-ack"),
    (Python, "nagle", Leaf, "/", "delayed-ack"),
];

/// Tests that put load on services may run together, but not together with the proxy test.
pub(super) static ALONE: RwLock<()> = RwLock::new(());

/// The number of concurrent cases: each mostly waits for an idle connection.
const AT_ONCE: usize = 6;

#[test]
fn each_fault_is_named_first_or_second() {
    let _beside = ALONE.read().unwrap();
    let wrong = Mutex::new(Vec::new());
    let cases = Mutex::new(CASES.to_vec());
    let judge = |(language, fault, presents, path, id): Case| {
        let Some(service) = Service::start(language, fault, presents, None) else { return };
        let advice = service.advice(path, &[]);
        let found = ids(&advice);
        if !found.iter().take(2).any(|one| *one == id) {
            let facts = &advice["facts"];
            wrong.lock().unwrap().push(format!("{language:?} {fault} {presents:?}: {found:?}\n{facts}"));
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = { cases.lock().unwrap().pop() } {
                    judge(case);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} faults were not named:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn chacha20_first_is_a_fault_of_a_processor_with_aes() {
    let has_aes =
        std::fs::read_to_string("/proc/cpuinfo").unwrap().split_whitespace().any(|one| one == "aes");
    let Some(service) = Service::start(Node, "chacha20-first", Leaf, None) else { return };
    let advice = service.advice("/", &[]);
    assert_eq!(ids(&advice), if has_aes { vec!["chacha20-first"] } else { vec![] });
}

#[test]
fn a_well_configured_service_has_no_finding() {
    let _beside = ALONE.read().unwrap();
    let judge = |language: Language, path: &str| {
        let Some(service) = Service::start(language, "none", Leaf, None) else { return };
        let advice = service.advice(path, &[]);
        assert_eq!(ids(&advice), [""; 0], "{language:?} {path}: {}", advice["findings"]);
    };
    thread::scope(|scope| {
        for language in [Go, Node, Python] {
            scope.spawn(move || ["/", "/large"].map(|path| judge(language, path)));
        }
    });
}

/// The maximum number of attempts to see the connections of a proxy.
const LOOKS: usize = 6;

/// With a process and, if `perf` is available, a profile.
#[test]
fn a_proxy_without_upstream_keep_alive_is_told_from_one_that_pools() {
    // Scans of sockets must not wait long for a core.
    let _alone = ALONE.write().unwrap();
    thread::scope(|scope| {
        for (language, presents, product) in [(Go, Leaf, "go"), (Node, Leaf, "node"), (Node, Nothing, "node")]
        {
            scope.spawn(move || {
                for fault in ["none", "upstream-without-keep-alive"] {
                    let Some(origin) = Service::start(Go, "none", Leaf, None) else { return };
                    judge_proxy((language, presents), product, fault, &origin.url);
                }
            });
        }
    });
}

fn judge_proxy((language, presents): (Language, Presents), product: &str, fault: &str, upstream: &str) {
    let Some(proxy) = Service::start(language, fault, presents, Some(upstream)) else { return };
    // On a busy machine the scans come too late for most short-lived sockets.
    let look = || proxy.advice("/", &["--pid", &proxy.pid()]);
    let is_seen = |advice: &Value| fault == "none" || ids(advice).contains(&"upstream-keep-alive");
    let mut advice = look();
    for _ in 1..LOOKS {
        if is_seen(&advice) {
            break;
        }
        advice = look();
    }
    let found = ids(&advice);
    let facts = &advice["facts"];
    let at = found.iter().position(|id| *id == "upstream-keep-alive");
    assert_eq!(at.is_some_and(|at| at < 2), fault != "none", "{language:?} {fault}: {found:?} {facts}");
    assert_eq!(advice["product"], product);
    // Other findings may be true of the machine: Node.js may use an old OpenSSL.
    let others = found.iter().filter(|id| !["upstream-keep-alive", "upstream-certificates"].contains(id));
    assert!(others.clone().all(|id| *id == "openssl-3.0"), "{language:?} {fault}: {found:?}");
    if fault != "none" && peer("perf").is_some() && !advice["profile"].is_null() {
        let gain = &advice["findings"][at.unwrap()]["gain"];
        let range = gain["low"].as_f64().zip(gain["high"].as_f64());
        assert!(range.is_some_and(|(low, high)| 0.0 <= low && low < high), "{gain}");
    }
}
