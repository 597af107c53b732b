//! Effects put into a synthetic world must come out as findings.

use super::world::*;
use crate::entry::pipeline::report;
use crate::experiment::metric::Metric;
use crate::experiment::options::RunOptions;
use crate::experiment::{Claim, Experiment, Level, Precision, Predicate, Stop};
use crate::findings::claims::ClaimVerdict;
use crate::findings::summary::{CellSummary, Summary};
use crate::instrument::gateway::testing::{experiment, targets};
use crate::instrument::gateway::{Case, Gateway, Load, Mode, Place as _};
use crate::running::conduct::{Broken, conduct};
use crate::stats::Weight;
use crate::stats::verdict::Verdict;
use crate::store::Store;
use crate::store::machine::Machine;
use crate::testing::{MockExecutor, Spoil};
use weir_load::result::Limit;

#[test]
fn a_real_difference_is_found_and_the_aa_pair_has_none() {
    let world = world(12, &COSTS, None);
    assert_eq!(world.summary.weight, Weight::Verdict);
    for mode in [Mode::H1cH1c, Mode::H1H1c] {
        for load in [Load::EqualRate, Load::Saturated] {
            let (found, ratio, _) = verdict(&world, "fast", mode, load, Metric::CpuUsPerRequest);
            assert_eq!(found, Verdict::Different, "{mode} {load}");
            let ratio = ratio.expect("a ratio");
            assert!((ratio / 0.8 - 1.0).abs() < 0.03, "{ratio} is not 20 / 25");
            let (aa, ratio, _) = verdict(&world, "fast-again", mode, load, Metric::CpuUsPerRequest);
            assert_ne!(aa, Verdict::Different, "{ratio:?}");
        }
    }
    let (rate, ratio, _) = verdict(&world, "fast", Mode::H1cH1c, Load::Saturated, Metric::RequestsPerSecond);
    assert_eq!(rate, Verdict::Different);
    assert!(ratio.is_some_and(|ratio| (ratio / 1.25 - 1.0).abs() < 0.03), "{ratio:?}");
}

#[test]
fn five_blocks_are_an_indication_and_four_are_nothing() {
    let five = world(5, &COSTS, None);
    assert_eq!(five.summary.weight, Weight::Indication);
    assert!(
        five.text.starts_with("Indication: 5 valid of 5 planned blocks, not adjusted for the number of"),
        "{}",
        five.text
    );
    let one = five.summary.comparisons.iter().find(|one| one.target == "fast").expect("a comparison");
    assert_eq!((one.ratio.coverage, one.ratio.verdict), (Some(0.9375), Verdict::Different));
    let four = world(4, &COSTS, None);
    assert!(
        four.summary
            .comparisons
            .iter()
            .all(|one| one.ratio.low.is_none() && one.ratio.verdict == Verdict::Undecided)
    );
    assert!(four.text.contains("undecided: 4 blocks: no interval below 5"), "{}", four.text);
}

#[test]
fn targets_that_cost_the_same_are_equivalent_or_undecided() {
    let world = world(12, &[("direct", 10.0), ("fast", 20.0), ("slow", 20.0)], None);
    for one in &world.summary.comparisons {
        assert_ne!(one.ratio.verdict, Verdict::Different, "{one:?}");
    }
    let equivalent = world.summary.comparisons.iter().filter(|one| one.ratio.verdict == Verdict::Equivalent);
    assert!(equivalent.count() > 0, "{}", world.text);
}

#[test]
fn a_run_that_load_limited_supports_no_verdict_on_rate_but_one_on_cpu_at_equal_rate() {
    let directory = tempfile::tempdir().expect("a directory");
    let targets = targets(directory.path());
    let plan = crate::instrument::gateway::testing::plan(experiment(), &targets, &RunOptions::default())
        .expect("plans");
    let store = Store::create(&directory.path().join("results")).expect("is made");
    let mut plan = plan;
    conduct::<Gateway>(&mut plan, &store, &mut MockExecutor::new(&COSTS), &mut (), Broken::GoesOn)
        .expect("runs");
    let mut records = store.runs::<Gateway>().expect("reads");
    for record in records.iter_mut().filter(|record| record.run.cell.name == "fast") {
        record.seen.limit = Some(Limit::SharedCores);
    }
    let summary = Summary::of::<Gateway>(&plan, &Machine::default(), &records);
    for one in summary.comparisons.iter().filter(|one| one.target == "fast") {
        if (one.cell.load(), one.metric) == (Load::EqualRate, Metric::CpuUsPerRequest) {
            assert_eq!(one.ratio.verdict, Verdict::Different);
        } else {
            assert_eq!(one.ratio.verdict, Verdict::Undecided);
            assert_eq!(one.ratio.note.as_deref(), Some("fast was limited by shared cores in 6 of 6 runs"));
            assert_eq!(one.ratio.p_adjusted, None, "in no family");
        }
    }
}

