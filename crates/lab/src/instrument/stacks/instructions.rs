//! Instructions per handshake, counted by valgrind's callgrind: free of noise, but for the code path without AVX-512,
//! which valgrind hides.

use super::check;
use super::execute::{ProcessRunner, Tool};
use super::key::HANDSHAKE;
use super::output::Side;
use crate::base::error::LabError;
use crate::base::files::on_path;
use crate::planning::cell::{Cell, Levels};
use crate::planning::plan::Plan;
use crate::running::progress::note;
use crate::store::Store;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Instructions of one cell, or why they were not counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Counted {
    /// Schema version.
    pub(super) schema: u32,
    /// The name of the cell.
    pub(super) cell: String,
    /// Instructions per handshake on each side.
    pub(super) counts: BTreeMap<Side, f64>,
    /// Why they were not counted.
    pub(super) why: Option<String>,
}

/// Handshakes of the two runs that are subtracted, which cancels the setup and the extra work of the first handshake.
const HANDSHAKES: [u32; 2] = [4, 20];

const PROGRAM: &str = "valgrind";

/// The schema version of counts.
const SCHEMA: u32 = 1;

/// The directory of counts.
const INSTRUCTIONS: &str = "instructions";

/// The instructions of a cell, if they were counted.
/// Errors: a stored file that cannot be read.
pub(super) fn counted(store: &Store, cell: &Cell) -> Result<Option<Counted>, LabError> {
    store.read_json(&format!("{INSTRUCTIONS}/{cell}.json"), SCHEMA)
}

/// Counts each handshake cell that has no counts yet.
/// Errors: a file that cannot be written, an interrupt. A failed count is a result.
pub(super) fn count(plan: &Plan, store: &Store, runner: &mut ProcessRunner) -> Result<(), LabError> {
    let directory = store.directory().join(INSTRUCTIONS);
    fs::create_dir_all(&directory).map_err(LabError::file(&directory, "cannot create"))?;
    let is_installed = on_path(PROGRAM, std::env::var_os("PATH").as_deref()).is_some();
    // If the first cell of an engine cannot be counted, neither can the others: do not spend time on them.
    let mut uncountable: BTreeMap<&str, String> = BTreeMap::new();
    for cell in plan.cells.iter().filter(|cell| is_counted(cell)) {
        if counted(store, cell)?.is_some() {
            continue;
        }
        let counts = match uncountable.get(cell.subject.as_str()) {
            Some(why) => Err(why.clone()),
            None if !is_installed => Err(format!("{PROGRAM} is not on the PATH")),
            None => runner.count(cell)?,
        };
        let why = counts.as_ref().err().cloned();
        uncountable.extend(why.clone().map(|why| (cell.subject.as_str(), why)));
        let counts = counts.unwrap_or_default();
        note(format_args!("instructions {cell}  {}", why.as_deref().unwrap_or("counted")));
        let counted = Counted { schema: SCHEMA, cell: cell.id.clone(), counts, why };
        store.write_json(&format!("{INSTRUCTIONS}/{cell}.json"), &counted)?;
    }
    Ok(())
}

/// Masks hide features that valgrind hides anyway, and counts do not depend on the number of threads.
fn is_counted(cell: &Cell) -> bool {
    let plain = [("do", HANDSHAKE), ("threads", "1"), ("mask", "none")];
    !cell.is_again()
        && cell.levels.get("locks").is_none()
        && plain.iter().all(|(key, level)| cell.levels.word(key) == *level)
}

