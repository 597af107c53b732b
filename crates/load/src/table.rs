//! A result on one screen.

use crate::result::{Cost, Latency, LoadResult};
use std::fmt::Write as _;

/// The result as lines of text for people.
pub fn table(result: &LoadResult) -> String {
    let mut out = String::new();
    let loop_kind = match result.asked.rate {
        None => "closed loop".to_string(),
        Some(rate) => format!("open loop at {} per second", number(rate)),
    };
    let _ = writeln!(
        out,
        "{}  {} connections, {loop_kind}, {:.2} s",
        result.url, result.asked.connections, result.window_s
    );
    let mut row = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<14} {text}");
    };
    let rate = number(result.requests_per_second);
    row("requests", format!("{} answered rightly, {rate} per second", result.requests));
    let per_second = |bytes: u64| size(bytes as f64 / result.window_s);
    row(
        "bytes",
        format!(
            "{} received ({}/s), {} sent ({}/s)",
            size(result.bytes_received as f64),
            per_second(result.bytes_received),
            size(result.bytes_sent as f64),
            per_second(result.bytes_sent)
        ),
    );
    if result.errors.is_empty() {
        row("errors", "none".into());
    }
    for (class, count) in &result.errors {
        let example = result.error_examples.get(class).map_or(String::new(), |text| format!(": {text}"));
        row("errors", format!("{count} {class}{example}"));
    }
    // What kept connections from being made often came up before the window alone.
    let before = result.error_examples.iter().filter(|(class, _)| !result.errors.contains_key(*class));
    for (class, text) in before {
        row("warm-up", format!("{class}: {text}"));
    }
    let ours = latency(&result.response);
    row("latency", ours.clone());
    let service = latency(&result.service);
    if service != ours {
        row("service", service);
    }
    if let Some(pacer) = &result.pacer {
        row(
            "schedule",
            format!(
                "{} planned, {} sent, {} unsent; lag p99 {}, max {}",
                pacer.planned,
                pacer.sent,
                result.unsent.count,
                time(pacer.lag_p99_us),
                time(pacer.lag_max_us)
            ),
        );
    }
    row("connections", format!("{} opened", result.connections_opened));
    for negotiated in &result.handshakes.negotiated {
        row("handshakes", format!("{} {negotiated}", negotiated.count));
    }
    row("load CPU", cost(&result.engine.cost));
    for server in &result.servers {
        let rss = server.rss_peak_kib.map(|kib| format!(", peak {}", size(kib as f64 * 1024.0)));
        let rss = rss.unwrap_or_default();
        row("server CPU", format!("{}{rss} ({})", cost(&server.cost), server.source));
    }
    row("limit", result.limit.to_string());
    row("validity", result.validity.clone());
    out
}

fn latency(latency: &Latency) -> String {
    let percentile = |value: Option<f64>| value.map_or("too few".into(), time);
    format!(
        "mean {}, sd {}, p50 {}, p90 {}, p99 {}, p99.9 {}, max {}",
        time(latency.mean_us),
        time(latency.sd_us),
        percentile(latency.p50_us),
        percentile(latency.p90_us),
        percentile(latency.p99_us),
        percentile(latency.p999_us),
        time(latency.max_us)
    )
}

fn cost(cost: &Cost) -> String {
    let each = cost.cpu_us_per_request.map_or("-".into(), |us| format!("{us:.2} us"));
    let cores = if cost.cores == 1 { "core" } else { "cores" };
    format!("{each} per request, {:.0} % of {} {cores}", cost.utilisation * 100.0, cost.cores)
}

/// Microseconds in the unit that people would choose.
fn time(us: f64) -> String {
    match us {
        us if us < 1000.0 => format!("{us:.1} us"),
        us if us < 1e6 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

/// Bytes, in powers of 1000.
fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e3 => format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => format!("{:.1} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.2} GB", bytes / 1e9),
    }
}

fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Pacer, tests::sample};

    #[test]
    fn a_closed_loop_on_one_screen() {
        let expected = "\
https://127.0.0.1:8443/bytes/1000  64 connections, closed loop, 2.00 s
  requests       50000 answered rightly, 25000 per second
  bytes          57.5 MB received (28.8 MB/s), 3.0 MB sent (1.5 MB/s)
  errors         none
  latency        mean 63.2 us, sd 12.5 us, p50 61.5 us, p90 80.0 us, p99 1.23 ms, p99.9 too few, max 2.35 s
  connections    64 opened
  handshakes     64 1.3 aes128-gcm-sha256 x25519 ecdsa-p256-sha256 full chain=1/543
  load CPU       12.00 us per request, 30 % of 1 core
  server CPU     38.00 us per request, 95 % of 1 core, peak 12.6 MB (process 4711)
  limit          gateway
  validity       valid
";
        assert_eq!(table(&sample()), expected);
    }

    #[test]
    fn an_open_loop_tells_its_schedule_and_errors_their_words() {
        let mut result = sample();
        result.asked.rate = Some(1000.0);
        result.unsent.count = 3;
        result.pacer = Some(Pacer {
            planned: 2000,
            sent: 1997,
            achieved_ratio: 0.9985,
            lag_p99_us: 80.0,
            lag_max_us: 1500.0,
        });
        result.errors = [("status".to_string(), 2)].into();
        result.error_examples = [("status", "status 404"), ("connect_refused", "connection refused")]
            .map(|(class, text)| (class.to_string(), text.to_string()))
            .into();
        result.service.mean_us = 50.0;
        let text = table(&result);
        for line in [
            "64 connections, open loop at 1000 per second, 2.00 s",
            "  errors         2 status: status 404\n",
            "  warm-up        connect_refused: connection refused\n",
            "  service        mean 50.0 us, sd",
            "  schedule       2000 planned, 1997 sent, 3 unsent; lag p99 80.0 us, max 1.50 ms\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(text.lines().count() <= 24, "one screen");
    }
}
