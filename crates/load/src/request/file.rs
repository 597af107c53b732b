//! Request files: one JSON object per line.

use super::{check_field, check_method};
use crate::check::{Expect, sha256};
use crate::options::{CHUNKS, DEFAULT_CHUNK, RequestOptions};
use crate::target::{WEIGHTS, misplaced};
use crate::usage::{Usage, size};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Maximum total of bodies: they are held in memory.
const MOST_BODY: u64 = 1 << 30;
/// Maximum file size: the bodies, with room for base64, escapes and heads.
const LONGEST_FILE: u64 = 2 * MOST_BODY;
const MOST_REQUESTS: usize = 100_000;

/// Reads a file for `--requests`: one JSON object per line. Empty lines and lines that start with `#` are
/// skipped.
///
/// | key | value | without it |
/// | --- | --- | --- |
/// | `path` |  refused|path and query, starting with `/` | required| refused |
/// | `method` | a method | GET, or POST with a body |
/// | `headers` | object: each value a string, or a list of strings for a repeated field | none |
/// | `body` | the body, as a string | no body |
/// | `body_base64` | the body, as base64 (RFC 4648 section 4) | no body |
/// | `body_size` | the body's length, in bytes or such as `"64KiB"`; its content is arbitrary | no body |
/// | `chunked` | `true` or the size of a chunk: the body is sent in chunks, of 16 KiB or of that size | by length |
/// | `weight` | relative frequency, 1 to 1000000 | 1 |
/// | `expect` | object: `status` (200 to 999), `length` (bytes of the body), `sha256` (64 digits) | any 2xx |
///
/// ```json
/// {"path": "/", "weight": 3}
/// {"method": "PUT", "path": "/a?b=c", "headers": {"X-Id": "1"}, "body": "hello", "expect": {"status": 201}}
/// ```
/// Errors: a file that cannot be read, has no or more than 100000 requests, more than 1 GiB of bodies, or a line
/// with an unknown or duplicate key or an invalid value; they name file, line, key and value.
pub(crate) fn requests_from_file(path: &Path) -> Result<Vec<RequestOptions>, Usage> {
    let name = path.display().to_string();
    let unreadable =
        |error: std::io::Error| Usage::new("--requests", &name, &format!("a readable file ({error})"));
    let mut input = BufReader::new(File::open(path).map_err(unreadable)?.take(LONGEST_FILE + 1));
    let mut reader = Reader { name: &name, line: 0, left: MOST_BODY };
    let (mut requests, mut line, mut read) = (Vec::new(), Vec::new(), 0);
    loop {
        line.clear();
        let length = input.read_until(b'\n', &mut line).map_err(unreadable)?;
        if length == 0 {
            break;
        }
        reader.line += 1;
        read += length as u64;
        if read > LONGEST_FILE {
            return Err(Usage::new("--requests", &name, "a file of at most 2 GiB"));
        }
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        if requests.len() == MOST_REQUESTS {
            return Err(Usage::new("--requests", &name, &format!("at most {MOST_REQUESTS} requests")));
        }
        requests.push(reader.request(text)?);
    }
    if requests.is_empty() {
        return Err(Usage::new("--requests", &name, "a file with at least one request"));
    }
    Ok(requests)
}

/// The current line, and how many bytes of bodies may still follow.
struct Reader<'a> {
    name: &'a str,
    line: u64,
    left: u64,
}

