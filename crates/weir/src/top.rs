//! `weir top`: a live view of a running gateway, from its admin address.

use crate::outcome::{Failure, Outcome, say};
use clap::Args;
use serde_json::Value;
use socket2::Socket;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _, Write as _, stdout};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};
use weir_http1::{Limits, Parse, ResponseHead};
use weir_transport::{Address, Place};

/// Show what a running gateway does: rates, answers, servers, early ends.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir top
  weir top --admin http://127.0.0.1:9901 --once
  weir top --admin unix:/run/weir-admin.sock

The gateway needs an [admin] table in its configuration. Rates are those since the last refresh,
with --once those of one interval. A * marks a weight that was set at run time.")]
pub(crate) struct TopArgs {
    /// The gateway's admin address: a URL, or unix:PATH
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9901")]
    admin: Place,
    /// Time between refreshes
    #[arg(long, value_name = "SECONDS", value_parser = crate::serve::seconds, default_value = "1")]
    every: Duration,
    /// Print one interval and exit
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(args: &TopArgs) -> Outcome {
    let mut before = Sample::take(&args.admin)?;
    loop {
        thread::sleep(args.every);
        let now = Sample::take(&args.admin)?;
        let screen = screen(&args.admin, &before, &now);
        if args.once {
            return say(screen);
        }
        let clear = if stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
        say(format_args!("{clear}{screen}"))?;
        before = now;
    }
}

/// The gateway's state at one moment.
struct Sample {
    at: Instant,
    state: Value,
}

impl Sample {
    fn take(admin: &Place) -> Result<Self, Failure> {
        let body = fetch(admin).map_err(|why| Failure::run(format!("{admin}: {why}")))?;
        let state = serde_json::from_slice(&body)
            .map_err(|_| Failure::run(format!("{admin}: expected the admin address of a gateway")))?;
        Ok(Self { at: Instant::now(), state })
    }

    fn count(&self, pointer: &str) -> f64 {
        self.state.pointer(pointer).and_then(Value::as_f64).unwrap_or_default()
    }
}

fn fetch(admin: &Place) -> Result<Vec<u8>, String> {
    let connect = || {
        let stream: OwnedFd = match admin.resolve()? {
            Address::Tcp(address) => TcpStream::connect_timeout(&address, WITHIN)?.into(),
            Address::Unix(path) => UnixStream::connect(path)?.into(),
        };
        let stream = Socket::from(stream);
        stream.set_read_timeout(Some(WITHIN))?;
        (&stream).write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        (&stream).take(LARGEST).read_to_end(&mut answer)?;
        std::io::Result::Ok(answer)
    };
    let answer = connect().map_err(|error| format!("{error}; add an [admin] table to the configuration"))?;
    let mut head = ResponseHead::new();
    match head.parse(&answer, &Limits::default()) {
        Ok(Parse::Complete(len)) if head.status == 200 => Ok(answer[len..].to_vec()),
        Ok(Parse::Complete(len)) => {
            Err(format!("status {}: {}", head.status, String::from_utf8_lossy(&answer[len..]).trim_end()))
        }
        Ok(Parse::Partial) | Err(_) => Err("expected the admin address of a gateway".to_owned()),
    }
}

fn screen(admin: &Place, before: &Sample, now: &Sample) -> String {
    let seconds = now.at.duration_since(before.at).as_secs_f64().max(1e-6);
    let gained = |pointer: &str| (now.count(pointer) - before.count(pointer)).max(0.0);
    let answers: f64 = (0..6).map(|class| gained(&format!("/answers/{class}"))).sum();
    let mean_ms = if answers > 0.0 { gained("/took_us") / answers / 1000.0 } else { 0.0 };
    let mut out = String::new();
    let draining = if now.state["draining"] == Value::Bool(true) { ", draining" } else { "" };
    // Writing to a string does not fail.
    let _ = writeln!(out, "weir at {admin}{draining}\n");
    let _ = writeln!(
        out,
        "requests/s {:>9.0}   mean {mean_ms:>8.2} ms   clients {:>6}   tunnels {:>5}",
        gained("/requests") / seconds,
        now.count("/clients"),
        now.count("/tunnels")
    );
    let _ = write!(out, "answers/s ");
    for (class, name) in ["none", "1xx", "2xx", "3xx", "4xx", "5xx"].iter().enumerate() {
        let _ = write!(out, "  {name} {:.0}", gained(&format!("/answers/{class}")) / seconds);
    }
    let _ = writeln!(
        out,
        "\nconnections/s {:>6.0}   upstream {:>6.0}   retries {:.0}   ejections {:.0}",
        gained("/connections") / seconds,
        gained("/upstream_connections") / seconds,
        gained("/retries"),
        gained("/ejections")
    );
    let _ = writeln!(out, "handshakes/s   {}", pairs("handshakes", before, now, seconds));
    let _ = writeln!(out, "ended early/s  {}", pairs("ended_early", before, now, seconds));
    let _ = writeln!(
        out,
        "\n{:<16} {:<28} {:<8} {:>6} {:>9} {:>7} {:>9} {:>6}",
        "SERVICE", "SERVER", "STATE", "WEIGHT", "REQ/S", "5XX/S", "IN FLIGHT", "IDLE"
    );
    let servers = now.state["servers"].as_array().map_or(0, Vec::len);
    for index in 0..servers {
        let of = |name: &str| format!("/servers/{index}/{name}");
        let text = |name: &str| now.state.pointer(&of(name)).and_then(Value::as_str).unwrap_or_default();
        let [weight, configured] = ["weight", "configured_weight"].map(|name| now.count(&of(name)));
        let weight = format!("{weight}{}", if weight == configured { "" } else { "*" });
        let served: f64 = (0..6).map(|class| gained(&of(&format!("answers/{class}")))).sum();
        let _ = writeln!(
            out,
            "{:<16} {:<28} {:<8} {:>6} {:>9.0} {:>7.0} {:>9} {:>6}",
            text("service"),
            text("server"),
            text("state"),
            weight,
            served / seconds,
            gained(&of("answers/5")) / seconds,
            now.count(&of("in_flight")),
            now.count(&of("idle"))
        );
    }
    out
}

/// `name rate, name rate` of a list of names and counts, without those that did not change.
fn pairs(list: &str, before: &Sample, now: &Sample, seconds: f64) -> String {
    let count = |sample: &Sample, name: &str| {
        let pairs = sample.state[list].as_array().into_iter().flatten();
        let mut named = pairs.filter(|pair| pair[0] == name);
        named.find_map(|pair| pair[1].as_f64()).unwrap_or_default()
    };
    let names = now.state[list].as_array().into_iter().flatten().filter_map(|pair| pair[0].as_str());
    let rates = names.map(|name| (name, (count(now, name) - count(before, name)) / seconds));
    let shown: Vec<_> =
        rates.filter(|(_, rate)| *rate > 0.0).map(|(name, rate)| format!("{name} {rate:.0}")).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// A gateway answers within a second.
const WITHIN: Duration = Duration::from_secs(3);

/// The state of thousands of servers.
const LARGEST: u64 = 16 << 20;
