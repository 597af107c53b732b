//! The processes of one run, from the first one's start to the last one's exit.

use super::super::gc;
use super::super::ports::Ports;
use super::super::run::{Asked, Observation, ProcessReport};
use super::super::target::{Prepared, Target};
use super::counts::Counts;
use super::words::Places;
use crate::instrument::gateway::Side;
use crate::planning::placement::CoreSets;
use crate::planning::planned_run::Stage;
use crate::running::guard::Guard;
use crate::running::interrupt::Interrupt;
use crate::running::process::{Process, Stop, Waited};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};
use weir_load::OPEN;
use weir_load::result::LoadResult;
use weir_netem::{Net, Place};
use weir_profile::{Recorded, Recording};

/// The time allowed to the load engine beyond its phases and a request's timeout.
const LOAD_GRACE: Duration = Duration::from_secs(5);

/// The time allowed to the origin until it accepts a connection.
const ORIGIN_READY: Duration = Duration::from_secs(5);

/// Why a run is invalid.
pub(super) type Failure = Box<dyn std::error::Error>;

#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) places: &'a Places,
    pub(super) request: &'a Asked<'a>,
    pub(super) prepared: Option<&'a Prepared>,
    pub(super) net: &'a Net,
    pub(super) ports: Ports,
}

impl Task<'_> {
    fn origin(&self) -> String {
        format!("{}:{}", self.net.origin_address(), self.ports.origin[0])
    }

    /// The addresses of all servers that the origin is.
    fn origins(&self) -> Vec<String> {
        let servers = usize::from(self.request.conditions.origin_servers);
        let ports = self.ports.origin.iter().take(servers);
        ports.map(|port| format!("{}:{port}", self.net.origin_address())).collect()
    }

    /// The address of the origin's counters.
    fn counts(&self) -> String {
        format!("{}:{}", self.net.origin_address(), self.ports.counts)
    }

    /// The destination of the load engine.
    fn authority(&self) -> String {
        match self.prepared {
            Some(_) => format!("{}:{}", self.net.gateway_address(), self.ports.target),
            None => self.origin(),
        }
    }

    fn phases_ms(&self) -> u64 {
        let conditions = &self.request.conditions;
        conditions.warmup_ms + conditions.window_ms(self.request.run.stage)
    }
}

/// The steps of a run, in order. An error's text is the reason why the run is invalid.
pub(super) struct Running<'a> {
    task: Task<'a>,
    work: &'a Path,
    interrupt: &'a Interrupt,
    guard: &'a Guard,
    began: Instant,
    parts: Vec<Part>,
    /// The origin's counters before the load engine ran.
    counts_before: Option<Counts>,
}

struct Part {
    process: Process,
    /// Its exit is filled in once it has exited.
    report: ProcessReport,
}

impl<'a> Running<'a> {
    pub(super) fn new(task: Task<'a>, work: &'a Path, interrupt: &'a Interrupt, guard: &'a Guard) -> Self {
        Self { task, work, interrupt, guard, began: Instant::now(), parts: Vec::new(), counts_before: None }
    }

    /// Starts origin and target, and applies the load before the warm-up.
    pub(super) fn serve(&mut self) -> Result<(), Failure> {
        let task @ Task { places, request, prepared, net, .. } = self.task;
        let (conditions, cores) = (&request.conditions, &request.conditions.cores);
        let (origin, counts) = (task.origin(), task.counts());
        let command = places.origin(conditions, &task.origins(), &counts, self.work)?;
        self.start("origin", [net.prefix(Place::Origin), command], &cores.origin)?;
        if let Some(prepared) = prepared {
            let mut command = prepared.command.clone();
            if self.is_profile() {
                command.splice(1..1, prepared.profiled.iter().cloned());
            }
            self.start("target", [net.prefix(Place::Gateway), command], &cores.gateway)?;
        }
        self.ready("origin", &origin, ORIGIN_READY, (net, Place::Origin))?;
        if let Some(prepared) = prepared {
            let timeout = Duration::from_millis(prepared.ready_timeout_ms);
            self.ready("target", &prepared.ready, timeout, (net, Place::Gateway))?;
        }
        if conditions.served_ms > 0 {
            let command = [net.prefix(Place::Load), places.load_before(request, &task.authority())?];
            self.start("served before", command, &cores.load)?;
            let before = self.result("served before", conditions.served_ms)?;
            if before.validity != "valid" {
                return Err(format!("served before: {}", before.validity).into());
            }
        }
        self.counts_before = prepared.is_some().then(|| self.counts()).transpose()?;
        Ok(())
    }

