//! Runs with real processes: origin, target and load engine, fresh for each.

mod counts;
mod material;
mod running;
mod turn;
mod words;

pub(crate) use material::{issue_certificate, sample_values, short_directory};

use super::levels::Place as _;
use super::ports::{Ports, first_look};
use super::run::{Asked, Observation, Seen};
use super::target::{Accepted, Prepared, Target, Targets, run_check};
use super::{Gateway, Load};
use crate::base::error::LabError;
use crate::experiment::Experiment;
use crate::planning::cell::Cell;
use crate::planning::placement::Placement;
use crate::planning::plan::Plan;
use crate::planning::planned_run::PlannedRun;
use crate::running::guard::Guard;
use crate::running::host::this_program;
use crate::running::interrupt::Interrupt;
use crate::running::measure::{Executor, Request};
use crate::stats::rng::Rng;
use crate::store::Store;
use crate::store::profiles::Profiled;
use crate::store::run::Run;
use running::{Running, Task};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use turn::Draw;
use weir_netem::{Net, Place, RelayPlace};
use words::Places;

/// Executes runs with processes.
#[derive(Debug)]
pub struct ProcessExecutor {
    places: Places,
    store: Store,
    work: PathBuf,
    targets: Targets,
    allowed: Vec<usize>,
    interrupt: Interrupt,
    guard: Guard,
    /// The source of random choices.
    seed: u64,
    next_port: u16,
    /// The verdicts of the targets' own checks, by [`configuration`].
    checked: BTreeMap<String, Accepted>,
}

impl ProcessExecutor {
    /// Issues the certificate of every run.
    pub(crate) fn new(
        store: Store,
        experiment: &Experiment,
        targets: Targets,
        allowed: Vec<usize>,
        interrupt: Interrupt,
    ) -> Result<Self, LabError> {
        let weir = this_program()?;
        let directory = store.directory();
        // Processes have other working directories.
        let absolute = fs::canonicalize(directory).map_err(LabError::file(directory, "cannot be found"))?;
        let (work, tls) = (absolute.join("work"), absolute.join("tls"));
        let shared = work.join("shared");
        for path in [&work, &tls, &shared] {
            fs::create_dir_all(path).map_err(LabError::file(path, "cannot be created"))?;
        }
        Ok(Self {
            guard: Guard::start(&weir)?,
            places: Places { weir, tls, shared },
            store,
            work,
            targets,
            allowed,
            interrupt,
            seed: experiment.seed,
            next_port: first_look(),
            checked: BTreeMap::new(),
        })
    }

    fn ports(&mut self) -> Result<Ports, LabError> {
        let ports = Ports::find(self.next_port)?;
        // New ports each time: a connection of the last run may still be in TIME_WAIT.
        self.next_port = self.next_port.wrapping_add(13);
        Ok(ports)
    }

    /// Writes the files of a run, and keeps its target's settings.
    fn prepare(
        &self,
        target: &Target,
        asked: &Asked<'_>,
        net: &Net,
        [work, short]: [&Path; 2],
        ports: &Ports,
    ) -> Result<Option<Prepared>, LabError> {
        let (cell, conditions) = (&asked.run.cell, &asked.conditions);
        let values = material::values(&self.places.weir, &conditions.tls)
            .with_size(conditions.connections, conditions.bytes, &conditions.cores.gateway)
            .with_certificate(&self.places.tls.join(conditions.tls.certificate.to_string()))
            .with("dir", work.display())
            .with("short_dir", short.display())
            .with("listen_address", net.gateway_address())
            .with("upstream_address", net.origin_address())
            .with_ports(ports, conditions.origin_servers.into());
        let values = target.with_settings(&values, &conditions.settings)?;
        let Some(prepared) = target.prepare(cell.mode(), &values)? else { return Ok(None) };
        let mut settings = format!("# {}\n", prepared.command.join(" "));
        for (name, text) in &prepared.files {
            let path = work.join(name);
            fs::write(&path, text).map_err(LabError::file(path, "cannot be written"))?;
            settings.push_str(&format!("\n# ---- {name} ----\n{text}"));
        }
        self.store.keep_settings(&format!("{}.txt", configuration(cell)), &settings)?;
        Ok(Some(prepared))
    }

