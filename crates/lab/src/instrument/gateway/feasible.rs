//! Requirements of an experiment on the targets and the machine, which its file alone cannot show.

use super::TlsVersion;
use super::levels::{Place as _, listed};
use super::target::{Target, Targets};
use super::template::Values;
use crate::base::error::{ConfigError, LabError};
use crate::experiment::options::RunOptions;
use crate::experiment::{Blame, Experiment, Level, get};
use crate::planning::cell::Levels;
use std::collections::BTreeSet;
use toml::{Table, Value};

const TICKETS: &str = "tls.tickets";

const VERSION: &str = "tls.version";

impl Experiment {
    /// Checks whether the targets and these cores can meet the experiment. `wrong` blames a key.
    pub(crate) fn check_feasible(
        &self,
        targets: &Targets,
        allowed: &[usize],
        wrong: &Blame<'_>,
    ) -> Result<(), ConfigError> {
        self.check_settings(targets, wrong)?;
        self.check_network(targets, wrong)?;
        self.check_cores(allowed, wrong)
    }

    /// Checks that the keys of `--set` have an effect on some target, and that this machine has the cores; `values` has
    /// every value of a run.
    /// Errors: such a key, or an invalid template.
    pub(crate) fn check_given(
        &self,
        targets: &Targets,
        options: &RunOptions,
        (values, allowed): (&Values, &[usize]),
        wrong: &Blame<'_>,
    ) -> Result<(), LabError> {
        for (key, _) in options.set.iter().filter(|_| !options.is_inherited) {
            let why = match key.split_once('.') {
                None if key == "origin_servers" => no_spread(targets, values)?,
                Some(("settings", name)) => self.only_of_absent(name, targets, options),
                // Those of a file are replaced by the nearest ones, so that it runs anywhere.
                Some(("cores", _)) => {
                    get(&self.constants, key).and_then(|level| missing_core(level, allowed))
                }
                _ => None,
            };
            if let Some(why) = why {
                return Err(wrong(key, why).into());
            }
        }
        Ok(())
    }

    /// Why a setting has no effect: only targets have it that are absent and stay so.
    fn only_of_absent(&self, name: &str, targets: &Targets, options: &RunOptions) -> Option<String> {
        let has = |target: &Target| target.description.settings.contains_key(name);
        let stays = |target: &str| match options.install {
            Some(install) => !install,
            None => !self.install.iter().any(|wanted| wanted == target),
        };
        let absent = targets.absent.values().map(|absent| &absent.target).filter(|target| has(target));
        let absent: Vec<&str> = absent.map(|target| target.name.as_str()).collect();
        // Without any present target the run ends with the reasons why each is absent.
        let is_measured = !targets.present.is_empty() && !targets.present.values().any(has);
        let is_alone = is_measured && absent.iter().all(|target| stays(target));
        is_alone.then(|| {
            format!(
                "has no effect: only {} has it, which is absent: expected another target",
                absent.join(", ")
            )
        })
    }

    /// Checks the number of tickets, if there are any: in TLS 1.3. A target that cannot send it gets a remark in its
    /// title. Of several numbers, it has cells with those that it can send ([`Self::is_sent`]).
    /// Errors: several numbers of which a target sends none.
    pub(crate) fn check_tickets(&self, targets: &mut Targets) -> Result<(), ConfigError> {
        let asked = self.any_conditions()?.tls.tickets;
        if !self.has_tls_13() {
            return Ok(());
        }
        let levels = self.levels(TICKETS);
        for target in targets.present.values_mut() {
            let Some(sent) = target.description.tickets.as_deref() else { continue };
            if levels.len() > 1 {
                if self.unsent(target).len() < levels.len() {
                    continue;
                }
                let (levels, name, sent) = (listed(levels), &target.name, listed(sent));
                let message = format!(
                    "`{levels}`: target `{name}` sends only {sent}: expected that too, one value, or other targets"
                );
                return Err(ConfigError::new(TICKETS, message));
            }
            // The actual number instead of the requested one.
            let nearest = sent.iter().min_by_key(|number| number.abs_diff(asked));
            if let Some(nearest) = nearest.filter(|nearest| **nearest != asked) {
                target.title.push_str(&format!(" (tickets: {nearest}, not {asked})"));
            }
        }
        Ok(())
    }

