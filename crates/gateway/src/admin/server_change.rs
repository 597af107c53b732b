//! Changes to a server, parsed from a request's query.

use crate::config::Override;

/// A change of a server's state, its weight, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    is_drained: Option<bool>,
    weight: Option<Weight>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Default,
    Set(u32),
}

impl Change {
    /// Parses `state=drain`, `state=ready`, `weight=N` or `weight=default`, or one of each kind separated by `&`. The
    /// error is a message for the client.
    pub(super) fn parse(query: &[u8]) -> Result<Self, String> {
        let query = String::from_utf8_lossy(query);
        let mut change = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let is_new = match key {
                "state" => change.is_drained.replace(drained(value)?).is_none(),
                "weight" => change.weight.replace(weight(value)?).is_none(),
                _ => return Err(format!("unknown parameter `{key}`: expected `state` or `weight`")),
            };
            if !is_new {
                return Err(format!("duplicate parameter `{key}`"));
            }
        }
        if change == Self::default() {
            return Err(format!("missing parameter: expected {EXPECTED} after a `?`"));
        }
        Ok(change)
    }

    /// The override that results from applying the change to `set`.
    pub(super) fn of(self, set: Override) -> Override {
        Override {
            is_drained: self.is_drained.unwrap_or(set.is_drained),
            weight: match self.weight {
                None => set.weight,
                Some(Weight::Default) => None,
                Some(Weight::Set(weight)) => Some(weight),
            },
        }
    }
}

fn drained(value: &str) -> Result<bool, String> {
    match value {
        "drain" => Ok(true),
        "ready" => Ok(false),
        _ => Err(format!("state: invalid value `{value}`: expected `drain` or `ready`")),
    }
}

fn weight(value: &str) -> Result<Weight, String> {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse() {
        Ok(weight) if is_number && weight <= HEAVIEST => Ok(Weight::Set(weight)),
        _ if value == "default" => Ok(Weight::Default),
        _ => Err(format!("weight: invalid value `{value}`: expected 0 to {HEAVIEST}, or `default`")),
    }
}

/// The maximum weight, as in the configuration.
const HEAVIEST: u32 = 1000;

const EXPECTED: &str = "`state=drain`, `state=ready`, `weight=0` to `weight=1000` or `weight=default`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_stays() {
        let before = Override { is_drained: true, weight: Some(7) };
        for (query, is_drained, weight) in [
            ("state=ready", false, Some(7)),
            ("weight=default", true, None),
            ("weight=0&state=drain", true, Some(0)),
            ("state=ready&weight=1000", false, Some(1000)),
        ] {
            let change = Change::parse(query.as_bytes()).unwrap();
            assert_eq!(change.of(before), Override { is_drained, weight }, "{query}");
        }
    }

    #[test]
    fn what_is_no_change_is_refused_in_words() {
        for (query, why) in [
            ("", "missing parameter: expected `state=drain`, "),
            ("&", "missing parameter"),
            ("state", "state: invalid value ``: expected `drain` or `ready`"),
            ("state=up", "state: invalid value `up`: expected `drain` or `ready`"),
            ("weight=1001", "weight: invalid value `1001`: expected 0 to 1000, or `default`"),
            ("weight=+1", "weight: invalid value `+1`"),
            ("weight=", "weight: invalid value ``"),
            ("weight=99999999999", "weight: invalid value `99999999999`"),
            ("drain=1", "unknown parameter `drain`: expected `state` or `weight`"),
            ("weight=1&weight=2", "duplicate parameter `weight`"),
        ] {
            let refused = Change::parse(query.as_bytes()).unwrap_err();
            assert!(refused.starts_with(why), "{query}: {refused}");
        }
    }
}
