//! A target: a folder that says how a gateway under test is started. The lab knows no gateway by name.

use crate::error::{ConfigError, LabError};
use crate::experiment::{Experiment, Mode, Side};
use crate::plan::Targets;
use crate::template::Values;
use serde::Deserialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The description in `target.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    title: String,
    about: String,
    modes: Vec<Mode>,
    requires: Option<String>,
    version: Option<VersionCommand>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    start: Vec<String>,
    #[serde(default)]
    client_side: BySide,
    #[serde(default)]
    upstream_side: BySide,
    ready: Option<Ready>,
    stop: Option<Stop>,
}

/// How a target tells its version.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionCommand {
    command: Vec<String>,
    after: String,
}

/// Words that a side of the mode adds to the start command.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BySide {
    #[serde(default)]
    h1c: Vec<String>,
    #[serde(default)]
    h1: Vec<String>,
}

/// When a target may be sent load.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ready {
    connect: String,
    timeout_ms: u64,
}

/// How a target is ended.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// The signal.
    pub signal: StopSignal,
    /// Milliseconds after which it is killed.
    pub timeout_ms: u64,
}

/// Signals that ask a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM
    Term,
    /// SIGQUIT
    Quit,
    /// SIGINT
    Int,
    /// SIGUSR1
    Usr1,
}

/// A target that can run here.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its folder's name.
    pub name: String,
    /// For people.
    pub title: String,
    /// What it is and how it is set up, in a sentence or two.
    pub about: String,
    /// The modes that it supports.
    pub modes: Vec<Mode>,
    /// What its version command said; empty when it has none.
    pub version: String,
    directory: PathBuf,
    description: Description,
}

/// What a target needs for one run: files, command, ready check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Names and contents of the files to write into the run's directory.
    pub files: Vec<(String, String)>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The address whose accepting a connection means ready.
    pub ready: String,
    /// Milliseconds that this may take.
    pub ready_timeout_ms: u64,
}

impl Target {
    /// Whether it is a process at all: `direct` is none.
    pub fn is_process(&self) -> bool {
        !self.description.start.is_empty()
    }

    /// How to end it.
    pub fn stop(&self) -> Stop {
        self.description.stop.unwrap_or(Stop { signal: StopSignal::Term, timeout_ms: 2000 })
    }

    /// Renders what a run in `mode` needs; `None` when the target is no process.
    pub fn prepare(&self, mode: Mode, values: &Values) -> Result<Option<Prepared>, LabError> {
        let (Some(ready), Some(upstream)) = (&self.description.ready, mode.upstream()) else {
            return Ok(None);
        };
        let values =
            values.clone().with("client_side", mode.client().name()).with("upstream_side", upstream.name());
        let description = self.directory.join("target.toml");
        let source = description.display();
        let mut files = Vec::new();
        for name in values.render_all(&source, &self.description.files)? {
            let path = self.directory.join(&name);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| ConfigError::new(&source, format!("files: {}: {error}", path.display())))?;
            files.push((name, values.render(path.display(), &text)?));
        }
        let mut command = values.render_all(&source, &self.description.start)?;
        command.extend(values.render_all(&source, self.description.client_side.of(mode.client()))?);
        command.extend(values.render_all(&source, self.description.upstream_side.of(upstream))?);
        let connect = values.render(&source, &ready.connect)?;
        Ok(Some(Prepared { files, command, ready: connect, ready_timeout_ms: ready.timeout_ms }))
    }

    fn read(directory: &Path, name: &str) -> Result<Description, ConfigError> {
        let path = directory.join(name).join("target.toml");
        let text = std::fs::read_to_string(&path).map_err(|error| {
            let known = folders(directory).join(", ");
            ConfigError::new(path.display(), format!("target `{name}`: {error}; targets here are: {known}"))
        })?;
        let description: Description =
            toml::from_str(&text).map_err(|error| ConfigError::toml(path.display(), &text, &error))?;
        let wrong = |key, message: &str| ConfigError::key(path.display(), &text, key, message);
        if description.modes.is_empty() {
            return Err(wrong("modes", "empty: at least one is needed"));
        }
        let process = !description.start.is_empty();
        if process != description.ready.is_some() {
            return Err(wrong("start", "`start` and `[ready]` come together or not at all"));
        }
        match description.modes.iter().find(|mode| mode.upstream().is_some() != process) {
            Some(mode) if process => {
                Err(wrong("modes", &format!("`{mode}` has no gateway, but `start` is given")))
            }
            Some(mode) => Err(wrong("modes", &format!("`{mode}` needs a gateway, but `start` is missing"))),
            None => Ok(description),
        }
    }
}

impl BySide {
    fn of(&self, side: Side) -> &[String] {
        match side {
            Side::H1c => &self.h1c,
            Side::H1 => &self.h1,
        }
    }
}

/// Finds the targets of an experiment. One whose program is missing is absent, and that is no error; a description or a
/// template that cannot be read is one, whether or not the program is there.
pub fn find(experiment: &Experiment, directory: &Path, values: &Values) -> Result<Targets, LabError> {
    let mut targets = Targets::default();
    for name in &experiment.targets {
        let description = Target::read(directory, name)?;
        let mut target = Target {
            name: name.clone(),
            title: description.title.clone(),
            about: description.about.clone(),
            modes: description.modes.clone(),
            version: String::new(),
            directory: directory.join(name),
            description,
        };
        for &mode in &target.modes {
            target.prepare(mode, values)?;
        }
        match version(&target, values)? {
            Ok(version) => {
                target.version = version;
                targets.present.insert(name.clone(), target);
            }
            Err(why) => {
                targets.absent.insert(name.clone(), why);
            }
        }
    }
    Ok(targets)
}

/// The outer error is the description's fault, the inner one says why the target is absent.
fn version(target: &Target, values: &Values) -> Result<Result<String, String>, ConfigError> {
    if let Some(program) = &target.description.requires
        && on_path(program, std::env::var_os("PATH").as_deref()).is_none()
    {
        return Ok(Err(format!("{program} is not on the PATH")));
    }
    let Some(version) = &target.description.version else { return Ok(Ok(String::new())) };
    let source = target.directory.join("target.toml");
    let words = values.render_all(source.display(), &version.command)?;
    let Some((program, arguments)) = words.split_first() else {
        return Err(ConfigError::new(source.display(), "version.command: empty: a program is needed"));
    };
    let output = match Command::new(program).args(arguments).output() {
        Ok(output) => output,
        Err(error) => return Ok(Err(format!("{program}: {error}"))),
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if !output.status.success() {
        return Ok(Err(format!("`{}` failed: {}", words.join(" "), said.trim())));
    }
    match said.split_once(&version.after).and_then(|(_, rest)| rest.split_whitespace().next()) {
        Some(word) => Ok(Ok(word.to_owned())),
        None => Ok(Err(format!("`{}` does not say `{}`", words.join(" "), version.after))),
    }
}

fn on_path(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?).map(|directory| directory.join(program)).find(|file| file.is_file())
}

fn folders(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().join("target.toml").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::experiment;
    use std::fs;

    const GATEWAY: &str = "title = 'T'
about = 'A'
modes = ['h1c-h1c', 'h1-h1']
version = { command = ['echo', 'fast/1.2.3 (x)'], after = 'fast/' }
files = ['a-{{client_side}}.conf']
start = ['fast', '-f', '{{dir}}/a-{{client_side}}.conf']
[client_side]
h1 = ['--cert', '{{cert}}']
[upstream_side]
h1 = ['--tls']
[ready]
connect = '127.0.0.1:{{listen_port}}'
timeout_ms = 1000
";

    fn values() -> Values {
        Values::default().with("dir", "/d").with("cert", "/c").with("listen_port", 8080)
    }

    /// The targets of the tests' experiment, of which `fast` has this description.
    fn found(description: &str, template: &str) -> Result<Targets, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let direct = "title = 'D'\nabout = 'N'\nmodes = ['h1c']\n";
        for (name, text) in [("direct", direct), ("slow", direct), ("fast", description)] {
            let folder = directory.path().join(name);
            fs::create_dir(&folder).expect("is made");
            fs::write(folder.join("target.toml"), text).expect("is written");
        }
        for side in ["h1c", "h1"] {
            fs::write(directory.path().join(format!("fast/a-{side}.conf")), template).expect("is written");
        }
        let place = directory.path().display().to_string();
        let found = find(&experiment(), directory.path(), &values())
            .map_err(|error| error.to_string().replace(&place, ""));
        if let Ok(targets) = &found
            && let Some(fast) = targets.present.get("fast")
        {
            let prepared = fast.prepare(Mode::H1H1, &values()).expect("renders").expect("a process");
            assert_eq!(prepared.command, ["fast", "-f", "/d/a-h1.conf", "--cert", "/c", "--tls"]);
            assert_eq!(prepared.files, [("a-h1.conf".to_owned(), "port 8080".to_owned())]);
            assert_eq!(prepared.ready, "127.0.0.1:8080");
            let cleartext = fast.prepare(Mode::H1cH1c, &values()).expect("renders").expect("a process");
            assert_eq!(cleartext.command, ["fast", "-f", "/d/a-h1c.conf"]);
        }
        found
    }

    fn refused(from: &str, to: &str) -> String {
        assert!(GATEWAY.contains(from));
        found(&GATEWAY.replacen(from, to, 1), "port {{listen_port}}").expect_err("is refused")
    }

    #[test]
    fn a_target_is_rendered_for_its_mode() {
        let targets = found(GATEWAY, "port {{listen_port}}").expect("are read");
        assert_eq!(targets.present["fast"].version, "1.2.3");
        assert!(!targets.present["direct"].is_process());
    }

    #[test]
    fn what_cannot_run_here_is_absent_and_says_why() {
        let why = |from: &str, to: &str| {
            let targets = found(&GATEWAY.replacen(from, to, 1), "port {{listen_port}}").expect("are read");
            targets.absent["fast"].clone()
        };
        assert_eq!(why("files", "requires = 'no-such-program'\nfiles"), "no-such-program is not on the PATH");
        assert!(why("'echo', 'fast/1.2.3 (x)'", "'false'").starts_with("`false` failed"));
        assert_eq!(why("after = 'fast/'", "after = 'slow/'"), "`echo fast/1.2.3 (x)` does not say `slow/`");
    }

    #[test]
    fn a_wrong_description_names_file_line_and_what_is_allowed() {
        assert!(
            refused("about", "abuot")
                .starts_with("/fast/target.toml:2: unknown field `abuot`, expected one of")
        );
        assert!(refused("'h1-h1'", "'h1-h9'").starts_with("/fast/target.toml:3: unknown variant `h1-h9`"));
        assert_eq!(
            refused("'h1-h1'", "'h1'"),
            "/fast/target.toml:3: modes: `h1` has no gateway, but `start` is given"
        );
        assert!(
            refused("{{cert}}", "{{crt}}")
                .starts_with("/fast/target.toml: unknown placeholder `crt`: allowed are cert")
        );
        assert!(
            refused("a-{{client_side}}.conf']\nstart", "b.conf']\nstart")
                .contains("files: /fast/b.conf: No such file")
        );
        let template = found(GATEWAY, "x\n{{prot}}").expect_err("is refused");
        assert!(template.starts_with("/fast/a-h1c.conf:2: unknown placeholder `prot`"), "{template}");
    }

    #[test]
    fn an_unknown_target_names_those_that_there_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let error = find(&experiment(), directory.path(), &values()).expect_err("is refused").to_string();
        assert!(error.contains("target `direct`") && error.contains("targets here are: "), "{error}");
    }

    /// The experiments of this repository are read, and so are their targets, rendered for each of their modes, whether
    /// or not their programs are here.
    #[test]
    fn the_experiments_and_targets_of_this_repository_are_right() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let files: Vec<PathBuf> = std::fs::read_dir(folder)
            .expect("is there")
            .map(|entry| entry.expect("is read").path())
            .collect();
        assert!(files.len() >= 3, "{files:?}");
        for file in files {
            let options = crate::RunOptions { file: file.clone(), ..crate::RunOptions::default() };
            let (experiment, _) = Experiment::load(&options).expect("the experiment is right");
            let values = crate::executor::sample_values(Path::new("no-such-program"), &experiment);
            let targets = find(&experiment, &experiment.targets_directory(&file), &values)
                .expect("the targets are right");
            assert_eq!(targets.present.len() + targets.absent.len(), experiment.targets.len());
            assert!(targets.present.contains_key("direct") && targets.absent.contains_key("weir"));
        }
    }
}
