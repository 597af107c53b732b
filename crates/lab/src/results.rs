//! A results directory as it is read: every run judged by the rules of this program, and summed up.

use crate::error::LabError;
use crate::experiment::{Level, OWN};
use crate::machine::Machine;
use crate::plan::{Plan, PlannedRun};
use crate::run::RunRecord;
use crate::store::Store;
use crate::summary::Summary;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What an experiment has stored, and what it comes to.
#[derive(Clone, Debug)]
pub struct Results {
    /// Where it is stored.
    pub directory: PathBuf,
    /// What was planned.
    pub plan: Plan,
    /// What it was run on.
    pub machine: Machine,
    /// The runs, judged.
    pub records: Vec<RunRecord>,
    /// What they come to.
    pub summary: Summary,
}

impl Results {
    /// Reads the runs of a directory and sums them up. Nothing that was worked out before is read.
    ///
    /// # Errors
    /// When it is no directory of results, a file in it has another form or layout, or a run is not the one that was
    /// planned under its id.
    pub fn read(directory: &Path) -> Result<Self, LabError> {
        let store = Store::open(directory);
        let (plan, machine) = (store.plan()?, store.machine()?);
        let mut records = store.runs()?;
        let planned = plan.calibration.iter().chain(plan.blocks.iter().flatten());
        let planned: BTreeMap<&str, &PlannedRun> = planned.map(|run| (run.id.as_str(), run)).collect();
        for record in &mut records {
            let run = &record.run;
            check_planned(run, planned.get(run.id.as_str()).copied())
                .map_err(|message| LabError::Stored { path: store.run_path(&run.id), message })?;
            let conditions = plan.experiment.conditions(&run.cell).map_err(|error| LabError::Stored {
                path: directory.join("plan.json"),
                message: error.to_string(),
            })?;
            record.judge(&conditions);
        }
        let summary = Summary::of(&plan, &machine, &records);
        Ok(Self { directory: directory.to_owned(), plan, machine, records, summary })
    }
}

