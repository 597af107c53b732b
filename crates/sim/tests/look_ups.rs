//! The number of lookups of connections, exchanges, services and servers that a worker makes for one warm request.

use weir_sim::Steady;

/// The maximum per request: about the number that a code path needs if it looks up each object once.
const MOST: u64 = 25;

#[test]
fn a_warm_request_needs_few_look_ups() {
    let of = |requests| {
        let steady = Steady {
            client_tls: false,
            upstream_tls: false,
            bytes: 1000,
            requests,
            lives: false,
            routes: 0,
            certificates: 1,
        };
        let report = steady.run();
        assert!(report.violations.is_empty(), "{:?}", report.violations);
        report.look_ups
    };
    let each = (of(120) - of(20)) / 100;
    assert!((1..=MOST).contains(&each), "{each} look-ups per request");
}
