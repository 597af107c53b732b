//! Commands, from the experiment file to the words that run.

use super::Commands;
use super::line::all;
use crate::experiment::options::RunOptions;
use crate::experiment::{Grammar as _, reader};
use std::path::PathBuf;

const TEXT: &str = "name = 'c'\nquestion = 'Which?'\ninstrument = 'commands'\nblocks = 5\nseed = 1\n\
    baseline = ['short']\n[factors]\ncommand = ['short', 'long']\nms = [1, 20]\n[constants]\ntimeout_ms = 5000\n\
    [constants.commands]\nshort = 'sleep 0.0{ms}'\nlong = ['sh', '-c', 'sleep 0.1; exit {ms}']\n";

fn parse(text: &str) -> Result<crate::experiment::Experiment, String> {
    let file = PathBuf::from("/x/c.toml");
    reader::parse::<Commands>(&file, text, &RunOptions::default())
        .map_err(|error| error.to_string().replace("/x/", ""))
}

#[test]
fn placeholders_are_replaced_in_every_word() {
    let experiment = parse(TEXT).expect("is right");
    let lines = all(&experiment);
    let levels = [("ms".to_owned(), crate::experiment::Level::new(20))].into_iter().collect();
    let words: Vec<Vec<String>> = lines.iter().map(|(_, line)| line.words(&levels)).collect();
    assert_eq!(words, [vec!["sleep", "0.020"], vec!["sh", "-c", "sleep 0.1; exit 20"]]);
    assert_eq!(lines[1].1.to_string(), "sh -c 'sleep 0.1; exit {ms}'");
    assert_eq!(Commands::keys(&experiment), ["ms"]);
}

#[test]
fn invalid_files_are_rejected_with_what_is_allowed() {
    for (from, to, message) in [
        (
            "short = 'sleep 0.0{ms}'\n",
            "",
            "c.toml: commands.short: missing: expected words separated by spaces",
        ),
        ("'sleep 0.0{ms}'", "''", "c.toml:13: commands.short: invalid value `\"\"`: expected words"),
        ("'sleep 0.0{ms}'", "3", "c.toml:13: commands.short: invalid value `3`: expected words"),
        (
            "long = ['sh'",
            "other = 'true'\nlong = ['sh'",
            "c.toml:14: commands.other: unknown key: expected one of commands.short, commands.long, timeout_ms",
        ),
        (
            "timeout_ms = 5000",
            "timeout_ms = 0",
            "c.toml:11: timeout_ms: invalid value `0`: expected 1 to 86400000",
        ),
        (
            "ms = [",
            "users = [",
            "c.toml:9: connections: no command contains {connections}, so no level has an effect",
        ),
        ("blocks = 5", "minutes = 5", "c.toml:4: minutes: the duration of a command is unknown"),
        ("blocks = 5", "rate_share = 0.5", "c.toml:4: rate_share: "),
    ] {
        assert!(TEXT.contains(from), "{from}");
        let error = parse(&TEXT.replacen(from, to, 1)).expect_err("is refused");
        assert!(error.starts_with(message), "{error}");
    }
}
