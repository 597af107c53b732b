//! The measurements for the advice: a probe, single connections, two short loads, a profile, and a scan of the process.

use crate::advice::{Advice, Profiled};
use crate::config::Config;
use crate::fact::Facts;
use crate::finding::findings;
use crate::gather::{
    Accepted, Activity, Clients, Counted, Process, Returned, Rounds, Upstream, Visited, Visitor, Watched,
    is_at_work, requests_in_turn,
};
use crate::product::Product;
use crate::question::{AdviceError, Question};
use crate::rule::Rules;
use crate::split::Split;
use std::io;
use std::thread;
use std::time::{Duration, Instant};
use weir_doctor::Hardware;
use weir_load::result::LoadResult;
use weir_load::{LoadError, Options, PerConnection, Phases, Target};
use weir_probe::{Report, Sni};
use weir_profile::{Profile, ProfileError, Recorded, Recording};
use weir_tls::{Group, Roots};

/// Attempts for each kind of resumption: enough to notice that one of two workers does not resume the other's sessions.
const TRIES: u32 = 10;

/// More than pools keep idle by default.
const CONNECTIONS: u32 = 8;

/// The time for which a process is observed to detect existing load.
const GLANCE: Duration = Duration::from_secs(1);

/// Long enough to fill pools and to exclude the first requests.
const WARMUP: Duration = Duration::from_millis(300);

/// Sequential requests while sockets are watched.
const IN_TURN: u64 = 20;

/// The interval of scans during sequential requests: about the lifetime of an upstream connection that is not kept
/// alive.
const OFTEN: Duration = Duration::from_micros(500);

/// The interval of scans under load, so that scanning is not the load. TIME_WAIT sockets show connections in between.
const RARELY: Duration = Duration::from_millis(20);

/// The interval of scans that count accepted connections; TIME_WAIT sockets show connections in between.
const SELDOM: Duration = Duration::from_millis(50);

/// A profile that covers a smaller share of the CPU time may be of other work: the load begins before sampling and ends
/// after it.
const LEAST_SAMPLED: f64 = 0.25;

/// Gathers facts about a service and applies the rules. `measure` runs one load ([`weir_load::run`]); `progress`
/// receives the next step, never while a load runs.
///
/// # Errors
/// An invalid question, an unreachable server, or an interrupt. Other failed measurements become notes.
pub fn advise(
    question: &Question,
    measure: impl FnMut(&Options) -> Result<LoadResult, LoadError>,
    progress: impl FnMut(&str),
) -> Result<Advice, AdviceError> {
    let process = question.pid.map(|pid| Process { pid });
    if let Some(Process { pid }) = process.filter(|process| !process.exists()) {
        return Err(AdviceError::NoProcess { pid });
    }
    let config = question.config.as_deref().map(Config::read).transpose()?;
    if question.url.is_none() && process.is_none() && config.is_none() {
        return Err(AdviceError::Nothing);
    }
    let mut survey = Survey { question, process, measure, progress, seen: Seen::default() };
    survey.own_load();
    if let Some(url) = &question.url {
        survey.service(url)?;
    }
    Ok(survey.seen.advice(question, process, config.as_ref()))
}

/// A survey in progress.
struct Survey<'a, M, P> {
    question: &'a Question,
    process: Option<Process>,
    measure: M,
    progress: P,
    seen: Seen,
}

/// The observations so far.
#[derive(Default)]
struct Seen {
    probe: Option<Report>,
    visited: Option<Visited>,
    kept: Option<LoadResult>,
    new: Option<LoadResult>,
    returned: Option<Returned>,
    /// The connections accepted under the process's existing load, and the period in seconds.
    accepted: Option<(Accepted, f64)>,
    /// The process's sockets during requests.
    upstreams: Vec<Watched>,
    /// The process's sockets during requests with a handshake each.
    handshakes: Option<Watched>,
    /// The rate at which other processes open connections.
    others_per_second: f64,
    /// The activity, and whether it was under the existing load.
    activity: Option<(Activity, bool)>,
    profile: Option<(Recorded, Profiled)>,
    is_local: bool,
    notes: Vec<String>,
}

