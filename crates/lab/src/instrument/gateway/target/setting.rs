//! What an experiment may set in a target: integers and strings that its templates take.

use super::words;
use serde::Deserialize;
use toml::Value;

/// A setting of a target: a placeholder in its templates with a default and, perhaps, a list of what is allowed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    /// Its value where the experiment gives none: an integer or a string, in which `{{name}}` stands for a value of the run.
    pub(crate) default: Value,
    /// What is allowed; empty: anything of the default's type.
    #[serde(default)]
    pub(crate) values: Vec<Value>,
    /// What it does, for people.
    pub(crate) about: String,
}

impl Setting {
    /// Whether an experiment may give this value. The error names it and what is allowed.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        let fits = match self.values.as_slice() {
            // A number may be given where the default is words about the run, such as "{{connections}}".
            [] => value.same_type(&self.default) || (value.is_integer() && self.default.is_str()),
            allowed => allowed.contains(value),
        };
        if fits { Ok(()) } else { Err(format!("`{value}`: allowed {}", self.allowed())) }
    }

    /// What is allowed, in words: "are 50, 100" or "is any integer".
    pub(crate) fn allowed(&self) -> String {
        match self.values.as_slice() {
            [] if self.default.is_str() => "is any string or integer".into(),
            [] => format!("is any {}", self.default.type_str()),
            values => format!("are {}", words(values)),
        }
    }

    /// What is wrong with the description itself, and in which of its keys.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        if !matches!(self.default, Value::Integer(_) | Value::String(_)) {
            let found = self.default.type_str();
            return Some((
                "default",
                format!("`{}` is a {found}: allowed is an integer or a string", self.default),
            ));
        }
        if let Some(other) = self.values.iter().find(|value| !value.same_type(&self.default)) {
            return Some((
                "values",
                format!("`{other}` is not of the default's type, {}", self.default.type_str()),
            ));
        }
        self.check(&self.default).err().map(|message| ("default", message))
    }
}

/// A setting's value as it stands in a template: a string without its quotes.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(text: &str) -> Setting {
        toml::from_str(&format!("about = 'A'\n{text}")).expect("is a setting")
    }

    #[test]
    fn a_list_of_values_is_closed() {
        let pool = setting("default = 100\nvalues = [50, 100]");
        assert_eq!(pool.check(&50.into()), Ok(()));
        assert_eq!(pool.check(&51.into()), Err("`51`: allowed are 50, 100".into()));
        assert_eq!(pool.check(&"50".into()), Err("`\"50\"`: allowed are 50, 100".into()));
    }

    #[test]
    fn without_a_list_the_type_counts() {
        let heap = setting("default = '1g'");
        assert_eq!(heap.check(&"512m".into()), Ok(()));
        assert_eq!(heap.check(&512.into()), Ok(()));
        assert_eq!(heap.check(&true.into()), Err("`true`: allowed is any string or integer".into()));
        assert_eq!(setting("default = 1").check(&1.5.into()), Err("`1.5`: allowed is any integer".into()));
    }

    #[test]
    fn a_default_that_is_not_allowed_is_a_fault() {
        let fault = |text| setting(text).fault();
        assert_eq!(fault("default = 1"), None);
        assert_eq!(fault("default = 'a'\nvalues = ['a', 'b']"), None);
        assert_eq!(fault("default = 3\nvalues = [1, 2]"), Some(("default", "`3`: allowed are 1, 2".into())));
        assert_eq!(fault("default = true").map(|(key, _)| key), Some("default"));
        assert_eq!(fault("default = 1\nvalues = [1, 'x']").map(|(key, _)| key), Some("values"));
    }
}
