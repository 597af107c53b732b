//! The times that `weir load` reports, compared with the server's measurements: delays, a stall, and the arrival times
//! of requests.

use crate::common::Certificates;
use crate::common::load::{
    Served, Timed, ensure, histogram, load_well, longer_than, undisturbed, valid_or_late,
};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use weir_load::result::{Latency, LoadResult};

/// The time that a response may take in addition to the server's delay: loopback, a thread wake-up on each side, TLS.
const TRANSPORT: Duration = Duration::from_millis(2);

/// The same on a machine that stays busy: still far less than the differences between the delays.
const TRANSPORT_OF_BUSY: Duration = Duration::from_millis(20);

/// The number of attempts that wait for a quiet machine.
const QUIET_ATTEMPTS: usize = 3;

/// The server's delay before response `number`: 10 ms for 90 %, 50 ms for 8 %, 200 ms for 2 %. Median and 99th
/// percentile are in the middle of a plateau.
fn delay(number: usize) -> Duration {
    Duration::from_millis(match number % 50 {
        0..=44 => 10,
        45..=48 => 50,
        _ => 200,
    })
}

#[test]
fn known_delays_are_measured_in_a_closed_loop() {
    delays_are_measured(None, &["-c", "20"]);
}

#[test]
fn known_delays_are_measured_in_a_closed_loop_over_tls() {
    delays_are_measured(Some(&Certificates::new()), &["-c", "20", "-t", "2"]);
}

#[test]
fn known_delays_are_measured_in_an_open_loop() {
    delays_are_measured(None, &["-c", "64", "--rate", "750"]);
}

/// Without a warm-up the engine and the server measure the same requests, so both distributions have the same samples.
fn delays_are_measured(tls: Option<&Certificates>, flags: &[&str]) {
    let mut attempts = 0;
    undisturbed("known delays", || {
        attempts += 1;
        let most = if attempts > QUIET_ATTEMPTS { TRANSPORT_OF_BUSY } else { TRANSPORT };
        let acceptor = tls.map(|certificates| certificates.server().core());
        let server = Timed::start(acceptor, |number, read| read + delay(number));
        let url = server.url(tls.is_some());
        let mut args = [&[url.as_str(), "-d", "2s", "--warmup", "0s"], flags].concat();
        if let Some(certificates) = tls {
            args.extend(["--cacert", certificates.ca.to_str().unwrap()]);
        }
        let result = load_well(&args);
        let delays = sorted(server.served().iter().map(|served| served.delay));
        valid_or_late(&result);
        assert!(delays.len() > 1000, "p99 needs a thousand: {}", delays.len());
        for (name, latency) in times(&result) {
            let (counted, served) = (latency.count, delays.len() as u64);
            assert!(counted <= served, "{name}: {counted} counted, {served} served");
            // A window that ends late on a busy machine is followed by requests that do not count.
            ensure(counted == served, || format!("{name}: {counted} counted, {served} served"))?;
            matches_the_server(name, latency, &delays, most)?;
        }
        Ok(())
    });
}