impl Reader<'_> {
    fn request(&mut self, text: &[u8]) -> Result<RequestOptions, Usage> {
        let Json::Object(keys) = serde_json::from_slice(text).map_err(|error| self.no_json(text, &error))?
        else {
            return Err(self.wrong(None, &String::from_utf8_lossy(text), "an object: {\"path\": \"/\"}"));
        };
        let mut request = RequestOptions::new(String::new());
        self.once(None, &keys)?;
        for (key, value) in keys {
            let refused = |reader: &Self, expected: &str| Err(reader.wrong(Some(&key), &value, expected));
            match (key.as_str(), &value) {
                ("path", Json::Text(path)) if path.starts_with('/') && misplaced(path).is_none() => {
                    request.path.clone_from(path);
                }
                ("path", _) => {
                    return refused(
                        self,
                        "a path starting with `/`, with non-ASCII characters, spaces and # percent-encoded",
                    );
                }
                ("method", Json::Text(method)) if check_method(method).is_ok() => {
                    request.method = Some(method.clone());
                }
                ("method", _) => return refused(self, "a method: letters, digits and !#$%&'*+-.^_`|~"),
                ("headers", Json::Object(fields)) => request.fields = self.fields(fields)?,
                ("headers", _) => return refused(self, "an object: {\"Name\": \"value\"}"),
                ("body" | "body_base64" | "body_size", _) if request.body.is_some() => {
                    return refused(self, "one of body, body_base64 and body_size");
                }
                ("body" | "body_base64" | "body_size", _) => request.body = Some(self.body(&key, &value)?),
                ("chunked", Json::Flag(false)) => {}
                ("chunked", Json::Flag(true)) => request.chunk = Some(DEFAULT_CHUNK),
                ("chunked", size) => match size.size().filter(|size| CHUNKS.contains(size)) {
                    None => return refused(self, "true, false or the size of a chunk: 1 to 1GiB"),
                    size => request.chunk = size,
                },
                ("weight", Json::Number(weight)) if within_weights(*weight) => {
                    request.weight = *weight as u32;
                }
                ("weight", _) => return refused(self, "a whole number, 1 to 1000000"),
                ("expect", Json::Object(keys)) => request.expect = self.expect(keys)?,
                ("expect", _) => return refused(self, "an object: {\"status\": 200}"),
                _ => return Err(self.unknown(None, &key, KEYS)),
            }
        }
        if request.path.is_empty() {
            return Err(self.problem(None, "missing key `path`".into(), "a path starting with `/`"));
        }
        if request.chunk.is_some() && request.body.is_none() {
            return Err(self.problem(
                None,
                "`chunked` without a body".into(),
                "one of body, body_base64 and body_size",
            ));
        }
        Ok(request)
    }

    fn fields(&self, fields: &[(String, Json)]) -> Result<Vec<(String, String)>, Usage> {
        let mut all = Vec::new();
        for (name, value) in fields {
            let refused = |expected: &str| self.wrong(Some("headers"), &format!("{name}: {value}"), expected);
            let values = match value {
                Json::List(values) => values.as_slice(),
                one => std::slice::from_ref(one),
            };
            for value in values {
                let Json::Text(value) = value else {
                    return Err(refused("a string, or a list of strings"));
                };
                check_field(name, value).map_err(refused)?;
                all.push((name.clone(), value.clone()));
            }
        }
        Ok(all)
    }

    fn body(&mut self, key: &str, value: &Json) -> Result<Vec<u8>, Usage> {
        let refused = |expected| Err(self.wrong(Some(key), value, expected));
        let too_large = "at most 1 GiB in all bodies of the file";
        let body = match (key, value) {
            ("body", Json::Text(text)) => text.clone().into_bytes(),
            ("body", _) => return refused("a string; use body_base64 for bytes that are not UTF-8"),
            ("body_base64", Json::Text(text)) => match BASE64_STANDARD.decode(text) {
                Ok(bytes) => bytes,
                Err(_) => return refused("base64, with its padding"),
            },
            ("body_base64", _) => return refused("a string of base64"),
            (_, size) => match size.size() {
                Some(bytes) if bytes <= self.left => vec![b'x'; bytes as usize],
                Some(_) => return refused(too_large),
                None => return refused("a number of bytes, or a string such as \"64KiB\""),
            },
        };
        match self.left.checked_sub(body.len() as u64) {
            Some(left) => self.left = left,
            None => return refused(too_large),
        }
        Ok(body)
    }

    fn expect(&self, keys: &[(String, Json)]) -> Result<Expect, Usage> {
        self.once(Some("expect"), keys)?;
        let mut expect = Expect::default();
        for (key, value) in keys {
            let place = format!("expect.{key}");
            let refused = |expected| Err(self.wrong(Some(&place), value, expected));
            match (key.as_str(), value) {
                ("status", Json::Number(status @ 200..=999)) => expect.status = Some(*status as u16),
                ("status", _) => return refused("a final status, a whole number from 200 to 999"),
                ("length", Json::Number(length)) => expect.length = Some(*length),
                ("length", _) => return refused("a whole number of bytes"),
                ("sha256", Json::Text(text)) => match sha256(text) {
                    Ok(hash) => expect.sha256 = Some(hash),
                    Err(_) => return refused("64 hexadecimal digits"),
                },
                ("sha256", _) => return refused("a string of 64 hexadecimal digits"),
                _ => return Err(self.unknown(Some("expect"), key, "status, length, sha256")),
            }
        }
        Ok(expect)
    }

    /// A duplicate key would silently lose one of its values.
    fn once(&self, within: Option<&str>, keys: &[(String, Json)]) -> Result<(), Usage> {
        let mut names: Vec<&str> = keys.iter().map(|(key, _)| key.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(self.problem(
                within,
                format!("duplicate key `{}`", shortened(pair[0].into())),
                "each key once",
            )),
            None => Ok(()),
        }
    }

    fn no_json(&self, text: &[u8], error: &serde_json::Error) -> Usage {
        let expected = format!("JSON, one object per line (column {}: {})", error.column(), reason(error));
        self.wrong(None, &String::from_utf8_lossy(text), &expected)
    }

    fn unknown(&self, within: Option<&str>, key: &str, keys: &str) -> Usage {
        self.problem(within, format!("unknown key `{}`", shortened(key.into())), &format!("one of {keys}"))
    }

    fn wrong(&self, key: Option<&str>, value: &dyn fmt::Display, expected: &str) -> Usage {
        Usage::new(self.place(key), &shortened(value.to_string()), expected)
    }

    fn problem(&self, key: Option<&str>, problem: String, expected: &str) -> Usage {
        Usage::problem(self.place(key), problem, expected)
    }

    fn place(&self, key: Option<&str>) -> String {
        let key = key.map(|key| format!(", {key}")).unwrap_or_default();
        format!("--requests: {}, line {}{key}", self.name, self.line)
    }
}

