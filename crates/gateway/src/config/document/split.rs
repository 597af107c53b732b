//! The service of a route, or several that share its requests.

use super::Edits;
use super::value_schemas;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error};
use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

/// The target of a route's requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// The name of a service.
    Service(String),
    /// Shares of the requests.
    Split(Vec<Share>),
}

/// A share of a route's requests.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The service's name. Default: none, with `status`.
    #[serde(default)]
    pub name: Option<String>,
    /// Responds with this status, instead of forwarding the requests to a service. Default: none.
    #[serde(default)]
    #[schemars(transform = value_schemas::within(Share::STATUSES))]
    pub status: Option<u16>,
    /// The share's part of the requests, relative to the other shares; 0: none.
    #[serde(default = "one")]
    #[schemars(transform = value_schemas::within(Share::WEIGHT))]
    pub weight: u32,
    /// Changes to the fields of the share's requests, after those of the route.
    #[serde(default)]
    pub request_headers: Edits,
    /// Changes to the fields of the share's responses, after those of the route.
    #[serde(default)]
    pub response_headers: Edits,
}

impl Share {
    pub(crate) const STATUSES: RangeInclusive<u64> = 400..=599;
    pub(crate) const WEIGHT: RangeInclusive<u64> = 0..=1_000_000;
}

impl From<&str> for Target {
    fn from(name: &str) -> Self {
        Self::Service(name.to_owned())
    }
}

/// Writes `v1`, or `v1 90, v2 10`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(name) => f.write_str(name),
            Self::Split(shares) => {
                for (at, Share { name, status, weight, .. }) in shares.iter().enumerate() {
                    let separator = if at == 0 { "" } else { ", " };
                    match (name, status) {
                        (Some(name), _) => write!(f, "{separator}{name} {weight}")?,
                        (None, Some(status)) => write!(f, "{separator}status {status} {weight}")?,
                        (None, None) => write!(f, "{separator}? {weight}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "expected the name of a service, or a list of tables with `name` and `weight`";
        match toml::Value::deserialize(deserializer)? {
            toml::Value::String(name) => Ok(Self::Service(name)),
            toml::Value::Array(shares) => {
                let one = |share: toml::Value| match share {
                    toml::Value::Table(_) => {
                        share.try_into().map_err(|error| D::Error::custom(weir_toml::message_of(&error)))
                    }
                    other => Err(D::Error::custom(format!("{EXPECTED}, found {other} in it"))),
                };
                shares.into_iter().map(one).collect::<Result<_, _>>().map(Self::Split)
            }
            other => Err(D::Error::custom(format!("{EXPECTED}, found {other}"))),
        }
    }
}

impl JsonSchema for Target {
    fn schema_name() -> Cow<'static, str> {
        "Target".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = json_schema!({ "type": "string", "title": "name" });
        let share = Share::json_schema(generator);
        json_schema!({ "anyOf": [name, { "type": "array", "items": share }] })
    }
}

fn one() -> u32 {
    1
}
