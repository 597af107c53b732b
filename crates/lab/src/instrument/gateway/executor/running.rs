//! The processes of one run, from the first one's start to the last one's end.

use super::super::gc;
use super::super::net::{Net, Place};
use super::super::run::{Asked, Observation, ProcessReport};
use super::super::target::{Prepared, Target};
use super::words::Places;
use super::{LOAD_GRACE, STOP, counts};
use crate::guard::Guard;
use crate::instrument::gateway::Conditions;
use crate::interrupt::Interrupt;
use crate::placement::CoreSets;
use crate::process::{Process, Stop, Waited};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weir_doctor::Meter;
use weir_load::result::{LoadResult, Role};

/// How long the origin may take until it accepts a connection.
const ORIGIN_READY: Duration = Duration::from_secs(5);

/// What a run needs to know.
pub(super) struct Task<'a> {
    pub(super) places: &'a Places,
    pub(super) request: &'a Asked<'a>,
    pub(super) prepared: Option<&'a Prepared>,
    /// Where a JVM writes its collector's log.
    pub(super) gc_log: Option<&'a PathBuf>,
    pub(super) net: &'a Net,
    pub(super) origin_port: u16,
    pub(super) target_port: u16,
    /// Where the origin tells what it has counted.
    pub(super) counts_port: u16,
}

/// The processes of one run.
pub(super) struct Running<'a> {
    pub(super) work: &'a Path,
    pub(super) interrupt: &'a Interrupt,
    guard: &'a mut Guard,
    began: Instant,
    parts: Vec<Part>,
}

struct Part {
    role: &'static str,
    command: Vec<String>,
    cores: Vec<usize>,
    process: Process,
}

impl<'a> Running<'a> {
    /// None runs yet.
    pub(super) fn new(work: &'a Path, interrupt: &'a Interrupt, guard: &'a mut Guard) -> Self {
        Self { work, interrupt, guard, began: Instant::now(), parts: Vec::new() }
    }

