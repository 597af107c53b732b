//! The grammar: what it accepts and what it rejects.

use crate::experiment::options::RunOptions;
use crate::experiment::{Experiment, Layout, Level, Order, Stop};
use crate::instrument::gateway::testing::{TEXT, parse};
use crate::instrument::gateway::{Conditions, Group, Load, Mode, TlsVersion};

fn with(from: &str, to: &str) -> Result<Experiment, String> {
    assert!(TEXT.contains(from), "{from}");
    parse(&TEXT.replacen(from, to, 1), &RunOptions::default())
}

fn refused(from: &str, to: &str) -> String {
    with(from, to).expect_err("is refused")
}

fn set(pairs: &[(&str, &str)]) -> RunOptions {
    let set = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    RunOptions { set, ..RunOptions::default() }
}

fn conditions(experiment: &Experiment) -> Conditions {
    experiment.any_conditions().expect("are read")
}

#[test]
fn the_text_is_read() {
    let experiment = parse(TEXT, &RunOptions::default()).expect("parses");
    assert_eq!(experiment.modes(), [Mode::H1c, Mode::H1cH1c, Mode::H1H1c]);
    assert_eq!(experiment.loads(), [Load::EqualRate, Load::Saturated]);
    assert_eq!((experiment.rate_share, experiment.margin), (0.5, 0.03));
    assert_eq!((experiment.stop, experiment.order), (Stop::Blocks(6), Order::Random));
    assert_eq!(conditions(&experiment).connections, 8);
    let stored = serde_json::to_string(&experiment).expect("is written");
    assert_eq!(serde_json::from_str::<Experiment>(&stored).expect("is read"), experiment);
}

#[test]
fn a_key_may_be_varied_or_kept_and_has_the_studys_name_too() {
    let experiment = with(
        "load_model = [\"equal-rate\", \"saturated\"]",
        "load_model = [\"saturated\"]\nusers = [100, 200]\ntls.tickets = [0, 2]\nload.think = ['1ms', '2ms']\ncores.gateway = [[0], [0, 1]]",
    );
    assert!(
        experiment
            .expect_err("twice")
            .ends_with("connections: duplicate key, as a factor and a constant; remove one")
    );
    let text = TEXT.replacen("connections = 8\n", "", 1);
    let text = text.replacen("cores = { gateway = [0], origin = [1], load = [1] }\n", "", 1);
    let text = text.replacen("tickets = 2\n", "", 1);
    let text = text.replacen("\"h1c\", \"h1c-h1c\"", "\"h1\", \"h1-h1\"", 1);
    let text = text.replacen(
        "load_model = [\"equal-rate\", \"saturated\"]",
        "load_model = [\"saturated\"]\nusers = [100, 200]\ntls.tickets = [0, 2]\nload.think = ['1ms', '2ms']\n\
         cores.gateway = [[0], [0, 1]]\nsettings.pool = [1, 2]",
        1,
    );
    let experiment = parse(&text, &RunOptions::default()).expect("parses");
    let names = |key: &str| experiment.levels(key).iter().map(Level::to_string).collect::<Vec<_>>();
    assert_eq!(names("connections"), ["100", "200"]);
    assert_eq!(names("cores.gateway"), ["0", "0,1"]);
    // 3 modes, 2 of each further factor; settings belong to the targets that have them.
    assert_eq!(experiment.combinations().len(), 3 * 2 * 2 * 2 * 2);
    assert_eq!(experiment.settings_of(|name| name == "pool").len(), 2);
    assert_eq!(experiment.settings_of(|_| false).len(), 1);
}

#[test]
fn an_unknown_key_names_file_line_and_what_is_allowed() {
    for (from, to, start) in [
        ("seed = 42", "sead = 42", "e.toml:7: unknown field `sead`; did you mean `seed`?"),
        ("bytes = 100", "bites = 100", "e.toml:"),
        ("tickets = 2", "tickets = 2\nticket = 3", "e.toml:28: tls.ticket: unknown field `ticket`"),
        (
            "mode = [",
            "delays = [1]\nmode = [",
            "e.toml:11: delays: unknown field `delays`; did you mean `delay_ms`?",
        ),
    ] {
        let message = refused(from, to);
        assert!(message.starts_with(start), "{message}");
    }
    assert!(refused("bytes = 100", "bites = 100").contains("bytes: missing"));
}

