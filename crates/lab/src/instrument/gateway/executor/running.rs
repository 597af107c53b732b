//! The processes of one run, from the first one's start to the last one's end.

use super::super::gc;
use super::super::run::{Asked, Observation, ProcessReport};
use super::super::target::{Prepared, Target};
use super::words::Places;
use crate::guard::Guard;
use crate::instrument::gateway::Conditions;
use crate::interrupt::Interrupt;
use crate::placement::CoreSets;
use crate::process::{Process, Stop, Waited};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use weir_doctor::Meter;
use weir_load::result::LoadResult;
use weir_netem::{Net, Place};

/// How long the load engine may take beyond its phases and the time-out of a request before it is given up.
const LOAD_GRACE: Duration = Duration::from_secs(5);

/// How long the origin may take until it accepts a connection.
const ORIGIN_READY: Duration = Duration::from_secs(5);

/// How long the test server may take for an answer.
const COUNTS_PATIENCE: Duration = Duration::from_secs(5);

/// Why a run is invalid.
type Failure = Box<dyn std::error::Error>;

pub(super) struct Task<'a> {
    pub(super) places: &'a Places,
    pub(super) request: &'a Asked<'a>,
    pub(super) prepared: Option<&'a Prepared>,
    pub(super) net: &'a Net,
    /// Those of the origin, of the target, and at which the origin tells what it has counted.
    pub(super) ports: [u16; 3],
}

pub(super) struct Running<'a> {
    pub(super) work: &'a Path,
    pub(super) interrupt: &'a Interrupt,
    guard: &'a mut Guard,
    began: Instant,
    parts: Vec<Part>,
}

struct Part {
    process: Process,
    /// How it ended is not in it before it has.
    report: ProcessReport,
}

impl<'a> Running<'a> {
    pub(super) fn new(work: &'a Path, interrupt: &'a Interrupt, guard: &'a mut Guard) -> Self {
        Self { work, interrupt, guard, began: Instant::now(), parts: Vec::new() }
    }

    /// The phases of a run. The text of an error is the reason why the run is invalid.
    pub(super) fn measure(&mut self, task: &Task<'_>, observation: &mut Observation) -> Result<(), Failure> {
        let Task { places, request, prepared, net, ports: [origin_port, target_port, counts_port] } = *task;
        let conditions = &request.conditions;
        let cores = &conditions.cores;
        let origin = format!("{}:{origin_port}", net.origin_address());
        let counts = format!("{}:{counts_port}", net.origin_address());
        let command = places.origin(conditions, &origin, &counts);
        self.start("origin", [net.prefix(Place::Origin), command], &cores.origin)?;
        if let Some(prepared) = prepared {
            self.start("target", [net.prefix(Place::Gateway), prepared.command.clone()], &cores.gateway)?;
        }
        self.ready("origin", &origin, ORIGIN_READY, (net, Place::Origin))?;
        if let Some(prepared) = prepared {
            let timeout = Duration::from_millis(prepared.ready_timeout_ms);
            self.ready("target", &prepared.ready, timeout, (net, Place::Gateway))?;
        }
        let authority = match prepared {
            Some(_) => format!("{}:{target_port}", net.gateway_address()),
            None => origin,
        };
        if conditions.served_ms > 0 {
            let command = [net.prefix(Place::Load), places.load_before(request, &authority)?];
            let before = self.load("served before", command, conditions, conditions.served_ms)?;
            if before.validity != "valid" {
                return Err(format!("served before: {}", before.validity).into());
            }
        }
        let pid = |(part, role)| Some((role, self.part(part).ok()?.process.pid()));
        let pids: Vec<(&str, u32)> =
            [("target", "gateway"), ("origin", "origin")].into_iter().filter_map(pid).collect();
        let accepted = || self.accepted(net, &counts);
        let accepted_before = prepared.is_some().then(accepted).transpose()?;
        let used = used_cores(cores);
        let meter = Meter::begin(&used, &self.groups(net));
        let command = [net.prefix(Place::Load), places.load(request, &authority, &pids)?];
        let phases_ms = conditions.warmup_ms + conditions.window_ms(request.run.stage);
        let result = self.load("load", command, conditions, phases_ms)?;
        observation.foreign_cpu = meter.and_then(|meter| meter.foreign_share(&used, &self.groups(net)));
        match self.collected(task, &result) {
            Ok(collected) => observation.gc = collected,
            Err(why) => observation.notes.push(why),
        }
        observation.load = Some(result);
        for role in ["target", "origin"] {
            if let Ok(part) = self.part(role)
                && let Some(status) = part.process.ended()
            {
                let last = part.process.last_words();
                return Err(format!("{role}: it ended by itself ({status}): {}", last_line(&last)).into());
            }
        }
        if let Some(before) = accepted_before {
            // Less the look itself. Connections of ready checks and of what was served before came before.
            let opened = self.accepted(net, &counts)?.saturating_sub(before + 1);
            observation.upstream_connections = Some(opened);
        }
        Ok(())
    }

    /// How many connections the origin has accepted so far.
    fn accepted(&self, net: &Net, counts: &str) -> Result<u64, Failure> {
        let accepted = net.inside(Place::Origin, || accepted(counts))?;
        Ok(accepted.map_err(|error| format!("origin: its counts cannot be read: {error}"))?)
    }