/// Handshakes alone, with this share of resumptions, in the one TLS mode that has a gateway.
fn handshakes(blocks: u32, resume: i64) -> World {
    world_of(MockExecutor::new(&COSTS), |experiment| {
        experiment.stop = Stop::Blocks(blocks);
        experiment.set_factor("mode", vec!["h1-h1c".into()]);
        experiment.set_constant("load.handshake-only", true.into());
        experiment.set_constant("load.resume", resume.into());
    })
}

#[test]
fn handshakes_are_reported_and_compared_by_their_own_cost_and_rate() {
    for (resume, case) in
        [(0, Case::HandshakeFull), (100, Case::HandshakeResumed), (30, Case::HandshakeMixed(300))]
    {
        let world = handshakes(12, resume);
        let summary = &world.summary;
        assert!(
            summary.cells.iter().all(|cell| cell.invalid_runs == 0 && cell.cell.case() == case),
            "{case}"
        );
        let fast = |load| {
            let of_fast = |cell: &&CellSummary| cell.cell.name == "fast" && cell.cell.load() == load;
            summary.cells.iter().find(of_fast).expect("a cell")
        };
        let cell = fast(Load::Saturated);
        // 20 us in cleartext, 1.3 times that in a TLS mode.
        assert!(
            cell.get(Metric::CpuUsPerHandshake).is_some_and(|us| (us / 26.0 - 1.0).abs() < 0.03),
            "{cell:?}"
        );
        assert!(
            cell.get(Metric::HandshakesPerSecond).is_some_and(|rate| (rate / 38_461.0 - 1.0).abs() < 0.03)
        );
        let interval = cell.values[&Metric::CpuUsPerHandshake].interval();
        assert!(interval.is_some_and(|(low, high)| low < high), "{cell:?}");
        assert_eq!(
            (cell.get(Metric::RequestsPerSecond), cell.get(Metric::CpuUsPerRequest)),
            (None, None),
            "none expected"
        );
        assert_eq!(cell.get(Metric::OriginCpuUsPerRequest), None);

        for (load, metrics) in [
            (Load::EqualRate, [Metric::CpuUsPerHandshake, Metric::P99Us]),
            (Load::Saturated, [Metric::CpuUsPerHandshake, Metric::HandshakesPerSecond]),
        ] {
            let compared =
                summary.comparisons.iter().filter(|one| one.target == "fast" && one.cell.load() == load);
            assert_eq!(
                compared.map(|one| (one.metric, one.cell.case())).collect::<Vec<_>>(),
                metrics.map(|metric| (metric, case))
            );
            let (found, ratio, _) = verdict(&world, "fast", Mode::H1H1c, load, Metric::CpuUsPerHandshake);
            assert_eq!(found, Verdict::Different);
            assert!(ratio.is_some_and(|ratio| (ratio / 0.8 - 1.0).abs() < 0.03), "{ratio:?}");
        }
        assert!(world.text.contains(&format!("h1-h1c (TLS in, cleartext out), {case}, 8 connections")));
        assert!(world.text.contains("hs/s") && !world.text.contains("req/s"), "{}", world.text);
        assert!(world.text.contains("CPU per handshake, equal-rate:"), "{}", world.text);
        for part in ["CPU per handshake at saturation", "of the gateway per handshake", "handshakes/s"] {
            assert!(world.html.contains(part), "{part}");
        }
        assert!(!world.html.contains("CPU per request at"));
    }
}

#[test]
fn requests_have_no_figures_of_handshakes() {
    let world = world(5, &COSTS, None);
    for cell in &world.summary.cells {
        assert_eq!(
            (cell.get(Metric::HandshakesPerSecond), cell.get(Metric::CpuUsPerHandshake)),
            (None, None),
            "{cell:?}"
        );
    }
}

/// If some requests of a run timed out or were never sent, its p99 is only a lower bound: compared as a value, it would
/// make a target that hangs look better the shorter the timeout is.
#[test]
fn a_p99_that_is_a_lower_bound_is_not_compared() {
    let censor: Spoil = |load| {
        (load.response.censored, load.response.censored_from_us) = (1, load.response.p99_us);
    };
    let executor = MockExecutor { spoil: Some(("b002", censor)), ..MockExecutor::new(&COSTS) };
    let world = world_of(executor, |experiment| experiment.stop = Stop::Blocks(12));
    let (found, ratio, note) = verdict(&world, "fast", Mode::H1cH1c, Load::EqualRate, Metric::P99Us);
    assert_eq!((found, ratio), (Verdict::Undecided, None));
    assert_eq!(note.as_deref(), Some("the p99 of fast is only a lower bound in 1 of 12 runs"));
    let (found, ..) = verdict(&world, "fast", Mode::H1cH1c, Load::EqualRate, Metric::CpuUsPerRequest);
    assert_eq!(found, Verdict::Different, "only percentiles are affected");
}

