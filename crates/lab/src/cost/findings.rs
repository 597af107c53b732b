//! What follows from the probe and the loads: every figure of the answer, and what it could not say.

use super::{Case, Cleartext, Outcome, Phase, Question, ROUNDS, Spread};
use serde::Serialize;
use std::collections::BTreeMap;
use weir_load::result::LoadResult;
use weir_probe::Report;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// Rounds.
    pub rounds: u32,
    /// Connections at once.
    pub connections: u32,
    /// What full handshakes negotiated.
    pub negotiated: Negotiated,
    /// Whether clients that come back resume.
    pub resumption: Resumption,
    /// The figures of each case that was measured.
    pub cases: BTreeMap<Case, Figures>,
    /// CPU that a full handshake adds to a new connection in cleartext; without that, to a request over TLS, so that
    /// making and ending the TCP connection is in it.
    pub full_cpu_us: Option<Spread>,
    /// The same of a resumed handshake.
    pub resumed_cpu_us: Option<Spread>,
    /// The share of a full handshake that resumption saves: of its CPU where that is known, else of its time.
    pub saved: Option<Spread>,
    /// Response time over kept connections, TLS over cleartext.
    pub kept_time_ratio: Option<Spread>,
    /// CPU per request over kept connections, TLS over cleartext.
    pub kept_cpu_ratio: Option<Spread>,
    /// For how many requests a connection has to be kept.
    pub tenth: Option<Tenth>,
    /// Whether a process was named whose CPU is accounted.
    pub accounted: bool,
    /// Why there is no cleartext to compare with; `None` where there is.
    pub no_cleartext: Option<String>,
    /// The cleartext URL, where it was not named but found.
    pub found_cleartext: Option<String>,
    /// Bytes received for a request over kept connections, over TLS and in cleartext, where they are not the same answer.
    pub different_answers: Option<(u64, u64)>,
    /// Cases in which the accounted processes did not serve the requests, by their CPU.
    pub not_served_by_pid: Vec<Case>,
    /// Cases that are no evidence.
    pub invalid: Vec<Case>,
}

/// What full handshakes negotiated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Negotiated {
    /// `1.2` or `1.3`.
    pub version: String,
    /// The cipher suite.
    pub suite: String,
    /// The group.
    pub group: Option<String>,
    /// Kind and size of the certificate's key.
    pub key: Option<String>,
    /// Whether it took a HelloRetryRequest.
    pub hello_retry: bool,
    /// TLS 1.3 tickets after a full handshake.
    pub tickets: Option<u64>,
    /// Whether other handshakes of the loads negotiated something else.
    pub varies: bool,
}

/// Whether clients that come back resume.
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
        /// Connections that were to resume.
        tries: u64,
        /// Those that did.
        resumed: u64,
    },
    /// None does.
    Never {
        /// Whether the server gives a ticket or a session to resume with.
        given: bool,
    },
    /// It could not be measured.
    Unknown,
}

/// The figures of one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Median response time: of a new connection from its making to the last byte of the answer.
    pub time_us: Spread,
    /// Median time of the handshake, from the connected socket.
    pub handshake_us: Option<Spread>,
    /// The server's CPU per request; of a new connection all of it.
    pub cpu_us: Option<Spread>,
    #[serde(skip)]
    rounds: Rounds,
}

/// One value for each round.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rounds {
    time_us: Vec<f64>,
    handshake_us: Vec<f64>,
    cpu_us: Vec<f64>,
}

/// From how many requests on a connection its handshake is under a tenth of what the connection costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tenth {
    /// Whether that is said of CPU; else of time.
    pub of_cpu: bool,
    /// After a full handshake.
    pub full: u64,
    /// After a resumed one.
    pub resumed: Option<u64>,
}