    /// Whether it samples its target.
    pub(super) fn is_profile(&self) -> bool {
        self.task.request.run.stage == Stage::Profile
    }

    /// Starts the load engine, which waits for [`Self::go`] if `is_timed`.
    pub(super) fn load(&mut self, is_timed: bool) -> Result<(), Failure> {
        let Task { places, request, net, .. } = self.task;
        let pid = |(part, role)| Some((role, self.part(part).ok()?.process.pid()));
        let pids: Vec<(&str, u32)> =
            [("target", "gateway"), ("origin", "origin")].into_iter().filter_map(pid).collect();
        let mut command = places.load(request, &self.task.authority(), &pids)?;
        let mut input = Stdio::null();
        if is_timed {
            command.push("--rendezvous".into());
            input = Stdio::piped();
        }
        self.start_with(input, "load", [net.prefix(Place::Load), command], &request.conditions.cores.load)
    }

    /// Waits until the load engine's connections are open.
    pub(super) fn open(&self) -> Result<(), Failure> {
        let patience = self.task.request.conditions.load_options().map_err(|wrong| wrong.message)?.timeout;
        let load = self.part("load")?;
        let opened = load.process.wait_for_line(OPEN, 2 * patience + LOAD_GRACE, self.interrupt);
        Ok(opened.map_err(|error| format!("load: {error}: {}", why(&load.process.last_words())))?)
    }

    /// Tells the load engine when to start: a time since the machine's boot.
    pub(super) fn go(&mut self, start: Duration) -> Result<(), Failure> {
        let load = self.parts.iter_mut().find(|part| part.report.role == "load");
        let load = load.ok_or("load: not started")?;
        Ok(load.process.write_line(&start.as_secs_f64().to_string())?)
    }

    /// Samples the target during the window, which begins after the warm-up that [`Self::go`] has started.
    pub(super) fn sampled(&self) -> Result<Recorded, String> {
        let conditions = &self.task.request.conditions;
        let recording = Recording {
            pids: vec![self.part("target")?.process.pid()],
            duration: Duration::from_millis(conditions.window_ms(Stage::Profile)),
            ..Recording::default()
        };
        thread::sleep(Duration::from_millis(conditions.warmup_ms));
        let recorded = weir_profile::record(&recording, &|| self.interrupt.is_set());
        if let Ok(recorded) = &recorded {
            weir_profile::remove_maps(&recorded.stacks);
        }
        recorded.map_err(|error| format!("target: {error}"))
    }

    /// Waits for the load engine's result.
    pub(super) fn measured(&mut self) -> Result<LoadResult, Failure> {
        self.result("load", self.task.phases_ms())
    }

    /// Reads what is known only after the window.
    pub(super) fn after(&mut self, observation: &mut Observation) -> Result<(), Failure> {
        match observation.load.as_ref().map(|load| self.collected(load)) {
            Some(Ok(collected)) => observation.gc = collected,
            Some(Err(why)) => observation.notes.push(why),
            None => {}
        }
        for role in ["target", "origin"] {
            if let Ok(part) = self.part(role)
                && let Some(status) = part.process.ended()
            {
                let last = part.process.last_words();
                return Err(format!("{role}: it exited early ({status}): {}", why(&last)).into());
            }
        }
        if let Some(before) = &self.counts_before {
            let counts = self.counts()?;
            // Less this query's own. Connections of ready checks and of the earlier load came before.
            observation.upstream_connections =
                Some(counts.connections.saturating_sub(before.connections + 1));
            let upstream = self.task.request.conditions.mode.upstream();
            let is_tls = upstream.is_some_and(Side::is_tls);
            let is_http2 = upstream.is_some_and(Side::is_http2);
            observation.upstream_http1 = is_http2.then(|| counts.http1_since(before)).flatten();
            observation.upstream_handshakes = is_tls.then(|| counts.handshakes_since(before));
        }
        Ok(())
    }

