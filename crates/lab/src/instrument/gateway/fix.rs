//! The settings of targets that follow advice, and the experiments that prove it.

use super::Gateway;
use super::target::text;
use crate::base::error::LabError;
use crate::experiment::SUBJECTS;
use crate::experiment::options::RunOptions;
use crate::findings::results::Results;
use crate::planning::cell::Cell;
use crate::planning::plan::Plan;
use crate::running::setup;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A setting that follows a rule of `weir advise`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The setting.
    pub setting: String,
    /// Its value in the cell.
    pub today: String,
    /// The value that the rule asks for.
    pub value: String,
}

/// The settings of a result's targets that follow rules, as the targets describe them now.
#[derive(Clone, Debug)]
pub struct Fixes(BTreeMap<String, Vec<Described>>);

/// A setting as its target describes it.
#[derive(Clone, Debug)]
struct Described {
    setting: String,
    default: String,
    fixes: BTreeMap<String, String>,
}

impl Fixes {
    /// Reads them.
    ///
    /// # Errors
    /// An invalid description of a target.
    pub fn of(results: &Results<Gateway>) -> Result<Self, LabError> {
        let targets = setup::found::<Gateway>(&results.directory)?;
        let described = targets.all().map(|target| {
            let settings = target.description.settings.iter().map(|(name, setting)| Described {
                setting: name.clone(),
                default: text(&setting.default),
                fixes: setting.fixes.iter().map(|(rule, value)| (rule.clone(), text(value))).collect(),
            });
            (target.name.clone(), settings.collect())
        });
        Ok(Self(described.collect()))
    }

    /// The setting that follows a rule in a cell; `None` if its target has none, or has that value already.
    pub fn find(&self, cell: &Cell, rule: &str) -> Option<Fix> {
        self.0.get(&cell.subject)?.iter().find_map(|one| {
            let value = one.fixes.get(rule)?.clone();
            let today = cell.level(&format!("settings.{}", one.setting));
            let today = today.map_or_else(|| one.default.clone(), |level| level.to_string());
            (today != value).then(|| Fix { setting: one.setting.clone(), today, value })
        })
    }
}

/// The experiment that compares a cell with the same cell fixed: the stored one, of that cell alone.
pub fn proof(plan: &Plan, cell: &Cell, fix: &Fix, blocks: u32, out: &Path) -> RunOptions {
    let Fix { setting, today, value } = fix;
    let quoted = |text: &str| format!("{text:?}");
    let mut set = given(&plan.arguments);
    let factors = plan.experiment.factors.iter().map(|factor| factor.key.as_str());
    let others = factors.filter(|key| !SUBJECTS.contains(key) && *key != format!("settings.{setting}"));
    set.extend(others.filter_map(|key| Some((key.to_owned(), cell.level(key)?.to_string()))));
    set.extend([
        ("target".to_owned(), format!("[{}]", quoted(&cell.subject))),
        ("baseline".to_owned(), format!("[{}]", quoted(&cell.subject))),
        ("aa".to_owned(), quoted(&cell.subject)),
        (format!("settings.{setting}"), format!("[{}, {}]", quoted(today), quoted(value))),
    ]);
    RunOptions {
        file: plan.file.clone(),
        out: Some(PathBuf::from(out)),
        blocks: Some(blocks),
        quick: plan.arguments.iter().any(|argument| argument == "--quick"),
        set,
        is_inherited: true,
        ..RunOptions::default()
    }
}

/// The values of `--set` among stored arguments.
fn given(arguments: &[String]) -> Vec<(String, String)> {
    let pairs = arguments.windows(2).filter(|pair| pair[0] == "--set");
    pairs.filter_map(|pair| RunOptions::parse_pair("--set", &pair[1]).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_given_to_the_first_run_hold_for_the_proof() {
        let arguments = ["--quick", "--set", "window_ms=500", "--set", "users=[10,20]"].map(str::to_owned);
        let expected = [("window_ms", "500"), ("users", "[10,20]")];
        assert_eq!(given(&arguments), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
}
