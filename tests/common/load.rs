//! Runs of `weir load`, and values from their results.

use super::{Client, Ended, Upstream, Weir};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use hdrhistogram::{Histogram, serialization::Deserializer};
use rustix::process::setpriority_process;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_load::result::{Handshakes, Latency, LoadResult, Second};
use weir_tls::Acceptor;

/// A run with a result.
pub struct Loaded {
    pub code: Option<i32>,
    pub result: LoadResult,
    pub stderr: String,
}

/// The exit code of a run without the requested evidence.
pub const NO_EVIDENCE: i32 = 3;

/// Runs `weir load ARGS --json -`. It must exit with 0 if its result is valid, otherwise with 3 and a line with the
/// reason; `--assert` and `--allow-invalid` permit other exit codes.
///
/// # Panics
/// If it prints no result, or exits otherwise.
pub fn load(args: &[&str]) -> Loaded {
    let Ended { code, stdout, stderr } = Weir::run(&[&["load"], args, &["--json", "-"]].concat());
    let result: LoadResult = serde_json::from_str(&stdout)
        .unwrap_or_else(|error| panic!("no result of {args:?} ({error}), exit {code:?}: {stdout}{stderr}"));
    adds_up(&result);
    if !args.iter().any(|arg| ["--assert", "--allow-invalid"].contains(arg)) {
        ends_as_judged(&Ended { code, stdout, stderr: stderr.clone() }, &result);
    }
    Loaded { code, result, stderr }
}

/// Checks that exit code and standard error agree with the result's validity.
///
/// # Panics
/// If they do not agree.
pub fn ends_as_judged(ended: &Ended, result: &LoadResult) {
    let Ended { code, stderr, .. } = ended;
    match result.validity.strip_prefix("invalid: ") {
        None => {
            let expected = if result.partial { NO_EVIDENCE } else { 0 };
            assert_eq!((*code, result.validity.as_str()), (Some(expected), "valid"), "{stderr}");
        }
        Some(reason) => {
            assert_eq!(*code, Some(NO_EVIDENCE), "{}: {stderr}", result.validity);
            let expected = format!("weir: the result is invalid: {reason}");
            assert!(stderr.lines().any(|line| line == expected), "no `{expected}` in {stderr}");
        }
    }
}

/// Like [`load`], with at least one correct response.
///
/// # Panics
/// If there was none.
pub fn load_well(args: &[&str]) -> LoadResult {
    let Loaded { result, .. } = load(args);
    assert!(result.requests > 0, "{args:?}: {} {:?}", result.validity, result.error_examples);
    result
}