/// A run of another cell or block than planned would be missing here and count there.
fn check_planned(run: &PlannedRun, planned: Option<&PlannedRun>) -> Result<(), String> {
    let Some(planned) = planned else {
        return Err(format!("id: `{}`: allowed are the runs of plan.json", run.id));
    };
    let cells = [&run.cell, &planned.cell];
    let further = cells.into_iter().flat_map(|cell| cell.factors.keys()).map(String::as_str);
    for key in OWN.into_iter().chain(further) {
        let [found, allowed] = cells.map(|cell| cell.level(key));
        if found != allowed {
            let text =
                |level: Option<Level>| level.map_or_else(|| "not given".into(), |level| level.to_string());
            return Err(format!("{key}: `{}`: allowed is `{}`, as planned", text(found), text(allowed)));
        }
    }
    match run == planned {
        true => Ok(()),
        false => Err(format!("stage, name or case: allowed are those of `{}` in plan.json", run.id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::tests::parse;
    use crate::options::{RunOptions, select};
    use crate::plan::Stage;
    use crate::run::Request;
    use crate::synthetic::{Shape, Synthetic, Truth};
    use crate::testing::{observation, result_for, targets};
    use serde::Serialize;

    fn json(value: &impl Serialize) -> String {
        serde_json::to_string(value).expect("is written")
    }

    /// A run whose cell is none of the plan's was in no figure, and yet among the runs that were counted; one with a
    /// level that the experiment does not have ended the report without the name of its file.
    #[test]
    fn a_run_that_was_not_planned_so_is_refused_with_its_file() {
        let shape = Shape { aa: false, blocks: 5, groups: 2, versions: &[] };
        let mut synthetic = Synthetic::new(shape, 1);
        let results = synthetic.experiment(Truth::NOTHING);
        let store = Store::open(&synthetic.path());
        let good = &results.records[0];
        let refused = |change: fn(&mut PlannedRun), why: &str| {
            let mut edited = good.clone();
            change(&mut edited.run);
            store.write_run(&edited).expect("is written");
            let error = Results::read(&synthetic.path()).expect_err("is refused").to_string();
            let file = format!("runs/{}.json", edited.run.id);
            assert!(error.contains(&file) && error.contains(why), "{error}");
        };
        refused(|run| run.cell.bytes = 1001, "bytes: `1001`: allowed is `100`");
        let to_31 = |run: &mut PlannedRun| {
            run.cell.factors.insert("delay_ms".into(), Level::new(31));
        };
        refused(to_31, "delay_ms: `31`: allowed is `");
        refused(|run| run.cell.factors.clear(), "delay_ms: `not given`: allowed is `");
        refused(|run| run.stage = Stage::Block(9), "stage, name or case");
        store.write_run(good).expect("is written");
        Results::read(&synthetic.path()).expect("reads");
        refused(|run| run.id = "b009-001-x".into(), "id: `b009-001-x`: allowed are the runs of plan.json");
    }

    /// What a group is called has changed; what was measured has not.
    #[test]
    fn results_with_the_former_names_of_groups_are_read_and_valid() {
        let directory = tempfile::tempdir().expect("a directory");
        let text = "name = 'groups'\nquestion = 'Q'\nbaseline = ['slow']\nblocks = 1\nseed = 1\n[factors]\n\
            target = ['fast', 'slow']\ntls.group = ['p-256', 'x25519']\n[constants]\nmode = 'h1-h1c'\n\
            load_model = 'saturated'\nconnections = 8\nbytes = 100\nwarmup_ms = 10\nwindow_ms = 50\n";
        let options = RunOptions::default();
        let experiment = parse(text, &options).expect("parses");
        let plan = Plan::new(experiment, &targets(directory.path()), &options).expect("plans");
        let former = |text: String| text.replace("\"p256\"", "\"p-256\"").replace("=p256", "=p-256");
        let results = directory.path().join("results");
        Store::create(&results).expect("is made");
        let write = |name: &str, text: String| std::fs::write(results.join(name), text).expect("is written");
        write("plan.json", former(json(&plan)));
        write("machine.json", json(&Machine::default()));
        for run in &plan.blocks[0] {
            let group = run.cell.factors["tls.group"].as_str().to_owned();
            let mut load = result_for(&run.cell, None);
            load.handshakes.negotiated[0].group = Some(group);
            let conditions = plan.experiment.conditions(&run.cell).expect("is a cell of it");
            let record = RunRecord::new(&Request::new(run, conditions, None), observation(&run.cell, load));
            write(&format!("runs/{}.json", run.id.replace("=p256", "=p-256")), former(json(&record)));
        }
        let read = Results::read(&results).expect("reads");
        assert_eq!(read.records.len(), 4);
        assert!(
            read.records.iter().all(|record| record.validity.is_valid()),
            "{:?}",
            read.records[0].validity
        );
        let stored = std::fs::read_to_string(results.join("plan.json")).expect("is there");
        assert!(stored.contains("\"p-256\"") && !stored.contains("\"p256\""), "{stored}");
        for spelling in ["p256", "p-256", "secp256r1"] {
            let only = [("tls.group".to_owned(), spelling.to_owned())];
            let has = |run: &&RunRecord| {
                select("--cell", &only, &run.run.cell, &read.plan.experiment).expect("is a level")
            };
            assert_eq!(read.records.iter().filter(has).count(), 2, "{spelling}");
        }
    }

    /// A plan whose experiment lacks a level of its cells was told without the file and what it allows.
    #[test]
    fn a_plan_that_does_not_fit_itself_is_refused_with_its_file() {
        let shape = Shape { aa: false, blocks: 5, groups: 2, versions: &[] };
        let mut synthetic = Synthetic::new(shape, 1);
        let mut plan = synthetic.experiment(Truth::NOTHING).plan;
        plan.experiment.set_factor("delay_ms", vec![1.into(), 2.into()]);
        Store::open(&synthetic.path()).write_json("plan.json", &plan).expect("is written");
        let error = Results::read(&synthetic.path()).expect_err("is refused").to_string();
        let why = "`delay_ms=0` is none of the experiment's: allowed are 1, 2";
        assert!(error.contains("plan.json: ") && error.ends_with(why), "{error}");
    }
}