    pub(super) fn cores(&self) -> &CoreSets {
        &self.task.request.conditions.cores
    }

    /// The origin's counters so far.
    fn counts(&self) -> Result<Counts, Failure> {
        let counts = self.task.net.inside(Place::Origin, || Counts::query(&self.task.counts()))?;
        Ok(counts.map_err(|error| format!("origin: its counts cannot be read: {error}"))?)
    }

    /// The process groups of the run itself: those of its processes, and of the network's relay.
    pub(super) fn groups(&self) -> Vec<u32> {
        self.parts.iter().map(|part| part.process.pid()).chain(self.task.net.relay_pid()).collect()
    }

    /// The pauses of a JVM's collector in the window, and the memory left after a full collection.
    fn collected(&self, load: &LoadResult) -> Result<Option<gc::Report>, String> {
        let log = self.task.prepared.and_then(|prepared| prepared.gc_log.as_ref());
        let (Some(log), Ok(target)) = (log, self.part("target")) else { return Ok(None) };
        let Some(begin) = load.window_boot_s.map(Duration::from_secs_f64) else { return Ok(None) };
        let pid = target.process.pid();
        let started = gc::process_start(pid)?;
        // Without one, the last spontaneous collection counts.
        let _ = gc::full_collection(pid, self.work, self.interrupt, self.guard);
        let window = begin..begin + Duration::from_secs_f64(load.window_s);
        gc::measure(log, started, window).map(Some)
    }

    /// Waits for the exit of the load engine in this role, and reads its result.
    fn result(&self, role: &str, phases_ms: u64) -> Result<LoadResult, Failure> {
        let options = self.task.request.conditions.load_options().map_err(|wrong| wrong.message)?;
        let grace = LOAD_GRACE + options.phases.settle + options.timeout;
        let time = Duration::from_millis(phases_ms) + grace;
        let load = self.part(role)?;
        match load.process.wait(time, self.interrupt) {
            Waited::Ended => {}
            Waited::Deadline => return Err(format!("{role}: timed out after {} s", time.as_secs()).into()),
            Waited::Interrupted => return Err("interrupted".into()),
        }
        let output =
            load.process.output().map_err(|error| format!("{role}: its result cannot be read: {error}"))?;
        let result = match output.trim().is_empty() {
            true => Err("it printed no result".to_owned()),
            false => {
                serde_json::from_str(&output).map_err(|error| format!("its result cannot be parsed: {error}"))
            }
        };
        Ok(result.map_err(|error| {
            let words = load.process.last_words();
            format!("{role}: {error}{}{}", if words.is_empty() { "" } else { ": " }, why(&words))
        })?)
    }

    /// Starts a command after its prefix, which enters the network.
    fn start(&mut self, role: &str, command: [Vec<String>; 2], cores: &[usize]) -> Result<(), Failure> {
        self.start_with(Stdio::null(), role, command, cores)
    }

    fn start_with(
        &mut self,
        input: Stdio,
        role: &str,
        command: [Vec<String>; 2],
        cores: &[usize],
    ) -> Result<(), Failure> {
        let command = command.concat();
        let process = Process::start_in(self.work, role, &command, cores, self.work, input)
            .map_err(|error| format!("{role}: cannot start {}: {error}", command[0]))?;
        self.guard.watch(process.pid());
        let (role, cores) = (role.to_owned(), cores.to_vec());
        let report = ProcessReport { role, command, cores, ..ProcessReport::default() };
        self.parts.push(Part { process, report });
        Ok(())
    }

    fn part(&self, role: &str) -> Result<&Part, String> {
        self.parts.iter().find(|part| part.report.role == role).ok_or_else(|| format!("{role}: not started"))
    }

    fn ready(
        &self,
        role: &str,
        address: &str,
        timeout: Duration,
        (net, place): (&Net, Place),
    ) -> Result<(), Failure> {
        let part = self.part(role)?;
        let ready = net.inside(place, || part.process.wait_ready(address, timeout, self.interrupt))?;
        Ok(ready.map_err(|error| format!("{role}: {error}: {}", why(&part.process.last_words())))?)
    }