    /// The target's own check, once for each distinct configuration; one without a verdict is
    /// repeated. It runs where the target will listen, since a check may bind.
    fn check(&mut self, cell: &Cell, prepared: &Prepared, net: &Net, work: &Path) -> Accepted {
        let Some(command) = &prepared.check else { return Ok(()) };
        let configuration = configuration(cell);
        let accepted = match self.checked.get(&configuration) {
            Some(accepted) => accepted.clone(),
            None => {
                let command = [net.prefix(Place::Gateway), command.clone()].concat();
                let accepted = run_check("check", &command, work, &self.interrupt, &self.guard)
                    .map_err(|why| format!("target: its own check: {why}"))?;
                self.checked.insert(configuration, accepted.clone());
                accepted
            }
        };
        accepted.map_err(|words| format!("target: its own check rejects its configuration: {words}"))
    }

    /// The network of a run. A relay in it shares the core of the load engine, never the gateway's.
    fn network(&self, request: &Asked<'_>) -> Result<Net, LabError> {
        let conditions = &request.conditions;
        let seed = self.seed_of(request.run);
        let core = conditions.cores.load.last().copied().unwrap_or_default();
        Ok(Net::set_up(&conditions.net, &RelayPlace { weir: &self.places.weir, core, seed })?)
    }

    /// Starts all processes, loads, measures, stops. A failing target is an [`Observation`], not an error.
    fn observe(&mut self, turn: Vec<Asked<'_>>) -> Result<Vec<Observation>, LabError> {
        let draw = Draw::new(turn.len(), &mut Rng::new(self.seed_of(turn[0].run)));
        let mut ports = vec![Ports::default(); turn.len()];
        for index in &draw.ports {
            ports[*index] = self.ports()?;
        }
        let mut stages: Vec<Staged<'_>> = Vec::new();
        for (asked, ports) in turn.into_iter().zip(ports) {
            stages.push(self.staged(asked, ports)?);
        }
        let mut observations: Vec<Observation> = stages.iter_mut().map(Staged::refused).collect();
        let is_refused = observations.iter().any(|one| one.failure.is_some());
        let mut running: Vec<Running<'_>> = Vec::new();
        for Staged { asked, net, prepared, ports, work, .. } in &stages {
            let Some(net) = net else { continue };
            let task = Task {
                places: &self.places,
                request: asked,
                prepared: prepared.as_ref(),
                net,
                ports: *ports,
            };
            running.push(Running::new(task, work, &self.interrupt, &self.guard));
        }
        if !is_refused {
            turn::measure(&mut running, &mut observations, &draw);
        }
        for ((run, stage), observation) in running.iter_mut().zip(&stages).zip(&mut observations) {
            run.stop(&stage.target, observation);
            if observation.failure.is_some() {
                let logs = Path::new("logs").join(&stage.asked.run.id);
                let path = self.store.directory().join(&logs);
                run.keep_output(&path).map_err(LabError::file(&path, "cannot be written"))?;
                observation.logs = Some(logs).filter(|_| path.exists());
            }
        }
        drop(running);
        for (Staged { net, work, .. }, observation) in stages.into_iter().zip(&mut observations) {
            match net.map(Net::finish) {
                Some(Ok(report)) => observation.net = Some(report),
                Some(Err(error)) => drop(observation.failure.get_or_insert(error.to_string())),
                None => {}
            }
            // Its other files are removed at the end.
            let _ = fs::remove_dir_all(&work);
        }
        if self.interrupt.is_set() {
            return Err(LabError::Interrupted { directory: self.store.directory().to_owned() });
        }
        Ok(observations)
    }

    /// The preparations of a run before its processes start.
    fn staged<'a>(&mut self, mut asked: Asked<'a>, ports: Ports) -> Result<Staged<'a>, LabError> {
        let cell = &asked.run.cell;
        let target = self
            .targets
            .present
            .get(&cell.subject)
            .cloned()
            .ok_or_else(|| LabError::Nothing(format!("target {} has disappeared", cell.subject)))?;
        let certificate = self.places.tls.join(asked.conditions.tls.certificate.to_string());
        if !certificate.exists() {
            issue_certificate(&asked.conditions.tls, &certificate)?;
        }
        asked.conditions.cores = Placement::choose(&asked.conditions.cores, &self.allowed).cores;
        let work = self.work.join(&asked.run.id);
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).map_err(LabError::file(&work, "cannot be created"))?;
        let short = short_directory()?;
        let (net, prepared, refused) = match self.network(&asked) {
            Ok(net) => {
                let prepared = self.prepare(&target, &asked, &net, [&work, short.path()], &ports)?;
                let refused = prepared.as_ref().and_then(|one| self.check(cell, one, &net, &work).err());
                (Some(net), prepared, refused)
            }
            Err(error) => (None, None, Some(error.to_string())),
        };
        Ok(Staged { asked, target, ports, work, _short: short, net, prepared, refused })
    }

    /// The seed of a run: different for each, the same when the run is repeated.
    fn seed_of(&self, run: &PlannedRun) -> u64 {
        let id = run.id.bytes().map(u64::from);
        id.fold(self.seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte))
    }
}

