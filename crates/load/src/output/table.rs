//! A result on one screen: 100 columns, 24 lines unless there were problems or many steps.

mod http2;
mod versions;

use crate::output::figures::{at_least, bounded, count, percent, plural, rate, size, time};
use crate::result::{Asked, BusyThread, ByVersion, Cost, Handshakes, Latency, LoadResult, Role, ServerCost};
use std::fmt::Write as _;

/// The result as text. Shows response time and service time for either loop.
pub fn table(result: &LoadResult) -> String {
    let mut page = Page::default();
    page.head(result);
    page.gap();
    page.work(result);
    page.gap();
    page.times(result);
    page.gap();
    page.connections(result);
    page.gap();
    page.verdict(result);
    page.0
}

/// Longer lines wrap at a space.
const WIDTH: usize = 100;

/// The column where the text of a row starts.
const TEXT_AT: usize = 17;

/// The column where the counts end in rows of times.
const COUNT_TO: usize = 30;

/// The width of a time there: `>=1.23 ms` and a space.
const TIME: usize = 10;

/// Maximum combinations listed; a run that asks for one has one per kind of handshake.
const MOST_NEGOTIATED: usize = 4;

#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, result: &LoadResult) {
        let partial = if result.partial { "  [partial: ended early]" } else { "" };
        let _ = writeln!(self.0, "{}{partial}", result.url);
        self.wrapped(0, &asked(result));
    }

    fn work(&mut self, result: &LoadResult) {
        let per_second = rate(result.requests_per_second);
        let (label, what) = match result.asked.requests_per_connection.as_str() {
            "handshake-only" => ("finished", plural(result.requests, "handshake")),
            _ => ("requests", format!("{} correct responses", count(result.requests))),
        };
        let bytes = |bytes: u64| {
            if result.window_s > 0.0 { size(bytes as f64 / result.window_s) } else { "-".into() }
        };
        let (received, sent) = (bytes(result.bytes_received), bytes(result.bytes_sent));
        self.row(label, &format!("{what}, {per_second}; received {received}/s, sent {sent}/s"));
        if let Some(grpc) = &result.grpc {
            let [sent, received] =
                [grpc.messages_sent_per_second, grpc.messages_received_per_second].map(rate);
            self.row("messages", &format!("sent {sent}, received {received}"));
        }
        if let Some(versions) = &result.by_version {
            self.versions(versions);
        }
        self.costs(result);
        self.errors(result);
        if let Some(pacer) = &result.pacer {
            let (planned, sent) = (count(pacer.planned), count(pacer.sent));
            let (p99, max) = (time(pacer.lag_p99_us), time(pacer.lag_max_us));
            let share = percent(pacer.achieved_ratio);
            self.row(
                "schedule",
                &format!("{planned} planned, {sent} sent ({share}); lag p99 {p99}, max {max}"),
            );
        }
        if result.unsent.count > 0 {
            let (mean, oldest) = (time(result.unsent.mean_us), time(result.unsent.oldest_us));
            let number = count(result.unsent.count);
            self.row("unsent", &format!("{number}, waited {mean} on average, the oldest {oldest}"));
        }
    }

    fn costs(&mut self, result: &LoadResult) {
        let engine = &result.engine;
        let mut text = cost(&engine.cost);
        if engine.workers.len() > 1 {
            let busiest = engine.workers.iter().map(|worker| worker.utilisation).fold(0.0, f64::max);
            let _ = write!(text, " (busiest worker {:.0} %)", busiest * 100.0);
        }
        let (p99, max) = (time(engine.loop_lag_p99_us), time(engine.loop_lag_max_us));
        self.row("load CPU", &format!("{text}; loop lag p99 {p99}, max {max}"));
        for server in &result.servers {
            let label = match server.role {
                Role::Gateway => "gateway CPU",
                Role::Origin => "origin CPU",
            };
            self.row(label, &server_cost(server));
        }
    }

    fn errors(&mut self, result: &LoadResult) {
        let total: u64 = result.errors.values().sum();
        let seen = match total {
            0 => "none".to_string(),
            total => format!("{}, {} of completed requests", count(total), percent(result.error_ratio)),
        };
        let allowed = match result.asked.error_budget_percent {
            0.0 => String::new(),
            budget => format!("; budget {budget} % without a response"),
        };
        self.row("errors", &format!("{seen}{allowed}"));
        let example = |class: &String| {
            result.error_examples.get(class).map_or(String::new(), |text| format!(": {text}"))
        };
        for (class, number) in &result.errors {
            self.row("", &format!("{} {class}{}", count(*number), example(class)));
        }
        // Connection errors often occur only before the window.
        for class in result.error_examples.keys().filter(|class| !result.errors.contains_key(*class)) {
            self.row("", &format!("before the window: {class}{}", example(class)));
        }
    }

    fn times(&mut self, result: &LoadResult) {
        self.time_row("", ["count", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"].map(String::from));
        let mut shown = Vec::new();
        let mut time_row = |name: &str, latency| {
            self.time_row(name, cells(latency));
            shown.push(latency);
        };
        time_row("response", &result.response);
        for (version, figures) in result.by_version.iter().flat_map(|versions| versions.as_ref().into_pairs())
        {
            time_row(&format!("  HTTP/{}", version.word()), &figures.response);
        }
        for step in &result.steps {
            time_row(&format!("  {}, {}-{} s", rate(step.rate), step.from_s, step.to_s), &step.response);
        }
        time_row("service", &result.service);
        let where_any = [("first byte", &result.first_byte), ("connect", &result.connect)];
        let waits = result.http2.iter().flat_map(|h2| {
            let (window, wire) = (("window wait", &h2.window_wait), ("wire wait", &h2.wire_wait));
            [("stream wait", &h2.stream_wait), window, wire]
        });
        let where_any = where_any.into_iter().chain(waits);
        let kinds = result.handshake.iter().map(|(kind, latency)| (handshake_name(kind), latency));
        for (name, latency) in where_any.chain(kinds).filter(|(_, latency)| latency.count > 0) {
            time_row(name, latency);
        }
        if shown.iter().any(|latency| latency.p50_us.is_none() || latency.p999_us.is_none()) {
            self.row("", "-: too few samples; p50 needs 20, p90 100, p95 200, p99 1000, p99.9 10 000");
        }
        let censored = result.response.censored;
        if censored > 0 {
            let samples = plural(censored, "sample");
            self.row(
                "",
                &format!(">=: at least; {samples} timed out or never sent, counted with their time so far"),
            );
        }
    }

    fn connections(&mut self, result: &LoadResult) {
        let (opened, in_window) =
            (count(result.connections_opened), count(result.connections_opened_in_window));
        self.row("connections", &format!("{opened} opened, {in_window} in the window"));
        if let Some(figures) = &result.http2 {
            self.http2(figures);
        }
        let handshakes = &result.handshakes;
        if handshakes.negotiated.is_empty() && handshakes.had_nothing == 0 {
            return;
        }
        self.row("handshakes", &kinds(handshakes, result.asked.resume_percent));
        let mut negotiated: Vec<_> = handshakes.negotiated.iter().collect();
        negotiated.sort_by_key(|facts| std::cmp::Reverse(facts.count));
        let (listed, rest) = negotiated.split_at(negotiated.len().min(MOST_NEGOTIATED));
        for (index, facts) in listed.iter().enumerate() {
            let label = if index == 0 { "negotiated" } else { "" };
            self.row(label, &format!("{} x TLS {facts}", count(facts.count)));
        }
        if !rest.is_empty() {
            let others: u64 = rest.iter().map(|facts| facts.count).sum();
            let number = plural(rest.len() as u64, "further combination");
            self.row("", &format!("{} x {number}", count(others)));
        }
    }

    fn verdict(&mut self, result: &LoadResult) {
        let ceiling = result.ceiling.as_ref().map_or(String::new(), |ceiling| {
            let (share, per_worker) = (percent(ceiling.share), rate(ceiling.per_worker));
            format!("; {share} of the engine's ceiling ({}: {per_worker} per worker)", ceiling.cell)
        });
        self.row("limit", &format!("{}{ceiling}", result.limit));
        for warning in &result.warnings {
            self.row("warning", warning);
        }
        let partial = if result.partial { "; partial: the run was ended early" } else { "" };
        self.row("validity", &format!("{}{partial}", result.validity));
    }

    fn row(&mut self, label: &str, text: &str) {
        let _ = write!(self.0, "  {label:<14} ");
        self.wrapped(TEXT_AT, text);
    }

    /// Wraps words to a hanging indent. A number stays with its
    /// unit.
    fn wrapped(&mut self, indent: usize, text: &str) {
        let mut before = ' ';
        let ends_word = |char| !std::mem::replace(&mut before, char).is_ascii_digit() && char == ' ';
        let mut column = indent;
        for (index, word) in text.split(ends_word).enumerate() {
            let length = word.chars().count();
            if index > 0 && column + 1 + length > WIDTH {
                let _ = write!(self.0, "\n{:indent$}", "");
                column = indent;
            } else if index > 0 {
                self.0.push(' ');
                column += 1;
            }
            self.0.push_str(word);
            column += length;
        }
        self.0.push('\n');
    }

    /// A row of eight columns that never touch: a name too long for the count gets its own line.
    fn time_row(&mut self, name: &str, cells: [String; 8]) {
        let [count, rest @ ..] = cells;
        let _ = write!(self.0, "  {name}");
        let mut column = 2 + name.chars().count();
        if column + 1 + count.len() > COUNT_TO {
            self.0.push('\n');
            column = 0;
        }
        let _ = write!(self.0, "{count:>width$}", width = COUNT_TO - column);
        for cell in rest {
            let _ = write!(self.0, "{cell:>TIME$}");
        }
        self.0.push('\n');
    }

    fn gap(&mut self) {
        self.0.push('\n');
    }
}

fn asked(result: &LoadResult) -> String {
    let asked = &result.asked;
    let mut parts = vec![plural(asked.connections.into(), "connection")];
    let streams = plural(asked.streams.into(), "stream");
    if let Some(ByVersion { http1, http2 }) = &result.by_version {
        let (http1, http2) = (count(http1.connections.into()), count(http2.connections.into()));
        parts.push(format!("{http1} HTTP/1.1 and {http2} HTTP/2 with {streams} each"));
    } else if asked.http == "2" {
        parts.push(format!("HTTP/2 with {streams} each"));
    }
    if let (Some(up), Some(down)) = (asked.messages, asked.expect_messages) {
        let up = plural(up.into(), "message");
        parts.push(format!("gRPC calls with {up} up and {} down", count(down)));
    }
    parts.push(match asked.requests_per_connection.as_str() {
        "keep-alive" => "keep-alive".to_string(),
        "handshake-only" => "handshakes only".to_string(),
        "1" => "one per request".to_string(),
        number => format!("{number} requests each"),
    });
    parts.push(schedule(result));
    parts.push(workers(asked));
    parts.push(format!("{:.2} s window", result.window_s));
    if asked.mix > 1 {
        parts.push(format!("{} distinct requests", asked.mix));
    }
    if asked.sources.len() > 1 {
        parts.push(format!("from {} local addresses", asked.sources.len()));
    }
    if !asked.tls_versions.is_empty() && !asked.verified {
        parts.push("certificates not verified".to_string());
    }
    parts.join(", ")
}

fn schedule(result: &LoadResult) -> String {
    let asked = &result.asked;
    let Some(first) = asked.rate else {
        return match asked.think_us {
            0.0 => "closed loop".to_string(),
            think => format!("closed loop with {} think time", time(think)),
        };
    };
    let arrivals = asked.arrivals.as_deref().unwrap_or("constant");
    match result.steps.as_slice() {
        [.., last] => {
            let number = plural(result.steps.len() as u64, "step");
            format!("open loop ({arrivals}) from {} to {} in {number}", rate(first), rate(last.rate))
        }
        [] => format!("open loop ({arrivals}) at {}", rate(first)),
    }
}

fn workers(asked: &Asked) -> String {
    let workers = plural(asked.workers.into(), "worker");
    match asked.cores.as_slice() {
        [] => workers,
        [core] => format!("{workers} on core {core}"),
        cores => {
            let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
            format!("{workers} on cores {}", cores.join(","))
        }
    }
}

fn cells(latency: &Latency) -> [String; 8] {
    let cell = |us: Option<f64>| us.map_or("-".to_string(), |us| bounded(latency, us));
    let any = latency.count > 0;
    // With censored samples the mean is a lower bound too.
    let mean = if latency.censored > 0 { at_least(latency.mean_us) } else { time(latency.mean_us) };
    [
        count(latency.count),
        if any { mean } else { "-".to_string() },
        cell(latency.p50_us),
        cell(latency.p90_us),
        cell(latency.p95_us),
        cell(latency.p99_us),
        cell(latency.p999_us),
        cell(any.then_some(latency.max_us)),
    ]
}

fn handshake_name(kind: &str) -> &str {
    if kind == "full" { "full handshake" } else { kind }
}

/// Kinds and counts, and the outcome of requested resumptions.
fn kinds(handshakes: &Handshakes, resume_percent: f64) -> String {
    let mut text = format!("full {}", count(handshakes.full));
    for (kind, number) in &handshakes.resumed {
        let _ = write!(text, ", {kind} {}", count(*number));
    }
    if resume_percent > 0.0 {
        let (nothing, declined) = (count(handshakes.had_nothing), count(handshakes.declined));
        let _ = write!(
            text,
            " ({} asked), {nothing} had no session, {declined} declined",
            percent(resume_percent / 100.0)
        );
    }
    if handshakes.hello_retry > 0 {
        let _ = write!(text, ", {} with a HelloRetryRequest", count(handshakes.hello_retry));
    }
    if handshakes.in_window > 0 {
        let _ = write!(text, "; {} in the window", rate(handshakes.per_second));
    }
    text
}

fn cost(cost: &Cost) -> String {
    let each = [(cost.cpu_us_per_request, "request"), (cost.cpu_us_per_handshake, "handshake")];
    let mut parts: Vec<String> =
        each.iter().filter_map(|(us, what)| us.map(|us| format!("{} per {what}", time(us)))).collect();
    if parts.is_empty() {
        parts.push(format!("{} in total", time(cost.cpu_us)));
    }
    // A command reports no cores: its usage is in units of one core.
    let cores = cost.cores.max(1);
    parts.push(format!("{:.0} % of {}", cost.utilisation * 100.0, plural(cores.into(), "core")));
    parts.join(", ")
}

fn server_cost(server: &ServerCost) -> String {
    let peak =
        server.rss_peak_kib.map_or(String::new(), |kib| format!(", peak {}", size(kib as f64 * 1024.0)));
    let used = if server.cost.is_unknown() { "unknown".into() } else { cost(&server.cost) };
    // Redundant for a server on one core.
    let busiest = server.busiest_thread.as_ref().filter(|_| server.cost.cores > 1);
    let busiest = busiest.map_or(String::new(), |BusyThread { name, utilisation }| {
        format!(" (busiest thread `{name}` {:.0} %)", utilisation * 100.0)
    });
    format!("{used}{busiest}{peak} ({})", server.source)
}

#[cfg(test)]
mod tests;
