//! Invalid options.

use super::*;

#[test]
fn invalid_options_name_flag_value_and_what_is_expected() {
    type Change = fn(&mut Options);
    let table: [(Change, &str); 12] = [
        (|o| o.connections = 0, "-c: invalid value `0`: expected 1 to 1000000"),
        (|o| o.workers = 65, "-c: invalid value `64`: expected at least as many connections as workers (-t)"),
        (|o| o.workers = 0, "-t: invalid value `0`: expected 1 to 1024"),
        (|o| o.phases.window = Duration::ZERO, "-d: invalid value `0`: expected 1ms to 24h"),
        (|o| o.timeout = Duration::ZERO, "--timeout: invalid value `0`: expected 1ms to 1h"),
        (
            |o| o.schedule = Schedule::constant(0.0, Duration::from_secs(1)),
            "--rate: invalid value `0`: expected 0.001 to 10000000 requests per second",
        ),
        (
            |o| o.policy.per_connection = PerConnection::Requests { least: 0, most: 0 },
            "--requests-per-connection: invalid value `0`: expected a number from 1, or a range such as 5-10",
        ),
        (
            |o| o.requests[0].expect.status = Some(100),
            "--expect-status: invalid value `100`: expected a final status, 200 to 999",
        ),
        (
            |o| o.requests[0].chunk = Some(9),
            "--chunked: invalid value `9`: expected --data as well: without a body there is nothing to send in chunks",
        ),
        (
            |o| o.requests[0].chunk = Some(0),
            "--chunked: invalid value `0`: expected 1 to 1GiB, such as 4096 or 4KiB",
        ),
        (|o| o.error_budget = 100.5, "--error-budget: invalid value `100.5`: expected 0 to 100 percent"),
        (|o| o.error_budget = f64::NAN, "--error-budget: invalid value `NaN`: expected 0 to 100 percent"),
    ];
    for (change, message) in table {
        let mut options = Options::new("http://a/".parse().unwrap());
        assert_eq!(options.check(), Ok(()));
        change(&mut options);
        assert_eq!(options.check().unwrap_err().to_string(), message);
    }
}
