//! The whole page from fake values: well-formed, self-contained, from empty to very large.

use super::render;
use crate::chart::palette::Look;
use crate::chart::percentiles;
use crate::chart::plot::{Curve, Point};
use crate::model::{
    About, Accuracy, Advice, Advised, Cell, Claim, Comparison, Family, Group, InvalidRun, Outcome, Proof,
    Report, Reproduction, Standing, Subject,
};
use crate::testing;
use weir_stats::verdict::Ratio;

const NAMES: [&str; 6] = ["weir", "weir-again", "nginx", "haproxy", "envoy", "wso2-transport"];
const MODES: [(&str, &str); 3] = [
    ("h1c-h1c", "cleartext in, cleartext out"),
    ("h1-h1c", "TLS in, cleartext out"),
    ("h1-h1", "TLS in, TLS out"),
];

/// A grid as that of the study: modes, users, sizes, delays, targets.
fn grid(modes: usize, users: &[u32], sizes: &[u32], delays: &[u32], names: &[&str]) -> Report {
    let subject = |(place, name): (usize, &&str)| Subject {
        name: (*name).to_owned(),
        version: format!("1.{place}.0"),
        look: Look { place, is_again: name.ends_with("-again") },
        is_baseline: *name == "nginx",
    };
    let subjects: Vec<Subject> = names.iter().enumerate().map(subject).collect();
    let mut groups = Vec::new();
    for (index, (mode, mode_words)) in MODES.iter().enumerate().take(modes) {
        for (size, delay) in sizes.iter().flat_map(|size| delays.iter().map(move |delay| (size, delay))) {
            for connections in users {
                groups.push(group(&subjects, mode, mode_words, [index as u32, *connections, *size, *delay]));
            }
        }
    }
    let comparisons =
        groups.iter().flat_map(|group| group.cells.iter().map(|cell| compare(&subjects, group, cell)));
    let comparisons: Vec<Comparison> = comparisons.collect();
    let family = |title: &str| Family {
        title: title.into(),
        is_less_better: true,
        has_floor: true,
        comparisons: comparisons.clone(),
    };
    let claim = |standing, verdict: &str| Claim {
        id: "flat".into(),
        source: "S3".into(),
        says: "Throughput changes little with the number of users.".into(),
        figures: "23 000 at 100 users, 22 400 at 1000".into(),
        verdict: verdict.into(),
        standing,
        asked: "requests per second: ratio 0.97 .. 1.03".into(),
        why: "contradicted in 2 of 9 cells".into(),
        evidence: vec!["h1c-h1c, 1000 connections: 0.97 [0.95, 0.99]".into(); 9],
    };
    let reproduction = |group: &Group| Reproduction {
        mode: group.mode.clone(),
        cell: format!("request.{}.c{}", group.mode, group.users),
        commands:
            "weir run x.toml --only 'target=weir'\n\n# load on core 1\nweir load http://127.0.0.1:8080/"
                .into(),
    };
    Report {
        name: "passthrough".into(),
        question: "What does a pass-through cost?".into(),
        labels: vec!["Verdict: 12 blocks.".into(), "Noise floor: -0.5 % to +0.7 %.".into()],
        constants: "POST".into(),
        analysis: vec!["All of it is made up.".into()],
        reproductions: groups.iter().flat_map(|group| vec![reproduction(group); names.len()]).collect(),
        groups,
        families: vec![
            family("CPU per request, at saturation"),
            family("requests per second, at saturation"),
        ],
        claims: vec![
            claim(Standing::Confirmed, "confirmed"),
            claim(Standing::Contradicted, "contradicted"),
            claim(Standing::Open, "not testable here: no netem"),
        ],
        invalid: vec![InvalidRun { id: "b001-001-x".into(), why: "invalid: pacer".into() }; 3],
        targets: vec![About {
            title: "nginx".into(),
            version: "1.22".into(),
            about: "The distribution's.".into(),
            files: vec![("nginx.conf".into(), "worker_processes 1;".into())],
        }],
        machine: vec![("processor", "A processor".into())],
        findings: vec!["turbo is on: fix the frequency".into()],
        advised: Some(Advised { schema: 1, findings: vec![finding()], accuracy: vec![accuracy()] }),
        subjects,
        ..Report::default()
    }
}