/// A run whose processes have not started.
struct Staged<'a> {
    asked: Asked<'a>,
    target: Target,
    ports: Ports,
    work: PathBuf,
    /// Kept until its processes have exited.
    _short: TempDir,
    net: Option<Net>,
    prepared: Option<Prepared>,
    /// Why it cannot be executed.
    refused: Option<String>,
}

impl Staged<'_> {
    fn refused(&mut self) -> Observation {
        Observation { failure: self.refused.take(), ..Observation::default() }
    }
}

impl Executor<Gateway> for ProcessExecutor {
    fn execute(&mut self, turn: &[Request<'_>]) -> Result<Vec<Seen>, LabError> {
        let mut asked = Vec::new();
        for Request { run, experiment, rate } in turn {
            asked.push(Asked { run, conditions: experiment.conditions(&run.cell)?, rate: *rate });
        }
        let is_without = |one: &Asked<'_>| one.run.cell.load() == Load::EqualRate && one.rate.is_none();
        let observations = match asked.iter().any(is_without) {
            true => {
                vec![Observation { failure: Some(NO_RATE.into()), ..Observation::default() }; asked.len()]
            }
            false => self.observe(asked.clone())?,
        };
        Ok(asked.iter().zip(observations).map(|(asked, observation)| asked.seen(observation)).collect())
    }

    fn profile(
        &mut self,
        Request { run, experiment, rate }: Request<'_>,
    ) -> Result<Option<Profiled>, LabError> {
        let asked = Asked { run, conditions: experiment.conditions(&run.cell)?, rate };
        if run.cell.mode().upstream().is_none() {
            return Ok(None);
        }
        if run.cell.load() == Load::EqualRate && rate.is_none() {
            return Ok(Some(Profiled { recorded: Err(NO_RATE.into()), cost_us: None }));
        }
        let Some(mut observation) = self.observe(vec![asked.clone()])?.pop() else { return Ok(None) };
        let recorded = match (observation.profile.take(), &observation.failure, observation.notes.first()) {
            (_, Some(why), _) | (None, None, Some(why)) => Err(why.clone()),
            (None, None, None) => Err("the target was not sampled".into()),
            (Some(recorded), None, _) => Ok(recorded),
        };
        let seen = Run::new(run, asked.seen(observation));
        Ok(Some(Profiled { recorded, cost_us: super::values::cost_us(&seen) }))
    }

    /// Removes the working directories; the store has copies of what to keep.
    fn finish(&mut self, _: &Plan, _: bool) -> Result<(), LabError> {
        let _ = fs::remove_dir_all(&self.work);
        Ok(())
    }
}

/// Why a cell with an offered rate has none.
pub(crate) const NO_RATE: &str = "calibration: no target gave a valid run, so there is no equal rate";

/// The keys and tables of an experiment that [`ProcessExecutor::prepare`] passes to a target, beside the number of connections.
const PASSED: [&str; 4] = ["tls.", "cores.", "net.", "origin_servers"];

/// Names a target's configuration: two cells with the same name configure it alike.
fn configuration(cell: &Cell) -> String {
    let mut name = format!("{}.{}.c{}", cell.first_name(), cell.mode(), cell.connections());
    for (key, level) in cell.conditions().filter(|(key, _)| PASSED.iter().any(|table| key.starts_with(table)))
    {
        name.push_str(&format!(".{key}={}", level.file_name()));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::gateway::Mode;
    use crate::instrument::gateway::testing::{record, with};

    /// Regression test: settings for 8 connections were shown for 1000, but a target's pool depends on the number.
    #[test]
    fn cells_with_another_target_configuration_have_their_own_settings() {
        let cell = record(Mode::H1H1c, Load::Saturated).run.cell;
        let with = |key: &str, level: &str| configuration(&with(&cell, key, level));
        assert_eq!(configuration(&cell), "fast.h1-h1c.c8");
        assert_eq!(with("connections", "1000"), "fast.h1-h1c.c1000");
        assert_eq!(with("tls.version", "1.2"), "fast.h1-h1c.c8.tls.version=1.2");
        assert_eq!(with("delay_ms", "30"), configuration(&cell), "only the origin gets it");
        assert_eq!(with("load_model", "equal-rate"), configuration(&cell));
    }
}
