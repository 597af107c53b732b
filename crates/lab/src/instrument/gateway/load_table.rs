//! The `[load]` table: what `weir load` is told beyond what the experiment's other keys say. Its keys are the long
//! names of `weir load`'s flags (with `_` for `-` too), and are looked up in the definition of those flags, so that
//! what `weir load` can do an experiment can.

use super::Load;
use crate::error::{ConfigError, LabError};
use crate::experiment::{Experiment, leaves};
use crate::hash;
use crate::run::Stage;
use clap::{Arg, ArgAction, Args as _, Command};
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};
use weir_load::{LoadArgs, Options};

/// Flags that the lab sets by itself, and what it takes them from.
const SET_ELSEWHERE: [(&[&str], &str); 14] = [
    (&["url", "urls"], "`mode`, `request`, `bytes` and the target"),
    (&["weights"], "the file of `requests`, where each has its own"),
    (&["resolve", "connect-to", "unix-socket"], "the target: load goes nowhere else"),
    (&["connections"], "`connections`"),
    (&["duration"], "`window_ms`"),
    (&["warmup"], "`warmup_ms`"),
    (&["chunked"], "`framing`"),
    (&["error-budget"], "`error_budget`"),
    (&["workers", "cores"], "`cores.load`"),
    (&["rate"], "`load_model`, with `rate` or `rate_share`"),
    (&["tls", "suite", "group"], "`tls.version`, `tls.suite`, `tls.group`"),
    (&["cacert"], "`tls.certificate`, which the lab issues"),
    (&["pid", "cgroup", "cpu-command"], "the lab, which accounts the processes that it starts"),
    (&["json", "csv", "assert"], "the lab, which stores each result in `runs/`"),
];

/// Flags that mean something in one kind of loop: they are left out of the runs of the other, and of calibration, which
/// looks for a target's maximum.
const ONE_LOOP: [(&str, Load); 2] = [("arrivals", Load::EqualRate), ("think", Load::Saturated)];

/// The flag whose file is not read, but written.
const WRITTEN: &str = "key-log";

/// The table as words, each flag's apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadWords(Vec<(String, Vec<String>)>);

impl LoadWords {
    /// Looks every key up.
    pub(crate) fn new(table: &Table) -> Result<Self, ConfigError> {
        let flags = flags();
        let word = |(key, value): (&String, &Value)| match flag_words(&flags, key, value) {
            Ok(words) => Ok((flag_name(key), words)),
            Err(message) => Err(wrong(key, message)),
        };
        table.iter().map(word).collect::<Result<_, _>>().map(Self)
    }

    /// Those of a run.
    pub(crate) fn of(&self, load: Load, stage: Stage) -> Vec<String> {
        let applies = |flag: &str| match ONE_LOOP.iter().find(|(name, _)| *name == flag) {
            Some((_, only)) => load == *only && stage != Stage::Calibration,
            None => true,
        };
        self.0.iter().filter(|(flag, _)| applies(flag)).flat_map(|(_, words)| words).cloned().collect()
    }
}

/// Makes the path that is a flag's value absolute: a file is looked for beside the experiment.
pub(crate) fn resolve_file(key: &str, value: &mut Value, folder: &Path) {
    if let Some(path) = file(key, value).map(|file| folder.join(file)) {
        *value = path.display().to_string().into();
    }
}

impl Experiment {
    /// SHA-256 of each file that the load engine reads, by `load.FLAG=PATH`: in another checkout the same file has another
    /// path, and at the same path there may be another one.
    ///
    /// # Errors
    /// When one cannot be read.
    pub(crate) fn load_files(&self) -> Result<BTreeMap<String, String>, LabError> {
        let constants = leaves(&self.constants).into_iter();
        let levels =
            self.factors.iter().flat_map(|one| one.levels.iter().map(|level| (one.key.clone(), level)));
        let mut hashes = BTreeMap::new();
        for (key, value) in constants.chain(levels) {
            let flag = key.strip_prefix("load.").filter(|flag| flag_name(flag) != WRITTEN);
            if let Some(path) = flag.and_then(|flag| file(flag, value)) {
                hashes.insert(format!("{key}={path}"), hash::contents(Path::new(path))?);
            }
        }
        Ok(hashes)
    }
}

