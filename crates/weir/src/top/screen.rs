//! The output of `weir top`: the rates between two samples, for a screen of any size.

use super::sample::Sample;
use serde_json::Value;
use std::fmt::Write as _;
use weir_gateway::{ROWS, Row, ServerReport, Source};
use weir_http::is_hidden;
use weir_transport::Place;

/// The size of the screen, in columns and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub columns: usize,
    pub rows: usize,
}

impl Size {
    /// The size of a file or a pipe: whole names, and all rows.
    pub(super) const UNLIMITED: Self = Self { columns: usize::MAX, rows: usize::MAX };
}

/// The data for one screen.
pub(super) struct View<'a> {
    pub admin: &'a Place,
    pub before: &'a Sample,
    pub now: &'a Sample,
    /// The reason why the gateway does not respond. The samples are then the last ones received.
    pub lost: Option<&'a str>,
}

impl View<'_> {
    /// The text, cut to `size`: the last line then says how many rows are missing.
    pub(super) fn draw(&self, size: Size) -> String {
        let mut lines = self.head();
        lines.push(String::new());
        lines.extend(self.servers(size.columns));
        if lines.len() > size.rows {
            let hidden = lines.len() - size.rows.saturating_sub(1);
            lines.truncate(size.rows.saturating_sub(1));
            lines.push(format!("{hidden} more: make the window larger"));
        }
        let cut = lines.iter().map(|line| elided(&printable(line), size.columns, Keep::Begin) + "\n");
        cut.collect()
    }

    fn head(&self) -> Vec<String> {
        let Self { admin, before, now, lost } = *self;
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(1e-6);
        let gained = |metric: &Row| (now.count(metric) - before.count(metric)).max(0.0);
        let responses = |class| (now.at(&ROWS.responses, class) - before.at(&ROWS.responses, class)).max(0.0);
        let classes = ROWS.responses.values();
        let all: f64 = (0..classes.len()).map(responses).sum();
        let mean_ms = if all > 0.0 { gained(&ROWS.took) / all / 1000.0 } else { 0.0 };
        let state = match lost {
            Some(why) => format!("  NO RESPONSE: {why}"),
            None if now.state["draining"] == Value::Bool(true) => ", draining".to_owned(),
            // A process's counts never fall.
            None if now.count(&ROWS.connections) < before.count(&ROWS.connections) => {
                ", restarted".to_owned()
            }
            None => String::new(),
        };
        let classes = (0..).zip(classes);
        let classes = classes.map(|(class, name)| format!("  {name} {:.0}", responses(class) / seconds));
        vec![
            format!("weir at {admin}{state}"),
            String::new(),
            format!(
                "requests/s {:>9.0}   mean {mean_ms:>8.2} ms   clients {:>6}   tunnels {:>5}",
                gained(&ROWS.requests) / seconds,
                now.count(&ROWS.clients),
                now.count(&ROWS.open_tunnels)
            ),
            format!("responses/s{}", classes.collect::<String>()),
            format!(
                "connections/s {:>6.0}   upstream {:>6.0}   retries {:.0}   ejections {:.0}",
                gained(&ROWS.connections) / seconds,
                gained(&ROWS.upstream_connections) / seconds,
                gained(&ROWS.retries),
                gained(&ROWS.ejections)
            ),
            format!("handshakes/s   {}", self.rates(&ROWS.handshakes, seconds)),
            format!("ended early/s  {}", self.rates(&ROWS.ended, seconds)),
        ]
    }

    /// Formats the rates of the changed entries in a list of names and counts, as `name rate, name rate`.
    fn rates(&self, list: &Row, seconds: f64) -> String {
        let Self { before, now, .. } = self;
        let rates =
            now.names(list).map(|name| (name, (now.named(list, name) - before.named(list, name)) / seconds));
        let shown: Vec<_> =
            rates.filter(|(_, rate)| *rate > 0.0).map(|(name, rate)| format!("{name} {rate:.0}")).collect();
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
    }

    fn servers(&self, columns: usize) -> Vec<String> {
        // The two names share the columns that the numbers leave.
        let names = columns.saturating_sub(NUMBERS).max(20);
        let widest = |name: fn(&ServerReport) -> &String, least: usize| {
            let names = self.now.servers.iter().map(name);
            names.map(|name| name.chars().count()).max().unwrap_or_default().max(least)
        };
        let is_set = self.now.servers.iter().any(|server| server.from == Source::Admin);
        let mut service = widest(|server| &server.service, 16) + usize::from(is_set);
        let mut server = widest(|server| &server.server, 28);
        if service + server > names {
            service = service.min(names / 3).max(names.saturating_sub(server));
            server = names - service;
        }
        let row = |[name, place, state, weight, requests, failed, in_flight, idle]: [&str; 8]| {
            let mut line = String::new();
            // Writing to a string cannot fail.
            let _ = write!(
                line,
                "{:<service$} {:<server$} {state:<8} {weight:>6} {requests:>7} {failed:>6} {in_flight:>7} {idle:>5}",
                elided(name, service, Keep::Ends),
                elided(place, server, Keep::Ends)
            );
            line
        };
        let Self { before, now, .. } = self;
        if now.servers.is_empty() {
            return vec!["no servers".to_owned()];
        }
        let seconds = now.at.duration_since(before.at).as_secs_f64().max(1e-6);
        let mut rows =
            vec![row(["SERVICE", "SERVER", "STATE", "WEIGHT", "REQ/S", "5XX/S", "IN FLT", "IDLE"])];
        for server in &now.servers {
            let earlier = before.same_server(server).unwrap_or(server);
            let gained =
                |class: usize| server.responses[class].saturating_sub(earlier.responses[class]) as f64;
            let ServerReport { weight, configured_weight, in_flight, idle, state, .. } = server;
            let mark = if weight == configured_weight { "" } else { "*" };
            let source = match server.from {
                Source::File => "",
                Source::Admin => "*",
            };
            rows.push(row([
                &format!("{}{source}", printable(&server.service)),
                &printable(&server.server),
                &state.to_string(),
                &format!("{weight}{mark}"),
                &format!("{:.0}", (0..server.responses.len()).map(gained).sum::<f64>() / seconds),
                &format!("{:.0}", gained(5) / seconds),
                &in_flight.to_string(),
                &idle.to_string(),
            ]));
        }
        rows
    }
}

