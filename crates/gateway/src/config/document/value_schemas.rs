//! The JSON Schema of values that have a parser of their own: a type in an operator's words, and a pattern that every
//! valid spelling matches.

use super::accept::{AnswerRule, RequestRule};
use super::dns::NameServer;
use super::eject::EjectOn;
use super::error_statuses::ErrorStatuses;
use super::health::Statuses;
use super::listener::{Bind, Mode, SecureScheme, Secured};
use super::retry::{Retries, Retry, RetryTable};
use super::service::{HashOn, Server};
use super::values::{UNITS_OF_SIZE, UNITS_OF_TIME, duration_text};
use crate::config::{Network, PathPattern};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::time::Duration;
use weir_http1::Rule;
use weir_tls::{Group, Suite, Version};

/// The schema of a string that matches `pattern` as a whole: without anchors, any value that contains a match would be
/// valid.
fn string(title: &str, pattern: &str) -> Schema {
    json_schema!({ "type": "string", "title": title, "pattern": format!("^({pattern})$") })
}

/// The schema of a string that is one of these names.
fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Schema {
    json_schema!({ "type": "string", "enum": names.into_iter().collect::<Vec<_>>() })
}

fn listed(item: &Schema) -> Schema {
    json_schema!({ "anyOf": [item, { "type": "array", "items": item }] })
}

/// The schema of a list; a single value needs no brackets.
pub(super) fn one_or_many<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    listed(&T::json_schema(generator))
}

/// A duration, as [`super::values::duration`] parses it.
pub(super) fn time(_: &mut SchemaGenerator) -> Schema {
    let units: Vec<_> = UNITS_OF_TIME.iter().map(|(unit, _)| *unit).collect();
    string("duration, such as `\"30s\"`", &format!(r"[0-9.]+\s*({})", units.join("|")))
}

/// A number of bytes, as [`super::values::size`] parses it.
pub(super) fn bytes(_: &mut SchemaGenerator) -> Schema {
    let units: Vec<_> = UNITS_OF_SIZE.iter().map(|(unit, _)| *unit).collect();
    json_schema!({
        "type": ["integer", "string"],
        "title": "bytes, such as `65536` or `\"64KiB\"`",
        "minimum": 0,
        "pattern": format!(r"^([0-9.]+\s*({}))$", units.join("|")),
    })
}

/// A list of cores, as [`weir_reactor::cores::Cores`] parses it.
pub(super) fn cores(_: &mut SchemaGenerator) -> Schema {
    string("cores, such as `\"0,2-3\"`", "[0-9, -]+")
}

/// A path, relative to the directory of the configuration file that contains it.
pub(super) fn path(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "title": "path" })
}

pub(super) fn paths(generator: &mut SchemaGenerator) -> Schema {
    listed(&path(generator))
}

pub(super) fn paths_by_name(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": path(generator) })
}

/// A server's URL, as [`weir_transport::Place`] parses it.
pub(super) fn place(_: &mut SchemaGenerator) -> Schema {
    string(
        "URL, such as `\"http://10.0.0.7:3000\"` or `\"tcp://10.0.0.7:5432\"`, or `\"unix:/PATH\"`",
        "[Hh][Tt][Tt][Pp][Ss]?://[^/?#]+/?|[Tt]([Cc][Pp]|[Ll][Ss])://.+:[0-9]+|unix:/[\\s\\S]+",
    )
}

/// TLS versions, as [`Version`] parses them.
pub(super) fn versions(_: &mut SchemaGenerator) -> Schema {
    listed(&one_of(Version::ALL.map(Version::name)))
}

/// Cipher suites, by both names that [`Suite`] parses.
pub(super) fn suites(_: &mut SchemaGenerator) -> Schema {
    let mut of_iana = one_of(Suite::ALL.map(Suite::iana_name));
    of_iana.insert("title".to_owned(), "the IANA name of one".into());
    listed(&json_schema!({ "anyOf": [one_of(Suite::ALL.map(Suite::name)), of_iana] }))
}

/// Groups, by all names that [`Group`] parses.
pub(super) fn groups(_: &mut SchemaGenerator) -> Schema {
    let mut aliases = one_of(Group::ALL.iter().flat_map(|group| group.aliases().iter().copied()));
    aliases.insert("title".to_owned(), "another name of one, such as `\"secp256r1\"`".into());
    listed(&json_schema!({ "anyOf": [one_of(Group::ALL.map(Group::name)), aliases] }))
}

/// Servers, as [`Server`] is written: a URL, a table, or a list of them.
pub(super) fn servers(generator: &mut SchemaGenerator) -> Schema {
    let server = json_schema!({ "anyOf": [place(generator), Server::json_schema(generator)] });
    listed(&server)
}

