//! How to compare two values of a condition: in one result, whose runs share their blocks.

use crate::experiment::Level;
use crate::planning::plan::Plan;
use toml::Value;
use weir_report::markup::quote;

/// The text of a condition without a value, such as a target's setting, whose default is in the target's description.
pub(super) const NOT_GIVEN: &str = "not given";

/// The same, of a key that may be null.
const NULL: &str = "null";

/// What stands for the default in the commands.
const DEFAULT: &str = "DEFAULT";

/// The commands that measure both values in one result of the plan's experiment, and compare them.
pub(super) fn commands(plan: &Plan, key: &str, values: [Value; 2]) -> String {
    let values = values.map(|value| match value.as_str() {
        Some(NOT_GIVEN | NULL) => DEFAULT.into(),
        _ => value,
    });
    let has_default = values.iter().any(|value| value.as_str() == Some(DEFAULT));
    let levels = values.each_ref().map(|value| quote(&format!("{key}={}", Level::of(value))));
    let mut words = vec!["weir run".to_owned(), quote(&plan.file.display().to_string())];
    words.extend(plan.options_without(Some(key)));
    words.extend(["--set".into(), quote(&format!("{key}={}", Value::Array(values.into())))]);
    let default =
        if has_default { format!(", with the default of `{key}` for {DEFAULT}") } else { String::new() };
    format!(
        "`{} --out out/both`, then `weir compare out/both {}`{default}",
        words.join(" "),
        levels.join(" ")
    )
}