impl Findings {
    /// Of the probe's report and the loads.
    pub fn new(question: &Question, cleartext: &Cleartext, probe: &Report, phases: &[Phase]) -> Self {
        let of = |case| phases.iter().find(|phase| phase.case == case);
        let figures = |phase: &Phase| Some((phase.case, Figures::of(phase)?));
        let cases: BTreeMap<Case, Figures> = phases.iter().filter_map(figures).collect();
        let full = cases.get(&Case::NewFull);
        let resumed = cases.get(&Case::NewResumed);
        let kept = cases.get(&Case::KeptTls);
        let kept_cleartext = cases.get(&Case::KeptCleartext);
        let ratio = |values: fn(&Figures) -> &Vec<f64>| {
            Spread::paired(values(kept?), values(kept_cleartext?), |tls, cleartext| tls / cleartext)
        };
        let beside = cases.get(&Case::NewCleartext).filter(|new| new.cpu_us.is_some()).or(kept);
        let added = |new: Option<&Figures>| {
            Spread::paired(&new?.rounds.cpu_us, &beside?.rounds.cpu_us, |new, beside| new - beside)
        };
        let (full_cpu_us, resumed_cpu_us) = (added(full), added(resumed));
        Self {
            rounds: ROUNDS,
            connections: question.connections,
            negotiated: negotiated(probe, of(Case::NewFull).or(of(Case::KeptTls))),
            resumption: of(Case::NewResumed).map_or(Resumption::Unknown, resumption),
            saved: saved(full, resumed, beside),
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
            not_served_by_pid: phases.iter().filter(|phase| is_served_by_others(phase)).map(|p| p.case).collect(),
            invalid: phases.iter().filter(|phase| phase.invalid().is_some()).map(|phase| phase.case).collect(),
            cases,
        }
    }
}

impl Figures {
    /// Of a case all of whose rounds are evidence.
    fn of(phase: &Phase) -> Option<Self> {
        if phase.outcome != Outcome::Measured {
            return None;
        }
        let handshake = |result: &LoadResult| match phase.case {
            Case::NewFull => result.handshake.get("full")?.p50_us,
            // All were resumed, and in one way.
            Case::NewResumed => result.handshake.values().max_by_key(|latency| latency.count)?.p50_us,
            Case::NewCleartext | Case::KeptCleartext | Case::KeptTls => None,
        };
        let rounds = Rounds {
            time_us: all(phase, |result| result.response.p50_us)?,
            handshake_us: all(phase, handshake).unwrap_or_default(),
            cpu_us: all(phase, cpu_us).filter(|_| !is_served_by_others(phase)).unwrap_or_default(),
        };
        Some(Self {
            time_us: Spread::of(&rounds.time_us)?,
            handshake_us: Spread::of(&rounds.handshake_us),
            cpu_us: Spread::of(&rounds.cpu_us),
            rounds,
        })
    }
}

/// A value of each round; `None` if one of them has none.
fn all(phase: &Phase, value: impl Fn(&LoadResult) -> Option<f64>) -> Option<Vec<f64>> {
    phase.rounds.iter().map(value).collect()
}

/// CPU per request of all accounted processes together.
fn cpu_us(result: &LoadResult) -> Option<f64> {
    let of_each: Option<Vec<f64>> =
        result.servers.iter().map(|server| server.cost.cpu_us_per_request).collect();
    of_each.filter(|each| !each.is_empty()).map(|each| each.iter().sum())
}

/// Whether the accounted processes used so little CPU that another one must have served the requests.
fn is_served_by_others(phase: &Phase) -> bool {
    let used = all(phase, cpu_us).and_then(|rounds| Spread::of(&rounds));
    phase.outcome == Outcome::Measured && used.is_some_and(|used| used.median < LEAST_CPU_US)
}

/// Less than the system calls that receive a request and send an answer take.
const LEAST_CPU_US: f64 = 1.0;

fn negotiated(probe: &Report, loaded: Option<&Phase>) -> Negotiated {
    let handshakes = || loaded.into_iter().flat_map(|phase| &phase.rounds).map(|result| &result.handshakes);
    let mut counts = BTreeMap::new();
    for seen in handshakes().flat_map(|handshakes| &handshakes.negotiated).filter(|seen| seen.kind == "full") {
        let facts = (&seen.version, &seen.suite, &seen.group, &seen.signature, seen.hello_retry);
        *counts.entry(facts).or_insert(0) += seen.count;
    }
    let most = counts.iter().max_by_key(|(_, count)| **count).map(|(facts, _)| *facts);
    let tickets = handshakes().filter_map(|all| all.tickets.get("full")).map(|tickets| tickets.most).max();
    let mut found = match most {
        Some((version, suite, group, signature, hello_retry)) => Negotiated {
            version: version.clone(),
            suite: suite.clone(),
            group: group.clone(),
            key: key(probe, signature.as_deref()),
            hello_retry,
            ..Negotiated::default()
        },
        None => probe.negotiated.as_ref().map_or_else(Negotiated::default, |seen| Negotiated {
            version: seen.version.into(),
            suite: seen.suite.clone(),
            group: seen.group.clone(),
            key: key(probe, seen.signature.as_deref()),
            hello_retry: seen.hello_retry,
            ..Negotiated::default()
        }),
    };
    found.varies = counts.len() > 1;
    if found.version == "1.3" {
        let probed = || probe.tickets_13.as_ref().map(|tickets| tickets.count as u64);
        found.tickets = tickets.map(u64::from).or_else(probed);
    }
    found
}