    /// The phases of a run. The text of an error is the reason why the run is invalid.
    pub(super) fn measure(&mut self, task: &Task<'_>, observation: &mut Observation) -> Result<(), String> {
        let Task { places, request, prepared, net, origin_port, target_port, counts_port, .. } = *task;
        let conditions = &request.conditions;
        let cores = &conditions.cores;
        let origin = format!("{}:{origin_port}", net.origin_address());
        let counts = format!("{}:{counts_port}", net.origin_address());
        let command = [net.prefix(Place::Origin), places.origin(conditions, &origin, &counts)].concat();
        self.start("origin", command, &cores.origin)?;
        if let Some(prepared) = prepared {
            let command = [net.prefix(Place::Gateway), prepared.command.clone()].concat();
            self.start("target", command, &cores.gateway)?;
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
            let command = places.load_before(conditions, &authority).map_err(|error| error.to_string())?;
            let command = [net.prefix(Place::Load), command].concat();
            let before = self.load("served before", command, conditions, conditions.served_ms)?;
            if before.validity != "valid" {
                return Err(format!("served before: {}", before.validity));
            }
        }
        let pid = |role| self.parts.iter().find(|part| part.role == role).map(|part| part.process.pid());
        let roles = [("target", Role::Gateway), ("origin", Role::Origin)];
        let pids: Vec<(Role, u32)> =
            roles.into_iter().filter_map(|(part, role)| Some((role, pid(part)?))).collect();
        let accepted = || self.accepted(net, &counts);
        let accepted_before = prepared.is_some().then(accepted).transpose()?;
        let used = used_cores(cores);
        let meter = Meter::begin(&used, &self.groups(net));
        let command = places.load(request, &authority, &pids).map_err(|error| error.to_string())?;
        let command = [net.prefix(Place::Load), command].concat();
        let result = self.load("load", command, conditions, request.warmup_ms + request.window_ms)?;
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
                return Err(format!("{role}: it ended by itself ({status}): {}", last_line(&last)));
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
    fn accepted(&self, net: &Net, counts: &str) -> Result<u64, String> {
        net.inside(Place::Origin, || counts::accepted(counts))
            .map_err(|error| error.to_string())?
            .map_err(|error| format!("origin: its counts cannot be read: {error}"))
    }

    /// The groups whose work is the run's own: those of its processes, and of the network's relay.
    fn groups(&self, net: &Net) -> Vec<u32> {
        self.parts.iter().map(|part| part.process.pid()).chain(net.relay_pid()).collect()
    }

    /// What a JVM's collector did in the window, and what it leaves in memory.
    fn collected(&self, task: &Task<'_>, load: &LoadResult) -> Result<Option<gc::Report>, String> {
        let (Some(log), Ok(target)) = (task.gc_log, self.part("target")) else { return Ok(None) };
        let Some(begin) = load.window_boot_s.map(Duration::from_secs_f64) else { return Ok(None) };
        let pid = target.process.pid();
        let started = gc::process_start(pid)?;
        // Without one, what the last one by itself left is told.
        let _ = gc::full_collection(pid);
        let window = begin..begin + Duration::from_secs_f64(load.window_s);
        gc::measure(log, started, window).map(Some)
    }

    /// Runs the load engine to its end, and reads its result.
    fn load(
        &mut self,
        role: &'static str,
        command: Vec<String>,
        conditions: &Conditions,
        phases_ms: u64,
    ) -> Result<LoadResult, String> {
        let options = conditions.load_options().map_err(|wrong| wrong.message)?;
        let grace = LOAD_GRACE + options.phases.settle + options.timeout;
        let time = Duration::from_millis(phases_ms) + grace;
        self.start(role, command, &conditions.cores.load)?;
        let load = self.part(role)?;
        match load.process.wait(time, self.interrupt) {
            Waited::Ended => {}
            Waited::Deadline => return Err(format!("{role}: not done after {} s", time.as_secs())),
            Waited::Interrupted => return Err("interrupted".into()),
        }
        let output =
            load.process.output().map_err(|error| format!("{role}: its result cannot be read: {error}"))?;
        parse(&output).map_err(|error| {
            let words = load.process.last_words();
            format!("{role}: {error}{}{}", if words.is_empty() { "" } else { ": " }, last_line(&words))
        })
    }

    fn start(&mut self, role: &'static str, command: Vec<String>, cores: &[usize]) -> Result<(), String> {
        let process = Process::start(role, &command, cores, self.work)
            .map_err(|error| format!("{role}: {} cannot be started: {error}", command[0]))?;
        self.guard.watch(process.pid());
        self.parts.push(Part { role, command, cores: cores.to_vec(), process });
        Ok(())
    }

    fn part(&self, role: &str) -> Result<&Part, String> {
        self.parts.iter().find(|part| part.role == role).ok_or_else(|| format!("{role}: not started"))
    }

    fn ready(
        &self,
        role: &str,
        address: &str,
        timeout: Duration,
        (net, place): (&Net, Place),
    ) -> Result<(), String> {
        let part = self.part(role)?;
        let wait = || part.process.wait_ready(address, timeout, self.interrupt);
        net.inside(place, wait)
            .map_err(|error| error.to_string())?
            .map_err(|error| format!("{role}: {error}: {}", last_line(&part.process.last_words())))
    }

    /// Ends all processes and writes down how they ended. Who was asked last is not waited for first.
    pub(super) fn stop(&mut self, target: &Target, observation: &mut Observation) {
        let stop = |role: &str| if role == "target" { target.stop() } else { STOP };
        for part in &self.parts {
            part.process.signal(stop(part.role).signal);
        }
        for part in &mut self.parts {
            let finished = part.process.finish(stop(part.role));
            let mut killed = false;
            self.guard.release(part.process.pid());
            let exit = match finished {
                Ok(exit) if exit.killed => {
                    killed = true;
                    let Stop { signal, timeout_ms } = stop(part.role);
                    format!("killed, since it did not end within {timeout_ms} ms of {signal}")
                }
                Ok(exit) => exit.status,
                Err(error) => error.to_string(),
            };
            observation.processes.push(ProcessReport {
                role: part.role.to_owned(),
                command: part.command.clone(),
                cores: part.cores.clone(),
                exit,
                killed,
                stderr: part.process.last_words(),
            });
        }
        observation.elapsed_ms = self.began.elapsed().as_millis() as u64;
    }
}

impl Running<'_> {
    /// Keeps what the processes wrote.
    pub(super) fn keep_words(&self, directory: &Path) -> std::io::Result<()> {
        self.parts.iter().try_for_each(|part| part.process.keep_words(directory))
    }
}

fn parse(output: &str) -> Result<LoadResult, String> {
    if output.trim().is_empty() {
        return Err("it gave no result".into());
    }
    serde_json::from_str(output).map_err(|error| format!("its result cannot be read: {error}"))
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
        running.start("origin", ["sleep", "1000"].map(str::to_owned).to_vec(), &[0]).expect("starts");
        let relay = net.relay_pid().expect("there is one");
        assert_eq!(running.groups(&net), [running.parts[0].process.pid(), relay]);
    }
}
