//! What an experiment asks of the targets and of the machine, which its file alone cannot tell.

use super::target::{Target, Targets};
use crate::error::ConfigError;
use crate::experiment::{Experiment, Level};
use crate::instrument::Blame;
use std::collections::BTreeSet;
use toml::{Table, Value};

impl Experiment {
    /// Whether the targets and these cores can do what is asked of them. `wrong` blames a key.
    pub(crate) fn check_here(
        &self,
        targets: &Targets,
        allowed: &[usize],
        wrong: &Blame<'_>,
    ) -> Result<(), ConfigError> {
        self.check_settings(targets, wrong)?;
        self.check_network(targets, wrong)?;
        self.check_cores(allowed, wrong)
    }

    /// Whether gateways are left with nothing to compare them with, where the file, whose text this is, has a baseline.
    pub(crate) fn check_baseline(
        &self,
        text: &str,
        targets: &Targets,
        wrong: &Blame<'_>,
    ) -> Result<(), ConfigError> {
        let file: Table = toml::from_str(text).unwrap_or_default();
        let of_file = file.get("baseline").and_then(Value::as_array).cloned().unwrap_or_default();
        let of_file: Vec<&str> = of_file.iter().filter_map(Value::as_str).collect();
        let is_gateway = |target: &&Target| target.modes.iter().any(|mode| mode.upstream().is_some());
        let mut gateways = targets.present.values().filter(is_gateway);
        let is_asked = self.baseline.is_empty() && self.compare.is_empty() && !of_file.is_empty();
        match (is_asked, gateways.next(), gateways.next()) {
            (true, Some(first), Some(_)) => {
                let message = format!(
                    "leaves none of the baselines of the file ({}); say which target the others are compared with, such \
                     as --set 'baseline=[\"{}\"]'",
                    of_file.join(", "),
                    first.name
                );
                Err(wrong("target", message))
            }
            _ => Ok(()),
        }
    }

    /// Whether each setting is one of some target, here or absent, and each of its levels allowed there.
    fn check_settings(&self, targets: &Targets, wrong: &Blame<'_>) -> Result<(), ConfigError> {
        let constants = self.constants.get("settings").and_then(Value::as_table);
        let constants = constants.into_iter().flatten().map(|(name, value)| (name.as_str(), value));
        let varied = self.factors.iter().filter_map(|factor| {
            let name = factor.key.strip_prefix("settings.")?;
            Some(factor.levels.iter().map(move |level| (name, level)))
        });
        for (name, value) in constants.chain(varied.flatten()) {
            let key = format!("settings.{name}");
            let mut having = targets.all().filter(|target| target.settings().contains_key(name)).peekable();
            if having.peek().is_none() {
                let known: BTreeSet<&String> = targets.all().flat_map(|one| one.settings().keys()).collect();
                let known = known.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() { "none".to_owned() } else { known };
                return Err(wrong(
                    &key,
                    format!("none of the targets has such a setting: they have {known}"),
                ));
            }
            for target in having {
                let refused = |why| wrong(&key, format!("{}: {why}", target.name));
                target.check_setting(name, value).map_err(refused)?;
            }
        }
        Ok(())
    }

    /// Whether each target that is here can be reached through the network.
    fn check_network(&self, targets: &Targets, wrong: &Blame<'_>) -> Result<(), ConfigError> {
        let on_loopback = targets.present.values().find(|target| !target.listens_anywhere());
        match on_loopback.filter(|_| self.levels("net.kind").contains(&Level::new("veth"))) {
            Some(target) => {
                let message = format!("`veth`: target `{}` listens on loopback alone", target.name);
                Err(wrong("net.kind", format!("{message}: allowed is `loopback`, or other targets")))
            }
            None => Ok(()),
        }
    }