impl<M, P> Survey<'_, M, P>
where
    M: FnMut(&Options) -> Result<LoadResult, LoadError>,
    P: FnMut(&str),
{
    /// Samples the process under its existing load, if any.
    fn own_load(&mut self) {
        let Some(process) = self.process else { return };
        self.seen.is_local = true;
        (self.progress)(&format!("looking at {}", process.name()));
        let pids = process.tree();
        let begin = Activity::begin(&pids);
        thread::sleep(GLANCE);
        let used = begin.end(&pids);
        if is_at_work(&used) {
            (self.progress)(&format!("sampling {} under its own load", process.name()));
            self.seen.activity = Some((used, true));
            let (begin, started) = (Activity::begin(&pids), Instant::now());
            let record = || weir_profile::record(&recording(self.question, process), &|| false);
            let (recorded, watched) = Upstream::watch(&pids).during(SELDOM, record);
            self.seen.accepted = Some((watched.into_accepted(), started.elapsed().as_secs_f64()));
            self.seen.keep_profile(recorded, &begin.end(&pids), Profiled::OwnLoad);
        } else if self.question.url.is_none() {
            let name = process.name();
            self.seen
                .note(format!("No profile: {name} is idle; put load on it, or give the URL of the service."));
        }
    }

    /// Runs all measurements that need connections to the service.
    fn service(&mut self, url: &Target) -> Result<(), AdviceError> {
        if url.endpoint.tls {
            (self.progress)(&format!("probing {}", url.endpoint));
            self.seen.probe = Some(weir_probe::probe(&probe_options(self.question, url))?);
        }
        (self.progress)("requests on single connections");
        let visitor = Visitor::new(url, &self.question.roots);
        self.seen.is_local |= visitor.as_ref().is_ok_and(|visitor| visitor.address().ip().is_loopback());
        let visitor = match visitor.and_then(|visitor| self.visits(&visitor).map(|()| visitor)) {
            Ok(visitor) => visitor,
            Err(error) => {
                self.seen.note(format!("No requests were measured: {url}: {error}."));
                return Ok(());
            }
        };
        (self.progress)("load on kept connections");
        self.kept_load(url)?;
        match url.endpoint.tls {
            true => {
                (self.progress)("load with a new connection for each request");
                self.new_load(url, &visitor)
            }
            false => self.sampled_load(url),
        }
    }

    /// Samples the process under load on keep-alive connections, unless it was sampled under its existing load.
    fn sampled_load(&mut self, url: &Target) -> Result<(), AdviceError> {
        if self.process.is_none() || self.seen.profile.is_some() {
            return Ok(());
        }
        (self.progress)("sampling under load on kept connections");
        let options = self.load_options(url);
        self.sampled(options, Profiled::KeptConnections).map(drop)
    }

    fn visits(&mut self, visitor: &Visitor) -> io::Result<()> {
        self.seen.visited = Some(Visited::new(visitor, &mut self.progress)?);
        if let Some(process) = self.process {
            let pids = process.tree();
            let rounds = || Rounds::new(&pids, || requests_in_turn(visitor, IN_TURN));
            let (rounds, upstream) = Upstream::watch(&pids).during(OFTEN, rounds);
            let Rounds { requests, accepted, quietest, others_per_second } = rounds?;
            self.seen.others_per_second = others_per_second;
            let has_other_clients = self.seen.has_other_clients();
            let counted = quietest;
            self.seen.upstreams.push(Watched { upstream, requests, accepted, counted, has_other_clients });
        }
        Ok(())
    }

    fn kept_load(&mut self, url: &Target) -> Result<(), AdviceError> {
        let options = self.load_options(url);
        let pids = self.process.map(Process::tree).unwrap_or_default();
        let (begin, started) = (Activity::begin(&pids), Instant::now());
        let measure = &mut self.measure;
        let (result, upstream) = Upstream::watch(&pids).during(RARELY, || whole(measure(&options)));
        let result = result?;
        let watched = self.watched(upstream, &result, started.elapsed());
        if self.process.is_some() && !watched.has_other_clients {
            self.seen.activity = Some((begin.end(&pids), false));
        }
        self.seen.upstreams.push(watched);
        self.seen.kept = self.seen.keep_load("kept connections", result);
        Ok(())
    }

    /// The observations of the process's sockets during a load.
    fn watched(&self, upstream: Upstream, result: &LoadResult, time: Duration) -> Watched {
        let (requests, accepted) = (result.answered_in_all, result.connections_opened);
        let others = (self.seen.others_per_second * time.as_secs_f64()).ceil() as u64;
        // If other processes open many connections, the kernel's counter is no evidence about this one.
        let opened = upstream.opened().saturating_sub(accepted + others);
        let is_quiet = others < requests / 10;
        let counted = Counted { requests, opened: if is_quiet { opened } else { 0 } };
        let has_other_clients = self.seen.has_other_clients();
        Watched { upstream, requests, accepted, counted, has_other_clients }
    }

    fn new_load(&mut self, url: &Target, visitor: &Visitor) -> Result<(), AdviceError> {
        let clients = Clients::new(visitor);
        let mut options = self.load_options(url);
        options.policy.per_connection = PerConnection::Requests { least: 1, most: 1 };
        let (pids, started) = (self.process.map(Process::tree).unwrap_or_default(), Instant::now());
        let sampled = || self.sampled(options, Profiled::NewConnections);
        let (result, upstream) = Upstream::watch(&pids).during(RARELY, sampled);
        let result = result?;
        self.seen.handshakes = Some(self.watched(upstream, &result, started.elapsed()));
        let between = result.connections_opened;
        match clients.and_then(|clients| clients.come_back(visitor, between)) {
            Ok(returned) => self.seen.returned = returned,
            Err(error) => {
                self.seen.note(format!("How long sessions are kept is unknown: {url}: {error}."));
            }
        }
        self.seen.new = self.seen.keep_load("new connections", result);
        Ok(())
    }

    /// Runs a load, and samples the process meanwhile unless it was sampled under its existing load.
    fn sampled(&mut self, mut options: Options, of: Profiled) -> Result<LoadResult, AdviceError> {
        let is_sampled = self.seen.profile.is_none();
        let process = self.process.filter(|_| is_sampled);
        if process.is_some() {
            // The sampler takes a moment to start, and the load must not end before the sampler does.
            options.phases.window += Duration::from_secs(1);
        }
        let recording = process.map(|process| recording(self.question, process));
        let pids = process.map(Process::tree).unwrap_or_default();
        let begin = Activity::begin(&pids);
        let measure = &mut self.measure;
        let (result, recorded) = thread::scope(|scope| {
            let sampling =
                recording.map(|recording| scope.spawn(move || weir_profile::record(&recording, &|| false)));
            let result = whole(measure(&options));
            (result, sampling.and_then(|sampling| sampling.join().ok()))
        });
        let result = result?;
        if let Some(recorded) = recorded {
            self.seen.keep_profile(recorded, &begin.end(&pids), of);
        }
        Ok(result)
    }

    fn load_options(&self, url: &Target) -> Options {
        let mut options = Options::new(url.clone());
        options.connections = CONNECTIONS;
        options.phases = Phases { warmup: WARMUP, settle: Duration::ZERO, window: self.question.window };
        // A HelloRetryRequest is a finding, not an error.
        options.tls.allow_hello_retry = true;
        let status = self.seen.visited.as_ref().and_then(Visited::status);
        if let (Some(request), Some(status)) = (options.requests.first_mut(), status) {
            request.expect.status = Some(status);
        }
        let negotiated = self.seen.probe.as_ref().and_then(|probe| probe.negotiated.as_ref());
        if negotiated.and_then(|seen| seen.group.as_deref()) == Some(Group::X25519Mlkem768.name()) {
            options.tls.groups = vec![Group::X25519Mlkem768, Group::X25519, Group::P256, Group::P384];
        }
        match &self.question.roots {
            Roots::Native => {}
            Roots::File(file) => options.tls.ca = Some(file.clone()),
            Roots::DangerouslyNone => options.tls.insecure = true,
        }
        options
    }
}