/// Checks that the values of a result agree with each other.
///
/// # Panics
/// If they do not agree.
pub fn adds_up(result: &LoadResult) {
    let rate = result.requests as f64 / result.window_s;
    assert!(
        (result.requests_per_second - rate).abs() <= 1e-6 * rate,
        "{} {rate}",
        result.requests_per_second
    );
    let errors: u64 = result.errors.values().sum();
    let ratio = errors as f64 / (errors + result.requests).max(1) as f64;
    assert!((result.error_ratio - ratio).abs() < 1e-9, "{} {ratio}", result.error_ratio);
    assert!(result.answered_in_all >= result.requests);
    let times = [&result.response, &result.service, &result.first_byte, &result.connect];
    for latency in times.into_iter().chain(result.handshake.values()) {
        // `histogram` checks its number of samples against the result's count.
        let longest = histogram(latency).max() as f64 / 1e3;
        assert!((latency.max_us - longest).abs() < 1e-6, "{} {longest}", latency.max_us);
        assert_eq!(latency.censored > 0, latency.censored_from_us.is_some());
        assert!(latency.censored <= latency.count);
        let percentiles = [latency.p50_us, latency.p90_us, latency.p95_us, latency.p99_us, latency.p999_us];
        assert_eq!(
            percentiles.map(|p| p.is_some()),
            [20, 100, 200, 1000, 10_000].map(|least| latency.count >= least)
        );
        assert!(percentiles.is_sorted_by_key(|p| p.unwrap_or(f64::MAX)), "{percentiles:?}");
    }

    assert!(!result.seconds.is_empty());
    let over_seconds = |of: fn(&Second) -> u64| result.seconds.iter().map(of).sum::<u64>();
    assert_eq!(over_seconds(|second| second.requests), result.requests, "{:?}", result.seconds);
    assert_eq!(over_seconds(|second| second.handshakes), result.handshakes.in_window, "{:?}", result.seconds);
    assert!(over_seconds(|second| second.errors) <= errors);
    for (number, second) in result.seconds.iter().enumerate() {
        assert!((second.at_s - number as f64).abs() < 0.01, "{:?}", result.seconds);
    }

    let Handshakes { full, resumed, negotiated, .. } = &result.handshakes;
    let resumptions: u64 = resumed.values().sum();
    assert_eq!(negotiated.iter().map(|each| each.count).sum::<u64>(), full + resumptions);
    assert!(result.handshakes.resumed_in_window <= result.handshakes.in_window);
    assert!(result.connections_opened_in_window <= result.connections_opened);
    if let Some(pacer) = &result.pacer {
        assert_eq!(pacer.sent + result.unsent.count, pacer.planned);
        let ratio = pacer.sent as f64 / pacer.planned.max(1) as f64;
        assert!((pacer.achieved_ratio - ratio).abs() < 1e-9, "{} {ratio}", pacer.achieved_ratio);
        assert!(pacer.lag_p99_us <= pacer.lag_max_us * 1.001);
    }
    let names: Vec<_> = result.phases.iter().map(|phase| phase.name.as_str()).collect();
    let order = ["opening", "warm-up", "settle", "window", "drain"];
    let mut known = order.iter();
    assert!(names.iter().all(|name| known.any(|known| known == name)), "{names:?}, not in order {order:?}");
    let window = result.phases.iter().find(|phase| phase.name == "window").unwrap();
    assert!((window.seconds - result.window_s).abs() < 0.1, "{window:?}, {} s", result.window_s);
}

/// Measures while no other such test runs. If the machine disturbed the measurement, prints the reason and measures
/// again, at most [`ATTEMPTS`] times. `measure` returns an error only for times that a busy machine can distort; it
/// asserts everything that must hold on any machine.
///
/// # Panics
/// If the machine disturbed every attempt.
pub fn undisturbed(what: &str, mut measure: impl FnMut() -> Result<(), String>) {
    static ALONE: Mutex<()> = Mutex::new(());
    // A failed test leaves no state behind that could disturb the next one.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut reasons = Vec::new();
    while reasons.len() < ATTEMPTS {
        match measure() {
            Ok(()) => return,
            Err(reason) => {
                println!("{what}: attempt {} of {ATTEMPTS} was disturbed: {reason}", reasons.len() + 1);
                reasons.push(reason);
                wait_for_quiet();
            }
        }
    }
    panic!("{what}: {reasons:#?}");
}

/// Maximum number of attempts of a measurement.
pub const ATTEMPTS: usize = 6;

/// Waits until half of the machine has been idle for a while, at most 5 s.
fn wait_for_quiet() {
    let end = Instant::now() + Duration::from_secs(5);
    let mut quiet = 0;
    while quiet < 4 && Instant::now() < end {
        let (idle, all) = cpu_ticks();
        std::thread::sleep(Duration::from_millis(250));
        let (idle, all) = (cpu_ticks().0 - idle, cpu_ticks().1 - all);
        quiet = if idle * 2 >= all { quiet + 1 } else { 0 };
    }
}

/// Idle and total CPU ticks of the machine, from /proc/stat (proc(5)).
fn cpu_ticks() -> (u64, u64) {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks = stat.lines().next().unwrap().split_whitespace().skip(1);
    let ticks: Vec<u64> = ticks.map(|ticks| ticks.parse().unwrap()).collect();
    (ticks[3], ticks.iter().take(8).sum())
}