/// The key of the certificate that was signed with; a server may have one of each kind.
fn key(probe: &Report, signature: Option<&str>) -> Option<String> {
    let leaves = || probe.chains.iter().filter_map(|chain| chain.certificates.first()).map(|leaf| &leaf.key);
    let kind = |text: &str| text.split(['-', ' ']).next().unwrap_or_default().to_owned();
    let fits = |key: &&String| signature.is_some_and(|signature| kind(key) == kind(signature));
    leaves().find(fits).or_else(|| leaves().next()).cloned()
}

fn resumption(phase: &Phase) -> Resumption {
    match phase.outcome {
        Outcome::Invalid { .. } => Resumption::Unknown,
        Outcome::NotResumed { resumed: 0, tries, had_nothing } => {
            Resumption::Never { given: had_nothing < tries }
        }
        Outcome::NotResumed { tries, resumed, .. } => Resumption::Sometimes { tries, resumed },
        Outcome::Measured => {
            let mut kinds = phase.rounds.iter().flat_map(|result| &result.handshakes.resumed);
            let most = kinds.find(|(_, count)| **count > 0).map(|(kind, _)| kind.clone());
            most.map_or(Resumption::Unknown, |kind| Resumption::Always { kind })
        }
    }
}

fn saved(full: Option<&Figures>, resumed: Option<&Figures>, beside: Option<&Figures>) -> Option<Spread> {
    let (full, resumed) = (&full?.rounds, &resumed?.rounds);
    let share = |full: f64, resumed: f64| 1.0 - resumed / full;
    let of_cpu = beside.and_then(|beside| {
        let less = |one: &[f64]| -> Vec<f64> {
            one.iter().zip(&beside.rounds.cpu_us).map(|(one, beside)| one - beside).collect()
        };
        Spread::paired(&less(&full.cpu_us), &less(&resumed.cpu_us), share)
    });
    of_cpu.or_else(|| Spread::paired(&full.handshake_us, &resumed.handshake_us, share))
}

fn tenth(
    full: Option<&Figures>,
    resumed: Option<&Figures>,
    kept: Option<&Figures>,
    (full_cpu, resumed_cpu): (Option<Spread>, Option<Spread>),
) -> Option<Tenth> {
    let kept = kept?;
    let by_cpu = |new: &Figures, handshake: Option<Spread>| {
        Some(requests(handshake?.median, new.cpu_us?.median, kept.cpu_us?.median))
    };
    let by_time =
        |new: &Figures| Some(requests(new.handshake_us?.median, new.time_us.median, kept.time_us.median));
    let full = full?;
    match by_cpu(full, full_cpu) {
        Some(requests) => {
            let resumed = resumed.and_then(|new| by_cpu(new, resumed_cpu));
            Some(Tenth { of_cpu: true, full: requests, resumed })
        }
        None => Some(Tenth { of_cpu: false, full: by_time(full)?, resumed: resumed.and_then(by_time) }),
    }
}

/// The least number of requests on a connection with which its handshake is at most a tenth of its cost, where the first
/// costs `first` with the handshake, and each further one `further`.
fn requests(handshake: f64, first: f64, further: f64) -> u64 {
    let more = (10.0 * handshake - first) / further;
    // Casting saturates: nothing is left of it below zero.
    1 + more.ceil() as u64
}

/// Answers of one service differ by a field at most, such as `Connection` or `Strict-Transport-Security`.
const FIELDS: f64 = 100.0;

fn different_answers(tls: Option<&Phase>, cleartext: Option<&Phase>) -> Option<(u64, u64)> {
    let bytes = |phase: Option<&Phase>| {
        let phase = phase.filter(|phase| phase.outcome == Outcome::Measured)?;
        let each = all(phase, |result| Some(result.bytes_received as f64 / result.requests as f64))?;
        Spread::of(&each).map(|each| each.median)
    };
    let (tls, cleartext) = (bytes(tls)?, bytes(cleartext)?);
    let is_same = (tls - cleartext).abs() <= FIELDS.max(0.05 * tls);
    (!is_same).then_some((tls.round() as u64, cleartext.round() as u64))
}