/// What the load engine would be told: the lab's own words, which can be followed by themselves, then the table's flags.
pub(crate) fn options(table: &Table, own: &[String], load: Load) -> Result<Options, ConfigError> {
    let read = |table: &Table| {
        let words = LoadWords::new(table)?.of(load, Stage::Block(1));
        let words = own.iter().chain(&words).map(String::as_str);
        let read = LoadArgs::from_words(words).map_err(|error| ConfigError::new("load", one_line(&error)))?;
        read.options().map_err(|error| ConfigError::new("load", error.to_string()))
    };
    let error = match read(table) {
        Err(error) if error.source == "load" => error,
        settled => return settled,
    };
    // To blame is a key that is named and without which the rest can be followed, or else one of which half is true.
    let named = |key: &&String| mentions(&error.message, &flag_name(key));
    let alone = |key: &&String| {
        let rest = table.iter().filter(|(other, _)| other != key);
        read(&rest.map(|(key, value)| (key.clone(), value.clone())).collect()).is_ok()
    };
    let keys = || table.keys();
    match keys().filter(named).find(alone).or_else(|| keys().find(alone)).or_else(|| keys().find(named)) {
        Some(key) => Err(wrong(key, format!("{} ({})", error.message, help(key)))),
        None => Err(error),
    }
}

/// Refuses what is for a loop that the experiment does not have.
pub(crate) fn check_loops(experiment: &Experiment) -> Result<(), ConfigError> {
    let constants = leaves(&experiment.constants);
    let constants = constants.iter().map(|(key, _)| key.as_str());
    let keys = constants.chain(experiment.factors.iter().map(|factor| factor.key.as_str()));
    for flag in keys.filter_map(|key| key.strip_prefix("load.")) {
        let only = ONE_LOOP.iter().find(|(name, _)| *name == flag_name(flag)).map(|(_, only)| only);
        if let Some(only) = only.filter(|only| !experiment.loads().contains(only)) {
            return Err(wrong(flag, format!("is for `{only}` alone, which is not among `load_model`")));
        }
    }
    Ok(())
}

/// An error about a flag.
pub(crate) fn wrong(flag: &str, message: impl Into<String>) -> ConfigError {
    ConfigError::new(format_args!("load.{flag}"), message)
}

/// The definition of `weir load`'s flags.
fn flags() -> Command {
    LoadArgs::augment_args(Command::new("weir load"))
}

fn flag_name(key: &str) -> String {
    key.replace('_', "-")
}

fn flag<'a>(flags: &'a Command, key: &str) -> Option<&'a Arg> {
    let name = flag_name(key);
    flags.get_arguments().find(|flag| flag.get_long() == Some(&name))
}