fn finding() -> Advice {
    Advice {
        subject: "request.h1-h1.nginx".into(),
        rule: "upstream-keep-alive".into(),
        saw: "Each request opens 1.0 upstream connections.".into(),
        change: "`keepalive 64;`".into(),
        predicted: Some([0.4, 0.9]),
        proof: Some(Proof {
            outcome: "proved".into(),
            ratio: "0.40 [0.38, 0.42]".into(),
            saved: Some([0.58, 0.62]),
        }),
    }
}

fn accuracy() -> Accuracy {
    Accuracy { rule: "upstream-keep-alive".into(), proofs: 3, proved: 2, predicted: 2, held: 1 }
}

fn group(
    subjects: &[Subject],
    mode: &str,
    mode_words: &'static str,
    [index, users, size, delay]: [u32; 4],
) -> Group {
    let cost = |place: usize| {
        (20.0 + 9.0 * place as f64) * (1.0 + 0.3 * f64::from(index) + f64::from(size) / 20_000.0)
    };
    let cell = |(place, _): (usize, &Subject)| Cell {
        subject: place,
        has_gateway: true,
        per_second: Some(1e6 / cost(place) / (1.0 + f64::from(users) / 4000.0)),
        figures: vec![
            ("mean \u{b5}s".into(), format!("{:.0}", cost(place) * f64::from(users))),
            ("errors %".into(), "0.00".into()),
        ],
        cpu_us: Some(cost(place)),
        cpu_interval: Some((cost(place) * 0.97, cost(place) * 1.04)),
        utilisation: Some(0.98),
        limit: Some(if place == 1 { "shared cores" } else { "gateway" }.into()),
        valid_runs: 12,
        runs: 12,
        validity: "valid".into(),
    };
    let curve = |(place, subject): (usize, &Subject)| Curve {
        name: subject.name.clone(),
        look: subject.look,
        points: percentiles::curve(|share| {
            Some(
                cost(place) * f64::from(users) * (1.0 - (1.0 - share).ln() * 0.2) + f64::from(delay) * 1000.0,
            )
        }),
    };
    let course = |(place, subject): (usize, &Subject)| Curve {
        name: subject.name.clone(),
        look: subject.look,
        points: (0..30)
            .map(|second| Point {
                x: f64::from(second),
                y: 1e6 / cost(place) * (1.0 + f64::from(second * users % 7) / 100.0),
                ..Point::default()
            })
            .collect(),
    };
    Group {
        mode: mode.to_owned(),
        mode_words,
        users,
        conditions: format!("{size} bytes, delay_ms {delay}"),
        users_vary: true,
        is_saturated: true,
        rate: None,
        is_calibrated: false,
        unit: "request",
        cells: subjects.iter().enumerate().map(cell).collect(),
        curves: subjects.iter().enumerate().map(curve).collect(),
        courses: subjects.iter().enumerate().map(course).collect(),
    }
}

fn compare(subjects: &[Subject], group: &Group, cell: &Cell) -> Comparison {
    let Subject { name, look, .. } = &subjects[cell.subject];
    let outcome =
        [Outcome::Better, Outcome::Equivalent, Outcome::Undecided, Outcome::Worse][cell.subject % 4];
    Comparison {
        mode: group.mode.clone(),
        group: format!("{}, {}", group.mode, group.words()),
        target: name.clone(),
        look: *look,
        baseline: if look.is_again { "weir" } else { "nginx" }.into(),
        is_aa: look.is_again,
        ratio: Ratio {
            value: Some(0.8 + 0.1 * cell.subject as f64),
            low: Some(0.78),
            high: Some(1.3),
            coverage: Some(0.958),
            p_adjusted: Some(0.01),
            ..Ratio::of(None, 12, None)
        },
        blocks: 12,
        outcome,
        difference: "20 % lower".into(),
        words: "undecided: within the A/A noise of 2.0 %".into(),
    }
}

