//! The instrument as a whole: an experiment's file, its plan, runs of a script as runner, findings and page.

use super::scenario::scenarios;
use super::synthetic::{Made, sum_up};
use super::*;
use crate::entry::pipeline;
use crate::experiment::{Claim, Level, reader};
use crate::findings::results::Results;
use crate::findings::summary::Summary;
use crate::planning::planned_run::PlannedRun;
use crate::planning::planner;
use crate::report::shown::Shown as _;
use crate::report::{page, words};
use crate::running::conduct::{Broken, conduct};
use crate::testing::no_guard;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A directory with scripts as engines, and an experiment with them.
struct Bench(tempfile::TempDir);

const EXPERIMENT: &str = r#"
name = "bench"
instrument = "stacks"
question = "Which?"
engines_directory = "engines"
engines = ["fast", "slow", "gone"]
baseline = ["gone", "slow"]
aa = "slow"
blocks = 6
seed = 1
[constants]
window_ms = 10
[[scenarios]]
do = "handshake"
version = ["1.3"]
certificate = ["ecdsa-p256", "rsa-2048"]
[[claims]]
id = "fast-is-faster"
source = "own"
says = "Half the time."
metric = "server_us_per_handshake"
cell = { engine = "fast" }
against = { engine = "slow" }
expect = "0.4 .. 0.6"
"#;

/// Reports the scenario's parameters, with its own time for the server.
const RUNNER: &str = r#"
while read -r key value; do
    case $key in certificate) certificate=$value ;; group) group=$value ;; suite) suite=$value ;; version) version=$value ;; esac
done
case $certificate in rsa-2048) signature=rsa_pss_rsae_sha256 ;; *) signature=ecdsa_secp256r1_sha256 ;; esac
echo '{"type":"facts","stack":"fake","tls":"fake 1.0","crypto":"none","compiler":"sh","allocator":"system","build":"release"}'
for side in client server; do
    echo '{"type":"negotiated","side":"'$side'","version":"'$version'","kind":"KIND","suite":"'$suite'","group":"'$group'","signature":"'$signature'","count":2}'
    echo '{"type":"samples","thread":0,"side":"'$side'","ns":[NS,NS]}'
done
echo '{"type":"thread","thread":0,"units":2,"wall_ns":10,"cpu_ns":10,"voluntary_switches":0}'
echo '{"type":"done"}'
"#;

impl Bench {
    fn new(experiment: &str) -> Self {
        let bench = Self(tempfile::tempdir().expect("a directory"));
        bench.write("bench.toml", experiment);
        bench
    }

