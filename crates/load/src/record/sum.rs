//! Merges the workers' parts into one result.

use crate::accounting::{Accounts, Span, Work};
use crate::conductor::Conducted;
use crate::options::{HttpVersion, Options, PerConnection, Schedule};
use crate::output::figures::plural;
use crate::record::recorder::Recorder;
use crate::record::{stationarity, validity, versions};
use crate::result::{Asked, EngineCost, LoadResult, Pacer, SCHEMA, Second, Step};
use crate::share::Share;
use crate::tls_client::{alpn, settings};
use crate::{ceiling, limit};
use clap::ValueEnum;
use std::fmt::Display;
use std::time::Duration;

/// Merges the parts of the workers, in order, and the conductor; `None` without a window.
pub(crate) fn up(
    options: &Options,
    shares: &[Share],
    accounts: &Accounts,
    parts: Vec<(Recorder, Span)>,
    conducted: Conducted,
) -> Option<LoadResult> {
    let Conducted { looks, mut phases, seconds, partial } = conducted;
    let of_version = |(recorder, span): (Recorder, Span)| ((shares[span.index].version, recorder), span);
    let (recorders, spans): (Vec<_>, Vec<_>) = parts.into_iter().map(of_version).unzip();
    let versions = versions::merged(recorders);
    let figures = versions::figures(options, &versions, shares);
    let all = [versions.http1, versions.http2].into_iter().flatten().reduce(|mut all, recorder| {
        all.merge(&recorder);
        all
    })?;
    let within = all.within();
    let work = Work {
        requests: within.answered,
        handshakes: within.handshakes,
        paired: options.endpoint.tls && options.policy.per_connection.is_single(),
    };
    let account = accounts.settle(&spans, &looks, work)?;
    let window = account.window;
    let seconds_long = window.as_secs_f64();
    for phase in phases.iter_mut().filter(|phase| phase.name == "window") {
        phase.seconds = seconds_long;
    }
    let example = |(class, text): (&&str, &String)| ((*class).to_string(), text.clone());
    let mut result = LoadResult {
        schema: SCHEMA,
        weir: env!("CARGO_PKG_VERSION").to_string(),
        url: options.url(),
        asked: asked(options),
        partial,
        phases,
        window_s: seconds_long,
        window_boot_s: account.since_boot.map(|time| time.as_secs_f64()),
        requests: within.answered,
        requests_per_second: within.answered as f64 / seconds_long,
        bytes_received: within.bytes_received,
        bytes_sent: within.bytes_sent,
        errors: within.errors_by_class(),
        error_examples: all.examples().iter().map(example).collect(),
        error_ratio: within.error_ratio(),
        unsent: all.unsent_in_all(),
        answered_in_all: all.counters.answered,
        response: all.response.distribution(),
        service: all.service(),
        first_byte: all.first_byte.distribution(),
        connect: all.connect.distribution(),
        handshake: all.handshake_distributions(),
        steps: steps(options, &all),
        connections_opened: all.counters.connections,
        connections_opened_in_window: within.connections,
        handshakes: all.handshakes(window),
        engine: EngineCost {
            loop_lag_p99_us: all.loop_lag.p99_or_max_us(),
            loop_lag_max_us: all.loop_lag.max_us(),
            ..account.engine
        },
        servers: account.servers,
        pacer: options.schedule.rate().map(|_| pacer(&all)),
        limit: account.limit,
        by_version: figures.map(|figures| figures.map(|one| one.over(seconds_long))),
        http2: all.h2_figures(),
        grpc: options.grpc.map(|_| all.grpc_figures(seconds_long)),
        ..LoadResult::default()
    };
    result.warnings = warnings(&result, &all, &seconds);
    match ceiling::of(options, &result) {
        Ok(ceiling) => result.ceiling = ceiling,
        Err(unfit) => result.warnings.push(unfit.to_string()),
    }
    if let Some(ceiling) = &result.ceiling {
        result.limit = limit::beside_ceiling(result.limit, ceiling.share);
    }
    result.seconds = seconds;
    result.validity = validity::of(&result, options, &account.lost);
    Some(result)
}