    /// Whether some cell has TLS 1.3 on the client's side.
    fn has_tls_13(&self) -> bool {
        let versions = self.levels(VERSION);
        let is_13 = versions.is_empty() || versions.contains(&Level::new(TlsVersion::V1_3));
        is_13 && self.modes().iter().any(|mode| mode.client().is_tls())
    }

    /// The varied numbers of tickets that a target cannot send.
    pub(super) fn unsent(&self, target: &Target) -> Vec<Level> {
        let mut levels = self.levels(TICKETS);
        let is_limited = levels.len() > 1 && self.has_tls_13();
        let Some(sent) = target.description.tickets.as_ref().filter(|_| is_limited) else {
            return Vec::new();
        };
        levels.retain(|level| !sent.iter().any(|number| Level::new(number) == *level));
        levels
    }

    /// Whether a target can send the tickets of a cell at these levels: with others, cells would not differ. In TLS 1.2
    /// there is one ticket, whatever the number.
    pub(super) fn is_sent(&self, target: &Target, levels: &Levels) -> bool {
        let version = levels.get(VERSION).cloned().or_else(|| self.levels(VERSION).pop());
        let is_13 = version.is_none_or(|version| version == Level::new(TlsVersion::V1_3));
        let number = levels.get(TICKETS).filter(|_| is_13 && levels.mode().client().is_tls());
        number.is_none_or(|number| !self.unsent(target).contains(number))
    }

    /// Checks that gateways keep a counterpart if the file, whose text this is, has a baseline.
    pub(crate) fn check_baseline(
        &self,
        text: &str,
        targets: &Targets,
        wrong: &Blame<'_>,
    ) -> Result<(), ConfigError> {
        let file: Table = toml::from_str(text).unwrap_or_default();
        let of_file = file.get("baseline").and_then(Value::as_array).cloned().unwrap_or_default();
        let of_file: Vec<&str> = of_file.iter().filter_map(Value::as_str).collect();
        let is_gateway =
            |target: &&Target| target.description.modes.iter().any(|mode| mode.upstream().is_some());
        let mut gateways = targets.present.values().filter(is_gateway);
        let is_asked = self.baseline.is_empty() && self.compare.is_empty() && !of_file.is_empty();
        match (is_asked, gateways.next(), gateways.next()) {
            (true, Some(first), Some(_)) => {
                let message = format!(
                    "excludes every baseline of the file ({}); choose the target to compare the others with, such \
                     as --set 'baseline=[\"{}\"]'",
                    listed(of_file),
                    first.name
                );
                Err(wrong("target", message))
            }
            _ => Ok(()),
        }
    }