#[test]
fn a_p99_of_too_few_samples_is_marked() {
    let executor = MockExecutor {
        spoil: Some(("slow", |load| load.response.p99_us = None)),
        ..MockExecutor::new(&COSTS)
    };
    let world = world_of(executor, |experiment| experiment.stop = Stop::Blocks(6));
    let (found, ratio, note) = verdict(&world, "fast", Mode::H1cH1c, Load::EqualRate, Metric::P99Us);
    assert_eq!((found, ratio), (Verdict::Undecided, None));
    assert_eq!(note.as_deref(), Some("6 of 6 runs of slow have too few samples for a p99"));
}

#[test]
fn invalid_runs_are_kept_listed_and_not_averaged() {
    let world = world(6, &COSTS, Some("slow"));
    let slow: Vec<_> = world.summary.cells.iter().filter(|cell| cell.cell.name == "slow").collect();
    assert!(!slow.is_empty());
    for cell in slow {
        assert_eq!((cell.blocks, cell.invalid_runs, cell.get(Metric::CpuUsPerRequest)), (0, 6, None));
        assert_eq!(cell.validity.to_string(), "invalid: target: it ended");
    }
    assert!(world.text.contains("invalid runs, kept and not averaged"), "{}", world.text);
    assert!(world.html.contains("invalid: target: it ended"));
    let (found, ratio, note) =
        verdict(&world, "fast", Mode::H1cH1c, Load::EqualRate, Metric::CpuUsPerRequest);
    assert_eq!((found, ratio), (Verdict::Undecided, None));
    assert_eq!(note.as_deref(), Some("slow has no valid run"));
    assert_eq!(report::<Gateway>(&world.directory.path().join("results")).expect("reports").invalid_runs, 24);
}

/// Each of these makes a run look faster than it was, or its times shorter.
#[test]
fn an_invalid_run_enters_no_verdict() {
    let wrong: Spoil = |load| {
        let _ = load.errors.insert("digest".into(), 1);
    };
    let errors: Spoil = |load| {
        let _ = load.errors.insert("reset".into(), 5);
    };
    let late: Spoil = |load| {
        if let Some(pacer) = &mut load.pacer {
            pacer.lag_p99_us = 50_000.0;
        }
    };
    for (spoil, load, reason) in [
        (wrong, Load::Saturated, "invalid: wrong responses: 1 digest"),
        (errors, Load::Saturated, "invalid: errors: 5 reset"),
        (late, Load::EqualRate, "invalid: pacer: late by 50000 us"),
    ] {
        let executor = MockExecutor { spoil: Some(("b003", spoil)), ..MockExecutor::new(&COSTS) };
        let world = world_of(executor, |experiment| experiment.stop = Stop::Blocks(12));
        for one in world.summary.comparisons.iter().filter(|one| one.cell.load() == load) {
            assert_eq!(one.blocks, 11, "{reason}: {one:?}");
        }
        let cells = world.summary.cells.iter().filter(|cell| cell.cell.load() == load);
        assert!(cells.clone().count() > 0);
        for cell in cells {
            assert_eq!((cell.blocks, cell.invalid_runs), (11, 1), "{reason}");
        }
        assert!(world.html.contains(reason), "{reason}");
    }
}