fn flag_words(flags: &Command, key: &str, value: &Value) -> Result<Vec<String>, String> {
    let name = flag_name(key);
    if let Some((_, by)) = set_elsewhere(&name) {
        return Err(format!("cannot be given here: it is set by {by}"));
    }
    let Some(flag) = flag(flags, key) else {
        let all =
            flags.get_arguments().filter_map(Arg::get_long).filter(|name| set_elsewhere(name).is_none());
        return Err(format!(
            "`weir load` has no such flag: allowed are {}",
            all.collect::<Vec<_>>().join(", ")
        ));
    };
    if !flag.get_action().takes_values() {
        return match value {
            Value::Boolean(true) => Ok(vec![format!("--{name}")]),
            Value::Boolean(false) => Ok(Vec::new()),
            other => Err(format!("`{other}`: allowed are true and false")),
        };
    }
    let names = flag.get_value_names().unwrap_or_default().join(" ");
    let text = |value: &Value| match value {
        Value::String(text) if text == "-" && is_named(flag, "-") => {
            Err("`-`: a run has no standard input: allowed is a file or a size".to_owned())
        }
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        other => Err(format!("`{other}`: allowed is a string or a number: {names}")),
    };
    let texts = match value {
        Value::Array(items) if items.is_empty() => return Err("empty: at least one value is needed".into()),
        Value::Array(items) => items.iter().map(text).collect::<Result<Vec<_>, _>>()?,
        single => vec![text(single)?],
    };
    let delimiter = flag.get_value_delimiter().or_else(|| is_named(flag, "LIST").then_some(','));
    match (delimiter, flag.get_action()) {
        (Some(delimiter), _) => Ok(vec![format!("--{name}={}", texts.join(&delimiter.to_string()))]),
        (None, ArgAction::Append) => Ok(texts.iter().map(|text| format!("--{name}={text}")).collect()),
        (None, _) if texts.len() == 1 => Ok(vec![format!("--{name}={}", texts[0])]),
        (None, _) => Err(format!("a list: allowed is one value: {names}")),
    }
}

/// What the flag's help says.
fn help(key: &str) -> String {
    let help = flag(&flags(), key).and_then(|flag| flag.get_help().map(ToString::to_string));
    format!("--{}: {}", flag_name(key), help.unwrap_or_default())
}

fn set_elsewhere(flag: &str) -> Option<&'static (&'static [&'static str], &'static str)> {
    SET_ELSEWHERE.iter().find(|(flags, _)| flags.contains(&flag))
}

/// Whether a flag's value may be such, by what its help calls it, as in `FILE|SIZE|-`.
fn is_named(flag: &Arg, name: &str) -> bool {
    flag.get_value_names().unwrap_or_default().iter().any(|names| names.split('|').any(|one| one == name))
}

/// The file that a flag's value names, if it names one.
fn file<'a>(key: &str, value: &'a Value) -> Option<&'a str> {
    let flags = flags();
    let (flag, text) = flag(&flags, key).zip(value.as_str())?;
    let is_size = is_named(flag, "SIZE") && weir_load::size(text).is_some();
    (is_named(flag, "FILE") && text != "-" && !is_size).then_some(text)
}

