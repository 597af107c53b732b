//! Options that cannot be followed.

use super::*;

#[test]
fn options_that_cannot_be_followed_name_flag_value_and_what_is_allowed() {
    type Change = fn(&mut Options);
    let table: [(Change, &str); 12] = [
        (|o| o.connections = 0, "-c: `0` cannot be used; allowed: 1 to 1000000"),
        (
            |o| o.workers = 65,
            "-c: `64` cannot be used; allowed: at least as many connections as workers (-t)",
        ),
        (|o| o.workers = 0, "-t: `0` cannot be used; allowed: 1 to 1024"),
        (|o| o.phases.window = Duration::ZERO, "-d: `0` cannot be used; allowed: 1ms to 24h"),
        (|o| o.timeout = Duration::ZERO, "--timeout: `0` cannot be used; allowed: 1ms to 1h"),
        (
            |o| o.schedule = Schedule::constant(0.0, Duration::from_secs(1)),
            "--rate: `0` cannot be used; allowed: 0.001 to 10000000 requests per second",
        ),
        (
            |o| o.policy.per_connection = PerConnection::Requests { least: 0, most: 0 },
            "--requests-per-connection: `0` cannot be used; allowed: a number from 1, or a range such as 5-10",
        ),
        (
            |o| o.requests[0].expect.status = Some(100),
            "--expect-status: `100` cannot be used; allowed: a final status, 200 to 999",
        ),
        (
            |o| o.requests[0].chunk = Some(9),
            "--chunked: `9` cannot be used; allowed: beside --data: without a body there is nothing to frame",
        ),
        (
            |o| o.requests[0].chunk = Some(0),
            "--chunked: `0` cannot be used; allowed: 1 to 1GiB, in bytes or such as 4KiB",
        ),
        (|o| o.error_budget = 100.5, "--error-budget: `100.5` cannot be used; allowed: 0 to 100 percent"),
        (|o| o.error_budget = f64::NAN, "--error-budget: `NaN` cannot be used; allowed: 0 to 100 percent"),
    ];
    for (change, message) in table {
        let mut options = Options::new("http://a/".parse().unwrap());
        assert_eq!(options.check(), Ok(()));
        change(&mut options);
        assert_eq!(options.check().unwrap_err().to_string(), message);
    }
}