fn times(result: &LoadResult) -> [(&'static str, &Latency); 3] {
    [("response", &result.response), ("service", &result.service), ("first byte", &result.first_byte)]
}

/// On any machine, no quantile is below the server's, since no response is sent before its delay has passed. No
/// quantile exceeds the server's by more than `transport`.
fn matches_the_server(
    name: &str,
    latency: &Latency,
    delays: &[Duration],
    transport: Duration,
) -> Result<(), String> {
    let histogram = histogram(latency);
    for quantile in [0.1, 0.5, 0.8, 0.95, 0.99] {
        let ours = Duration::from_nanos(histogram.value_at_quantile(quantile));
        let theirs = at_quantile(delays, quantile);
        assert!(ours >= theirs, "{name}: {quantile} is {ours:?}, the server's is {theirs:?}");
        // The histogram has three significant digits.
        let most = theirs.mul_f64(1.001) + transport;
        ensure(ours <= most, || format!("{name}: {quantile} is {ours:?}, the server's is {theirs:?}"))?;
    }
    let stored = |quantile| Some(histogram.value_at_quantile(quantile) as f64 / 1e3);
    assert_eq!((latency.p50_us, latency.p99_us), (stored(0.5), stored(0.99)), "{name}");
    Ok(())
}

/// A stall of one second in an open loop: the requests planned during it wait between zero and one second, although
/// only the few that are in flight at its start are served slowly. A load generator with coordinated omission would
/// report only those few.
#[test]
fn a_stall_of_one_second_is_in_the_response_time_and_not_in_the_service_time() {
    const RATE: u64 = 500;
    const CONNECTIONS: u64 = 8;
    undisturbed("a stall", || {
        let first = OnceLock::new();
        let server = Timed::start(None, move |_, read| {
            let stall = *first.get_or_init(|| read) + Duration::from_secs(1);
            let over = stall + Duration::from_secs(1);
            if read < stall { read } else { over }
        });
        let (rate, connections) = (RATE.to_string(), CONNECTIONS.to_string());
        let url = server.url(false);
        let result = load_well(&[&url, "-c", &connections, "--rate", &rate, "-d", "4s", "--warmup", "0s"]);
        valid_or_late(&result);
        assert_eq!((result.response.count, result.service.count), (4 * RATE, 4 * RATE));
        assert_eq!((result.errors.len(), result.unsent.count), (0, 0), "{:?}", result.error_examples);
        for wait in [100, 300, 500, 700, 900].map(Duration::from_millis) {
            // The lower bound holds on any machine: no request planned in the stall gets a response before
            // its end.
            let (waited, planned) =
                (longer_than(&result.response, wait), RATE * (1000 - wait.as_millis() as u64) / 1000);
            assert!(
                waited + 10 >= planned,
                "{waited} waited {wait:?}, {planned} were planned that long before"
            );
            // After the stall the waiting requests are sent at once, and served within 100 ms.
            ensure(waited <= planned + RATE / 10, || format!("{waited} of {planned} waited {wait:?}"))?;
        }
        let served = longer_than(&result.service, Duration::from_millis(100));
        ensure((1..=CONNECTIONS).contains(&served), || format!("{served} took more than 100 ms"))?;
        // The slowest 1 % of 2000 requests were planned in the stall's first 40 ms.
        let p99 = result.response.p99_us.unwrap() / 1e6;
        assert!(p99 > 0.93, "response p99 {p99} s");
        ensure(p99 < 1.1, || format!("response p99 {p99} s"))?;
        let p99 = result.service.p99_us.unwrap() / 1e6;
        ensure(p99 < 0.1, || format!("service p99 {p99} s"))
    });
}

/// A server with a tenth of the required capacity: unsent arrivals are counted with their age, and the response time
/// includes them with at least their waiting time. A load generator that omits them would call this server fast.
#[test]
fn unsent_arrivals_are_counted_with_their_age() {
    let server = Timed::start(None, |_, read| read + Duration::from_millis(50));
    let url = server.url(false);
    let result = load_well(&[&url, "-c", "1", "--rate", "200", "-d", "2s", "--warmup", "0s"]);
    let (pacer, unsent) = (result.pacer.as_ref().unwrap(), &result.unsent);
    let served = server.served().len() as u64;
    assert_eq!((pacer.planned, pacer.sent, unsent.count), (400, served, 400 - served));
    assert!((20..=41).contains(&served), "{served} responses of 50 ms each in two seconds");
    assert!(result.validity.starts_with("invalid: pacer"), "{}", result.validity);
    // The sent arrivals were first in the plan, so the oldest unsent one was planned after them.
    let oldest = 2e6 - served as f64 * 5e3;
    assert!(
        (unsent.oldest_us - oldest).abs() < 1e4,
        "{} us, planned {oldest} us before the end",
        unsent.oldest_us
    );
    assert!((unsent.mean_us - oldest / 2.0).abs() < 1e4, "{} us", unsent.mean_us);
    assert_eq!((result.response.count, result.response.censored), (400, unsent.count));
    assert_eq!(result.service.count, served);
    let p50 = result.response.p50_us.unwrap();
    assert!(p50 > 0.5e6, "half of them had waited {p50} us");
    assert!(result.response.censored_from_us.unwrap() < 1e5, "the last was planned 5 ms before the end");
}

#[test]
fn constant_arrivals_are_evenly_spaced() {
    for workers in ["1", "2"] {
        undisturbed("constant arrivals", || {
            let (result, arrivals) = arrivals(&["--rate", "400", "-d", "2s", "-t", workers]);
            assert_eq!((result.pacer.unwrap().planned, arrivals.len()), (800, 800));
            let plan = (0..800).map(|number| f64::from(number) / 400.0);
            on_the_plan(&arrivals, &plan.collect::<Vec<_>>())?;
            gaps_are_alike(&gaps(&arrivals), 0.0025)
        });
    }
}

/// The gaps between arrivals are exponential for any number of workers, and drawn from the seed: the same seed gives
/// the same instants.
#[test]
fn poisson_arrivals_are_exponential_and_the_seed_decides() {
    const RATE: f64 = 600.0;
    for workers in ["1", "2"] {
        let run = |seed: &str| {
            let flags = ["--rate", "600", "--arrivals", "poisson", "--seed", seed, "-d", "2s", "-t", workers];
            arrivals(&flags)
        };
        undisturbed("Poisson arrivals", || {
            let ((one, first), (other, again)) = (run("7"), run("7"));
            assert_eq!(one.asked.arrivals.as_deref(), Some("poisson"));
            let planned = one.pacer.unwrap().planned;
            assert_eq!((other.pacer.unwrap().planned, first.len() as u64), (planned, planned), "one seed");
            // 1200 arrivals have a standard deviation of 35.
            assert!((1060..=1340).contains(&planned), "{planned}");
            on_the_plan(&first, &again)?;

            let gaps = gaps(&first);
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            let variation = variance.sqrt() / mean;
            ensure((0.85..=1.15).contains(&variation), || format!("coefficient of variation {variation}"))?;
            // The bound at the 0.1 % level is 0.056; a thread's wake-up on both sides blurs the shortest
            // gaps.
            let distance = distance_from_exponential(&gaps, RATE);
            ensure(distance < 0.09, || format!("Kolmogorov-Smirnov distance {distance}"))?;

            let (_, different) = run("8");
            assert!(on_the_plan(&first, &different).is_err(), "another seed gives different instants");
            Ok(())
        });
    }
}

#[test]
fn a_ramp_offers_the_rate_of_each_step() {
    undisturbed("a ramp", || {
        let (result, arrivals) = arrivals(&["--rate", "100:1s,400:2s"]);
        let planned: Vec<_> =
            result.steps.iter().map(|step| (step.rate, step.from_s, step.to_s, step.planned)).collect();
        assert_eq!(planned, [(100.0, 0.0, 1.0, 100), (400.0, 1.0, 3.0, 800)]);
        assert_eq!(result.steps.iter().map(|step| step.response.count).collect::<Vec<_>>(), [100, 800]);
        let plan = (0..100).map(|number| f64::from(number) / 100.0);
        let plan = plan.chain((0..800).map(|number| 1.0 + f64::from(number) / 400.0));
        on_the_plan(&arrivals, &plan.collect::<Vec<_>>())?;
        gaps_are_alike(&gaps(&arrivals[..100]), 0.01)?;
        gaps_are_alike(&gaps(&arrivals[100..]), 0.0025)
    });
}

/// A closed loop with a think time: on any machine each connection waits at least that long between a response and its
/// next request, and not much longer.
#[test]
fn users_think_between_a_response_and_the_next_request() {
    const THINK: Duration = Duration::from_millis(20);
    undisturbed("think time", || {
        let server = Timed::start(None, |_, read| read);
        let url = server.url(false);
        let result = load_well(&[&url, "-c", "1", "--think", "20ms", "-d", "1s", "--warmup", "0s"]);
        assert_eq!(result.validity, "valid");
        assert_eq!(result.asked.think_us, 20_000.0);
        let served = server.served();
        assert!((10..=50).contains(&served.len()), "{} requests in a second, 20 ms apart", served.len());
        let pauses = served.windows(2).map(|pair| pair[1].read - (pair[0].read + pair[0].delay));
        let pauses = sorted(pauses);
        assert!(pauses[0] >= THINK, "{:?} after a response", pauses[0]);
        let median = at_quantile(&pauses, 0.5);
        ensure(median < THINK + TRANSPORT, || format!("a median of {median:?} after a response"))?;
        // The think time is not part of any reported time.
        let response = Duration::from_nanos(histogram(&result.response).value_at_quantile(0.5));
        ensure(response < THINK, || format!("a median response time of {response:?}"))
    });
}

/// An open-loop run against a server that responds at once, and the arrivals of its requests, in seconds from the
/// first.
fn arrivals(flags: &[&str]) -> (LoadResult, Vec<f64>) {
    let server = Timed::start(None, |_, read| read);
    let url = server.url(false);
    let result = load_well(&[&[url.as_str(), "-c", "32", "--warmup", "0s"], flags].concat());
    valid_or_late(&result);
    let served = server.served();
    let first = served.first().map(|served| served.read);
    let since =
        |served: &Served| served.read.duration_since(first.unwrap_or_else(Instant::now)).as_secs_f64();
    (result, served.iter().map(since).collect())
}

/// The cumulative curve of `arrivals` follows that of `plan`, apart from its start: half of them within 1 ms, three
/// quarters within 3 ms.
fn on_the_plan(arrivals: &[f64], plan: &[f64]) -> Result<(), String> {
    ensure(arrivals.len() == plan.len(), || format!("{} arrivals, planned {}", arrivals.len(), plan.len()))?;
    let late: Vec<_> = arrivals.iter().zip(plan).map(|(arrival, plan)| arrival - plan).collect();
    let start = median(&late);
    let mut off: Vec<_> = late.iter().map(|late| (late - start).abs()).collect();
    off.sort_by(f64::total_cmp);
    let (half, most) = (off[off.len() / 2], off[off.len() * 3 / 4]);
    ensure(half < 0.001 && most < 0.003, || format!("off the plan by {half} s (median), {most} s (75 %)"))
}

/// The median gap matches the rate, and two thirds of the gaps are within a quarter of it; for exponential gaps, only a
/// fifth are.
fn gaps_are_alike(gaps: &[f64], due: f64) -> Result<(), String> {
    let median = median(gaps);
    ensure((median / due - 1.0).abs() < 0.04, || format!("a median gap of {median} s, due {due} s"))?;
    let near = gaps.iter().filter(|gap| (*gap / due - 1.0).abs() < 0.25).count();
    ensure(near * 3 >= gaps.len() * 2, || format!("{near} of {} gaps are near {due} s", gaps.len()))
}

fn gaps(arrivals: &[f64]) -> Vec<f64> {
    arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The greatest distance between the gaps' distribution and the exponential one of this rate (Kolmogorov,
/// Smirnov).
fn distance_from_exponential(gaps: &[f64], rate: f64) -> f64 {
    let mut gaps = gaps.to_vec();
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let distance = |(number, gap): (usize, &f64)| {
        let due = 1.0 - (-gap * rate).exp();
        (due - number as f64 / count).abs().max((due - (number + 1) as f64 / count).abs())
    };
    gaps.iter().enumerate().map(distance).fold(0.0, f64::max)
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn sorted(times: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let mut times: Vec<_> = times.collect();
    times.sort();
    times
}

/// The smallest sample that this share of all samples does not exceed, as a histogram defines it.
fn at_quantile(sorted: &[Duration], quantile: f64) -> Duration {
    sorted[(sorted.len() as f64 * quantile).ceil().max(1.0) as usize - 1]
}