/// What clap says, without its heading, its usage and its advice.
fn one_line(error: &str) -> String {
    let end = ["\n\nUsage:", "\n\nFor more information"].iter().filter_map(|end| error.find(end)).min();
    let words = error[..end.unwrap_or(error.len())].trim_start_matches("error: ");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn mentions(message: &str, flag: &str) -> bool {
    let of_a_flag = |c: char| c.is_ascii_alphanumeric() || c == '-';
    message.split(|c: char| !of_a_flag(c)).any(|word| word.strip_prefix("--") == Some(flag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::gateway::testing::{TEXT, parse};
    use crate::instrument::gateway::{Case, Gateway};
    use crate::options::RunOptions;
    use crate::reader;

    /// The experiment of the tests in TLS modes alone, with such a `load` table at its end: its keys are on the lines
    /// from 29 on.
    fn with_load(lines: &str, options: &RunOptions) -> Result<Experiment, String> {
        let text = TEXT.replacen(r#"["h1c", "h1c-h1c", "h1-h1c"]"#, r#"["h1-h1c"]"#, 1);
        assert_eq!(text.lines().count(), 27, "the line numbers below count on it");
        parse(&format!("{text}[constants.load]\n{lines}\n"), options)
    }

    fn words(lines: &str, load: Load, stage: Stage) -> Vec<String> {
        let experiment = with_load(lines, &RunOptions::default()).expect("is followed");
        experiment.any_conditions().expect("are read").load_words().expect("were checked").of(load, stage)
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
    fn what_is_for_one_loop_stays_out_of_the_other_and_of_calibration() {
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
    fn what_cannot_be_followed_names_file_line_key_and_what_is_allowed() {
        for (lines, place, why) in [
            (
                "seed = 1\nthnik = '20ms'",
                "e.toml:30: load.thnik: ",
                "`weir load` has no such flag: allowed are requests, ",
            ),
            ("seed = 1\nthink = 'soon'", "e.toml:30: load.think: ", "write a number and a unit: us, ms"),
            (
                "think = '2s'\nseed = 'x'",
                "e.toml:30: load.seed: ",
                "--seed: What all random choices are drawn from",
            ),
            ("close = 'rest'", "e.toml:29: load.close: ", "[possible values: graceful, fin, rst]"),
            ("header = 'X-Run'", "e.toml:29: load.header: ", "Name: value"),
            ("close = ['fin', 'rst']", "e.toml:29: load.close: ", "a list: allowed is one value: HOW"),
            (
                "seed = 1\nalpn = ['h2']",
                "e.toml:30: load.alpn: ",
                "`h2` cannot be used; allowed: http/1.1, the only",
            ),
            ("alpn = []", "e.toml:29: load.alpn: ", "empty: at least one value is needed"),
            ("think = true", "e.toml:29: load.think: ", "`true`: allowed is a string or a number: TIME"),
            ("think = {}", "e.toml:29: load.think: ", "allowed is a string or a number: TIME"),
            ("insecure = 1", "e.toml:29: load.insecure: ", "`1`: allowed are true and false"),
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
    fn what_the_experiment_sets_itself_names_the_key_that_sets_it() {
        for (line, by) in [
            ("url = 'http://a/'", "`mode`, `request`, `bytes` and the target"),
            ("connections = 3", "`connections`"),
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
            let start = format!("e.toml:29: load.{key}: cannot be given here: it is set by {by}");
            assert!(error.starts_with(&start), "{line}: {error}");
        }
    }

    #[test]
    fn what_the_modes_or_loads_do_not_allow() {
        let parse = |text: &str| parse(text, &RunOptions::default()).expect_err("is refused");
        let error = parse(&format!("{TEXT}[constants.load]\nhandshake-only = true\n"));
        assert!(
            error.starts_with("e.toml:29: load.handshake-only: ") && error.contains("an https URL"),
            "{error}"
        );
        let closed = TEXT.replacen(r#"["equal-rate", "saturated"]"#, r#"["saturated"]"#, 1);
        let error = parse(&format!("{closed}[constants.load]\narrivals = 'poisson'\n"));
        let why = "e.toml:29: load.arrivals: is for `equal-rate` alone, which is not among `load_model`";
        assert_eq!(error, why);
        let error = parse(&TEXT.replacen("bytes = 100", "bytes = 100\nload = 'saturated'", 1));
        assert!(error.starts_with("e.toml:17: load: is a table, with flags"), "{error}");
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
        let error = parse(TEXT, &set("load.close", "rest")).expect_err("is refused");
        assert!(
            error.starts_with("--set load.close=rest: ") && error.contains("graceful, fin, rst"),
            "{error}"
        );
    }

    /// The paths are the file's, so the URL has none.
    #[test]
    fn a_file_of_requests_takes_the_place_of_the_answers_size() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("e.toml");
        std::fs::write(&file, format!("{TEXT}[constants.load]\nrequests = 'mix.jsonl'\n"))
            .expect("is written");
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
        let words = conditions.load_words().expect("were checked").of(Load::Saturated, Stage::Block(1));
        let body = directory.path().join("body.json");
        assert_eq!(words, [format!("--data={}", body.display()), "--method=PUT".into()]);
        let options = conditions.load_options().expect("is followed");
        assert_eq!(options.requests[0].body.as_deref(), Some(&b"{}"[..]));
        let stored = serde_json::to_string(&experiment).expect("is written");
        assert_eq!(serde_json::from_str::<Experiment>(&stored).expect("is read"), experiment);
    }

    /// What a result keeps of a file is its hash: by its path alone it would be another in each checkout. A size is no
    /// file, and what the engine writes is not there yet.
    #[test]
    fn files_that_are_read_have_hashes() {
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
}