impl ProcessRunner {
    /// Instructions per handshake on each side, or why they cannot be counted.
    fn count(&mut self, cell: &Cell) -> Result<Result<BTreeMap<Side, f64>, String>, LabError> {
        let mut totals = Vec::new();
        for handshakes in HANDSHAKES {
            let scenario = counted_scenario(&cell.levels, handshakes);
            let file = self.directory.join("callgrind");
            let out = format!("--callgrind-out-file={}", file.display());
            let tool = [PROGRAM, "--tool=callgrind", "--quiet", &out].map(str::to_owned);
            let ran = self.made(cell, &scenario, &Tool { words: tool.to_vec(), ..Tool::default() });
            let profile = fs::read_to_string(&file);
            let _ = fs::remove_file(&file);
            if let Some(why) = check::first_wrong(&cell.levels, &ran?) {
                return Ok(Err(format!("under {PROGRAM}: {why}")));
            }
            match profile {
                Ok(profile) => totals.push(inclusive(&profile)),
                Err(error) => return Ok(Err(format!("{PROGRAM} wrote no counts: {error}"))),
            }
        }
        let [few, many] = [&totals[0], &totals[1]];
        let more = f64::from(HANDSHAKES[1] - HANDSHAKES[0]);
        let each = |side: &Side| {
            let counted = many.get(side)?.checked_sub(*few.get(side)?).filter(|count| *count > 0)?;
            Some((*side, counted as f64 / more))
        };
        let counts: BTreeMap<Side, f64> = [Side::Client, Side::Server].iter().filter_map(each).collect();
        match counts.len() {
            2 => Ok(Ok(counts)),
            _ => Ok(Err("its runner lacks the functions weir_engine_client and weir_engine_server".into())),
        }
    }
}

/// The scenario with this number of handshakes, without warm-up.
fn counted_scenario(scenario: &Levels, handshakes: u32) -> String {
    let lines = scenario.without("window_ms").without("warmup").lines();
    format!("{lines}warmup 0\ncount {handshakes}\n")
}

/// Inclusive instructions of the functions named in docs/ENGINES.md, from callgrind's profile: the line after `cfn=`
/// and `calls=` has the position and the cost of the call. A function's name is only at the first occurrence of its
/// number, in parentheses.
fn inclusive(profile: &str) -> BTreeMap<Side, u64> {
    let (mut clients, mut servers) = (BTreeSet::new(), BTreeSet::new());
    let mut totals = BTreeMap::new();
    let mut callee = None;
    let mut lines = profile.lines();
    while let Some(line) = lines.next() {
        let Some((key, value)) = line.split_once('=') else { continue };
        if !matches!(key, "fn" | "cfn") {
            if key == "calls"
                && let Some(side) = callee.take()
            {
                let cost = lines.next().and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
                *totals.entry(side).or_default() += cost.unwrap_or(0);
            }
            continue;
        }
        let (number, name) = value.split_once(' ').unwrap_or((value, ""));
        match name {
            "weir_engine_client" => drop(clients.insert(number)),
            "weir_engine_server" => drop(servers.insert(number)),
            _ => {}
        }
        callee = match key {
            "cfn" if clients.contains(number) => Some(Side::Client),
            "cfn" if servers.contains(number) => Some(Side::Server),
            _ => None,
        };
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Level;

    #[test]
    fn costs_of_calls_are_summed_by_side() {
        let profile = "positions: line\nevents: Ir\n\nfl=(1) main.c\nfn=(1) main\n16 20\ncfn=(2) weir_engine_client\n\
            calls=2 0\n16 400\ncfn=(3) weir_engine_server\ncalls=1 0\n+1 70\ncfn=(4) other\ncalls=1 0\n+2 9\n\n\
            fn=(2)\n5 3\ncfn=(5) tls\ncalls=1 +3\n* 397\n\nfn=(9) again\n1 1\ncfi=(1)\ncfn=(3)\ncalls=1 0\n* 30\n";
        assert_eq!(inclusive(profile), BTreeMap::from([(Side::Client, 400), (Side::Server, 100)]));
        assert_eq!(inclusive("fn=(1) main\n1 1\n"), BTreeMap::new());
    }

    #[test]
    fn a_count_replaces_the_window() {
        let levels = [("do", "handshake"), ("version", "1.3"), ("warmup", "100"), ("window_ms", "200")];
        let levels = levels.map(|(key, level)| (key.to_owned(), Level::new(level)));
        let scenario = Levels::from_iter(levels);
        assert_eq!(counted_scenario(&scenario, 4), "do handshake\nversion 1.3\nwarmup 0\ncount 4\n");
    }
}