#[test]
fn claims_reach_each_verdict() {
    let claim = |id: &str, cell: &[(&str, &str)], against: Option<(&str, &str)>, expect: &str| {
        let level = |(key, level): &(&str, &str)| ((*key).to_owned(), Level::new(level));
        Claim {
            id: id.into(),
            source: "S3".into(),
            says: "It is so.".into(),
            figures: None,
            original: None,
            metric: Some(Metric::CpuUsPerRequest),
            share_of: Vec::new(),
            cell: cell.iter().map(level).collect(),
            against: against.as_ref().map(|one| std::iter::once(one).map(level).collect()),
            expect: Some(Predicate::try_from(expect.to_owned()).expect("is read")),
            cpu: Vec::new(),
            not_testable: None,
        }
    };
    let tls = [("mode", "h1-h1c"), ("load_model", "saturated")];
    let fast = [("target", "fast"), ("mode", "h1c-h1c"), ("load_model", "saturated")];
    let world = world_of(MockExecutor::new(&COSTS), |experiment| {
        experiment.stop = Stop::Blocks(12);
        experiment.claims = vec![
            // TLS costs 1.3 times as much, `fast` 20 us and `slow` 25.
            claim("tls", &tls, Some(("mode", "h1c-h1c")), "1.2 .. 1.4"),
            claim("no-tls", &tls, Some(("mode", "h1c-h1c")), "< 1"),
            claim("target", &fast, Some(("target", "slow")), "0.75 .. 0.85"),
            claim("value", &fast, None, "15 .. 25"),
            claim("edge", &fast, None, "< 20"),
            claim("none", &[("mode", "h1-h1")], None, "< 20"),
            Claim {
                metric: None,
                expect: None,
                not_testable: Some("no such machine".into()),
                ..claim("away", &[], None, "< 1")
            },
            Claim { cpu: vec!["no-such-feature".into()], ..claim("cpu", &fast, None, "15 .. 25") },
        ];
    });
    let found: Vec<(&str, ClaimVerdict, usize)> =
        world.summary.claims.iter().map(|one| (one.id.as_str(), one.verdict, one.cells.len())).collect();
    let expected = [
        ("tls", ClaimVerdict::Confirmed, 2),
        ("no-tls", ClaimVerdict::Contradicted, 2),
        ("target", ClaimVerdict::Confirmed, 1),
        ("value", ClaimVerdict::Confirmed, 1),
        ("edge", ClaimVerdict::Undecided, 1),
        ("none", ClaimVerdict::Undecided, 0),
        ("away", ClaimVerdict::NotTestable, 0),
        ("cpu", ClaimVerdict::NotTestable, 0),
    ];
    assert_eq!(found, expected);
    let unrun = "1 claim is about cells that were not run.";
    for part in [unrun, "not testable here", "no such machine", "contradicted"] {
        assert!(world.text.contains(part) && world.html.contains(part), "{part}");
    }
    let hidden = world.summary.claims.iter().find(|one| one.id == "none").expect("is kept");
    assert_eq!(hidden.why, "none of its cells was run");
    assert!(!world.text.contains(&hidden.why) && !world.html.contains(&hidden.why));
    assert!(
        world
            .summary
            .claims
            .iter()
            .filter(|one| one.cells.len() == 2)
            .all(|one| one.weight == Weight::Verdict)
    );
}

#[test]
fn an_error_ratio_covers_all_runs_not_only_valid_ones() {
    let errors: Spoil = |load| {
        let _ = load.errors.insert("reset".into(), load.requests);
    };
    let executor = MockExecutor { spoil: Some((".slow", errors)), ..MockExecutor::new(&COSTS) };
    let world = world_of(executor, |experiment| {
        experiment.stop = Stop::Blocks(6);
        experiment.claims = vec![
            toml::from_str("id='e'\nsource='S3'\nsays='None.'\nmetric='error_ratio'\nexpect='<= 0.001'")
                .expect("is read"),
        ];
    });
    assert_eq!(world.summary.claims[0].verdict, ClaimVerdict::Contradicted);
}

#[test]
fn levels_of_a_factor_are_compared_on_request() {
    let world = world_of(MockExecutor::new(&COSTS), |experiment| {
        experiment.stop = Stop::Blocks(12);
        experiment.compare = vec![toml::from_str("factor='mode'\nbaseline='h1c-h1c'").expect("is read")];
    });
    let found: Vec<_> = world.summary.comparisons.iter().filter(|one| one.factor.is_some()).collect();
    let cpu = |load| {
        found.iter().find(|one| {
            one.target == "slow mode=h1-h1c"
                && one.cell.load() == load
                && one.metric == Metric::CpuUsPerRequest
        })
    };
    let saturated = cpu(Load::Saturated).expect("is compared");
    assert!(saturated.ratio.value.is_some_and(|ratio| (ratio / 1.3 - 1.0).abs() < 0.03), "{saturated:?}");
    assert_eq!(saturated.ratio.verdict, Verdict::Different);
    assert_eq!(saturated.baseline, "slow mode=h1c-h1c");
    let equal = cpu(Load::EqualRate).expect("is compared");
    assert_eq!(equal.ratio.verdict, Verdict::Undecided);
    assert!(
        equal.ratio.note.as_ref().is_some_and(|note| note.contains("the offered rates differ")),
        "{equal:?}"
    );
}

/// The rule looks at the intervals' width only: the number of blocks does not depend on the difference.
#[test]
fn a_precise_experiment_ends_early() {
    let rule = |width| {
        move |experiment: &mut Experiment| {
            let metric = Metric::CpuUsPerRequest;
            experiment.stop = Stop::Precision(Precision { metric, width, least: 6, most: 14 });
        }
    };
    let blocks = |world: &World| {
        Store::open(&world.directory.path().join("results")).plan().expect("is read").blocks.len()
    };
    let wide = world_of(MockExecutor::new(&COSTS), rule(0.5));
    assert_eq!(blocks(&wide), 6);
    let narrow = world_of(MockExecutor::new(&COSTS), rule(0.001));
    assert_eq!(blocks(&narrow), 14);
}