    fn engine(&self, name: &str, kind: &str, ns: &str) {
        let description = "stack = 'fake'\nversion = '1.0'\ncrypto = 'none'\nlanguage = 'sh'\nbuild = ['true']\n\
            run = ['sh', '{engine}/run.sh']\n[abilities]\ndo = ['handshake']\nversions = ['1.3']\n\
            resumptions = ['none']\ncertificates = ['ecdsa-p256']\ngroups = ['x25519']\nsuites = ['aes128-gcm']\n\
            tickets = [2]\n";
        let more = description.replace("['ecdsa-p256']", "['ecdsa-p256', 'rsa-2048']");
        let description = if name == "slow" { &more } else { description };
        self.write(&format!("engines/{name}/engine.toml"), description);
        self.write(&format!("engines/{name}/run.sh"), &RUNNER.replace("KIND", kind).replace("NS", ns));
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("is made");
        fs::write(&path, text).expect("is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("is allowed");
    }

    fn options(&self) -> RunOptions {
        RunOptions { file: self.0.path().join("bench.toml"), ..RunOptions::default() }
    }

    fn experiment(&self) -> Result<Experiment, String> {
        reader::load::<Stacks>(&self.options())
            .map(|(experiment, _)| experiment)
            .map_err(|error| error.to_string())
    }

    fn plan(&self) -> (Plan, Engines) {
        let experiment = self.experiment().expect("is read");
        let engines = Engines::find(&experiment, &Folders::engines(Some(&self.0.path().join("engines"))));
        let plan = planner::plan::<Stacks>(experiment, &engines, &RunOptions::default()).expect("plans");
        (plan, engines)
    }

    /// Runs the plan, without a build.
    fn run(&self) -> (Plan, Summary) {
        let (mut plan, engines) = self.plan();
        let directory = self.0.path().join("results");
        let store = Store::create(&directory).expect("is made");
        let machine = Stacks::machine(&plan.experiment, &engines).expect("is read");
        store.write_json("machine.json", &machine).expect("is written");
        let mut runner = ProcessRunner {
            engines: engines.present,
            directory,
            allowed: allowed_cores().expect("cores"),
            interrupt: Interrupt::default(),
            guard: no_guard(),
        };
        conduct::<Stacks>(&mut plan, &store, &mut runner, &mut (), Broken::Ends).expect("runs");
        let outcome = pipeline::report::<Stacks>(store.directory()).expect("is reported");
        let text = outcome.text;
        assert!(text.lines().all(|line| line.chars().count() <= weir_report::text::WIDTH), "{text}");
        (plan, Stacks::results(store.directory()).expect("are read").summary)
    }
}

/// The experiments with stacks of this repository, in full or cut down by `--quick`.
pub(super) fn experiments(quick: bool) -> Vec<Experiment> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let files = fs::read_dir(folder).expect("is there").flatten().map(|entry| entry.path());
    let is_of_stacks = |file: &PathBuf| {
        fs::read_to_string(file).is_ok_and(|text| text.contains("\ninstrument = \"stacks\""))
    };
    let read = |file: PathBuf| {
        let options = RunOptions { file, quick, ..RunOptions::default() };
        reader::load::<Stacks>(&options).unwrap_or_else(|error| panic!("{error}")).0
    };
    files.filter(is_of_stacks).map(read).collect()
}

#[test]
fn an_experiment_with_scripts_comes_to_a_verdict_and_a_page() {
    let bench = Bench::new(EXPERIMENT);
    bench.engine("fast", "full", "5000");
    bench.engine("slow", "full", "10000");
    let (plan, summary) = bench.run();
    assert_eq!(plan.baseline.as_deref(), Some("slow"));
    assert!(plan.absent["gone"].contains("expected one of fast, slow"), "{:?}", plan.absent);
    let why = "certificate=rsa-2048 is not among its abilities";
    assert_eq!(plan.dropped, [format!("handshake.1.3.full.rsa-2048.tickets=2.fast: {why}")]);
    let fast = summary.comparisons.iter().find(|one| one.target == "fast").expect("is compared");
    assert_eq!(
        (fast.ratio.value, fast.ratio.verdict.to_string().as_str()),
        (Some(0.5), "different"),
        "{fast:?}"
    );
    assert_eq!(summary.claims[0].verdict.to_string(), "confirmed");
    let directory = bench.0.path().join("results");
    let page = fs::read_to_string(directory.join("report.html")).expect("is written");
    for part in ["Server: handshakes per second of a core", "fast-is-faster", "gone: absent", "fake 1.0"] {
        assert!(page.contains(part), "{part}");
    }
    pipeline::report::<Stacks>(&directory).expect("is reported again");
    assert_eq!(fs::read_to_string(directory.join("report.html")).expect("is written"), page);
}

