//! Templates: text in which `{{name}}` stands for a value of the run.

use crate::error::{ConfigError, line_at};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

/// The values of one run by their names.
#[derive(Clone, Debug, Default)]
pub struct Values(BTreeMap<Cow<'static, str>, String>);

impl Values {
    /// Adds a value.
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Display) -> Self {
        self.0.insert(name.into(), value.to_string());
        self
    }

    /// Whether there is a value of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Replaces every `{{name}}` in `text`. A name that is not known is an error that names `source` and its line.
    pub fn render(&self, source: impl Display, text: &str) -> Result<String, ConfigError> {
        let mut rendered = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            let offset = text.len() - rest.len() + start;
            let wrong = |message: String| ConfigError {
                source: source.to_string(),
                line: Some(line_at(text, offset)),
                message,
            };
            let Some(length) = rest[start + 2..].find("}}") else {
                return Err(wrong("`{{` without its `}}`".into()));
            };
            let name = rest[start + 2..start + 2 + length].trim();
            let Some(value) = self.0.get(name) else {
                let allowed: Vec<_> = self.0.keys().map(AsRef::as_ref).collect();
                return Err(wrong(format!(
                    "unknown placeholder `{name}`: allowed are {}",
                    allowed.join(", ")
                )));
            };
            rendered.push_str(&rest[..start]);
            rendered.push_str(value);
            rest = &rest[start + 2 + length + 2..];
        }
        rendered.push_str(rest);
        Ok(rendered)
    }

    /// Renders each of a command's words.
    pub fn render_all(&self, source: impl Display, words: &[String]) -> Result<Vec<String>, ConfigError> {
        words
            .iter()
            .map(|word| self.render(&source, word).map_err(|error| ConfigError { line: None, ..error }))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        Values::default().with("listen_port", 8080).with("dir", "/d")
    }

    #[test]
    fn values_are_put_in() {
        let text = "listen {{listen_port}};\nroot {{ dir }}/x; { } }}";
        assert_eq!(values().render("t", text).expect("renders"), "listen 8080;\nroot /d/x; { } }}");
    }

    #[test]
    fn unknown_and_open_placeholders_name_their_line() {
        let message = |text| values().render("nginx.conf", text).expect_err("is refused").to_string();
        assert_eq!(
            message("a\n{{port}}"),
            "nginx.conf:2: unknown placeholder `port`: allowed are dir, listen_port"
        );
        assert_eq!(message("{{dir}}\n\n{{dir"), "nginx.conf:3: `{{` without its `}}`");
    }

    #[test]
    fn a_value_is_not_rendered_again() {
        let values = Values::default().with("dir", "{{dir}}");
        assert_eq!(values.render("t", "{{dir}}").expect("renders"), "{{dir}}");
    }
}