    /// Whether this machine has the cores that are varied: on others the levels would be told apart by their names alone.
    fn check_cores(&self, allowed: &[usize], wrong: &Blame<'_>) -> Result<(), ConfigError> {
        let varied = self.factors.iter().filter(|factor| factor.key.starts_with("cores."));
        for factor in varied.filter(|factor| factor.levels.len() > 1) {
            for level in &factor.levels {
                let cores = level.as_array().into_iter().flatten().filter_map(Value::as_integer);
                let has = |core: i64| usize::try_from(core).is_ok_and(|core| allowed.contains(&core));
                if let Some(core) = cores.into_iter().find(|core| !has(*core)) {
                    let (level, allowed) = (Level::of(level), crate::placement::list(allowed));
                    let message =
                        format!("`{level}`: this machine has no core {core}: allowed are {allowed}");
                    return Err(wrong(&factor.key, message));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::blame;
    use crate::instrument::gateway::target::Targets;
    use crate::instrument::gateway::template::Values;
    use crate::instrument::gateway::testing::{TEXT, parse};
    use crate::options::RunOptions;
    use std::path::Path;

    /// The targets of the tests' experiment: `fast` is here and has a pool, `slow` is absent and has a queue.
    fn targets() -> Targets {
        let directory = tempfile::tempdir().expect("a directory");
        let setting = |name| format!("[settings.{name}]\ndefault = 5\nvalues = [5, 7]\nabout = 'A'\n");
        let fast =
            "modes = ['h1c-h1c']\nstart = ['true']\nready = { connect = '127.0.0.1:1', timeout_ms = 1 }\n";
        let slow = "modes = ['h1c']\nrequires = 'no-such-program'\n";
        for (name, text) in [
            ("direct", "modes = ['h1c']\n".to_owned()),
            ("fast", format!("{fast}{}", setting("pool"))),
            ("slow", format!("{slow}{}", setting("queue"))),
        ] {
            let folder = directory.path().join(name);
            std::fs::create_dir(&folder).expect("is made");
            let text = format!("title = 'T'\nabout = 'A'\n{text}");
            std::fs::write(folder.join("target.toml"), text).expect("is written");
        }
        let names = ["direct", "fast", "slow"].map(str::to_owned);
        crate::instrument::gateway::target::find(
            &names,
            &crate::found::Folders::targets(Some(directory.path())),
            &Values::default(),
        )
        .expect("are read")
    }

    /// What is said of the experiment with such a line among its factors, and with such an option of `--set`.
    fn said(factor: &str, set: Option<(&str, &str)>) -> Result<(), String> {
        let text = TEXT.replacen("[constants]", &format!("{factor}\n[constants]"), 1);
        let set = set.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let options = RunOptions { set, ..RunOptions::default() };
        let experiment = parse(&text, &options).expect("is read");
        let wrong = blame(Path::new("e.toml"), &text, &options);
        experiment.check_here(&targets(), &[0, 1], &wrong).map_err(|error| error.to_string())
    }

    /// With one target not installed, a setting that no target has was ignored without a word.
    #[test]
    fn a_misspelt_setting_is_refused_though_a_target_is_absent() {
        assert_eq!(said("settings.pool = [5, 7]\nsettings.queue = [5, 7]", None), Ok(()));
        let known = "none of the targets has such a setting: they have pool, queue";
        let refused = |factor, set| said(factor, set).expect_err("is refused");
        assert_eq!(
            refused("", Some(("settings.poool", "[5, 7]"))),
            format!("--set settings.poool=[5, 7]: {known}")
        );
        assert_eq!(refused("settings.poool = [5]", None), format!("e.toml:14: settings.poool: {known}"));
        let level = refused("settings.queue = [5, 6]", None);
        assert_eq!(level, "e.toml:14: settings.queue: slow: `6`: allowed are 5, 7");
    }

    /// What the machine or a target cannot do was said without the line that asks for it.
    #[test]
    fn cores_and_networks_that_are_not_to_be_had_are_blamed_on_their_line() {
        let refused = |factor, set| said(factor, set).expect_err("is refused");
        assert_eq!(
            refused("", Some(("cores.gateway", "[[0], [0, 2]]"))),
            "--set cores.gateway=[[0], [0, 2]]: `0,2`: this machine has no core 2: allowed are 0,1"
        );
        assert_eq!(
            refused("net.kind = ['veth']", None),
            "e.toml:14: net.kind: `veth`: target `fast` listens on loopback alone: \
             allowed is `loopback`, or other targets"
        );
    }
}