/// A redirect to `https`: the scheme, or a table.
pub(super) fn secured(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [SecureScheme::json_schema(generator), Secured::json_schema(generator)] })
}

/// Limits a number, or a size, to a range.
pub(super) fn within<T: Serialize>(range: RangeInclusive<T>) -> impl FnMut(&mut Schema) {
    move |schema| {
        schema.insert("minimum".to_owned(), serde_json::json!(range.start()));
        schema.insert("maximum".to_owned(), serde_json::json!(range.end()));
    }
}

/// Sets the minimum of a number.
pub(super) fn at_least(least: u32) -> impl FnMut(&mut Schema) {
    move |schema| drop(schema.insert("minimum".to_owned(), least.into()))
}

/// States the range of a duration in the title, as no keyword of JSON Schema can express it.
pub(super) fn lasting(range: RangeInclusive<Duration>) -> impl FnMut(&mut Schema) {
    let [least, most] = [range.start(), range.end()].map(|end| duration_text(*end));
    let title = format!("duration, `\"{least}\"` to `\"{most}\"`");
    move |schema| drop(schema.insert("title".to_owned(), title.clone().into()))
}

/// States the maximum duration, as [`lasting`].
pub(super) fn at_most(most: Duration) -> impl FnMut(&mut Schema) {
    let title = format!("duration, up to `\"{}\"`", duration_text(most));
    move |schema| drop(schema.insert("title".to_owned(), title.clone().into()))
}

/// Adds a default in words, for a key whose default is not a value.
pub(super) fn otherwise(default: String) -> impl FnMut(&mut Schema) {
    move |schema| {
        let text = schema.get("description").and_then(|text| text.as_str()).unwrap_or_default();
        let text = format!("{text} Default: {default}.");
        schema.insert("description".to_owned(), text.into());
    }
}

/// Implements `JsonSchema` for types whose values are strings of a certain form.
macro_rules! strings {
    ($($type:ty: $title:literal, $pattern:expr;)*) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                string($title, $pattern)
            }
        }
    )*};
}

strings! {
    Bind: "address, such as `\"0.0.0.0:443\"`, `\"[::]:443\"` or `\"unix:/PATH\"`", "unix:/[\\s\\S]+|.+:[0-9]+";
    Mode: "permissions in octal, such as `\"660\"`", "[0-7]{1,4}";
    Network: "network, such as `\"10.0.0.0/8\"`, `\"2001:db8::/32\"` or `\"unix\"`", "unix|[0-9a-fA-F:.]+(/[0-9]+)?";
    PathPattern: "path, such as `\"/a\"`, `\"/a/*\"`, `\"/a*\"` or `\"/a/{id}/b\"`", "/.*";
    HashOn: "`\"client\"`, `\"header:NAME\"` or `\"cookie:NAME\"`", "client|(header|cookie):.+";
    Statuses: "status, such as `\"200\"`, or a range, such as `\"200-399\"`", "[1-5][0-9]{2}(-[1-5][0-9]{2})?";
    NameServer: "`\"IP\"` or `\"IP:PORT\"`", r"[0-9a-fA-F:.\[\]]+";
    ErrorStatuses: "status, such as `\"503\"`, `\"502-504\"` or `\"5xx\"`", "[45]xx|[45][0-9]{2}(-[45][0-9]{2})?";
}

/// Implements `JsonSchema` for types whose values are names of rules.
macro_rules! rules {
    ($($type:ty: $rules:expr;)*) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                one_of($rules.map(Rule::name))
            }
        }
    )*};
}

rules! {
    RequestRule: Rule::OF_REQUESTS;
    AnswerRule: Rule::OF_RESPONSES;
}

impl JsonSchema for EjectOn {
    fn schema_name() -> Cow<'static, str> {
        "EjectOn".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let failure = json_schema!({
            "anyOf": [one_of(EjectOn::NAMES), ErrorStatuses::json_schema(generator)]
        });
        listed(&failure)
    }
}

impl JsonSchema for Retries {
    fn schema_name() -> Cow<'static, str> {
        "Retries".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [Retry::json_schema(generator), RetryTable::json_schema(generator)] })
    }
}

/// Statuses in the table of retries, where numbers need no quotes.
pub(super) fn statuses(generator: &mut SchemaGenerator) -> Schema {
    let (first, last) = ErrorStatuses::ALL.into_inner();
    let number = json_schema!({ "type": "integer", "minimum": first, "maximum": last });
    json_schema!({ "type": "array", "items": { "anyOf": [number, ErrorStatuses::json_schema(generator)] } })
}