const KEYS: &str = "path, method, headers, body, body_base64, body_size, chunked, weight, expect";

fn within_weights(weight: u64) -> bool {
    u32::try_from(weight).is_ok_and(|weight| WEIGHTS.contains(&weight))
}

/// Shortens a value for a message: a body may be large.
fn shortened(mut value: String) -> String {
    const SHOWN: usize = 200;
    if value.len() > SHOWN {
        value.truncate(value.floor_char_boundary(SHOWN));
        value.push_str("..");
    }
    value
}

/// Without the position, whose line is always 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_string()
}

/// JSON displayed as written; objects keep the order of their keys, and duplicates.
#[derive(Deserialize)]
#[serde(untagged)]
enum Json {
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<Json>),
    #[serde(deserialize_with = "entries")]
    Object(Vec<(String, Json)>),
    /// Valid for no key.
    Other(serde_json::Value),
}

impl Json {
    fn size(&self) -> Option<u64> {
        match self {
            Self::Number(bytes) => Some(*bytes),
            Self::Text(text) => size(text),
            _ => None,
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{}", serde_json::Value::from(text.as_str())),
            Self::Other(value) => value.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(Self::to_string).collect();
                write!(f, "[{}]", values.join(", "))
            }
            Self::Object(_) => f.write_str("{..}"),
        }
    }
}

fn entries<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, Json)>, D::Error> {
    struct Entries;

    impl<'de> Visitor<'de> for Entries {
        type Value = Vec<(String, Json)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            std::iter::from_fn(|| map.next_entry().transpose()).collect()
        }
    }

    deserializer.deserialize_map(Entries)
}

#[cfg(test)]
mod tests;