#[test]
fn an_unknown_value_names_what_is_allowed() {
    let message = refused("h1-h1c", "h3-h1c");
    let start = "e.toml:11: mode: unknown variant `h3-h1c`, expected one of `h1c`";
    assert!(message.starts_with(start), "{message}");
    assert!(refused("\"x25519\"", "\"x448\"").contains("e.toml:25: tls.group: unknown variant `x448`"));
    let message = refused("window_ms = 50", "window_ms = \"long\"");
    assert!(message.starts_with("e.toml:18: window_ms: expected a whole number from 0, found "), "{message}");
}

#[test]
fn values_out_of_range_name_their_line() {
    for (from, to, message) in [
        ("window_ms = 50", "window_ms = 5", "e.toml:18: window_ms: 5: expected 20 to 3600000"),
        ("blocks = 6", "blocks = 0", "e.toml:6: blocks: invalid value `0`: expected 1 to 2000"),
        (
            "baseline = [\"slow\"]",
            "baseline = [\"slaw\"]",
            "e.toml:3: baseline: unknown target `slaw`: expected one of direct, fast, slow",
        ),
        (
            "\"aes128-gcm-sha256\"",
            "\"ecdhe-ecdsa-aes128-gcm-sha256\"",
            "e.toml:24: tls.suite: `ecdhe-ecdsa-aes128-gcm-sha256` is a TLS 1.2 suite; expected one of TLS 1.3",
        ),
        ("blocks = 6\n", "", "e.toml: blocks: missing; set `blocks`, `minutes` or `precision`"),
        (
            "blocks = 6\n",
            "blocks = 6\nminutes = 3\n",
            "e.toml:7: minutes: conflicting keys: expected only one of `blocks`, `minutes`, `precision`",
        ),
        (
            "mode = [\"h1c\", \"h1c-h1c\", \"h1-h1c\"]",
            "mode = []",
            "e.toml:11: mode: empty: expected at least one level",
        ),
        ("\"h1c\", \"h1c-h1c\"", "\"h1c\", \"h1c\"", "e.toml:11: mode: duplicate level `h1c`"),
        (
            "mode = [\"h1c\", \"h1c-h1c\", \"h1-h1c\"]",
            "mode = \"h1c\"",
            "e.toml:11: mode: invalid value `\"h1c\"`: expected a list of levels, such as [\"h1c\"]",
        ),
        ("gateway = [0]", "gateway = [0, 0]", "e.toml:20: cores.gateway: duplicate core"),
        (
            "bytes = 100",
            "bytes = 5\nrequest = 'echo'",
            "e.toml:16: bytes: 5: expected 14 or more for an echoed JSON body",
        ),
        (
            "bytes = 100",
            "bytes = 5\nframing = 'chunked'",
            "e.toml:17: framing: `chunked`: expected `length` for requests without a body",
        ),
        ("window_ms = 50", "window_ms = 50\nrate = 0", "e.toml:19: rate: 0: expected 1 to 10000000"),
    ] {
        assert_eq!(refused(from, to), message);
    }
}

#[test]
fn an_impossible_combination_names_its_levels() {
    let text = TEXT.replacen("version = \"1.3\"\n", "", 1);
    let text = text.replacen("\"h1c\", \"h1c-h1c\"", "\"h1\", \"h1-h1\"", 1);
    let text = text.replacen("[constants]", "tls.version = [\"1.2\", \"1.3\"]\n[constants]", 1);
    let message = parse(&text, &RunOptions::default()).expect_err("is refused");
    let expected = "e.toml:24: tls.suite: `aes128-gcm-sha256` is a TLS 1.3 suite; expected one of TLS 1.2 (with \
                    load_model=equal-rate, mode=h1, tls.version=1.2)";
    assert_eq!(message, expected);
}

/// The experiment of these tests with two versions, each with its own suite, and with this `leave_out`.
fn two_versions(leave_out: &str) -> Result<Experiment, String> {
    let text = TEXT.replacen("version = \"1.3\"\nsuite = \"aes128-gcm-sha256\"\n", "", 1);
    let text = text.replacen("\"h1c\", \"h1c-h1c\"", "\"h1\", \"h1-h1\"", 1);
    let factors = "tls.version = [\"1.3\", \"1.2\"]\ntls.suite = [\"aes128-gcm-sha256\", \
                   \"ecdhe-ecdsa-aes128-gcm-sha256\"]\n[constants]";
    let text = text.replacen("[constants]", factors, 1);
    let text = text.replacen("seed = 42", &format!("seed = 42\nleave_out = [{leave_out}]"), 1);
    parse(&text, &RunOptions::default())
}