    /// Checks that each setting is one of some target, present or absent, and each of its levels valid there.
    fn check_settings(&self, targets: &Targets, wrong: &Blame<'_>) -> Result<(), ConfigError> {
        let constants = self.constants.get("settings").and_then(Value::as_table);
        let constants = constants.into_iter().flatten().map(|(name, value)| (name.as_str(), value));
        let varied = self.factors.iter().filter_map(|factor| {
            let name = factor.key.strip_prefix("settings.")?;
            Some(factor.levels.iter().map(move |level| (name, level)))
        });
        for (name, value) in constants.chain(varied.flatten()) {
            let key = format!("settings.{name}");
            let mut having =
                targets.all().filter(|target| target.description.settings.contains_key(name)).peekable();
            if having.peek().is_none() {
                let known: BTreeSet<&String> =
                    targets.all().flat_map(|one| one.description.settings.keys()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { listed(known) };
                return Err(wrong(&key, format!("unknown setting: the targets have {known}")));
            }
            for target in having {
                let refused = |why| wrong(&key, format!("{}: {why}", target.name));
                target.check_setting(name, value).map_err(refused)?;
            }
        }
        Ok(())
    }

    /// Checks that each present target can be reached through the network.
    fn check_network(&self, targets: &Targets, wrong: &Blame<'_>) -> Result<(), ConfigError> {
        let on_loopback = targets.present.values().find(|target| !target.listens_anywhere());
        match on_loopback.filter(|_| self.levels("net.kind").contains(&Level::new("veth"))) {
            Some(target) => {
                let message = format!("`veth`: target `{}` listens on loopback only", target.name);
                Err(wrong("net.kind", format!("{message}: expected `loopback`, or other targets")))
            }
            None => Ok(()),
        }
    }

    /// Checks that this machine has the varied cores: on others the levels would differ in name only.
    fn check_cores(&self, allowed: &[usize], wrong: &Blame<'_>) -> Result<(), ConfigError> {
        let varied = self.factors.iter().filter(|factor| factor.key.starts_with("cores."));
        for factor in varied.filter(|factor| factor.levels.len() > 1) {
            if let Some(message) = factor.levels.iter().find_map(|level| missing_core(level, allowed)) {
                return Err(wrong(&factor.key, message));
            }
        }
        Ok(())
    }
}

/// A core of a level that this machine does not have, and those that it has.
fn missing_core(level: &Value, allowed: &[usize]) -> Option<String> {
    let has = |core: i64| usize::try_from(core).is_ok_and(|core| allowed.contains(&core));
    let mut cores = level.as_array().into_iter().flatten().filter_map(Value::as_integer);
    let core = cores.find(|core| !has(*core))?;
    let (level, allowed) = (Level::of(level), crate::planning::placement::list(allowed));
    Some(format!("`{level}`: this machine has no core {core}: expected one of {allowed}"))
}

/// Why several servers of the origin have no effect.
fn no_spread(targets: &Targets, values: &Values) -> Result<Option<String>, LabError> {
    for target in targets.all() {
        if target.spreads(values)? {
            return Ok(None);
        }
    }
    Ok(Some(
        "has no effect: no target has more than one: expected one whose files name `{{upstream_port_2}}`"
            .into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::blame;
    use super::TICKETS;
    use crate::experiment::Experiment;
    use crate::experiment::options::RunOptions;
    use crate::instrument::gateway::target::Targets;
    use crate::instrument::gateway::template::Values;
    use crate::instrument::gateway::testing::{TEXT, experiment, parse, plan, targets as made_up};
    use std::path::Path;
    use toml::Value;

    /// The targets of the tests' experiment: `fast` is present and has a pool, `slow` is absent and has a queue.
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

    /// The outcome for the experiment with this line among its factors, and with this option of `--set`.
    fn checked(factor: &str, set: Option<(&str, &str)>) -> Result<(), String> {
        let text = TEXT.replacen("[constants]", &format!("{factor}\n[constants]"), 1);
        let set = set.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let options = RunOptions { set, ..RunOptions::default() };
        let experiment = parse(&text, &options).expect("is read");
        let wrong = blame(Path::new("e.toml"), &text, &options);
        experiment.check_feasible(&targets(), &[0, 1], &wrong).map_err(|error| error.to_string())
    }

    /// Regression test: with one target not installed, an unknown setting was silently ignored.
    #[test]
    fn a_misspelt_setting_is_rejected_though_a_target_is_absent() {
        assert_eq!(checked("settings.pool = [5, 7]\nsettings.queue = [5, 7]", None), Ok(()));
        let known = "unknown setting: the targets have pool, queue";
        let refused = |factor, set| checked(factor, set).expect_err("is rejected");
        assert_eq!(
            refused("", Some(("settings.poool", "[5, 7]"))),
            format!("--set settings.poool=[5, 7]: {known}")
        );
        assert_eq!(refused("settings.poool = [5]", None), format!("e.toml:14: settings.poool: {known}"));
        let level = refused("settings.queue = [5, 6]", None);
        assert_eq!(level, "e.toml:14: settings.queue: slow: `6`: expected one of 5, 7");
    }

    /// Regression test: an error about the machine or a target did not name the line.
    #[test]
    fn cores_and_networks_that_are_not_to_be_had_are_blamed_on_their_line() {
        let refused = |factor, set| checked(factor, set).expect_err("is rejected");
        assert_eq!(
            refused("", Some(("cores.gateway", "[[0], [0, 2]]"))),
            "--set cores.gateway=[[0], [0, 2]]: `0,2`: this machine has no core 2: expected one of 0,1"
        );
        assert_eq!(
            refused("net.kind = ['veth']", None),
            "e.toml:14: net.kind: `veth`: target `fast` listens on loopback only: \
             expected `loopback`, or other targets"
        );
    }

    /// Regression test: keys that reach no target were accepted, and cores that are not here replaced by others.
    #[test]
    fn a_key_that_reaches_no_target_is_rejected() {
        let targets = targets();
        let outcome = |key: &str, value: &str, install: Option<bool>| {
            let set = vec![(key.to_owned(), value.to_owned())];
            let options = RunOptions { set, install, ..RunOptions::default() };
            let text =
                TEXT.replacen("[constants]", "settings.pool = [5]\nsettings.queue = [5]\n[constants]", 1);
            let experiment = parse(&text, &options).expect("is read");
            let wrong = blame(Path::new("e.toml"), &text, &options);
            let values = Values::default();
            let machine = (&values, &[0, 1][..]);
            experiment.check_given(&targets, &options, machine, &wrong).map_err(|error| error.to_string())
        };
        assert_eq!(outcome("settings.pool", "7", None), Ok(()));
        assert_eq!(outcome("settings.queue", "7", Some(true)), Ok(()));
        let absent = "--set settings.queue=7: has no effect: only slow has it, which is absent: expected another target";
        assert_eq!(outcome("settings.queue", "7", None), Err(absent.into()));
        let alone = "--set origin_servers=4: has no effect: no target has more than one: expected one whose files name \
                     `{{upstream_port_2}}`";
        assert_eq!(outcome("origin_servers", "4", None), Err(alone.into()));
        assert_eq!(outcome("cores.load", "[1]", None), Ok(()));
        let core = "--set cores.load=[1, 2]: `1,2`: this machine has no core 2: expected one of 0,1";
        assert_eq!(outcome("cores.load", "[1, 2]", None), Err(core.into()));
        let folder = tempfile::tempdir().expect("a directory");
        let spreads = made_up(folder.path());
        let values = Values::default().with("listen_port", 1);
        assert!(spreads.all().all(|target| !target.spreads(&values).expect("renders")));
        let file = folder.path().join("fast/target.toml");
        let text = std::fs::read_to_string(&file).expect("is there");
        std::fs::write(&file, text.replace("{{listen_port}}'", "{{upstream_port_2}}'")).expect("is written");
        let values = values.with("upstream_port_2", 1);
        let folders = crate::found::Folders::targets(Some(folder.path()));
        let found = crate::instrument::gateway::target::find(&["fast".to_owned()], &folders, &values);
        assert!(found.expect("is read").present["fast"].spreads(&values).expect("renders"));
    }

    /// The title of the target `fast` with these numbers of tickets, in an experiment in this mode with these levels.
    fn title(sent: &[u8], mode: &str, asked: &[i64]) -> Result<String, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut targets = made_up(directory.path());
        let fast = targets.present.get_mut("fast").expect("is here");
        fast.description.tickets = Some(sent.to_vec());
        let mut experiment = experiment();
        experiment.set_constant("mode", mode.into());
        match asked {
            [one] => experiment.set_constant(TICKETS, (*one).into()),
            several => experiment.set_factor(TICKETS, several.iter().copied().map(Value::from).collect()),
        }
        experiment.check_tickets(&mut targets).map_err(|error| error.to_string())?;
        let plan = plan(experiment, &targets, &RunOptions::default()).expect("is planned");
        assert!(plan.cells.iter().any(|cell| cell.subject == "fast"), "it runs");
        Ok(targets.present["fast"].title.clone())
    }

    /// Regression test: `tls.tickets=[0, 2, 4]` made cells of targets that always send 2, labelled as 0 and 4.
    #[test]
    fn several_numbers_of_which_none_is_sent_are_rejected() {
        let message =
            "tls.tickets: `0, 4`: target `fast` sends only 2: expected that too, one value, or other targets";
        assert_eq!(title(&[2], "h1-h1c", &[0, 4]), Err(message.into()));
        assert_eq!(title(&[2], "h1-h1c", &[2, 4]), Ok("T".into()));
        assert_eq!(title(&[0, 1], "h1-h1c", &[0, 1]), Ok("T".into()));
    }

    /// A rival whose number is fixed runs beside those that vary it, where all do the same.
    #[test]
    fn a_number_that_is_not_sent_makes_no_cells() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut targets = made_up(directory.path());
        targets.present.get_mut("fast").expect("is here").description.tickets = Some(vec![2]);
        let mut experiment = experiment();
        experiment.set_constant("mode", "h1-h1c".into());
        experiment.set_constant("load_model", "saturated".into());
        experiment.set_factor(TICKETS, vec![1.into(), 2.into(), 4.into()]);
        experiment.aa = None;
        let cells = |experiment: &Experiment, name: &str| -> Vec<String> {
            let plan = plan(experiment.clone(), &targets, &RunOptions::default()).expect("is planned");
            let of = plan.cells.iter().filter(|cell| cell.subject == name);
            of.map(|cell| cell.levels.word(TICKETS).to_owned()).collect()
        };
        assert_eq!(cells(&experiment, "fast"), ["2"]);
        assert_eq!(cells(&experiment, "slow"), ["1", "2", "4"]);
        let planned = plan(experiment.clone(), &targets, &RunOptions::default()).expect("is planned");
        let words = "fast with 1, 4 tickets in TLS 1.3: it sends only 2";
        assert!(planned.dropped.iter().any(|line| line == words), "{:?}", planned.dropped);
        experiment.set_constant("tls.version", "1.2".into());
        experiment.set_constant("tls.suite", "ecdhe-ecdsa-aes128-gcm-sha256".into());
        assert_eq!(cells(&experiment, "fast"), ["1", "2", "4"], "it has one ticket in any of them");
    }

    /// Regression test: with TLS 1.2 as the first of two versions the number was not checked.
    #[test]
    fn a_number_is_looked_at_where_any_cell_is_of_tls_1_3() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut targets = made_up(directory.path());
        targets.present.get_mut("fast").expect("is here").description.tickets = Some(vec![2]);
        let mut experiment = experiment();
        experiment.set_constant("mode", "h1-h1c".into());
        experiment.set_factor(TICKETS, vec![1.into(), 4.into()]);
        for (versions, is_right) in [(vec!["1.2"], true), (vec!["1.2", "1.3"], false)] {
            experiment.set_factor("tls.version", versions.into_iter().map(Value::from).collect());
            assert_eq!(experiment.check_tickets(&mut targets).is_ok(), is_right);
        }
    }

    /// Regression test: a target that sends one ticket ran among those that send two; only its description showed it.
    #[test]
    fn a_deviating_number_is_in_the_title() {
        assert_eq!(title(&[1], "h1-h1c", &[2]), Ok("T (tickets: 1, not 2)".into()));
        assert_eq!(title(&[0, 1], "h1-h1c", &[4]), Ok("T (tickets: 1, not 4)".into()));
        assert_eq!(title(&[2], "h1-h1c", &[2]), Ok("T".into()));
        assert_eq!(title(&[1], "h1c-h1c", &[2]), Ok("T".into()), "no tickets in cleartext");
    }
}