fn pacer(all: &Recorder) -> Pacer {
    Pacer {
        planned: all.planned,
        sent: all.sent,
        achieved_ratio: if all.planned == 0 { 0.0 } else { all.sent as f64 / all.planned as f64 },
        lag_p99_us: all.lag.p99_or_max_us(),
        lag_max_us: all.lag.max_us(),
    }
}

fn steps(options: &Options, all: &Recorder) -> Vec<Step> {
    let Schedule::Open { steps, .. } = &options.schedule else { return Vec::new() };
    let mut from = Duration::ZERO;
    let mut rows = Vec::new();
    for (step, seen) in steps.iter().zip(all.steps()) {
        let to = from + step.time;
        rows.push(Step {
            rate: step.rate,
            from_s: from.as_secs_f64(),
            to_s: to.as_secs_f64(),
            planned: seen.planned,
            response: seen.response.distribution(),
        });
        from = to;
    }
    rows
}

fn warnings(result: &LoadResult, all: &Recorder, seconds: &[Second]) -> Vec<String> {
    let mut warnings = Vec::new();
    if result.partial {
        warnings.push("the run was ended early; the figures cover what was measured until then".to_string());
    }
    if all.backlog > 0 {
        warnings.push(format!(
            "the window began with {} waiting to be sent: use a longer --warmup or --settle",
            plural(all.backlog, "arrival")
        ));
    }
    warnings.extend(result.http2.iter().flat_map(|figures| figures.warnings(result.asked.streams)));
    let closed = result.asked.rate.is_none();
    // A ramp is not meant to be stationary.
    if result.steps.is_empty() {
        warnings.extend(stationarity::warning(seconds, result.window_s, closed));
    }
    warnings
}

fn asked(options: &Options) -> Asked {
    let settings = settings(options, HttpVersion::Http1);
    let tls = options.endpoint.tls;
    let mut asked = Asked {
        connections: options.connections,
        http: options.http.to_string(),
        streams: options.streams,
        messages: options.grpc.map(|grpc| grpc.messages),
        expect_messages: options.grpc.map(|grpc| grpc.expect_messages),
        stream_window: options.http.speak(HttpVersion::Http2).then_some(options.stream_window),
        workers: options.workers as u32,
        cores: options.cores.as_ref().map_or(Vec::new(), |cores| cores.0.clone()),
        rate: options.schedule.rate(),
        seed: options.seed,
        error_budget_percent: options.error_budget,
        mix: options.requests.len() as u32,
        requests_per_connection: match options.policy.per_connection {
            PerConnection::Unlimited => "keep-alive".into(),
            PerConnection::Requests { least, most } if least == most => least.to_string(),
            PerConnection::Requests { least, most } => format!("{least}-{most}"),
            PerConnection::Handshake => "handshake-only".into(),
        },
        resume_percent: options.policy.resume,
        close: word(&options.policy.close),
        sources: options.route.sources.iter().map(ToString::to_string).collect(),
        ..Asked::default()
    };
    match &options.schedule {
        Schedule::Closed { think } => asked.think_us = think.as_secs_f64() * 1e6,
        Schedule::Open { arrivals, .. } => asked.arrivals = Some(word(arrivals)),
    }
    if tls {
        asked.tls_versions = names(&settings.versions);
        asked.suites = names(&settings.suites);
        asked.groups = names(&settings.groups);
        asked.signatures = names(&settings.signatures);
        let spoken = HttpVersion::ALL.into_iter().filter(|version| options.http.speak(*version));
        asked.alpn = spoken.flat_map(|version| alpn(options, version)).collect();
        asked.verified = !options.tls.insecure;
    }
    asked
}

/// In command-line syntax.
fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |word| word.get_name().to_string())
}

fn names(items: &[impl Display]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}