const IMPOSSIBLE: &str = "{ tls.version = '1.2', tls.suite = 'aes128-gcm-sha256' }, \
    { tls.version = '1.3', tls.suite = 'ecdhe-ecdsa-aes128-gcm-sha256' }";

#[test]
fn combinations_that_are_left_out_make_no_cells() {
    assert!(
        two_versions("")
            .expect_err("is refused")
            .contains("tls.suite: `aes128-gcm-sha256` is a TLS 1.3 suite")
    );
    // 3 modes, 2 loads, 2 versions.
    let experiment = two_versions(IMPOSSIBLE).expect("is read");
    assert_eq!(experiment.combinations().len(), 3 * 2 * 2);
    let stored = serde_json::to_string(&experiment).expect("is written");
    assert_eq!(serde_json::from_str::<Experiment>(&stored).expect("is read"), experiment);
    let saturated = format!("{IMPOSSIBLE}, {{ load_model = 'saturated', mode = 'h1', users = 8 }}");
    assert_eq!(two_versions(&saturated).expect("is read").combinations().len(), 3 * 2 * 2 - 2);
    for (leave_out, message) in [
        ("{ users = 9 }", "e.toml:8: leave_out.2: connections: invalid value `9`: expected one of 8"),
        (
            "{ target = 'fast' }",
            "e.toml:8: leave_out.2: invalid key `target`: expected a factor other than the targets'",
        ),
        ("{ users = 8 }", "e.toml:8: leave_out: leaves no combination of levels: expected fewer entries"),
    ] {
        assert_eq!(two_versions(&format!("{IMPOSSIBLE}, {leave_out}")).expect_err("is refused"), message);
    }
}

#[test]
fn a_factor_without_effect_is_rejected() {
    let tickets = TEXT.replacen("tickets = 2\n", "", 1);
    let tickets = tickets.replacen("[constants]", "tls.tickets = [0, 2]\n[constants]", 1);
    let rate = TEXT.replacen("[constants]", "rate = [100, 200]\n[constants]", 1);
    for (text, message) in [
        (tickets, "e.toml:14: tls.tickets: has no effect in mode `h1c-h1c`: expected a mode with TLS"),
        (rate, "e.toml:14: rate: as a factor it requires `equal-rate`; remove `saturated` from `load_model`"),
    ] {
        let text = text.replacen("[\"h1c\", ", "[", 1);
        assert_eq!(parse(&text, &RunOptions::default()).expect_err("is refused"), message);
    }
}

/// Not the claims, which are about the file's own cells.
#[test]
fn the_command_line_may_leave_no_cell_of_a_claim_and_no_baseline() {
    let text = format!("{TEXT}{CLAIM}");
    let experiment =
        parse(&text, &set(&[("mode", "h1c-h1c"), ("target", "['direct', 'own']")])).expect("is read");
    assert_eq!((experiment.baseline.len(), experiment.aa.as_ref(), experiment.claims.len()), (0, None, 1));
    let error = parse(&text, &set(&[("baseline", "['own']")])).expect_err("is refused");
    assert!(error.starts_with("--set baseline=['own']: unknown target `own`"), "{error}");
}

#[test]
fn a_constant_in_a_selector_is_removed() {
    let text = format!("{TEXT}{}", CLAIM.replacen("mode = 'h1-h1c'", "mode = 'h1-h1c', delay_ms = 0", 1));
    let text = text.replacen("bytes = 100", "bytes = 100\ndelay_ms = 0", 1);
    let experiment = parse(&text, &RunOptions::default()).expect("is read");
    assert_eq!(experiment.claims[0].cell.iter().count(), 1);
}

#[test]
fn broken_toml_names_its_line() {
    let message = refused("seed = 42", "seed = = 42");
    assert!(message.starts_with("e.toml:7: "), "{message}");
}