impl Seen {
    fn advice(self, question: &Question, process: Option<Process>, config: Option<&Config>) -> Advice {
        let server = self.visited.as_ref().and_then(Visited::server).map(str::to_owned);
        let product = product(question, process, config, server.as_deref());
        let mut facts = Facts::default();
        if let Some(url) = &question.url {
            facts.add_client_side(url.endpoint.tls, "the URL");
        }
        if let Some(kept) = &self.kept {
            facts.add_kept_load(kept);
        }
        facts.add_upstream(&self.upstreams);
        if let Some(handshakes) = &self.handshakes {
            facts.add_handshakes(handshakes);
        }
        if let Some((accepted, seconds)) = &self.accepted {
            facts.add_accepted(accepted, *seconds);
        }
        if let Some(new) = &self.new {
            facts.add_new_load(new);
        }
        if let Some(visited) = &self.visited {
            facts.add_visited(visited);
        }
        if let Some(returned) = self.returned {
            facts.add_returned(returned);
        }
        if let Some(probe) = &self.probe {
            facts.add_probe(probe);
        }
        if let Some(process) = process {
            facts.add_process(process);
            if let Some((used, is_own_load)) = &self.activity {
                facts.add_activity(process, product, used, *is_own_load);
            }
        }
        if let Some(version) = server.as_deref().and_then(|server| server.strip_prefix("nginx/")) {
            facts.add("product.version", version, "the Server field");
        }
        if self.is_local {
            for feature in Hardware::read().features {
                facts.add(&format!("cpu.{feature}"), true, "/proc/cpuinfo");
            }
        }
        let profile = self.profile.as_ref().map(|(recorded, of)| {
            facts.add_paths(&recorded.stacks);
            let profile = Profile::new(&recorded.stacks, &weir_profile::Rules::built_in());
            facts.add_profile(&profile, *of == Profiled::OwnLoad);
            profile
        });
        let profiled = self.profile.as_ref().map(|(_, of)| *of);
        if let Some(config) = config {
            facts.add_config(config);
        }
        facts.add_worker_ratio();
        facts.add_slowdown();
        Advice {
            schema: 1,
            weir: env!("CARGO_PKG_VERSION"),
            subject: subject(question, process),
            product,
            findings: findings(&Rules::built_in(), &facts, product, profile.as_ref()),
            notes: self.all_notes(question, product),
            split: profile.as_ref().zip(profiled).map(|(profile, of)| Split::new(profile, of)),
            profiled,
            facts,
            profile,
            probe: self.probe,
        }
    }

