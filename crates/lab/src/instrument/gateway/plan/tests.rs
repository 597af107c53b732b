//! Streams, as a factor and as a constant.

use super::super::testing::{TEXT, parse, plan, targets};
use super::super::vary::Vary;
use super::*;
use crate::experiment::options::RunOptions;

/// The plan for modes with and without HTTP/2, with these lines among the factors.
fn planned(factors: &str) -> Result<Plan, String> {
    let modes = "mode = [\"h1c-h1c\", \"h2c-h1c\"]";
    let text = TEXT.replace("mode = [\"h1c\", \"h1c-h1c\", \"h1-h1c\"]", modes);
    let text = text.replace("load_model = [\"equal-rate\", \"saturated\"]", factors);
    let text = text.replace("connections = 8", "users = 8\nload_model = \"saturated\"");
    let experiment = parse(&text, &RunOptions::default())?;
    let folder = tempfile::tempdir().expect("a directory");
    let mut targets = targets(folder.path());
    for target in targets.present.values_mut().filter(|target| target.name != "direct") {
        target.description.modes.push(Mode::H2cH1c);
    }
    plan(experiment, &targets, &RunOptions::default()).map_err(|error| error.to_string())
}

#[test]
fn a_connection_with_http1_has_one_stream_whatever_the_other_levels() {
    let plan = planned("streams = [1, 4]").expect("is planned");
    let of = |mode: Mode| -> Vec<String> {
        let cells = plan.cells.iter().filter(|cell| cell.subject == "slow" && cell.mode() == mode);
        cells.map(ToString::to_string).collect()
    };
    assert_eq!(of(Mode::H1cH1c), ["request.h1c-h1c.c8.b100.saturated.streams=1.slow"]);
    assert_eq!(
        of(Mode::H2cH1c),
        [
            "request.h2c-h1c.c8.b100.saturated.streams=1.slow",
            "request.h2c-h1c.c8.b100.saturated.streams=4.slow"
        ]
    );
    let many = plan.cells.iter().find(|cell| cell.streams() == 4).expect("is there");
    assert_eq!(plan.experiment.conditions(many).expect("is a cell of it").client_connections(), 2);
    assert_eq!(super::super::vary::words(&many.place()), "8 users on 2 connections, 100 bytes");
    assert_eq!(Vary::of(&plan).row(&many.place(), None), "h2c-h1c, 4 streams each");
}

#[test]
fn streams_that_a_mode_does_not_have_are_rejected() {
    let refused = |factors: &str| planned(factors).expect_err("is rejected");
    let alone = "mode `h1c-h1c` has one request at a time on a connection: expected 1 among the levels, or only modes \
                 with HTTP/2 to the client, such as `h2c-h1c`";
    assert_eq!(refused("streams = [4]"), format!("e.toml:12: streams: 4: {alone}"));
    assert_eq!(refused("streams = [2, 4]"), format!("e.toml:12: streams: 2, 4: {alone}"));
    let divisor = "e.toml:12: streams: 3: expected a divisor of the 8 users: connections are users / streams \
                   (with mode=h2c-h1c, streams=3)";
    assert_eq!(refused("streams = [1, 3]"), divisor);
    let range = "e.toml:12: streams: 1001: expected 1 to 1000";
    assert!(refused("streams = [1, 1001]").starts_with(range));
}

/// Streams that do not vary are levels of the cells, too: users alone do not tell how many connections there are.
#[test]
fn a_constant_number_of_streams_is_in_the_name_of_a_cell() {
    let modes = "mode = [\"h2c-h1c\"]";
    let text = TEXT.replace("mode = [\"h1c\", \"h1c-h1c\", \"h1-h1c\"]", modes);
    let text = text.replace("bytes = 100", "bytes = 100\nstreams = 8");
    let experiment = parse(&text, &RunOptions::default()).expect("is read");
    let folder = tempfile::tempdir().expect("a directory");
    let mut targets = targets(folder.path());
    for target in targets.present.values_mut() {
        target.description.modes.push(Mode::H2cH1c);
    }
    let plan = plan(experiment, &targets, &RunOptions::default()).expect("is planned");
    let cell = plan.cells.iter().find(|cell| cell.load() == Load::Saturated).expect("is there");
    assert!(cell.to_string().contains(".c8.b100.saturated.streams=8."), "{cell}");
    assert_eq!(plan.experiment.conditions(cell).expect("is a cell of it").streams, 8);
}
