//! Flags of `weir load` in an experiment, valid and invalid.

use super::*;
use crate::experiment::options::RunOptions;
use crate::experiment::reader;
use crate::instrument::gateway::testing::{TEXT, parse};
use crate::instrument::gateway::{Case, Gateway};

/// The tests' experiment in TLS modes only, with this `load` table at its end: its keys are on the lines
/// from 29 on.
fn with_load(lines: &str, options: &RunOptions) -> Result<Experiment, String> {
    let text = TEXT.replacen(r#"["h1c", "h1c-h1c", "h1-h1c"]"#, r#"["h1-h1c"]"#, 1);
    assert_eq!(text.lines().count(), 27, "the line numbers below count on it");
    parse(&format!("{text}[constants.load]\n{lines}\n"), options)
}

fn words(lines: &str, load: Load, stage: Stage) -> Vec<String> {
    let experiment = with_load(lines, &RunOptions::default()).expect("is followed");
    super::words(&experiment.any_conditions().expect("are read").load, load, stage).expect("were checked")
}

#[test]
fn values_of_each_kind_become_words() {
    for (line, word) in [
        ("new-connection = true", "--new-connection"),
        ("new_connection = true", "--new-connection"),
        ("timeout = '3s'", "--timeout=3s"),
        ("seed = 7", "--seed=7"),
        ("handshake-only = true\nresume = 12.5", "--handshake-only --resume=12.5"),
        ("handshake-only = true\nresume = 100.0", "--handshake-only --resume=100"),
        ("header = ['X-Run: 1', 'X-More: a b']", "--header=X-Run: 1 --header=X-More: a b"),
        ("header = 'X-Run: 1'", "--header=X-Run: 1"),
        ("alpn = ['http/1.1']", "--alpn=http/1.1"),
        ("source = ['127.0.0.2', '127.0.0.3']", "--source=127.0.0.2,127.0.0.3"),
        ("alpn = 'http/1.1'", "--alpn=http/1.1"),
        ("insecure = false", ""),
        ("data = '64KiB'", "--data=64KiB"),
    ] {
        assert_eq!(words(line, Load::Saturated, Stage::Block(1)).join(" "), word, "{line}");
    }
}

/// `--arrivals` needs a rate and `--think` excludes one; calibration looks for a maximum, in a closed loop.
#[test]
fn flags_for_one_loop_stay_out_of_the_other_and_of_calibration() {
    let lines = "arrivals = 'poisson'\nseed = 3\nthink = '20ms'";
    for (load, stage, expected) in [
        (Load::EqualRate, Stage::Block(1), "--arrivals=poisson --seed=3"),
        (Load::Saturated, Stage::Block(1), "--seed=3 --think=20ms"),
        (Load::Saturated, Stage::Calibration, "--seed=3"),
    ] {
        assert_eq!(words(lines, load, stage).join(" "), expected, "{load} {stage:?}");
    }
}

#[test]
fn invalid_flags_name_file_line_key_and_what_was_expected() {
    for (lines, place, why) in [
        (
            "seed = 1\nthnik = '20ms'",
            "e.toml:30: load.thnik: ",
            "unknown flag of `weir load`: expected one of requests, ",
        ),
        ("seed = 1\nthink = 'soon'", "e.toml:30: load.think: ", "expected a number and a unit (us, ms"),
        ("think = '2s'\nseed = 'x'", "e.toml:30: load.seed: ", "--seed: Seed for all random choices"),
        ("close = 'rest'", "e.toml:29: load.close: ", "[possible values: graceful, fin, rst]"),
        ("header = 'X-Run'", "e.toml:29: load.header: ", "Name: value"),
        ("close = ['fin', 'rst']", "e.toml:29: load.close: ", "a list: expected one value: HOW"),
        (
            "seed = 1\nalpn = ['h2']",
            "e.toml:30: load.alpn: ",
            "invalid value `h2`: expected http/1.1, the protocol of",
        ),
        ("alpn = []", "e.toml:29: load.alpn: ", "empty: expected at least one value"),
        ("think = true", "e.toml:29: load.think: ", "`true`: expected a string or a number: TIME"),
        ("think = {}", "e.toml:29: load.think: ", "expected a string or a number: TIME"),
        ("insecure = 1", "e.toml:29: load.insecure: ", "`1`: expected true or false"),
        ("seed = 1\nresume = 30", "e.toml:30: load.resume: ", "--new-connection"),
        ("new-connection = true\nresume = 101", "e.toml:30: load.resume: ", "0 to 100 percent"),
        ("new-connection = true\nhandshake-only = true", "e.toml:", "cannot be used with"),
        ("new-connection = true\nnew_connection = true", "e.toml:", "cannot be used multiple times"),
        ("seed = -1\ntimeout = 'x'", "e.toml:29: load.seed: ", "invalid value"),
        ("data = '-'", "e.toml:29: load.data: ", "a run has no standard input"),
        ("data = 'no-such-file'", "e.toml:29: load.data: ", "No such file"),
    ] {
        let error = with_load(lines, &RunOptions::default()).expect_err(lines);
        assert!(error.starts_with(place) && error.contains(why), "{lines}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_reserved_flag_names_the_key_that_sets_it() {
    for (line, by) in [
        ("url = 'http://a/'", "`mode`, `request`, `bytes` and the target"),
        ("connections = 3", "`connections`"),
        ("http = '2'", "`mode` and `streams`"),
        ("streams = 4", "`mode` and `streams`"),
        ("duration = '5s'", "`window_ms`"),
        ("warmup = '5s'", "`warmup_ms`"),
        ("workers = 2", "`cores.load`"),
        ("cores = '1'", "`cores.load`"),
        ("rate = 100", "`load_model`, with `rate` or `rate_share`"),
        ("tls = '1.2'", "`tls.version`, `tls.suite`, `tls.group`"),
        ("suite = 'aes128-gcm-sha256'", "`tls.version`, `tls.suite`, `tls.group`"),
        ("group = 'x25519'", "`tls.version`, `tls.suite`, `tls.group`"),
        ("cacert = 'ca.pem'", "`tls.certificate`"),
        ("chunked = true", "`framing`"),
        ("error-budget = 0.1", "`error_budget`"),
        ("error_budget = 0.1", "`error_budget`"),
        ("weights = [1]", "the file of `requests`"),
        ("pid = 1", "the lab"),
        ("json = 'x'", "the lab"),
        ("unix_socket = '/x'", "the target"),
    ] {
        let error = with_load(line, &RunOptions::default()).expect_err(line);
        let key = line.split(' ').next().expect("a key");
        let start = format!("e.toml:29: load.{key}: reserved: it is set by {by}");
        assert!(error.starts_with(&start), "{line}: {error}");
    }
}

#[test]
fn flags_that_the_modes_or_loads_exclude() {
    let parse = |text: &str| parse(text, &RunOptions::default()).expect_err("is rejected");
    let error = parse(&format!("{TEXT}[constants.load]\nhandshake-only = true\n"));
    assert!(
        error.starts_with("e.toml:29: load.handshake-only: ") && error.contains("an https URL"),
        "{error}"
    );
    let closed = TEXT.replacen(r#"["equal-rate", "saturated"]"#, r#"["saturated"]"#, 1);
    let error = parse(&format!("{closed}[constants.load]\narrivals = 'poisson'\n"));
    let why = "e.toml:29: load.arrivals: requires `equal-rate` in `load_model`";
    assert_eq!(error, why);
    let error = parse(&TEXT.replacen("bytes = 100", "bytes = 100\nload = 'saturated'", 1));
    assert!(error.starts_with("e.toml:17: load: expected a table of `weir load` flags"), "{error}");
}

#[test]
fn the_command_line_sets_flags_too_with_or_without_a_table() {
    let set = |key: &str, value: &str| RunOptions {
        set: vec![("mode".into(), "h1-h1c".into()), (key.into(), value.into())],
        ..RunOptions::default()
    };
    let experiment = parse(TEXT, &set("load.handshake-only", "true")).expect("is followed");
    let conditions = experiment.any_conditions().expect("are read");
    let policy = conditions.load_options().expect("is followed").policy;
    assert_eq!(Case::of(&policy, conditions.mode.client()), Case::HandshakeFull);
    let error = parse(TEXT, &set("load.close", "rest")).expect_err("is rejected");
    assert!(error.starts_with("--set load.close=rest: ") && error.contains("graceful, fin, rst"), "{error}");
}

/// The file sets the paths, so the URL has none.
#[test]
fn a_file_of_requests_replaces_the_response_size() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("e.toml");
    std::fs::write(&file, format!("{TEXT}[constants.load]\nrequests = 'mix.jsonl'\n")).expect("is written");
    std::fs::write(directory.path().join("mix.jsonl"), "{\"path\":\"/a\"}\n{\"path\":\"/b\"}\n")
        .expect("is written");
    let (experiment, _) =
        reader::load::<Gateway>(&RunOptions { file, ..RunOptions::default() }).expect("is followed");
    let conditions = experiment.any_conditions().expect("are read");
    let options = conditions.load_options().expect("is followed");
    assert_eq!(options.requests.iter().map(|request| &request.path).collect::<Vec<_>>(), ["/a", "/b"]);
    assert_eq!(conditions.load_url("127.0.0.1:80"), "http://127.0.0.1:80");
}

#[test]
fn files_are_looked_for_beside_the_experiment() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("e.toml");
    std::fs::write(&file, format!("{TEXT}[constants.load]\ndata = 'body.json'\nmethod = 'PUT'\n"))
        .expect("is written");
    std::fs::write(directory.path().join("body.json"), "{}").expect("is written");
    let (experiment, _) =
        reader::load::<Gateway>(&RunOptions { file, ..RunOptions::default() }).expect("is followed");
    let conditions = experiment.any_conditions().expect("are read");
    let words = super::words(&conditions.load, Load::Saturated, Stage::Block(1)).expect("were checked");
    let body = directory.path().join("body.json");
    assert_eq!(words, [format!("--data={}", body.display()), "--method=PUT".into()]);
    let options = conditions.load_options().expect("is followed");
    assert_eq!(options.requests[0].body.as_deref(), Some(&b"{}"[..]));
    let stored = serde_json::to_string(&experiment).expect("is written");
    assert_eq!(serde_json::from_str::<Experiment>(&stored).expect("is read"), experiment);
}

/// A result keeps a file's hash: its path differs between checkouts. A size is no
/// file, and the engine's output does not exist yet.
#[test]
fn input_files_have_hashes() {
    let directory = tempfile::tempdir().expect("a directory");
    let [file, body] = ["e.toml", "abc"].map(|name| directory.path().join(name));
    std::fs::write(&body, "abc").expect("is written");
    let load = |text: String| {
        std::fs::write(&file, text).expect("is written");
        let options = RunOptions { file: file.clone(), ..RunOptions::default() };
        reader::load::<Gateway>(&options).expect("is followed").0.load_files().expect("are read")
    };
    let constants = |lines: &str| load(format!("{TEXT}[constants.load]\n{lines}\n"));
    let found = constants("data = 'abc'\nkey-log = 'secrets'");
    assert_eq!(found, [(format!("load.data={}", body.display()), hash::bytes(b"abc"))].into());
    let levels = TEXT.replacen("[factors]", "[factors]\nload.data = ['abc', '1KiB']", 1);
    assert_eq!(load(levels), found);
    assert!(constants("data = '1KiB'").is_empty());
}