    /// Stops all processes and records their exits. All are signalled before the first one is waited for.
    pub(super) fn stop(&mut self, target: &Target, observation: &mut Observation) {
        let stop = |role: &str| if role == "target" { target.description.stop } else { Stop::default() };
        for part in &self.parts {
            part.process.signal(stop(&part.report.role).signal);
        }
        for Part { process, report } in &mut self.parts {
            let stop = stop(&report.role);
            let finished = process.finish(stop);
            self.guard.release(process.pid());
            report.killed = finished.as_ref().is_ok_and(|exit| exit.killed);
            report.exit = match finished {
                Ok(_) if report.killed => {
                    format!("killed because it did not exit within {} ms of {}", stop.timeout_ms, stop.signal)
                }
                Ok(exit) => exit.status,
                Err(error) => error.to_string(),
            };
            report.stderr = process.last_words();
            observation.processes.push(report.clone());
        }
        observation.elapsed_ms = self.began.elapsed().as_millis() as u64;
    }

    pub(super) fn keep_output(&self, directory: &Path) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| part.process.keep_output(directory))
    }
}

/// The line that says why a program failed: the last one that calls itself an error, before any backtrace, else the last one.
fn why(words: &str) -> &str {
    const ERRORS: [&str; 5] = ["error", "panicked", "exception", "fatal", "emerg"];
    let is_error = |line: &str| {
        let line = line.to_ascii_lowercase();
        // Frames of Java, Node.js and Python, and of a panic.
        let is_frame =
            ["at ", "file \"", "stack backtrace"].iter().any(|begin| line.trim_start().starts_with(begin));
        !is_frame && ERRORS.iter().any(|word| line.contains(word))
    };
    let lines: Vec<&str> = words.lines().collect();
    let found = lines.iter().rposition(|line| is_error(line)).map(|at| match lines[at].ends_with(':') {
        // A panic's message is on the line after its place.
        true => lines.get(at + 1).unwrap_or(&lines[at]),
        false => &lines[at],
    });
    found.or(lines.last()).unwrap_or(&"it printed nothing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::gateway::testing::{experiment, record};
    use crate::instrument::gateway::{Load, Mode};
    use crate::testing::{no_guard, program};

    /// Regression test: of a program with a backtrace the reason was a frame's address.
    #[test]
    fn the_reason_of_a_failure_is_its_error_and_no_frame() {
        for (words, reason) in [
            ("", "it printed nothing"),
            ("listening\nbye", "bye"),
            ("nginx: [emerg] bind() to 127.0.0.1:1 failed\n", "nginx: [emerg] bind() to 127.0.0.1:1 failed"),
            (
                "thread 'main' panicked at src/main.rs:1:\nno such key\nstack backtrace:\n   0: f\n             at src/a.rs:3",
                "no such key",
            ),
            (
                "Error: listen EADDRINUSE\n    at Server.setup (net:1)\n    at error.js:2\n\nNode.js v20.1.0",
                "Error: listen EADDRINUSE",
            ),
            (
                "Traceback (most recent call last):\n  File \"error.py\", line 1\nOSError: in use",
                "OSError: in use",
            ),
            ("ERROR a\nwarning b\nERROR c\nstopped", "ERROR c"),
        ] {
            assert_eq!(why(words), reason, "{words}");
        }
    }

    /// Regression test: the delay relay counted as foreign load, which made every saturated run one on shared cores.
    #[test]
    fn the_relays_work_is_the_runs_own() {
        let work = tempfile::tempdir().expect("a directory");
        let relay = program(work.path(), "read settings; echo ready; cat");
        let net = Net::with_relay(&relay).expect("a relay");
        let (interrupt, guard) = (Interrupt::default(), no_guard());
        let run = record(Mode::H1H1c, Load::Saturated).run;
        let conditions = experiment().conditions(&run.cell).expect("is a cell of it");
        let request = &Asked { run: &run, conditions, rate: None };
        let places = &Places { weir: "weir".into(), tls: "/tls".into(), shared: work.path().into() };
        let task = Task { places, request, prepared: None, net: &net, ports: Ports::default() };
        let mut running = Running::new(task, work.path(), &interrupt, &guard);
        running
            .start("origin", [Vec::new(), ["sleep", "1000"].map(str::to_owned).to_vec()], &[0])
            .expect("starts");
        let relay = net.relay_pid().expect("there is one");
        assert_eq!(running.groups(), [running.parts[0].process.pid(), relay]);
    }
}
