//! Runs with real processes: origin, target and load engine, fresh for each.

mod material;
mod running;
mod words;

pub(crate) use material::{issue_certificate, sample_values};

use super::levels::Place as _;
use super::network::{first_look, free_ports};
use super::run::{Asked, Observation, Seen};
use super::target::{Accepted, Prepared, Target, Targets, run_check};
use super::{Gateway, Load};
use crate::cell::Cell;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::guard::Guard;
use crate::host::this_program;
use crate::instrument::{Executor, Request};
use crate::interrupt::Interrupt;
use crate::placement::Placement;
use crate::plan::Plan;
use crate::store::Store;
use running::{Running, Task};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use weir_netem::{Net, Place, RelayPlace};
use words::Places;

/// Starts processes.
#[derive(Debug)]
pub struct ProcessExecutor {
    places: Places,
    store: Store,
    work: PathBuf,
    targets: Targets,
    allowed: Vec<usize>,
    interrupt: Interrupt,
    guard: Guard,
    /// Of what runs draw at random.
    seed: u64,
    next_port: u16,
    /// What the targets' own checks said of their configurations, by [`configuration`].
    checked: BTreeMap<String, Accepted>,
}

impl ProcessExecutor {
    /// Issues the certificate that every run uses.
    pub(crate) fn new(
        store: Store,
        experiment: &Experiment,
        targets: Targets,
        allowed: Vec<usize>,
        interrupt: Interrupt,
    ) -> Result<Self, LabError> {
        let weir = this_program()?;
        let directory = store.directory();
        // Processes run elsewhere.
        let absolute = fs::canonicalize(directory).map_err(LabError::file(directory, "cannot be found"))?;
        let (work, tls) = (absolute.join("work"), absolute.join("tls"));
        let shared = work.join("shared");
        for path in [&work, &tls, &shared] {
            fs::create_dir_all(path).map_err(LabError::file(path, "cannot be made"))?;
        }
        issue_certificate(&experiment.any_conditions()?.tls, &tls)?;
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

    fn ports(&mut self) -> Result<[u16; 3], LabError> {
        let ports = free_ports(self.next_port)?;
        // Not the same ports again at once: a connection of the last run may still be in TIME_WAIT.
        self.next_port = self.next_port.wrapping_add(13);
        Ok(ports)
    }

    /// The files of a run are written, and its target's settings kept.
    fn prepare(
        &self,
        target: &Target,
        asked: &Asked<'_>,
        net: &Net,
        work: &Path,
        [origin_port, target_port, _]: [u16; 3],
    ) -> Result<Option<Prepared>, LabError> {
        let (cell, conditions) = (&asked.run.cell, &asked.conditions);
        let values = material::values(&self.places.weir, &conditions.tls)
            .with_size(conditions.connections, conditions.bytes, &conditions.cores.gateway)
            .with_certificate(&self.places.tls)
            .with("dir", work.display())
            .with("listen_address", net.gateway_address())
            .with("listen_port", target_port)
            .with("upstream_address", net.origin_address())
            .with("upstream_port", origin_port);
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

    /// The target's own check, once for each of its configurations that differ; one that came to no judgement is made
    /// again. It is made where the target will listen, since a check may bind.
    fn check(&mut self, cell: &Cell, prepared: &Prepared, net: &Net, work: &Path) -> Accepted {
        let Some(command) = &prepared.check else { return Ok(()) };
        let configuration = configuration(cell);
        let accepted = match self.checked.get(&configuration) {
            Some(accepted) => accepted.clone(),
            None => {
                let command = [net.prefix(Place::Gateway), command.clone()].concat();
                let accepted = run_check("check", &command, work, &self.interrupt, &mut self.guard)
                    .map_err(|why| format!("target: its own check: {why}"))?;
                self.checked.insert(configuration, accepted.clone());
                accepted
            }
        };
        accepted.map_err(|words| format!("target: its own check refuses its configuration: {words}"))
    }

    /// The network of a run. A relay in it shares the core of the load engine, never the gateway's.
    fn network(&self, request: &Asked<'_>) -> Result<Net, LabError> {
        let conditions = &request.conditions;
        // Another one for each run, the same when the run is made again.
        let id = request.run.id.bytes().map(u64::from);
        let seed = id.fold(self.seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(byte));
        let core = conditions.cores.load.last().copied().unwrap_or_default();
        Ok(Net::set_up(&conditions.net, &RelayPlace { weir: &self.places.weir, core, seed })?)
    }

    /// Starts everything afresh, loads, measures, stops. A target that fails is an [`Observation`], not an error.
    fn observe(&mut self, request: &Asked<'_>) -> Result<Observation, LabError> {
        let cell = &request.run.cell;
        let target =
            self.targets.present.get(&cell.subject).cloned().ok_or_else(|| {
                LabError::Nothing(format!("target {} is not present any more", cell.subject))
            })?;
        let mut request = request.clone();
        request.conditions.cores = Placement::choose(&request.conditions.cores, &self.allowed).cores;
        let work = self.work.join(&request.run.id);
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).map_err(LabError::file(&work, "cannot be made"))?;
        let ports = self.ports()?;
        let net = match self.network(&request) {
            Ok(net) => net,
            Err(error) => {
                return Ok(Observation { failure: Some(error.to_string()), ..Observation::default() });
            }
        };
        let prepared = self.prepare(&target, &request, &net, &work, ports)?;
        let refused = prepared.as_ref().and_then(|prepared| self.check(cell, prepared, &net, &work).err());
        let mut running = Running::new(&work, &self.interrupt, &mut self.guard);
        let mut observation = Observation { failure: refused, ..Observation::default() };
        if observation.failure.is_none() {
            let (places, request, prepared, net) = (&self.places, &request, prepared.as_ref(), &net);
            let task = Task { places, request, prepared, net, ports };
            observation.failure =
                running.measure(&task, &mut observation).err().map(|error| error.to_string());
        }
        running.stop(&target, &mut observation);
        if observation.failure.is_some() {
            let logs = Path::new("logs").join(&request.run.id);
            let path = self.store.directory().join(&logs);
            running.keep_words(&path).map_err(LabError::file(&path, "cannot be written"))?;
            observation.logs = Some(logs).filter(|_| path.exists());
        }
        match net.finish() {
            Ok(report) => observation.net = Some(report),
            Err(error) => drop(observation.failure.get_or_insert(error.to_string())),
        }
        if self.interrupt.is_set() {
            return Err(LabError::Interrupted { directory: self.store.directory().to_owned() });
        }
        // What is left of it goes with the rest at the end.
        let _ = fs::remove_dir_all(&work);
        Ok(observation)
    }
}

impl Executor<Gateway> for ProcessExecutor {
    fn execute(&mut self, turn: &[Request<'_>]) -> Result<Vec<Seen>, LabError> {
        let mut seen = Vec::new();
        for Request { run, experiment, rate } in turn {
            let conditions = experiment.conditions(&run.cell)?;
            let asked = Asked { run, conditions, rate: *rate };
            let observation = match run.cell.load() == Load::EqualRate && rate.is_none() {
                true => Observation { failure: Some(NO_RATE.into()), ..Observation::default() },
                false => self.observe(&asked)?,
            };
            seen.push(asked.seen(observation));
        }
        Ok(seen)
    }

    /// Removes the working directories; what is worth keeping is stored elsewhere.
    fn finish(&mut self, _: &Plan, _: bool) -> Result<(), LabError> {
        let _ = fs::remove_dir_all(&self.work);
        Ok(())
    }
}

/// Why a cell that is to be offered a rate has none.
pub(crate) const NO_RATE: &str = "calibration: no target gave a valid run, so there is no equal rate";

/// The tables of an experiment, beside the number of connections, that [`ProcessExecutor::prepare`] hands to a target.
const TOLD: [&str; 3] = ["tls.", "cores.", "net."];

/// Names what a target is told: two cells with the same name differ in nothing that it could be configured by.
fn configuration(cell: &Cell) -> String {
    let mut name = format!("{}.{}.c{}", cell.first_name(), cell.mode(), cell.connections());
    for (key, level) in cell.conditions().filter(|(key, _)| TOLD.iter().any(|table| key.starts_with(table))) {
        name.push_str(&format!(".{key}={}", level.file_name()));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::gateway::Mode;
    use crate::instrument::gateway::testing::{record, with};

    /// The pool of a target is as large as the number of connections: what it was given with 8 is not shown for 1000.
    #[test]
    fn cells_whose_target_is_told_something_else_have_settings_of_their_own() {
        let cell = record(Mode::H1H1c, Load::Saturated).run.cell;
        let with = |key: &str, level: &str| configuration(&with(&cell, key, level));
        assert_eq!(configuration(&cell), "fast.h1-h1c.c8");
        assert_eq!(with("connections", "1000"), "fast.h1-h1c.c1000");
        assert_eq!(with("tls.version", "1.2"), "fast.h1-h1c.c8.tls.version=1.2");
        assert_eq!(with("delay_ms", "30"), configuration(&cell), "the origin alone is told");
        assert_eq!(with("load_model", "equal-rate"), configuration(&cell));
    }
}
