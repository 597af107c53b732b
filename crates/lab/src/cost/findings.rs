//! The findings from the probe and the loads: every figure of the report, and its caveats.

use super::case::Case;
use super::cleartext::Cleartext;
use super::figures::Figures;
use super::figures::{all, is_served_by_others};
use super::question::{Question, ROUNDS};
use super::rounds::{Outcome, Phase};
use super::spread::Spread;
use serde::Serialize;
use std::collections::BTreeMap;
use weir_load::result::LoadResult;
use weir_probe::Report;

/// The findings.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// Rounds.
    pub rounds: u32,
    /// Concurrent connections.
    pub connections: u32,
    /// The parameters that full handshakes negotiated.
    pub negotiated: Negotiated,
    /// Whether returning clients resume.
    pub resumption: Resumption,
    /// The figures of each measured case.
    pub cases: BTreeMap<Case, Figures>,
    /// CPU of a new connection with a full handshake, less that of one in cleartext.
    pub full_cpu_us: Option<Spread>,
    /// The same with a resumed handshake.
    pub resumed_cpu_us: Option<Spread>,
    /// The share that resumption saves: of the handshake's CPU; without cleartext, of the connection's CPU; without CPU
    /// figures, of the handshake's time.
    pub saved: Option<Spread>,
    /// Whether half of the connections made full handshakes, as a resumed session brings no new ticket. The CPU of the
    /// resumed ones is then the rest after the full ones are subtracted, and their time is unknown.
    pub resumed_among_full: bool,
    /// Response time over keep-alive connections, TLS divided by cleartext.
    pub kept_time_ratio: Option<Spread>,
    /// CPU per request over keep-alive connections, TLS divided by cleartext.
    pub kept_cpu_ratio: Option<Spread>,
    /// The number of requests per connection that makes the handshake cheap.
    pub tenth: Option<Tenth>,
    /// Whether the CPU of the server is accounted.
    pub accounted: bool,
    /// Why there is no comparison with cleartext.
    pub no_cleartext: Option<String>,
    /// The cleartext URL, if it was found rather than given.
    pub found_cleartext: Option<String>,
    /// Bytes received per request over keep-alive connections, over TLS and in cleartext, if the responses differ.
    pub different_answers: Option<(u64, u64)>,
    /// Cases that the accounted processes did not serve, judging by their CPU.
    pub not_served_by_pid: Vec<Case>,
    /// Cases in which the load engine was busy most of the time, so that its connections waited for each other.
    pub engine_busy: Vec<Case>,
    /// Cases with an invalid load.
    pub invalid: Vec<Case>,
}

/// The parameters that full handshakes negotiated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Negotiated {
    /// `1.2` or `1.3`; empty if no handshake completed.
    pub version: String,
    /// The cipher suite.
    pub suite: String,
    /// The group.
    pub group: Option<String>,
    /// Type and size of the certificate's key.
    pub key: Option<String>,
    /// Whether the server sent a HelloRetryRequest.
    pub hello_retry: bool,
    /// TLS 1.3 tickets after a full handshake.
    pub tickets: Option<u64>,
    /// Whether some full handshakes negotiated other parameters.
    pub varies: bool,
}

/// Whether returning clients resume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resumption {
    /// All of them do.
    Always {
        /// `resume-1.2-id`, `resume-1.2-ticket` or `resume-1.3-psk`.
        kind: String,
    },
    /// Some do.
    Sometimes {
        /// Connections that tried to resume.
        tries: u64,
        /// Those that did.
        resumed: u64,
    },
    /// None does.
    Never {
        /// Whether the server issues tickets or session IDs.
        given: bool,
    },
    /// Unknown.
    Unknown,
}

/// The number of requests per connection from which on the handshake is at most a tenth of the connection's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tenth {
    /// Whether the cost is CPU; else it is time.
    pub of_cpu: bool,
    /// After a full handshake.
    pub full: u64,
    /// After a resumed one.
    pub resumed: Option<u64>,
}