#[test]
fn settings_of_the_command_line_override_those_of_the_file() {
    let options = set(&[("window_ms", "300"), ("tls.group", "p-256"), ("bytes", "[1, 2]"), ("minutes", "2")]);
    let experiment = parse(TEXT, &options).expect("parses");
    let found = conditions(&experiment);
    assert_eq!((found.window_ms, found.tls.group), (300, Group::P256));
    assert_eq!((experiment.levels("bytes").len(), experiment.stop), (2, Stop::Minutes(2.0)));

    let one = parse(TEXT, &set(&[("mode", "h1-h1c"), ("users", "[5]")])).expect("parses");
    assert_eq!((one.modes(), one.levels("connections")), (vec![Mode::H1H1c], vec![Level::new(5)]));

    let hybrid = parse(TEXT, &set(&[("tls.group", "x25519mlkem768")])).expect("parses");
    assert_eq!(conditions(&hybrid).tls.group.openssl(), "X25519MLKEM768");

    let old = set(&[("tls.version", "1.2"), ("tls.suite", "ecdhe-ecdsa-aes256-gcm-sha384")]);
    let old = conditions(&parse(TEXT, &old).expect("TLS 1.2 can be set as well")).tls;
    let expected = (TlsVersion::V1_2, "ECDHE-ECDSA-AES256-GCM-SHA384");
    assert_eq!((old.version, old.suite.openssl()), expected);

    let wrong =
        |key, value| parse(TEXT, &set(&[("window_ms", "300"), (key, value)])).expect_err("is refused");
    assert!(wrong("windows_ms", "3").starts_with("--set windows_ms=3: unknown field `windows_ms`"));
    let suite = "ecdhe-ecdsa-aes128-gcm-sha256";
    let old = [("tls.version", "1.2"), ("tls.suite", suite), ("tls.group", "x25519mlkem768")];
    let hybrid = parse(TEXT, &set(&old)).expect_err("is of TLS 1.3");
    assert_eq!(hybrid, "--set tls.group=x25519mlkem768: `x25519mlkem768` needs TLS 1.3, not 1.2");
    assert!(wrong("mode", "[\"h9\"]").starts_with("--set mode=[\"h9\"]: unknown variant"));
    assert_eq!(wrong("rate_share", "7"), "--set rate_share=7: invalid value `7`: expected 0.01 to 0.95");
    assert!(wrong("tsl.group", "x").starts_with("--set tsl.group=x: unknown field `tsl.group`"));
    assert!(
        wrong("blocks", "many")
            .starts_with("--set blocks=many: expected a whole number from 0, found the string \"many\"")
    );
}

#[test]
fn the_command_line_overrides_quick() {
    let set = [("window_ms", "70"), ("mode", "h1c-h1c"), ("blocks", "4"), ("calibration_runs", "3")];
    let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let quick = RunOptions { quick: true, set, ..RunOptions::default() };
    let text =
        format!("{TEXT}[quick]\nblocks = 5\nset = {{ window_ms = 30 }}\nonly = {{ mode = ['h1-h1c'] }}\n");
    let cut = parse(&text, &quick).expect("parses");
    assert_eq!((conditions(&cut).window_ms, cut.modes()), (70, vec![Mode::H1cH1c]));
    assert_eq!((cut.stop, cut.calibration_runs), (Stop::Blocks(4), 3));
    // Levels that it names are among those left, so that --only finds them.
    let only = vec![("mode".to_owned(), "h1c-h1c".to_owned())];
    let named = RunOptions { quick: true, only, ..RunOptions::default() };
    assert!(parse(&text, &named).expect("parses").modes().contains(&Mode::H1cH1c));
}

#[test]
fn quick_is_defined_by_the_file_or_a_smoke_run() {
    let quick = RunOptions { quick: true, ..RunOptions::default() };
    let smoke = parse(TEXT, &quick).expect("parses");
    assert_eq!((smoke.stop, smoke.quick), (Stop::Blocks(2), true));
    let options = RunOptions { quick: true, blocks: Some(3), ..RunOptions::default() };
    assert_eq!(parse(TEXT, &options).expect("parses").stop, Stop::Blocks(3));

    let text = format!(
        "{TEXT}[quick]\nblocks = 5\nset = {{ window_ms = 30 }}\nonly = {{ mode = ['h1-h1c'], load_model = 'saturated' }}\n"
    );
    let cut = parse(&text, &quick).expect("parses");
    assert_eq!((cut.stop, conditions(&cut).window_ms), (Stop::Blocks(5), 30));
    assert_eq!((cut.modes(), cut.loads()), (vec![Mode::H1H1c], vec![Load::Saturated]));
    assert_eq!(parse(&text, &RunOptions::default()).expect("parses").modes().len(), 3);
    let wrong = parse(&text.replacen("h1-h1c'],", "h1-h1'],", 1), &quick).expect_err("is refused");
    assert_eq!(
        wrong,
        "e.toml:31: quick.only.mode: invalid value `h1-h1`: expected one of h1c, h1c-h1c, h1-h1c"
    );
}