fn small() -> Report {
    grid(2, &[64], &[1000], &[0], &NAMES)
}

#[test]
fn the_page_is_well_formed_and_asks_for_nothing() {
    let html = render(&small());
    testing::well_formed(&html);
    for outside in ["http-equiv", "<link", "@import", "url(", "src=", "<script", "href=", "https:"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(!html.contains("NaN") && !html.contains("inf"), "no NaN or infinity");
}

#[test]
fn sections_come_in_the_order_of_their_weight() {
    let html = render(&small());
    let places: Vec<usize> = [
        "Verdicts: CPU per request",
        "<h2>Claims",
        "<h2>Analysis",
        "<h2>Throughput",
        "<h2>The limit in each cell",
        "<h2>CPU per request at saturation",
        "<h2>What to change",
        "How the rules fared on this machine so far",
        "<h2>Latency",
        "<h2>Second by second",
        "<h2>Numbers",
        "<h2>Invalid runs",
        "<h2>Reproduce",
        "<h2>Targets",
        "<h2>Machine",
    ]
    .iter()
    .map(|title| html.find(title).unwrap_or_else(|| panic!("{title} is missing")))
    .collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn advice_shows_what_was_predicted_and_what_became_of_it() {
    let html = render(&small());
    for text in ["40 to 90&nbsp;%", "verdict equivalent\">proved", "saves 58 to 62&nbsp;%", "`keepalive 64;`"]
    {
        assert!(html.contains(text), "{text}");
    }
    let mut nothing = small();
    nothing.advised = Some(Advised { schema: 1, ..Advised::default() });
    assert!(render(&nothing).contains("Nothing worth changing."));
    nothing.advised = None;
    assert!(!render(&nothing).contains("What to change"));
}

#[test]
fn whatever_comes_from_outside_is_escaped() {
    let evil = "<script>alert(1)</script>\"'&".to_owned();
    let mut report = small();
    report.quick = Some(evil.clone());
    for text in [&mut report.name, &mut report.question, &mut report.constants] {
        text.clone_from(&evil);
    }
    report.labels = vec![evil.clone(); 2];
    report.analysis = vec![evil.clone()];
    report.findings = vec![evil.clone()];
    report.machine = vec![("processor", evil.clone())];
    for subject in &mut report.subjects {
        (subject.name, subject.version) = (evil.clone(), evil.clone());
    }
    for group in &mut report.groups {
        (group.mode, group.conditions) = (evil.clone(), evil.clone());
        group.curves.iter_mut().chain(&mut group.courses).for_each(|curve| curve.name.clone_from(&evil));
        for cell in &mut group.cells {
            (cell.limit, cell.validity) = (Some(evil.clone()), evil.clone());
        }
    }
    for family in &mut report.families {
        family.title.clone_from(&evil);
        for one in &mut family.comparisons {
            for text in [&mut one.mode, &mut one.group, &mut one.target, &mut one.baseline, &mut one.words] {
                text.clone_from(&evil);
            }
        }
    }
    for claim in &mut report.claims {
        for text in [
            &mut claim.id,
            &mut claim.source,
            &mut claim.says,
            &mut claim.figures,
            &mut claim.verdict,
            &mut claim.asked,
            &mut claim.why,
        ] {
            text.clone_from(&evil);
        }
        claim.evidence = vec![evil.clone(); 3];
    }
    for finding in report.advised.iter_mut().flat_map(|advised| &mut advised.findings) {
        for text in [&mut finding.subject, &mut finding.rule, &mut finding.saw, &mut finding.change] {
            text.clone_from(&evil);
        }
        finding.proof = Some(Proof { outcome: evil.clone(), ratio: evil.clone(), saved: None });
    }
    report
        .advised
        .iter_mut()
        .flat_map(|advised| &mut advised.accuracy)
        .for_each(|rule| rule.rule = evil.clone());
    report.invalid = vec![InvalidRun { id: evil.clone(), why: evil.clone() }];
    report.reproductions =
        vec![Reproduction { mode: evil.clone(), cell: evil.clone(), commands: evil.clone() }];
    let files = vec![(evil.clone(), evil.clone())];
    report.targets = vec![About { title: evil.clone(), version: evil.clone(), about: evil, files }];
    let html = render(&report);
    testing::well_formed(&html);
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;"));
}

#[test]
fn without_any_valid_run_there_is_a_page_that_says_why() {
    let mut report = small();
    for group in &mut report.groups {
        group.curves.clear();
        group.courses.clear();
        for cell in &mut group.cells {
            let (subject, validity) = (cell.subject, "invalid: target: it ended".to_owned());
            *cell = Cell { subject, validity, has_gateway: true, runs: 12, ..Cell::default() };
        }
    }
    for one in report.families.iter_mut().flat_map(|family| &mut family.comparisons) {
        one.ratio = Ratio::of(None, 0, None);
        one.outcome = Outcome::Undecided;
        one.words = "undecided: no block has a valid run of both".into();
    }
    let html = render(&report);
    testing::well_formed(&html);
    assert!(html.contains("invalid: target: it ended") && html.contains("no block has a valid run of both"));
    assert!(!html.contains("<polyline") && !html.contains("NaN"));
}

#[test]
fn an_empty_report_is_still_a_page() {
    let html = render(&Report { name: "nothing".into(), ..Report::default() });
    testing::well_formed(&html);
    assert!(html.contains("There is nothing to compare") && html.contains("<h2>Invalid runs</h2>"));
}

#[test]
fn one_block_has_no_intervals_and_so_no_whiskers() {
    let mut report = small();
    report.groups.iter_mut().flat_map(|group| &mut group.cells).for_each(|cell| cell.cpu_interval = None);
    let html = render(&report);
    testing::well_formed(&html);
    assert!(!html.contains("class=\"whisker") && html.contains("<rect"));
}

/// 3 modes, 4 numbers of users, 3 sizes, 2 delays, 6 targets: 432 cells.
#[test]
fn the_studys_grid_stays_small_and_says_what_is_left_out() {
    let report = grid(3, &[100, 200, 500, 1000], &[500, 1000, 10_000], &[0, 30], &NAMES);
    let html = render(&report);
    testing::well_formed(&html);
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(html.contains("48 more are left out"), "72 panels, of which 24 are shown");
    let throughput =
        html.split("<h2>Throughput").nth(1).and_then(|rest| rest.split("<h2>").next()).unwrap_or_default();
    assert_eq!(throughput.matches("<figure>").count(), 18, "one for each mode, size and delay");
    assert_eq!(throughput.matches("<polyline").count(), 18 * 6, "a line for each target");
    assert_eq!(html, render(&report));
}

#[test]
fn twenty_targets_have_a_line_a_bar_and_a_name_each() {
    let names: Vec<String> = (0..20).map(|place| format!("target-{place}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let html = render(&grid(1, &[100, 1000], &[1000], &[0], &names));
    testing::well_formed(&html);
    let throughput =
        html.split("<h2>Throughput").nth(1).and_then(|rest| rest.split("<h2>").next()).unwrap_or_default();
    assert_eq!(throughput.matches("<polyline").count(), 20);
    assert!(names.iter().all(|name| throughput.contains(&format!("class=\"name\">{name}<"))));
}

/// Regression test: an equal rate given by the experiment was claimed to be below every target's maximum.
#[test]
fn a_rate_is_below_the_maximum_where_calibration_found_it() {
    for (is_calibrated, words) in [(true, "below every target"), (false, "set by the experiment")] {
        let mut report = small();
        for group in &mut report.groups {
            (group.is_saturated, group.is_calibrated) = (false, is_calibrated);
        }
        let html = render(&report);
        assert!(html.contains(words) && html.contains("below every target") == is_calibrated);
    }
}

#[test]
fn a_quick_run_says_so_before_everything_else() {
    let report = Report { quick: Some("--quick: this decides nothing".into()), ..small() };
    let html = render(&report);
    let body = html.split("<main>").nth(1).unwrap_or_default().trim_start();
    assert!(body.starts_with("<header><p class=\"quick\">--quick: this decides nothing</p>"), "{body:.200}");
}