impl Findings {
    /// The findings from the probe's report and the loads.
    pub fn new(question: &Question, cleartext: &Cleartext, probe: &Report, phases: &[Phase]) -> Self {
        let of = |case| phases.iter().find(|phase| phase.case == case);
        let mut cases: BTreeMap<Case, Figures> =
            phases.iter().filter_map(|phase| Some((phase.case, Figures::of(phase)?))).collect();
        let among_full = of(Case::NewResumed).filter(|phase| is_among_full(phase));
        if let Some(phase) = among_full
            && let Some(mixed) = cases.remove(&Case::NewResumed)
        {
            cases.insert(Case::NewResumed, mixed.without_full(phase, cases.get(&Case::NewFull)));
        }
        let (full, resumed) = (cases.get(&Case::NewFull), cases.get(&Case::NewResumed));
        let (kept, kept_cleartext) = (cases.get(&Case::KeptTls), cases.get(&Case::KeptCleartext));
        let beside = cases.get(&Case::NewCleartext);
        let ratio = |values: fn(&Figures) -> &[f64]| {
            Spread::paired(values(kept?), values(kept_cleartext?), |tls, cleartext| tls / cleartext)
        };
        let added = |new: Option<&Figures>| {
            Spread::paired(&new?.rounds.cpu_us, &beside?.rounds.cpu_us, |new, beside| new - beside)
        };
        let (full_cpu_us, resumed_cpu_us) = (added(full), added(resumed));
        let cases_where = |holds: fn(&Phase) -> bool| -> Vec<Case> {
            phases.iter().filter(|phase| holds(phase)).map(|phase| phase.case).collect()
        };
        Self {
            rounds: ROUNDS,
            connections: question.connections,
            negotiated: negotiated(probe, of(Case::NewFull)),
            resumption: of(Case::NewResumed).map_or(Resumption::Unknown, |phase| resumption(phase, probe)),
            saved: saved(full, resumed, beside),
            resumed_among_full: among_full.is_some(),
            kept_time_ratio: ratio(|figures| &figures.rounds.time_us),
            kept_cpu_ratio: ratio(|figures| &figures.rounds.cpu_us),
            tenth: tenth(full, resumed, kept, (full_cpu_us, resumed_cpu_us)),
            full_cpu_us,
            resumed_cpu_us,
            accounted: !question.servers.is_empty(),
            no_cleartext: match cleartext {
                Cleartext::None { why } => Some(why.clone()),
                Cleartext::Given(_) | Cleartext::Found(_) => None,
            },
            found_cleartext: match cleartext {
                Cleartext::Found(target) => Some(target.to_string()),
                Cleartext::Given(_) | Cleartext::None { .. } => None,
            },
            different_answers: different_answers(of(Case::KeptTls), of(Case::KeptCleartext)),
            not_served_by_pid: cases_where(is_served_by_others),
            engine_busy: if question.connections > 1 { cases_where(has_busy_engine) } else { Vec::new() },
            invalid: cases_where(|phase| phase.invalid().is_some()),
            cases,
        }
    }
}

fn is_among_full(phase: &Phase) -> bool {
    phase.rounds.iter().any(|result| result.asked.resume_percent < 100.0)
}

fn has_busy_engine(phase: &Phase) -> bool {
    let busiest =
        |result: &LoadResult| result.engine.workers.iter().map(|worker| worker.utilisation).reduce(f64::max);
    let utilisation = Spread::of(&all(phase, busiest));
    phase.outcome == Outcome::Measured && utilisation.is_some_and(|share| share.median > BUSY)
}

/// From here on, a request waits about as long for the engine as for the server.
const BUSY: f64 = 0.8;

/// The parameters of most full handshakes of the loads; without any, those of the probe.
fn negotiated(probe: &Report, loaded: Option<&Phase>) -> Negotiated {
    let handshakes = || loaded.into_iter().flat_map(|phase| &phase.rounds).map(|result| &result.handshakes);
    let mut counts = BTreeMap::new();
    for seen in handshakes().flat_map(|all| &all.negotiated).filter(|seen| seen.kind == "full") {
        let facts = (&*seen.version, &*seen.suite, &seen.group, &seen.signature, seen.hello_retry);
        *counts.entry(facts).or_insert(0) += seen.count;
    }
    let probed = probe
        .negotiated
        .as_ref()
        .map(|seen| (seen.version, &*seen.suite, &seen.group, &seen.signature, seen.hello_retry));
    let most = counts.iter().max_by_key(|(_, count)| **count).map(|(facts, _)| *facts);
    let Some((version, suite, group, signature, hello_retry)) = most.or(probed) else {
        return Negotiated::default();
    };
    let tickets = handshakes().filter_map(|all| all.tickets.get("full")).map(|tickets| tickets.most).max();
    let probed = || probe.tickets_13.as_ref().map(|tickets| tickets.count as u64);
    Negotiated {
        version: version.into(),
        suite: suite.into(),
        group: group.clone(),
        key: key(probe, signature.as_deref()),
        hello_retry,
        tickets: tickets.map(u64::from).or_else(probed).filter(|_| version == "1.3"),
        varies: counts.len() > 1,
    }
}

