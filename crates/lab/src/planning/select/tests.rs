use super::*;
use crate::experiment::options::RunOptions;
use crate::instrument::gateway::target::Absent;
use crate::instrument::gateway::testing::{cell, experiment, plan, targets, with};
use crate::instrument::gateway::{Gateway, Load, Mode};

fn options(only: &str) -> RunOptions {
    RunOptions { only: RunOptions::parse_pairs("--only", only).expect("parses"), ..RunOptions::default() }
}

#[test]
fn only_selects_by_factor() {
    let cell = with(&cell("fast", Mode::H1H1c, Load::Saturated), "delay_ms", 30);
    let cell = Cell { name: "fast-again".into(), ..cell };
    let mut experiment = experiment();
    experiment.set_factor("delay_ms", vec![0.into(), 30.into()]);
    experiment.set_factor("settings.pool", vec![5.into(), 7.into()]);
    for (only, selected) in [
        ("mode=h1-h1c", true),
        ("mode=h1-h1c,target=fast", true),
        ("mode=h1-h1c,target=slow", false),
        ("target=slow,target=fast", true),
        ("case=request", true),
        ("case=handshake-full", false),
        ("load=equal-rate", false),
        ("bytes=100,connections=8,load=saturated", true),
        ("size=100,users=8,load_model=saturated,delay_ms=30", true),
        ("delay_ms=0", false),
        ("settings.pool=5", true),
        ("settings.pool=7,mode=h1-h1c", true),
        ("warmup_ms=10", true),
        ("warmup_ms=11", false),
        ("name=fast", false),
        ("name=fast-again", true),
    ] {
        assert_eq!(
            select::<Gateway>("--only", &options(only).only, &cell, &experiment).expect("known keys"),
            selected,
            "{only}"
        );
    }
    let error = select::<Gateway>("--only", &options("targets=fast").only, &cell, &experiment)
        .expect_err("is refused")
        .to_string();
    assert!(error.contains("unknown key `targets`: expected one of target, load_model, mode, "), "{error}");
}

/// Regression test: a mistyped level ended with "nothing to run", without the level or the known ones.
#[test]
fn an_unknown_level_is_rejected_with_the_known_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut targets = targets(directory.path());
    let slow = targets.present.remove("slow").expect("is here");
    let why = "no-such-program is not on the PATH".to_owned();
    targets.absent.insert("slow".into(), Absent { target: slow, why });
    let checked = |only: &str| {
        let mut experiment = experiment();
        experiment.set_factor("connections", vec![8.into(), 64.into()]);
        let planned = plan(experiment, &targets, &options(only));
        planned.map(|plan| plan.cells.len()).map_err(|error| (error.exit_code(), error.to_string()))
    };
    for (only, message) in [
        ("users=77", "--only users: invalid value `77`: expected one of 8, 64"),
        ("target=fst", "--only target: invalid value `fst`: expected one of direct, fast, fast-again, slow"),
        (
            "name=direct,name=fst",
            "--only name: invalid value `fst`: expected one of direct, fast, fast-again, slow",
        ),
        ("case=handshake", "--only case: invalid value `handshake`: expected one of request"),
        ("load=full", "--only load: invalid value `full`: expected one of equal-rate, saturated"),
        ("mode=h1c,warmup_ms=11", "--only warmup_ms: invalid value `11`: expected one of 10"),
    ] {
        assert_eq!(checked(only), Err((2, message.to_owned())), "{only}");
    }
    assert_eq!(checked("target=direct,users=8,target=slow"), Ok(2));
    let nothing =
        "nothing to run: --only leaves no cell of a present target; slow: no-such-program is not on the PATH"
            .to_owned();
    assert_eq!(checked("target=slow"), Err((1, nothing)));
}

#[test]
fn pairs_need_a_key_and_a_value() {
    let error = RunOptions::parse_pairs("--only", "x,mode=h1").expect_err("is refused");
    assert_eq!(error.to_string(), "--only x: expected key=value");
    let lists = RunOptions::parse_pairs("--only", "cores.gateway=0,1,mode=h1").expect("is read");
    assert_eq!(lists[0], ("cores.gateway".to_owned(), "0,1".to_owned()));
    assert!(RunOptions::parse_pair("--set", "=3").is_err());
}
