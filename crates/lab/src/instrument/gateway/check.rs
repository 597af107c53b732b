//! Checks of an experiment with gateways.

use super::levels::listed;
use super::load_table;
use super::{Conditions, Load, Mode};
use crate::base::error::{ConfigError, message_of};
use crate::experiment::{Blame, Experiment, Level, insert, leaves};
use toml::{Table, Value};

/// More cells than this are a mistake.
const MOST_COMBINATIONS: usize = 20_000;

/// The keys without which no run is possible.
const NEEDED: [&str; 5] = ["target", "mode", "load_model", "connections", "bytes"];

/// Everything but the names in claims and comparisons.
pub(super) fn check(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError> {
    for key in NEEDED {
        if experiment.levels(key).is_empty() {
            let message = format!("missing: set `{key}` among the factors or the constants");
            return Err(wrong(key, message));
        }
    }
    if let Some(index) = experiment.compare.iter().position(|compare| compare.factor == "load_model") {
        let message = "`load_model`: load models do not compare; expected another factor";
        return Err(wrong(&format!("compare.{index}"), message.into()));
    }
    for (key, value) in leaves(&experiment.constants) {
        check_leaf(&key, value, wrong)?;
    }
    for factor in &experiment.factors {
        factor.levels.iter().try_for_each(|level| check_leaf(&factor.key, level, wrong))?;
    }
    check_combinations(experiment, wrong)
}

/// Whether a key takes this value if all others are valid.
pub(super) fn takes(key: &str, value: &Value) -> bool {
    check_leaf(key, value, &|key: &str, message| ConfigError::new(key, message)).is_ok()
}

fn check_leaf(key: &str, value: &Value, wrong: &Blame<'_>) -> Result<(), ConfigError> {
    if key == "target" {
        return match value.is_str() {
            true => Ok(()),
            false => Err(wrong(key, format!("`{value}`: expected a directory's name"))),
        };
    }
    if key == "load" {
        let message = "expected a table of `weir load` flags; set `load_model` for `equal-rate` or \
                       `saturated`";
        return Err(wrong(key, message.into()));
    }
    let mut table = Table::from_iter([
        ("mode".to_owned(), Value::from("h1c")),
        ("load_model".to_owned(), Value::from("saturated")),
        ("connections".to_owned(), Value::from(1)),
        ("bytes".to_owned(), Value::from(0)),
        ("warmup_ms".to_owned(), Value::from(0)),
        ("window_ms".to_owned(), Value::from(1000)),
    ]);
    insert(&mut table, key, value.clone());
    let read: Result<Conditions, _> = table.try_into();
    read.map(drop).map_err(|error| wrong(key, message_of(&error)))
}

/// All values together, in every combination of the factors' levels.
fn check_combinations(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError> {
    let levels = experiment.factors.iter().map(|factor| factor.levels.len());
    let number = levels.fold(1_usize, usize::saturating_mul);
    if number > MOST_COMBINATIONS {
        let message = format!("{number} combinations of levels: expected at most {MOST_COMBINATIONS}");
        return Err(wrong("factors", message));
    }
    check_effect(experiment, wrong)?;
    load_table::check_loops(experiment).map_err(|error| wrong(&error.source, error.message))?;
    let combinations = experiment.combinations();
    if combinations.is_empty() {
        return Err(wrong("leave_out", "leaves no combination of levels: expected fewer entries".into()));
    }
    let mut right = 0;
    let mut refused = None;
    for combination in combinations {
        let conditions = experiment.with(combination.iter().copied());
        let conditions = conditions.map_err(|error| wrong("constants", message_of(&error)))?;
        match conditions.check() {
            Ok(()) => right += 1,
            Err(error) => {
                refused.get_or_insert((error, combination));
            }
        }
    }
    let Some((ConfigError { source: key, message, .. }, combination)) = refused else { return Ok(()) };
    // If others are valid, the combination is impossible.
    let varied = combination.iter().filter(|(key, _)| experiment.levels(key).len() > 1);
    let words: Vec<String> = varied.map(|(key, value)| format!("{key}={}", Level::of(value))).collect();
    let cell = if right > 0 { format!(" (with {})", words.join(", ")) } else { String::new() };
    Err(wrong(&key, format!("{message}{cell}")))
}

/// Settings that the test server on OpenSSL ignores: it accepts any client's.
const WITHOUT_EFFECT_ON_OPENSSL: [&str; 3] = ["tls.version", "tls.suite", "tls.tickets"];

/// Settings without effect, and factors without effect in some of their cells.
fn check_effect(experiment: &Experiment, wrong: &Blame<'_>) -> Result<(), ConfigError> {
    let is_only_openssl = experiment.levels("origin").iter().any(|level| level.as_str() == "openssl")
        && experiment.modes().iter().all(|mode| !mode.client().is_tls());
    let ignored = WITHOUT_EFFECT_ON_OPENSSL.into_iter().find(|key| !experiment.levels(key).is_empty());
    if let Some(key) = ignored.filter(|_| is_only_openssl) {
        let message = "has no effect: the origin `openssl` accepts any client; expected `tls.group` or `tls.certificate`";
        return Err(wrong(key, message.into()));
    }
    let streams = experiment.levels("streams");
    let has_one = streams.is_empty() || streams.contains(&Level::new(1));
    if let Some(mode) = experiment.modes().into_iter().find(|mode| !has_one && !mode.client().is_http2()) {
        let message = format!(
            "{}: mode `{mode}` has one request at a time on a connection: expected 1 among the levels, or only modes \
             with HTTP/2 to the client, such as `h2c-h1c`",
            listed(streams)
        );
        return Err(wrong("streams", message));
    }
    let varied = experiment.factors.iter().filter(|factor| factor.levels.len() > 1);
    for factor in varied {
        if factor.key == "rate" && experiment.loads().contains(&Load::Saturated) {
            let message = "as a factor it requires `equal-rate`; remove `saturated` from `load_model`";
            return Err(wrong("rate", message.into()));
        }
        let is_cleartext = |mode: &Mode| !mode.client().is_tls() && !mode.origin().is_tls();
        if factor.key.starts_with("tls.")
            && let Some(mode) = experiment.modes().into_iter().find(is_cleartext)
        {
            let message = format!("has no effect in mode `{mode}`: expected a mode with TLS");
            return Err(wrong(&factor.key, message));
        }
    }
    Ok(())
}