/// Fails unless `ok`: for the closure of [`undisturbed`].
///
/// # Errors
/// `why`, if not `ok`.
pub fn ensure(ok: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(why()) }
}

/// Prints a note if the run was invalid because its pacer was late: the pacer's bound is stricter than the tests', and
/// lateness shows in the distributions themselves.
///
/// # Panics
/// If it was invalid for any other reason.
pub fn valid_or_late(result: &LoadResult) {
    let LoadResult { validity, error_examples, .. } = result;
    if let Some(reasons) = validity.strip_prefix("invalid: ") {
        assert!(
            reasons.split("; ").all(|part| part.starts_with("pacer") || part.ends_with(" unsent)")),
            "{validity} {error_examples:?}"
        );
        println!("a busy machine: {validity}");
    }
}

/// The stored histogram, in nanoseconds.
pub fn histogram(latency: &Latency) -> Histogram<u64> {
    let bytes = BASE64_STANDARD.decode(&latency.hdr_v2).unwrap();
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
    assert_eq!(histogram.len(), latency.count, "the histogram holds every counted sample");
    histogram
}

/// The number of samples longer than `time`.
pub fn longer_than(latency: &Latency, time: Duration) -> u64 {
    let histogram = histogram(latency);
    histogram.len() - histogram.count_between(0, time.as_nanos() as u64)
}

/// A request as the test's own server measured it.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The instant after reading the request.
    pub read: Instant,
    /// The time from reading the request to writing its response.
    pub delay: Duration,
}

/// A server that delays each response, and measures the actual delay.
pub struct Timed {
    pub upstream: Upstream,
    served: Arc<Mutex<Vec<Served>>>,
}

impl Timed {
    /// Responds to request number `n` (from 0, over all connections), read at `read`, at `until(n, read)`. Excludes the
    /// first request on each connection, which gets its response at once: the engine sends it before the run on
    /// keep-alive connections, as a warm-up.
    pub fn start(
        tls: Option<Acceptor>,
        until: impl Fn(usize, Instant) -> Instant + Send + Sync + 'static,
    ) -> Self {
        let served = Arc::new(Mutex::new(Vec::<Served>::new()));
        let (all, next) = (Arc::clone(&served), AtomicUsize::new(0));
        let upstream = Upstream::start(tls, move |peer| {
            // Raised like the engine's own threads, if the system allows it: this clock is their reference.
            let _ = setpriority_process(None, -20);
            if peer.request().is_some() {
                peer.answer(OK);
            }
            while peer.request().is_some() {
                let read = Instant::now();
                let number = next.fetch_add(1, Ordering::SeqCst);
                // The delay is this server's purpose.
                std::thread::sleep(until(number, read).saturating_duration_since(read));
                all.lock().unwrap().push(Served { read, delay: read.elapsed() });
                peer.answer(OK);
            }
        });
        Self { upstream, served }
    }

    /// The URL.
    pub fn url(&self, tls: bool) -> String {
        url(tls, &self.upstream)
    }

    /// All requests so far, in the order of reading.
    pub fn served(&self) -> Vec<Served> {
        let mut served = self.served.lock().unwrap().clone();
        served.sort_by_key(|served| served.read);
        served
    }
}

/// The trial connection before the run, which checks that the server is reachable. Over TLS it completes a full
/// handshake. It carries no request, and the results do not count it.
pub const TRIAL: u64 = 1;

/// The smallest response with a body.
pub const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The URL of an upstream.
pub fn url(tls: bool, upstream: &Upstream) -> String {
    format!("{}://{}/", if tls { "https" } else { "http" }, upstream.address)
}

/// The number of requests served by an origin.
pub fn served(origin: SocketAddr) -> u64 {
    let answer = Client::connect(origin, None).ask("GET /stats HTTP/1.1\r\nHost: a\r\n\r\n");
    let stats: serde_json::Value = serde_json::from_str(answer.text()).unwrap();
    stats["requests"].as_u64().unwrap()
}
