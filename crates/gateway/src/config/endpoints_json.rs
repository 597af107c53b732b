//! Servers as JSON, with the same values as in the configuration file: URLs, or objects with `url`, `weight` and
//! `backup`.

use super::document::Server;
use super::finding::Fault;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::de::SliceRead;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use weir_transport::Place;

/// Parses a list of servers. The error names the key of the first fault, such as `servers.1.weight`, and its position;
/// two entries for one server are a fault, too.
pub(crate) fn endpoints(json: &[u8]) -> Result<Vec<Server>, Fault> {
    let servers = parse(json, "servers", |path, json| List(path).deserialize(json))?;
    let mut places = HashMap::new();
    for (at, server) in servers.iter().enumerate() {
        if let Some(first) = places.insert(identity(&server.url), at) {
            let why = format!("duplicate server `{}`: it is servers.{first} already", server.url);
            return Err(Fault::new(format!("servers.{at}"), why));
        }
    }
    Ok(servers)
}

/// Parses one server. Fails as [`endpoints`] does, with keys such as `server.weight`.
pub(crate) fn endpoint(json: &[u8]) -> Result<Server, Fault> {
    parse(json, "server", |path, json| Entry(path).deserialize(json))
}

/// A text that identifies a server, with its host name in lower case, since host names are case-insensitive (RFC 4343).
fn identity(place: &Place) -> String {
    match place {
        Place::Url(_) | Place::Stream(_) => place.to_string().to_ascii_lowercase(),
        Place::Unix(_) => place.to_string(),
    }
}

/// The position of the value being parsed.
#[derive(Debug, Default)]
struct Path {
    index: Cell<Option<usize>>,
    field: RefCell<Option<String>>,
}

impl Path {
    fn below(&self, root: &str) -> String {
        let index = self.index.get().map(|index| format!(".{index}")).unwrap_or_default();
        let field = self.field.borrow().as_ref().map(|field| format!(".{field}")).unwrap_or_default();
        format!("{root}{index}{field}")
    }
}

fn parse<T>(
    json: &[u8],
    root: &str,
    read: impl FnOnce(&Path, &mut serde_json::Deserializer<SliceRead<'_>>) -> Result<T, serde_json::Error>,
) -> Result<T, Fault> {
    let (path, mut deserializer) = (Path::default(), serde_json::Deserializer::from_slice(json));
    let result = read(&path, &mut deserializer).and_then(|value| deserializer.end().map(|()| value));
    result.map_err(|error| Fault::new(path.below(root), error))
}

struct List<'a>(&'a Path);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = Vec<Server>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Server>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = Vec<Server>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of servers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Server>, A::Error> {
        let mut servers = Vec::new();
        loop {
            self.0.index.set(Some(servers.len()));
            match list.next_element_seed(Entry(self.0))? {
                Some(server) => servers.push(server),
                None => break,
            }
        }
        self.0.index.set(None);
        Ok(servers)
    }
}

struct Entry<'a>(&'a Path);

impl<'de> DeserializeSeed<'de> for Entry<'_> {
    type Value = Server;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Server, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entry<'_> {
    type Value = Server;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a URL, or an object with `url`, `weight` and `backup`")
    }

    fn visit_str<E: Error>(self, url: &str) -> Result<Server, E> {
        url.parse().map(Server::new).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Server, A::Error> {
        Server::deserialize(MapAccessDeserializer::new(Noting { map, path: self.0 }))
    }
}

/// An object that records its current field in `path`.
struct Noting<'a, A> {
    map: A,
    path: &'a Path,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Noting<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let field: Option<String> = self.map.next_key()?;
        self.path.field.borrow_mut().clone_from(&field);
        field.map(|field| seed.deserialize(field.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(servers: &[Server]) -> Vec<String> {
        let server = |Server { url, weight, backup }: &Server| format!("{url} {weight} {backup}");
        servers.iter().map(server).collect()
    }

    #[test]
    fn servers_are_as_in_the_file() {
        for (json, expected) in [
            ("[]", &[][..]),
            ("[\"http://a:1\", \"unix:/run/a\"]", &["http://a:1 1 false", "unix:/run/a 1 false"]),
            (
                " [ {\"url\": \"http://a:1\", \"weight\": 7}, {\"backup\": true, \"url\": \"http:\\/\\/b\"} ]\n",
                &["http://a:1 7 false", "http://b 1 true"],
            ),
        ] {
            assert_eq!(written(&endpoints(json.as_bytes()).unwrap()), expected, "{json}");
        }
        let one = endpoint(b"{\"url\": \"http://a\", \"weight\": 2}").unwrap();
        assert_eq!(
            written(&[one, endpoint(b"\"http://b\"").unwrap()]),
            ["http://a 2 false", "http://b 1 false"]
        );
    }

    #[test]
    fn faults_name_field_and_position() {
        for (json, fault) in [
            ("", "servers: EOF while parsing a value at line 1 column 0"),
            ("nonsense", "servers: expected ident at line 1 column 2"),
            ("{}", "servers: invalid type: map, expected a list of servers at line 1 column 0"),
            ("[\"http://a\"", "servers.1: EOF while parsing a list at line 1 column 11"),
            ("[\"http://a\"] x", "servers: trailing characters at line 1 column 14"),
            (
                "[\"http://a\",\n 5]",
                "servers.1: invalid type: integer `5`, expected a URL, or an object with `url`, `weight` and `backup` at line 2 column 2",
            ),
            ("[\"ftp://a\"]", "servers.0: `ftp://a`: unknown scheme `ftp`"),
            ("[{\"weight\": 1}]", "servers.0: missing field `url` at line 1 column 14"),
            (
                "[{\"url\": \"http://a\", \"wieght\": 1}]",
                "servers.0.wieght: unknown field `wieght`, expected one of `url`, `weight`, `backup` at line 1 column 29",
            ),
            (
                "[\"http://b\", {\"url\": \"http://a\", \"weight\": \"1\"}]",
                "servers.1.weight: invalid type: string \"1\", expected u32 at line 1 column ",
            ),
            (
                "[{\"url\": 1}]",
                "servers.0.url: invalid type: integer `1`, expected a string at line 1 column 10",
            ),
            ("[{\"url\": \"http://a\", \"url\": \"http://b\"}]", "servers.0.url: duplicate field `url`"),
            (
                "[\"http://a:80\", \"http://b\", {\"url\": \"HTTP://A/\"}]",
                "servers.2: duplicate server `http://",
            ),
        ] {
            let found = endpoints(json.as_bytes()).unwrap_err().to_string();
            assert!(found.starts_with(fault), "{json}: {found}");
        }
        let found = endpoint(b"{\"url\": \"http://a\", \"backup\": 1}").unwrap_err().to_string();
        assert!(found.starts_with("server.backup: invalid type: integer `1`, expected a boolean"), "{found}");
        let deep = "[".repeat(100_000);
        assert!(endpoints(deep.as_bytes()).is_err());
    }
}