/// The columns of a row except for its two names.
const NUMBERS: usize = 1 + 1 + 8 + 1 + 6 + 1 + 7 + 1 + 6 + 1 + 7 + 1 + 5;

/// The part of an overlong text to keep.
#[derive(Clone, Copy)]
enum Keep {
    Begin,
    /// Both ends: the end of a server's name contains its port.
    Ends,
}

/// Shortens a text to this number of columns.
fn elided(text: &str, columns: usize, keep: Keep) -> String {
    let count = text.chars().count();
    if count <= columns {
        return text.to_owned();
    }
    let left = columns.saturating_sub(1);
    let tail = match keep {
        Keep::Begin => 0,
        Keep::Ends => left / 2,
    };
    let begin = text.chars().take(left - tail);
    begin.chain(['…'].into_iter().take(columns)).chain(text.chars().skip(count - tail)).collect()
}

/// Replaces each character that a terminal would interpret with U+FFFD, which takes one column.
fn printable(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::LazyLock;
    use std::time::{Duration, Instant};

    const SMALL: Size = Size { columns: 80, rows: 24 };
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    fn server(service: &str, server: &str, served: u64) -> Value {
        json!({
            "service": service, "server": server, "state": "up", "weight": 1, "configured_weight": 2,
            "in_flight": 3, "idle": 4, "responses": [0, 0, served, 0, 0, 0],
        })
    }

    fn sample(seconds: u64, requests: u64, servers: Vec<Value>) -> Sample {
        let state = json!({
            "requests": requests, "connections": requests, "clients": 12, "responses": [0, 0, requests, 0, 0, 0],
            "took_us": 1000 * requests, "handshakes": [["full", requests]], "draining": false,
            "ended_early": [["upstream_connect_timeout", requests], ["client_closed", 2 * requests], ["body_too_slow", requests],
                            ["upstream_handshake_timeout", requests]],
            "servers": servers,
        });
        Sample::new(*START + Duration::from_secs(seconds), state).unwrap()
    }

    fn draw(before: &Sample, now: &Sample, lost: Option<&str>, size: Size) -> Vec<String> {
        let admin: Place = "http://127.0.0.1:9901".parse().unwrap();
        let text = View { admin: &admin, before, now, lost }.draw(size);
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        assert!(lines.len() <= size.rows, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= size.columns), "{text}");
        lines
    }

    #[test]
    fn the_head_stays_and_lines_fit_whatever_there_is() {
        let many = (0..100).map(|n| server("app", &format!("http://10.0.0.{n}:8080"), 10)).collect();
        let long = "a-very-long-name-".repeat(8);
        let cases: Vec<(Vec<Value>, &str)> = vec![
            (vec![], "no servers"),
            (vec![server("app", "http://10.0.0.1:8080", 10)], "http://10.0.0.1:8080 "),
            (many, "86 more: make the window larger"),
            (vec![server(&long, &format!("http://{long}.example:8443"), 10)], "le:8443 up "),
            (vec![server("a\x1b[2Jb", "unix:/run/\u{202e}x\u{9b}31m", 10)], "a\u{fffd}[2Jb"),
        ];
        for (servers, shown) in cases {
            let (before, now) = (sample(0, 1000, servers.clone()), sample(1, 2_000_000, servers));
            let lines = draw(&before, &now, None, SMALL);
            assert_eq!(lines[0], "weir at http://127.0.0.1:9901");
            assert!(lines[2].starts_with("requests/s   1999"), "{lines:?}");
            assert!(lines.iter().any(|line| line.contains(shown)), "{shown}: {lines:#?}");
            assert!(lines.iter().all(|line| !line.contains(['\x1b', '\u{9b}', '\u{202e}'])));
        }
    }

    #[test]
    fn a_tiny_window_shows_what_fits() {
        let servers = vec![server("app", "http://10.0.0.1:8080", 10)];
        let (before, now) = (sample(0, 0, servers.clone()), sample(1, 10, servers));
        for size in [(1, 1), (10, 3), (40, 8), (300, 100), (0, 0)] {
            let size = Size { columns: size.0, rows: size.1.max(1) };
            draw(&before, &now, None, size);
        }
    }

    #[test]
    fn servers_are_the_same_by_name_when_a_reload_reorders_them() {
        let before = sample(0, 0, vec![server("a", "one", 100), server("b", "two", 5000)]);
        let now =
            sample(1, 0, vec![server("b", "two", 5007), server("c", "new", 900), server("a", "one", 103)]);
        let lines = draw(&before, &now, None, SMALL);
        for (name, rate) in [("b ", "7"), ("c ", "0"), ("a ", "3")] {
            let row = lines.iter().find(|line| line.starts_with(name)).unwrap();
            assert_eq!(row.split_whitespace().nth(4), Some(rate), "{row}");
        }
    }

    #[test]
    fn servers_that_were_set_at_run_time_have_a_mark() {
        let mut set = server("app", "one", 1);
        set["from"] = "admin".into();
        let sample = sample(0, 0, vec![set, server("web", "two", 1)]);
        let lines = draw(&sample, &sample, None, SMALL);
        for (name, of_server) in [("app*", "one"), ("web", "two")] {
            let row: Vec<_> =
                lines.iter().find(|line| line.starts_with(name)).unwrap().split_whitespace().collect();
            assert_eq!(row[..2], [name, of_server]);
        }
    }

    #[test]
    fn a_gateway_that_drains_restarts_or_is_gone_is_said_to() {
        let before = sample(0, 100, vec![]);
        let mut drains = sample(1, 110, vec![]);
        drains.state["draining"] = true.into();
        let (restarted, lost) = (sample(1, 5, vec![]), Some("Connection refused"));
        assert!(draw(&before, &drains, None, SMALL)[0].ends_with(", draining"));
        let lines = draw(&before, &restarted, None, SMALL);
        assert!(
            lines[0].ends_with(", restarted") && lines[2].starts_with("requests/s         0 "),
            "{lines:?}"
        );
        assert!(draw(&before, &before, lost, SMALL)[0].ends_with("NO RESPONSE: Connection refused"));
    }
}