#[test]
fn quick_has_a_layout_and_leaves_out_combinations() {
    let quick = RunOptions { quick: true, ..RunOptions::default() };
    let with = |leave_out: &str| format!("{TEXT}[quick]\nlayout = 'duet'\nleave_out = [{{ {leave_out} }}]\n");
    let cut = parse(&with("mode = 'h1-h1c', load_model = 'saturated'"), &quick).expect("parses");
    let full = parse(TEXT, &quick).expect("parses");
    assert_eq!((full.layout, cut.layout), (Layout::Blocks, Layout::Duet));
    assert_eq!((full.combinations().len(), cut.combinations().len()), (6, 5));
    let set = vec![("layout".to_owned(), "blocks".to_owned())];
    let said = RunOptions { quick: true, set, ..RunOptions::default() };
    assert_eq!(parse(&with("mode = 'h1c'"), &said).expect("parses").layout, Layout::Blocks);
    // Levels that the command line replaces cannot be left out.
    let set = vec![("users".to_owned(), "[3, 5]".to_owned())];
    let other = RunOptions { quick: true, set, ..RunOptions::default() };
    assert_eq!(parse(&with("users = 8"), &other).expect("parses").combinations().len(), 12);
    let wrong = parse(&with("mode = 'h1-h1'"), &quick).expect_err("is refused");
    assert!(wrong.contains("quick.leave_out.0: mode: invalid value `h1-h1`"), "{wrong}");
}

const CLAIM: &str = "[[claims]]\nid = 'a'\nsource = 'S3'\nsays = 'It is so.'\nmetric = 'requests_per_second'\n\
    cell = { mode = 'h1-h1c' }\nagainst = { mode = 'h1c-h1c' }\nexpect = '< 1'\n";

#[test]
fn claims_are_about_known_cells() {
    let parse = |text: &str| parse(&format!("{TEXT}{text}"), &RunOptions::default());
    assert_eq!(parse(CLAIM).expect("is read").claims.len(), 1);
    for (from, to, message) in [
        (
            "'h1-h1c'",
            "'h1-h1'",
            "e.toml:33: claims.0.cell: mode: invalid value `h1-h1`: expected one of h1c, h1c-h1c, h1-h1c",
        ),
        (
            "against = { mode",
            "against = { users",
            "e.toml:34: claims.0.against: connections: invalid value `h1c-h1c`: expected one of 8",
        ),
        (
            "against = { mode",
            "against = { moed",
            "e.toml:34: claims.0.against: unknown factor `moed`: expected one of target, load_model, mode",
        ),
        ("'< 1'", "'= 1'", "e.toml:35: invalid value `= 1`: expected a predicate such as"),
        (
            "'requests_per_second'",
            "'speed'",
            "e.toml:32: unknown variant `speed`, expected one of `cpu_us_per_request`",
        ),
        (
            "'requests_per_second'",
            "'error_ratio'",
            "e.toml:34: claims.0.against: `error_ratio` is 0 in a good cell, so its ratio is undefined",
        ),
        ("expect = '< 1'\n", "", "e.toml:28: claims.0: expected `metric` with `expect`, `share_of` with"),
        (
            "id = 'a'",
            "id = 'a'\ncpu = ['avx1024']",
            "e.toml:28: claims.0: cpu: unknown feature `avx1024`; expected some of aes, vaes, pclmulqdq",
        ),
        (
            "id = 'a'",
            "id = 'a b'",
            "e.toml:28: claims.0: id: invalid value `a b`: expected letters, digits, `-` and `.`",
        ),
    ] {
        let error = parse(&CLAIM.replacen(from, to, 1)).expect_err("is refused");
        assert!(error.starts_with(message), "{error}");
    }
    let twice = parse(&format!("{CLAIM}{CLAIM}")).expect_err("is refused");
    assert!(twice.contains("id: duplicate value `a`"), "{twice}");
}

#[test]
fn comparisons_are_of_known_factors() {
    let parse = |text: &str| parse(&format!("{TEXT}[[compare]]\n{text}"), &RunOptions::default());
    assert_eq!(parse("factor = 'mode'\nbaseline = 'h1c-h1c'\n").expect("is read").compare.len(), 1);
    let error = parse("factor = 'mode'\nbaseline = 'h1'\n").expect_err("is refused");
    assert_eq!(error, "e.toml:28: compare.0: mode: invalid value `h1`: expected one of h1c, h1c-h1c, h1-h1c");
    let error =
        parse("factor = 'mode'\nbaseline = 'h1c'\ncell = { target = 'x' }\n").expect_err("is refused");
    assert_eq!(
        error,
        "e.toml:31: compare.0.cell: target: invalid value `x`: expected one of direct, fast, slow"
    );
}