    /// The groups whose work is the run's own: those of its processes, and of the network's relay.
    fn groups(&self, net: &Net) -> Vec<u32> {
        self.parts.iter().map(|part| part.process.pid()).chain(net.relay_pid()).collect()
    }

    /// What a JVM's collector did in the window, and what it leaves in memory.
    fn collected(&mut self, task: &Task<'_>, load: &LoadResult) -> Result<Option<gc::Report>, String> {
        let log = task.prepared.and_then(|prepared| prepared.gc_log.as_ref());
        let (Some(log), Ok(target)) = (log, self.part("target")) else { return Ok(None) };
        let Some(begin) = load.window_boot_s.map(Duration::from_secs_f64) else { return Ok(None) };
        let pid = target.process.pid();
        let started = gc::process_start(pid)?;
        // Without one, what the last one by itself left is told.
        let _ = gc::full_collection(pid, self.work, self.interrupt, self.guard);
        let window = begin..begin + Duration::from_secs_f64(load.window_s);
        gc::measure(log, started, window).map(Some)
    }

    /// Runs the load engine to its end, and reads its result.
    fn load(
        &mut self,
        role: &str,
        command: [Vec<String>; 2],
        conditions: &Conditions,
        phases_ms: u64,
    ) -> Result<LoadResult, Failure> {
        let options = conditions.load_options().map_err(|wrong| wrong.message)?;
        let grace = LOAD_GRACE + options.phases.settle + options.timeout;
        let time = Duration::from_millis(phases_ms) + grace;
        self.start(role, command, &conditions.cores.load)?;
        let load = self.part(role)?;
        match load.process.wait(time, self.interrupt) {
            Waited::Ended => {}
            Waited::Deadline => return Err(format!("{role}: not done after {} s", time.as_secs()).into()),
            Waited::Interrupted => return Err("interrupted".into()),
        }
        let output =
            load.process.output().map_err(|error| format!("{role}: its result cannot be read: {error}"))?;
        let result = match output.trim().is_empty() {
            true => Err("it gave no result".to_owned()),
            false => {
                serde_json::from_str(&output).map_err(|error| format!("its result cannot be read: {error}"))
            }
        };
        Ok(result.map_err(|error| {
            let words = load.process.last_words();
            format!("{role}: {error}{}{}", if words.is_empty() { "" } else { ": " }, last_line(&words))
        })?)
    }

    /// Starts a command after its prefix, which enters the network.
    fn start(&mut self, role: &str, command: [Vec<String>; 2], cores: &[usize]) -> Result<(), Failure> {
        let command = command.concat();
        let process = Process::start(role, &command, cores, self.work)
            .map_err(|error| format!("{role}: {} cannot be started: {error}", command[0]))?;
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
        Ok(ready.map_err(|error| format!("{role}: {error}: {}", last_line(&part.process.last_words())))?)
    }

    /// Ends all processes and writes down how they ended. Who was asked last is not waited for first.
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
                    format!("killed, since it did not end within {} ms of {}", stop.timeout_ms, stop.signal)
                }
                Ok(exit) => exit.status,
                Err(error) => error.to_string(),
            };
            report.stderr = process.last_words();
            observation.processes.push(report.clone());
        }
        observation.elapsed_ms = self.began.elapsed().as_millis() as u64;
    }

    pub(super) fn keep_words(&self, directory: &Path) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| part.process.keep_words(directory))
    }
}

/// How many connections the test server has accepted by its own count, which it tells at this address's `/stats`; this look's
/// own is among them.
fn accepted(address: &str) -> io::Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(COUNTS_PATIENCE))?;
    stream.write_all(b"GET /stats HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    connections(&answer)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its answer has no number of connections"))
}

fn connections(answer: &str) -> Option<u64> {
    let (_head, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str::<serde_json::Value>(body).ok()?["connections"].as_u64()
}

fn last_line(words: &str) -> &str {
    words.lines().next_back().unwrap_or("it said nothing")
}

fn used_cores(cores: &CoreSets) -> Vec<usize> {
    let CoreSets { gateway, origin, load } = cores;
    gateway.iter().chain(origin).chain(load).copied().collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{no_guard, program};

    /// The delay relay works for the run: counted as somebody else's, it made every saturated run one on shared cores.
    #[test]
    fn the_relays_work_is_the_runs_own() {
        let work = tempfile::tempdir().expect("a directory");
        let relay = program(work.path(), "read settings; echo ready; cat");
        let net = Net::with_relay(&relay).expect("a relay");
        let (interrupt, mut guard) = (Interrupt::default(), no_guard());
        let mut running = Running::new(work.path(), &interrupt, &mut guard);
        running
            .start("origin", [Vec::new(), ["sleep", "1000"].map(str::to_owned).to_vec()], &[0])
            .expect("starts");
        let relay = net.relay_pid().expect("there is one");
        assert_eq!(running.groups(&net), [running.parts[0].process.pid(), relay]);
    }

    #[test]
    fn the_number_is_in_the_answers_body() {
        let answer = |body: &str| format!("HTTP/1.1 200 OK\r\nServer: weir-origin\r\n\r\n{body}");
        assert_eq!(connections(&answer("{\"requests\":7,\"connections\":3}")), Some(3));
        assert_eq!(connections(&answer("{\"requests\":7}")), None);
        assert_eq!(connections("HTTP/1.1 200 OK\r\n"), None);
    }
}
