//! `weir compare` of two levels of a factor: within one result, and with the commands that the error for two results
//! suggests.

use super::commands::ends;
use super::formats::csv;
use crate::common::{Ended, Experiment, Weir};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A relay with a setting that changes nothing.
const RELAY: &str = "title = 'Relay'
about = 'A relay of this test.'
modes = ['h1c-h1c']
start = [
    '{{weir}}', 'relay', '--workers', '1', '--listen', 'http://{{listen_address}}:{{listen_port}}',
    '--to', 'http://{{upstream_address}}:{{upstream_port}}',
]
ready = { connect = '{{listen_address}}:{{listen_port}}', timeout_ms = 20000 }
[settings.keep_alive]
default = 'off'
values = ['off', 'own']
about = 'nothing'
";

/// Regression test: `weir compare` rejected two values of a setting without explaining how to compare them.
#[test]
fn the_commands_in_the_error_compare_two_values_of_a_setting() {
    let small = Experiment::of(&[("relay/target.toml", RELAY)], &["target=[\"relay\"]", "blocks=5"]);
    let [a, b] = ["off", "own"].map(|value| {
        let out = small.file(value).to_str().unwrap().to_owned();
        let mut words = small.words("--out");
        // After `run`, the file and `--out`.
        words[3].clone_from(&out);
        words.extend(["--set".into(), format!("settings.keep_alive={value}")]);
        words.extend(["--blocks", "1", "--allow-invalid"].map(str::to_owned));
        let Ended { code, stderr, .. } = Weir::run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(code, Some(0), "{stderr}");
        out
    });
    let Ended { code, stderr, .. } = Weir::run(&["compare", &a, &b]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("settings.keep_alive: `off` in A, `own` in B; expected one plan; "), "{stderr}");
    let commands: Vec<&str> = stderr.split('`').filter(|part| part.starts_with("weir ")).collect();
    let [run, compare] = commands.as_slice() else { panic!("{stderr}") };
    let program = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap().display();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap_or_default());
    let shell = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(small.file("")).env("PATH", &path);
        let ended = shell.output().unwrap();
        let said = [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (ended.status.code(), said.concat())
    };
    // On a busy machine there may be no valid run.
    let (code, said) = shell(run);
    assert!(matches!(code, Some(0 | 3)), "{run}: {said}");
    let (code, said) = shell(compare);
    assert_eq!(code, Some(0), "{compare}: {said}");
    assert!(said.contains("relay+keep_alive=own vs relay+keep_alive=off: "), "{compare}: {said}");
    assert!(!said.contains("relay+keep_alive=off vs "), "{compare}: {said}");

    let both = small.file("out/both").to_str().unwrap().to_owned();
    let levels = ["settings.keep_alive=off", "settings.keep_alive=own"];
    let exported = |format: &str| ends(&["compare", &both, levels[0], levels[1], format, "-"], 0, &[]);
    let json: Value = serde_json::from_str(&exported("--json")).unwrap();
    let compared = json["comparisons"].as_array().unwrap();
    // CPU per request and the rate.
    assert_eq!(compared.len(), 2, "{json}");
    for one in compared {
        assert_eq!(
            (&one["factor"], &one["baseline"]),
            (&"settings.keep_alive".into(), &"relay+keep_alive=off".into())
        );
    }
    let rows = csv(&exported("--csv"));
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row["kind"] == "comparison"), "{rows:?}");

    let refused = |levels: &[&str], part: &str| {
        ends(&[&["compare", &both][..], levels].concat(), 2, &[part]);
    };
    refused(&levels[..1], "name both: `weir compare");
    refused(&[levels[0], levels[0]], "given twice; expected another level");
    refused(&[levels[0], "settings.keep_alive=no"], "invalid value `no`: expected one of off, own");
    refused(&["settings.pool=1", "settings.pool=2"], "unknown key `settings.pool`: expected one of target, ");
    refused(&[levels[0], "bytes=10"], "level bytes=10: expected another level of `settings.keep_alive`");
    refused(&[levels[0], "own"], "level own: expected key=value");
    refused(&[levels[0], levels[1], "--changed", "relay"], "--changed: not available for two levels");
}
