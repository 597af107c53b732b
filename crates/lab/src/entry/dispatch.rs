//! The instrument that an experiment or a result names.

use crate::base::error::{ConfigError, LabError};
use crate::experiment::Grammar as _;
use crate::experiment::options::RunOptions;
use crate::found;
use crate::instrument::gateway::Gateway;
use crate::instrument::stacks::Stacks;
use crate::store::Store;
use std::fs;
use std::path::Path;

// The name in experiments, which a pattern of the macro below can use wherever it is called.
pub(crate) const STACKS: &str = Stacks::NAME;

/// All of them; by default gateways.
const NAMES: [&str; 2] = [Gateway::NAME, STACKS];

/// Calls `$call::<I>(..)` for the instrument of this name.
macro_rules! of_instrument {
    ($name:expr, $module:ident::$call:ident($($argument:expr),*)) => {
        match $name {
            $crate::entry::dispatch::STACKS => {
                $module::$call::<$crate::instrument::stacks::Stacks>($($argument),*)
            }
            _ => $module::$call::<$crate::instrument::gateway::Gateway>($($argument),*),
        }
    };
}
pub(crate) use of_instrument;

/// The instrument of an experiment that is run or resumed.
pub(crate) fn of_options(options: &RunOptions) -> Result<&'static str, LabError> {
    match options.stored() {
        Some(directory) => of_result(directory),
        None => of_experiment(&options.file),
    }
}

/// The instrument that an experiment's file names; by default gateways.
pub(crate) fn of_experiment(file: &Path) -> Result<&'static str, LabError> {
    let path = found::experiment(file)?.path;
    let text = fs::read_to_string(&path).map_err(LabError::file(&path, "cannot be read"))?;
    // The full parser reports invalid TOML.
    let table: toml::Table = toml::from_str(&text).unwrap_or_default();
    let Some(name) = table.get("instrument") else { return Ok(Gateway::NAME) };
    let wrong = || {
        let message = format!("{name}: expected one of {}", NAMES.join(", "));
        ConfigError::key(path.display(), &text, "instrument", message).into()
    };
    known(name.as_str().unwrap_or_default()).ok_or_else(wrong)
}

/// The instrument of a stored result.
pub(crate) fn of_result(directory: &Path) -> Result<&'static str, LabError> {
    let name = Store::open(directory).instrument()?;
    known(&name).ok_or_else(|| {
        let message = format!("experiment.instrument: `{name}`: expected one of {}", NAMES.join(", "));
        LabError::Stored { path: directory.join("plan.json"), message }
    })
}

/// The common instrument of all these results.
pub(crate) fn of_results(directories: &[&Path]) -> Result<&'static str, LabError> {
    let Some((first, others)) = directories.split_first() else { return Ok(Gateway::NAME) };
    let name = of_result(first)?;
    for other in others {
        let found = of_result(other)?;
        if found != name {
            let (first, other) = (first.display(), other.display());
            let message = format!(
                "results of {found} do not compare with {first}, results of {name}; expected one plan"
            );
            return Err(ConfigError::new(other, message).into());
        }
    }
    Ok(name)
}

fn known(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}
