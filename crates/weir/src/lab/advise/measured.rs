//! Advice on the targets of a stored result, from their measurements and CPU profiles.

use crate::outcome::Failure;
use std::path::Path;
use weir_advice::{Advice, Facts, Product, Profiled, Rules, Split, findings};
use weir_lab::experiment::metric::Metric;
use weir_lab::findings::results::Results;
use weir_lab::instrument::gateway::Gateway;
use weir_lab::planning::cell::Cell;
use weir_profile::Profile;

/// Advice on one target under the conditions of one cell.
pub(super) struct Advised {
    pub(super) cell: Cell,
    pub(super) advice: Advice,
}

/// Loads the result directory of an experiment with gateways.
pub(super) fn read(directory: &Path) -> Result<Results<Gateway>, Failure> {
    Ok(Results::<Gateway>::read(directory)?)
}

/// Advises on each cell with a valid run, except the second of an A/A pair. Also returns the reason for each cell
/// without a valid run.
pub(super) fn advise(results: &Results<Gateway>) -> (Vec<Advised>, Vec<String>) {
    let (mut advised, mut unjudged) = (Vec::new(), Vec::new());
    for cell in results.plan.cells.iter().filter(|cell| !cell.is_again()) {
        match results.summary.cell(cell) {
            Some(found) if found.valid_runs > 0 => {
                advised.push(Advised { advice: of_cell(results, cell), cell: cell.clone() });
            }
            found => {
                let why =
                    found.map_or_else(|| "it was not run".to_owned(), |found| found.validity.to_string());
                unjudged.push(format!("{}: not judged: {why}", subject(cell)));
            }
        }
    }
    (advised, unjudged)
}

fn of_cell(results: &Results<Gateway>, cell: &Cell) -> Advice {
    let mut facts = Facts::default();
    add_values(&mut facts, results, cell);
    add_load(&mut facts, results, cell);
    let own = results.profiles.iter().find(|own| own.cell == *cell);
    let profile = own.and_then(|own| own.sampled.as_ref()).map(|(stacks, profile)| {
        facts.add_paths(stacks);
        facts.add_profile(profile, true);
        profile.clone()
    });
    for feature in &results.machine.hardware.features {
        facts.add(&format!("cpu.{feature}"), true, "the machine of the result");
    }
    let product = product(results, cell);
    let findings = findings(&Rules::built_in(), &facts, product, profile.as_ref());
    Advice {
        schema: 1,
        weir: env!("CARGO_PKG_VERSION"),
        subject: subject(cell),
        product,
        findings,
        notes: notes(profile.as_ref()),
        profiled: profile.is_some().then_some(Profiled::OwnLoad),
        split: profile.as_ref().map(|profile| Split::new(profile, Profiled::OwnLoad)),
        facts,
        profile,
        probe: None,
    }
}

/// The target with its settings, and the mode, such as `node-26+keep_alive=off, h1c-h1`.
fn subject(cell: &Cell) -> String {
    let mode = cell.level("mode").map(|mode| format!(", {mode}")).unwrap_or_default();
    cell.name.clone() + &mode
}

/// The product that the cell's target runs, identified by the executable that the lab started.
fn product(results: &Results<Gateway>, cell: &Cell) -> Product {
    let runs = results.runs.iter().filter(|run| run.run.cell == *cell);
    let mut targets = runs.flat_map(|run| &run.seen.observation.processes).filter(|one| one.role == "target");
    let program = targets.find_map(|target| Path::new(target.command.first()?).file_name());
    program.map_or(Product::Generic, |name| Product::of_program(&name.to_string_lossy()))
}

/// Adds the connections, handshakes and resumptions that the origin counted.
fn add_values(facts: &mut Facts, results: &Results<Gateway>, cell: &Cell) {
    let Some(found) = results.summary.cell(cell) else { return };
    let source = format!("{} of {cell}", weir_load::plural(u64::from(found.blocks), "block"));
    let value = |metric: Metric| found.values.get(&metric).map(|value| value.value);
    facts.add_known(
        "upstream.connections_per_request",
        value(Metric::UpstreamConnectionsPerRequest),
        &source,
    );
    facts.add_known("upstream.handshakes_per_request", value(Metric::UpstreamHandshakesPerRequest), &source);
    let resumed = value(Metric::UpstreamResumedPercent).map(|percent| percent / 100.0);
    facts.add_known("upstream.resumed_share", resumed, &source);
}

/// Adds the load engine's observations on the client side.
fn add_load(facts: &mut Facts, results: &Results<Gateway>, cell: &Cell) {
    let of_cell = results.runs.iter().filter(|run| run.run.cell == *cell && run.validity.is_valid());
    let Some(load) = of_cell.filter_map(|run| run.seen.observation.load.as_ref()).next_back() else { return };
    facts.add_kept_load(load);
    facts.add_client_side(!load.handshakes.negotiated.is_empty(), "the load engine");
    if let Some(seen) = load.handshakes.negotiated.first() {
        facts.add("tls.version", seen.version.as_str(), "the load engine");
        facts.add("tls.suite", seen.suite.as_str(), "the load engine");
        facts.add_known("tls.group", seen.group.clone(), "the load engine");
        facts.add("tls.hello_retry", seen.hello_retry, "the load engine");
    }
}

fn notes(profile: Option<&Profile>) -> Vec<String> {
    match profile {
        Some(_) => Vec::new(),
        None => vec![
            "Without profiles gains are unknown: repeat the experiment with `weir run --profile`.".into(),
        ],
    }
}