/// Regression test: without clang on the machine, engines whose other variant is built with gcc were absent.
#[test]
fn a_variant_that_cannot_be_built_leaves_the_engine_its_others() {
    let bench =
        Bench::new(&EXPERIMENT.replace("\ncertificate", "\ncompiler = ['gcc', 'clang']\ncertificate"));
    bench.engine("fast", "full", "5000");
    bench.engine("slow", "full", "10000");
    for name in ["fast", "slow"] {
        let file = bench.0.path().join(format!("engines/{name}/engine.toml"));
        let text = fs::read_to_string(&file).expect("is there");
        fs::write(&file, format!("compilers = ['gcc', 'clang']\n{text}")).expect("is written");
    }
    let (plan, found) = bench.plan();
    let of = |plan: &Plan, compiler: &str| {
        let built = |cell: &&Cell| cell.subject == "fast" && cell.levels.word("compiler") == compiler;
        plan.cells.iter().filter(built).count()
    };
    assert_eq!((of(&plan, "gcc"), of(&plan, "clang")), (1, 1));
    let variant = |compiler: &str| Variant { compiler: Level::new(compiler), ..Variant::plain() };
    let needed = [variant(Variant::PLAIN), variant("clang")].map(|variant| ("fast".to_owned(), variant));
    for (fails, gcc) in [(&needed[1..], 1), (&needed[..], 0)] {
        let mut engines = found.clone();
        engines.unbuilt = fails.iter().map(|variant| (variant.clone(), "needs clang".to_owned())).collect();
        engines.leave_out_unbuilt(&needed.iter().cloned().collect());
        let experiment = bench.experiment().expect("is read");
        let plan = planner::plan::<Stacks>(experiment, &engines, &RunOptions::default()).expect("plans");
        assert_eq!((of(&plan, "gcc"), of(&plan, "clang")), (gcc, 0));
        let is_named =
            plan.dropped.iter().any(|line| line.contains("fast") && line.ends_with(": needs clang"));
        assert_eq!(is_named, gcc == 1, "{:?}", plan.dropped);
        assert_eq!(plan.absent.get("fast").map(String::as_str), (gcc == 0).then_some("needs clang"));
    }
}