/// The key that signed; a server may have a certificate of each key type.
fn key(probe: &Report, signature: Option<&str>) -> Option<String> {
    let leaves = || probe.chains.iter().filter_map(|chain| chain.certificates.first()).map(|leaf| &leaf.key);
    let kind = |text: &str| text.split(['-', ' ']).next().map(str::to_owned);
    let fits = |key: &&String| signature.is_some_and(|signature| kind(key) == kind(signature));
    leaves().find(fits).or_else(|| leaves().next()).cloned()
}

fn resumption(phase: &Phase, probe: &Report) -> Resumption {
    match phase.outcome {
        Outcome::Invalid { .. } => {
            let resumed =
                probe.resumptions.iter().find(|tried| tried.tries > 0 && tried.resumed == tried.tries);
            resumed.map_or(Resumption::Unknown, |tried| Resumption::Always { kind: tried.kind.into() })
        }
        Outcome::NotResumed { resumed: 0, tries, had_nothing } => {
            Resumption::Never { given: had_nothing < tries }
        }
        Outcome::NotResumed { tries, resumed, .. } => Resumption::Sometimes { tries, resumed },
        Outcome::Measured => {
            let mut kinds = phase.rounds.iter().flat_map(|result| &result.handshakes.resumed);
            let seen = kinds.find(|(_, count)| **count > 0);
            seen.map_or(Resumption::Unknown, |(kind, _)| Resumption::Always { kind: kind.clone() })
        }
    }
}

fn saved(full: Option<&Figures>, resumed: Option<&Figures>, beside: Option<&Figures>) -> Option<Spread> {
    let (full, resumed) = (&full?.rounds, &resumed?.rounds);
    let share = |full: f64, resumed: f64| 1.0 - resumed / full;
    let added = |new: &[f64]| -> Vec<f64> {
        let beside = beside.map_or(&[][..], |beside| &beside.rounds.cpu_us);
        new.iter().zip(beside).map(|(new, beside)| new - beside).collect()
    };
    Spread::paired(&added(&full.cpu_us), &added(&resumed.cpu_us), share)
        .or_else(|| Spread::paired(&full.cpu_us, &resumed.cpu_us, share))
        .or_else(|| Spread::paired(&full.handshake_us, &resumed.handshake_us, share))
}

fn tenth(
    full: Option<&Figures>,
    resumed: Option<&Figures>,
    kept: Option<&Figures>,
    (full_cpu, resumed_cpu): (Option<Spread>, Option<Spread>),
) -> Option<Tenth> {
    let (full, kept) = (full?, kept?);
    let by_cpu = |new: &Figures, handshake: Option<Spread>| {
        let (first, further) = (new.cpu_us?.median, kept.cpu_us?.median);
        // Without cleartext, the cost of opening and closing the TCP connection counts towards the handshake.
        let handshake = handshake.map_or(first - further, |handshake| handshake.median);
        Some(requests(handshake, first, further))
    };
    let by_time =
        |new: &Figures| Some(requests(new.handshake_us?.median, new.time_us?.median, kept.time_us?.median));
    match by_cpu(full, full_cpu) {
        Some(requests) => {
            let resumed = resumed.and_then(|new| by_cpu(new, resumed_cpu));
            Some(Tenth { of_cpu: true, full: requests, resumed })
        }
        None => Some(Tenth { of_cpu: false, full: by_time(full)?, resumed: resumed.and_then(by_time) }),
    }
}

/// The minimum number of requests on a connection for its handshake to be at most a tenth of its cost: the first one
/// costs `first` including the handshake, each further one `further`.
fn requests(handshake: f64, first: f64, further: f64) -> u64 {
    let more = (10.0 * handshake - first) / further;
    // The cast saturates: negative becomes zero.
    1_u64.saturating_add(more.ceil() as u64)
}

/// Responses of one service differ by a few fields at most, such as `Strict-Transport-Security`.
const FIELDS: f64 = 100.0;

fn different_answers(tls: Option<&Phase>, cleartext: Option<&Phase>) -> Option<(u64, u64)> {
    let bytes = |phase: Option<&Phase>| {
        let phase = phase.filter(|phase| phase.outcome == Outcome::Measured)?;
        let each = all(phase, |result| Some(result.bytes_received as f64 / result.requests as f64));
        Spread::of(&each).map(|each| each.median)
    };
    let (tls, cleartext) = (bytes(tls)?, bytes(cleartext)?);
    let is_same = (tls - cleartext).abs() <= FIELDS.max(0.05 * tls);
    (!is_same).then_some((tls.round() as u64, cleartext.round() as u64))
}