    /// Keeps the samples if they cover enough of the CPU time that was `used` meanwhile.
    fn keep_profile(&mut self, recorded: Result<Recorded, ProfileError>, used: &Activity, of: Profiled) {
        match recorded {
            Ok(recorded) if recorded.cpu_seconds < used.cpu_seconds() * LEAST_SAMPLED => {
                self.note(format!(
                    "No profile, so gains are unknown: samples show {:.1} of {:.1} s of its CPU time. A thread that \
                     ends after each connection is too short-lived to be sampled.",
                    recorded.cpu_seconds,
                    used.cpu_seconds()
                ));
            }
            Ok(recorded) => {
                self.notes.extend(recorded.notes.iter().cloned());
                self.profile = Some((recorded, of));
            }
            Err(error) => self.note(format!("No profile, so gains are unknown: {error}.")),
        }
    }

    /// Keeps the result if it is valid.
    fn keep_load(&mut self, of: &str, result: LoadResult) -> Option<LoadResult> {
        let Some(why) = result.invalid().map(str::to_owned) else { return Some(result) };
        self.note(format!("The load on {of} was left out: {why}."));
        None
    }

    fn has_other_clients(&self) -> bool {
        matches!(self.activity, Some((_, true)))
    }

    fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    fn all_notes(&self, question: &Question, product: Product) -> Vec<String> {
        let mut notes = self.notes.clone();
        if question.pid.is_none() {
            notes.push(
                "Without --pid, its TLS library, workers, upstream connections and the split of its CPU time are \
                 unknown."
                    .to_owned(),
            );
        }
        if question.url.is_none() {
            notes.push("Without a URL, nothing was probed and no request was sent.".to_owned());
        }
        if question.config.is_none() && matches!(product, Product::Nginx | Product::Haproxy) {
            notes.push("Without --config, its logs and proxy buffers are unknown.".to_owned());
        }
        notes
    }
}

/// Returns the result if it covers the whole window.
fn whole(result: Result<LoadResult, LoadError>) -> Result<LoadResult, AdviceError> {
    match result {
        Err(LoadError::NoWindow) => Err(AdviceError::Interrupted),
        Ok(result) if result.partial => Err(AdviceError::Interrupted),
        result => Ok(result?),
    }
}

fn recording(question: &Question, process: Process) -> Recording {
    Recording { pids: vec![process.pid], duration: question.window, ..Recording::default() }
}

fn probe_options(question: &Question, url: &Target) -> weir_probe::Options {
    weir_probe::Options {
        server: url.endpoint.clone(),
        sni: Sni::Host,
        roots: question.roots.clone(),
        identity: None,
        tries: TRIES,
        timeout: Duration::from_secs(5),
    }
}

fn product(
    question: &Question,
    process: Option<Process>,
    config: Option<&Config>,
    server: Option<&str>,
) -> Product {
    let found = [config.map(Config::product), process.map(Process::product), server.map(Product::of_server)];
    let known = found.into_iter().flatten().find(|product| *product != Product::Generic);
    question.product.or(known).unwrap_or_default()
}

fn subject(question: &Question, process: Option<Process>) -> String {
    let url = question.url.as_ref().map(ToString::to_string);
    let config = question.config.as_ref().map(|file| file.display().to_string());
    let all = [url, process.map(Process::name), config];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