/// Findings from few blocks, about cells that did not run, or from a busy machine, in every form of the report.
#[test]
fn caveats_are_in_text_and_page() {
    let few = Made { blocks: 6, effect: 0.5, foreign: 0.4, ..Made::NOTHING };
    let mut results = synthetic::results(&few);
    let mut elsewhere = results.plan.experiment.claims[0].clone();
    elsewhere.id = "elsewhere".into();
    elsewhere.cell = [("engine".to_owned(), Level::new("none-of-these"))].into_iter().collect();
    let untestable =
        Claim { id: "untestable".into(), not_testable: Some("no such thing".into()), ..elsewhere.clone() };
    results.plan.experiment.claims.extend([elsewhere, untestable]);
    sum_up(&mut results);
    let show = |results: &Results<Stacks>| {
        (words::render(results), page::render(results, &Store::open(Path::new("nowhere"))))
    };
    let (text, page) = show(&results);
    let summary = &results.summary;
    let busy = "BUSY: foreign load took more than 10 % of the cores in 54 of 54 runs (median 40 %).";
    let unrun = "1 claim is about cells that were not run.";
    for part in ["Indication: 6 valid of 6 planned blocks", busy, unrun, "untestable"] {
        assert!(text.replace("\n    ", " ").contains(part) && page.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("elsewhere") && !page.contains("elsewhere"), "{text}");
    let json = Stacks::json(&results).to_string();
    assert!(json.contains("\"elsewhere\"") && json.contains("\"foreign\":{\"median\":0.4"), "{json}");
    // Each row with a ratio.
    let flat = text.replace("\n      ", " ");
    let rows: Vec<&str> = flat.lines().filter(|line| line.contains(": fast vs ")).collect();
    assert!(rows.len() == 5 && rows.iter().all(|row| row.ends_with("(indication)")), "{rows:#?}");
    assert_eq!(page.matches("<br>(indication)</small>").count(), summary.comparisons.len());
    assert!(text.contains("\nfull handshake, TLS 1.3, ECDSA P-256\n  fast        server 50."), "{text}");
    assert!(page.contains("<figcaption><b>full handshake, TLS 1.3, RSA-2048</b></figcaption>"));
    assert!(!page.contains("<b>handshake.1.3"));

    let many = synthetic::results(&Made { blocks: 12, effect: 0.5, ..Made::NOTHING });
    let (text, page) = show(&many);
    assert!(!text.contains("BUSY") && !text.contains("(indication)") && !text.contains("not run"), "{text}");
    assert!(!page.contains("(indication)") && !page.contains("BUSY"));
}

#[test]
fn one_block_is_singular() {
    let one = synthetic::results(&Made { blocks: 1, ..Made::NOTHING });
    let text = words::render(&one);
    assert!(
        text.starts_with("1 valid of 1 planned block: no interval") && !text.contains("1 blocks"),
        "{text}"
    );
    assert!(text.contains("undecided: 1 block: no interval below 5"), "{text}");
}

/// The CPU share of other processes is measured during each run. Some systems do not report it.
#[test]
fn the_cpu_share_of_other_processes_is_stored_with_each_run() {
    let bench = Bench::new(EXPERIMENT);
    bench.engine("fast", "full", "5000");
    bench.engine("slow", "full", "10000");
    let (plan, summary) = bench.run();
    let runs = plan.runs().count() as u32;
    assert_eq!(summary.foreign.runs, runs);
    assert!(
        summary.foreign.median.is_some_and(|share| (0.0..=1.0).contains(&share)),
        "{:?}",
        summary.foreign
    );
    let results = bench.0.path().join("results");
    for run in fs::read_dir(results.join("runs")).expect("are there").flatten() {
        let text = fs::read_to_string(run.path()).expect("is read");
        let mut stored: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
        let share = stored.as_object_mut().and_then(|run| run.remove("foreign_cpu")).expect("is stored");
        assert!(share.is_number(), "{share}");
        fs::write(run.path(), stored.to_string()).expect("is written");
    }
    let without = pipeline::report::<Stacks>(&results).expect("is read");
    let foreign = Stacks::results(&results).expect("are read").summary.foreign;
    assert_eq!((foreign.median, foreign.runs), (None, runs));
    assert!(!without.text.contains("BUSY"), "{}", without.text);
}

#[test]
fn runs_with_another_kind_of_handshake_are_excluded() {
    let bench = Bench::new(EXPERIMENT);
    bench.engine("fast", "resumed", "5000");
    bench.engine("slow", "full", "10000");
    let (_, summary) = bench.run();
    let fast = summary.cells.iter().find(|one| one.cell.name == "fast").expect("a cell");
    assert_eq!((fast.blocks, fast.invalid_runs), (0, 6));
    let why = fast.why_invalid.as_deref().unwrap_or_default();
    assert_eq!(why, "invalid: client: 2 handshakes with kind `resumed`: expected full");
    assert_eq!(summary.claims[0].verdict.to_string(), "undecided");
}

#[test]
fn invalid_files_are_rejected_with_place_and_what_is_allowed() {
    for (from, to, why) in [
        ("seed = 1", "sede = 1", "bench.toml:"),
        (
            "version = [\"1.3\"]",
            "version = [\"1.1\"]",
            "bench.toml:13: scenarios.0: version: invalid value `1.1`: expected one of 1.2, 1.3",
        ),
        (
            "do = \"handshake\"",
            "do = \"nothing\"",
            "`nothing`: expected one of handshake, transfer, memory, primitive",
        ),
        ("do = \"handshake\"", "do = \"handshake\"\nresumption = \"id\"", "TLS 1.3 resumes by `psk`"),
        ("version = [\"1.3\"]", "version = \"1.2\"\ntickets = 2", "tickets=2: TLS 1.2 sends at most 1"),
        ("version = [\"1.3\"]", "version = \"1.2\"\nresumption = \"id\"\ntickets = 1", "resumes by ticket"),
        ("do = \"handshake\"", "do = \"handshake\"\nsessions = 5", "sessions: unknown key of `handshake`"),
        ("aa = \"slow\"", "aa = \"quick\"", "unknown engine `quick`: expected one of fast, slow, gone"),
        (
            "\"server_us_per_handshake\"",
            "\"p99_us\"",
            "invalid value `p99_us`: expected a metric of engines: server_us_per_handshake, ",
        ),
        (
            "against = { engine = \"slow\" }",
            "against = { engine = \"quick\" }",
            "engine: invalid value `quick`: expected one of fast, slow, gone",
        ),
        ("window_ms = 10", "window_ms = 0", "window_ms: invalid value `0`: expected 1 to 600000"),
        ("blocks = 6", "blocks = 0", "invalid value `0`: expected 1 to "),
    ] {
        let bench = Bench::new(&EXPERIMENT.replace(from, to));
        let error = bench.experiment().expect_err("is refused");
        assert!(error.contains(why), "{error}");
    }
}

/// Regression test: two levels of a factor ran as far apart in a block as any two scenarios, so drift hid small
/// differences.
#[test]
fn compared_levels_run_one_after_the_other() {
    let compare = "[[compare]]\nfactor = 'certificate'\nbaseline = 'ecdsa-p256'\n";
    let bench = Bench::new(&format!("{EXPERIMENT}{compare}"));
    bench.engine("fast", "full", "500");
    bench.engine("slow", "full", "1000");
    for block in bench.plan().0.blocks {
        let place = |name: &str, certificate: &str| {
            let is_it = |run: &&PlannedRun| {
                run.cell.name == name && run.cell.levels.word("certificate") == certificate
            };
            block.iter().flat_map(|turn| &turn.0).position(|run| is_it(&run)).expect("is planned")
        };
        for name in ["slow", "slow-again"] {
            assert_eq!(place(name, "ecdsa-p256").abs_diff(place(name, "rsa-2048")), 1, "{name}");
        }
    }
}

#[test]
fn two_plans_of_one_seed_have_one_order() {
    let bench = Bench::new(EXPERIMENT);
    bench.engine("fast", "full", "1");
    bench.engine("slow", "full", "1");
    let order = |seed: &str| {
        bench.write("bench.toml", &EXPERIMENT.replace("seed = 1", seed));
        bench.plan().0.runs().map(|run| run.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(order("seed = 1"), order("seed = 1"));
    assert_ne!(order("seed = 1"), order("seed = 2"));
}

#[test]
fn a_level_of_no_cell_is_rejected() {
    let bench = Bench::new(EXPERIMENT);
    bench.engine("slow", "full", "1");
    let plan = |only: &[(&str, &str)]| {
        let only = only.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        pipeline::plan::<Stacks>(&RunOptions { only, ..bench.options() })
    };
    assert!(plan(&[("engine", "slow"), ("certificate", "rsa-2048")]).is_ok());
    let error = plan(&[("certificate", "dsa")]).expect_err("is refused").to_string();
    assert_eq!(error, "--only certificate: invalid value `dsa`: expected one of ecdsa-p256, rsa-2048");
    let error = plan(&[("name", "slaw")]).expect_err("is refused").to_string();
    assert_eq!(error, "--only name: invalid value `slaw`: expected one of fast, gone, slow, slow-again");
}

/// Regression test: without the A/A pair, the baseline's luck alone made engines different.
#[test]
fn the_aa_pair_runs_beside_the_engines_of_only() {
    let bench = Bench::new(EXPERIMENT);
    bench.engine("fast", "full", "1");
    bench.engine("slow", "full", "1");
    let plan = |only: &str| {
        let only = RunOptions::parse_pairs("--only", only).expect("parses");
        let text = pipeline::plan::<Stacks>(&RunOptions { only, ..bench.options() }).expect("plans");
        let cells: Vec<String> = text
            .lines()
            .filter_map(|line| {
                line.trim_start_matches([' ', '1', '2', '3', '4']).strip_prefix("handshake.1.3.full.")
            })
            .map(str::to_owned)
            .collect();
        (cells, text)
    };
    let kept = "The A/A pair of slow runs beside the cells of --only";
    // `fast` cannot do RSA, so nothing is run there.
    let (cells, text) = plan("engine=fast");
    assert_eq!(cells, ["fast", "slow", "slow-again"].map(|name| format!("ecdsa-p256.tickets=2.{name}")));
    assert!(text.contains(kept) && text.contains("baseline: slow"), "{text}");
    let (cells, text) = plan("engine=slow,certificate=rsa-2048");
    assert_eq!(cells, ["slow", "slow-again"].map(|name| format!("rsa-2048.tickets=2.{name}")));
    assert!(!text.contains(kept), "{text}");
    let (cells, text) = plan("name=fast,name=slow,certificate=ecdsa-p256");
    assert_eq!(cells, ["fast", "slow"].map(|name| format!("ecdsa-p256.tickets=2.{name}")));
    let label = "No noise floor: the A/A pair of slow is not run.";
    assert!(text.contains(label), "{text}");
    let (_, text) = plan("name=fast");
    let label = "gone is absent; no cell of slow is run";
    assert!(text.replace("\n    ", " ").contains(label), "{text}");
}

#[test]
fn both_spellings_of_a_group_are_one() {
    let bench = Bench::new(&EXPERIMENT.replace("[[claims]]", "group = ['p-256', 'x25519']\n[[claims]]"));
    bench.engine("slow", "full", "1");
    bench.write(
        "engines/slow/engine.toml",
        &fs::read_to_string(bench.0.path().join("engines/slow/engine.toml"))
            .expect("is there")
            .replace("groups = ['x25519']", "groups = ['x25519', 'p256']"),
    );
    let plan = |only: &str, set: &str| {
        let pairs = |option, text: &str| match text {
            "" => Vec::new(),
            text => RunOptions::parse_pairs(option, text).expect("parses"),
        };
        let (only, set) = (pairs("--only", only), pairs("--set", set));
        pipeline::plan::<Stacks>(&RunOptions { only, set, ..bench.options() }).expect("plans")
    };
    assert!(
        plan("group=p-256", "")
            .contains("\n4 cells:\n    1  handshake.1.3.full.ecdsa-p256.p256.tickets=2.slow\n")
    );
    assert_eq!(plan("group=p-256", ""), plan("group=p256", ""));
    assert_eq!(plan("", "group=p-256"), plan("", "group=p256"));
}

/// Experiments are read in full and cut down by `--quick`; engine descriptions are read too.
#[test]
fn the_experiments_and_engines_of_this_repository_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for quick in [false, true] {
        let all = experiments(quick);
        assert!(all.len() >= 5, "{}", all.len());
        assert!(all.iter().all(|experiment| !scenarios(experiment).is_empty()));
    }
    let engines = Folders::engines(Some(&root.join("engines")));
    for name in engines.names().expect("are listed") {
        Engine::read(&engines, &name).expect("the engine is right");
    }
}

/// Regression test: keys of no scenario and of other instruments were accepted, and `engines` left the file's.
#[test]
fn a_key_without_effect_is_rejected() {
    let outcome = |set: (&str, &str)| {
        let set = vec![(set.0.to_owned(), set.1.to_owned())];
        let options = RunOptions { set, ..RunOptions::default() };
        let read = reader::parse::<Stacks>(Path::new("e.toml"), EXPERIMENT, &options);
        read.map(|experiment| experiment.subjects().join(" ")).map_err(|error| error.to_string())
    };
    for set in [("certificate", "ecdsa-p256"), ("window_ms", "20"), ("threads", "[1, 2]"), ("margin", "0.1")]
    {
        assert_eq!(outcome(set).as_deref(), Ok("fast slow gone"), "{set:?}");
    }
    for key in ["engine", "engines"] {
        assert_eq!(outcome((key, "['slow', 'fast']")).as_deref(), Ok("slow fast"), "{key}");
    }
    let none = "has no effect, as no scenario has it: expected one of do, version, resumption, certificate, group, suite, \
                tickets, config, threads, warmup, window_ms, mask, compiler, allocator";
    let others = "unknown key for `instrument = \"stacks\"`";
    for (key, value, why) in [
        ("sessions", "5", none),
        ("record", "4096", none),
        ("operation", "x25519", none),
        ("tls.group", "['x25519', 'p256']", none),
        ("rate_share", "0.2", others),
        ("calibration_runs", "3", others),
    ] {
        assert_eq!(outcome((key, value)), Err(format!("--set {key}={value}: {why}")));
    }
}
