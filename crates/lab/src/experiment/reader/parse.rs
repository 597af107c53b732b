//! Parses an experiment from the file's text and the command line's options.

use super::check;
use super::document::Document;
use super::settings::{SETTABLE, remove_unknown_subjects, with_settings};
use crate::base::error::ConfigError;
use crate::experiment::options::RunOptions;
use crate::experiment::{self, Blame, Experiment, Grammar, Level, Stop, canonical};
use std::path::Path;
use toml::Table;

/// Keys of some instruments only.
const OWN_KEYS: [&str; 6] =
    ["calibration_runs", "rate_share", "engines", "engines_directory", "scenarios", "instructions"];

/// Reads the experiment file and applies the options. Also returns the text.
/// Errors: unknown, missing, contradictory or ineffective keys and values, with their place and the allowed ones.
pub(crate) fn load<I: Grammar>(options: &RunOptions) -> Result<(Experiment, String), ConfigError> {
    let file = &options.file;
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError::new(file.display(), format!("cannot read: {error}")))?;
    Ok((parse::<I>(file, &text, options)?, text))
}

/// Parses the file's text and applies the options.
pub(crate) fn parse<I: Grammar>(
    file: &Path,
    text: &str,
    options: &RunOptions,
) -> Result<Experiment, ConfigError> {
    let source = file.display();
    let of_file: Document = toml::from_str(text).map_err(|error| ConfigError::toml(&source, text, &error))?;
    let wrong = blame(file, text, options);
    check_own_keys::<I>(text, &wrong)?;
    let changed = (!options.set.is_empty()).then(|| with_settings::<I>(text, options)).transpose()?;
    let document = changed.as_ref().unwrap_or(&of_file);
    let absolute = std::path::absolute(file)
        .map_err(|error| ConfigError::new(&source, format!("cannot determine its directory: {error}")))?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    let mut experiment = document.experiment::<I>(options, folder, &wrong)?;
    if options.set.is_empty() {
        check::all_but_claims::<I>(&experiment, &wrong)?;
        check::claims::<I>(&experiment, &wrong)?;
    } else {
        // Claims are checked against the file's own cells, as `--set` may leave none of them.
        check::claims::<I>(&of_file.experiment::<I>(options, folder, &wrong)?, &wrong)?;
        remove_unknown_subjects(&mut experiment, options);
        check::all_but_claims::<I>(&experiment, &wrong)?;
    }
    if options.quick {
        document.quick.cut::<I>(&mut experiment, options, folder, &wrong)?;
        check::all_but_claims::<I>(&experiment, &wrong)?;
    }
    for (key, _) in options.set.iter().filter(|_| !options.is_inherited) {
        check_effect::<I>(&experiment, canonical(key), &wrong)?;
    }
    settle_selectors(&mut experiment);
    experiment.instructions |= options.instructions;
    if let Some(blocks) = options.blocks {
        experiment.stop = Stop::Blocks(blocks);
    }
    Ok(experiment)
}

fn check_own_keys<I: Grammar>(text: &str, wrong: &Blame<'_>) -> Result<(), ConfigError> {
    let table: Table = toml::from_str(text).unwrap_or_default();
    let is_others = |key: &&&str| table.contains_key(**key) && !I::OWN_KEYS.contains(*key);
    match OWN_KEYS.iter().find(is_others) {
        Some(key) => Err(wrong(key, not_of::<I>())),
        None => Ok(()),
    }
}

/// Checks that a key of `--set` has an effect.
fn check_effect<I: Grammar>(
    experiment: &Experiment,
    key: &str,
    wrong: &Blame<'_>,
) -> Result<(), ConfigError> {
    if OWN_KEYS.contains(&key) && !I::OWN_KEYS.contains(&key) {
        return Err(wrong(key, not_of::<I>()));
    }
    // The others in the document apply to every instrument.
    let is_condition = OWN_KEYS.contains(&key) || !SETTABLE.contains(&key);
    match I::ignored(experiment, key).filter(|_| is_condition) {
        Some(why) => Err(wrong(key, why)),
        None => Ok(()),
    }
}

fn not_of<I: Grammar>() -> String {
    format!("unknown key for `instrument = \"{}\"`", I::NAME)
}

/// Attributes an error about a key to the `--set` option that set it, else to its line in the file.
pub(crate) fn blame<'a>(
    file: &'a Path,
    text: &'a str,
    options: &'a RunOptions,
) -> impl Fn(&str, String) -> ConfigError + 'a {
    move |key: &str, message: String| {
        let names = |name: &str| name == key || experiment::alias(key) == Some(name);
        match options.set.iter().rev().find(|(set, _)| names(canonical(set))) {
            Some((set, value)) => ConfigError::new(format!("--set {set}={value}"), message),
            None => {
                let alias = experiment::alias(key).unwrap_or(key);
                let places = ["factors.", "constants.", ""].into_iter();
                let places = places.flat_map(|place| [key, alias].map(|key| format!("{place}{key}")));
                ConfigError::one_of_keys(file.display(), text, &places.collect::<Vec<_>>(), key, message)
            }
        }
    }
}

/// The key of the subjects' directory, as spelled in this file: some instruments have their own name for it.
pub(crate) fn directory_key(text: &str, options: &RunOptions) -> &'static str {
    const SPELLINGS: [&str; 2] = ["targets_directory", "engines_directory"];
    let table: Table = toml::from_str(text).unwrap_or_default();
    let is_set = |key: &str| options.set.iter().any(|(set, _)| set == key) || table.contains_key(key);
    SPELLINGS.into_iter().find(|key| is_set(key)).unwrap_or("directory")
}

/// Removes levels common to all cells from claims and comparisons, as they select nothing.
fn settle_selectors(experiment: &mut Experiment) {
    let Experiment { factors, constants, claims, compare, scenarios, .. } = experiment;
    let is_varied = |key: &str| {
        !scenarios.is_empty() || OF_CELLS.contains(&key) || factors.iter().any(|factor| factor.key == key)
    };
    let is_same = |key: &str, level: &Level| {
        let constant = experiment::get(constants, key);
        !is_varied(key) && constant.is_some_and(|value| Level::of(value) == *level)
    };
    let selectors = claims.iter_mut().map(|claim| &mut claim.cell);
    for selector in selectors.chain(compare.iter_mut().map(|compare| &mut compare.cell)) {
        selector.retain(|key, level| !is_same(key, level));
    }
}

/// Constants that are nevertheless among the levels of cells.
const OF_CELLS: [&str; 5] = ["target", "mode", "load_model", "connections", "bytes"];
