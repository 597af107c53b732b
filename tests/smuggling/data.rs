//! The files of cases: TOML with escaped bytes and named texts.

use std::collections::BTreeMap;
use toml::{Table, Value};

/// A file of cases.
pub(super) struct File {
    texts: BTreeMap<String, String>,
    groups: Vec<Table>,
}

/// One case with its texts unexpanded.
pub(super) struct Entry<'a> {
    /// The case's name for messages.
    pub label: String,
    fields: &'a Table,
    texts: &'a BTreeMap<String, String>,
}

impl File {
    /// Reads a file of this directory. `more` are texts specific to this run.
    ///
    /// # Panics
    /// If the file is invalid, a group names no rule, or two cases share a name.
    pub(super) fn read(name: &str, more: &[(&str, &str)]) -> Self {
        let table: Table = std::fs::read_to_string(super::own(name)).unwrap().parse().unwrap();
        let texts = table["text"].as_table().unwrap().iter();
        let mut texts: BTreeMap<_, _> =
            texts.map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned())).collect();
        texts.extend(more.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
        let groups = table["group"].as_array().unwrap().iter().map(|group| group.as_table().unwrap().clone());
        let file = Self { texts, groups: groups.collect() };
        let mut labels: Vec<_> = file.entries().map(|entry| entry.label).collect();
        labels.sort();
        for pair in labels.windows(2) {
            assert_ne!(pair[0], pair[1], "two cases of one name");
        }
        file
    }

    /// All cases, in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.groups.iter().flat_map(move |group| {
            let about = group["about"].as_str().unwrap();
            assert!(!group["rule"].as_str().unwrap().is_empty(), "{about}: no rule");
            group["cases"].as_array().unwrap().iter().map(move |case| {
                let fields = case.as_table().unwrap();
                let label = format!("{about}: {}", fields["name"].as_str().unwrap());
                Entry { label, fields, texts: &self.texts }
            })
        })
    }
}

impl Entry<'_> {
    /// # Panics
    /// If the case has another key, which would have no effect.
    pub(super) fn has_only(&self, keys: &[&str]) {
        for key in self.fields.keys() {
            assert!(key == "name" || keys.contains(&key.as_str()), "{}: `{key}`", self.label);
        }
    }

    /// The expanded bytes of a key.
    pub(super) fn bytes(&self, key: &str) -> Option<Vec<u8>> {
        Some(self.expand(self.text(key)?))
    }

    /// The unexpanded text of a key.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.fields.get(key).map(|value| value.as_str().unwrap())
    }

    /// The expanded bytes of each element of a list; none if the key is absent.
    pub(super) fn list(&self, key: &str) -> Vec<Vec<u8>> {
        let elements = self.fields.get(key).map_or(&[][..], |value| value.as_array().unwrap());
        elements.iter().map(|element| self.expand(element.as_str().unwrap())).collect()
    }

    /// A flag; false if the key is absent.
    pub(super) fn is(&self, key: &str) -> bool {
        self.fields.get(key).and_then(Value::as_bool).unwrap_or_default()
    }

    /// A named text of this run or of the file, expanded.
    pub(super) fn named(&self, name: &str) -> Vec<u8> {
        self.expand(&format!("{{{name}}}"))
    }

    fn expand(&self, text: &str) -> Vec<u8> {
        let (mut out, mut rest) = (Vec::new(), text);
        while let Some(at) = rest.find(['\\', '{']) {
            out.extend_from_slice(&rest.as_bytes()[..at]);
            let (special, behind) = rest[at..].split_at(1);
            if special == "{" {
                let (braced, behind) = behind.split_once('}').unwrap_or_else(|| panic!("no }} in {text:?}"));
                out.extend(self.braced(braced));
                rest = behind;
            } else {
                let (byte, length) = escaped(behind).unwrap_or_else(|| panic!("a bad escape in {text:?}"));
                out.push(byte);
                rest = &behind[length..];
            }
        }
        out.extend_from_slice(rest.as_bytes());
        out
    }

    fn braced(&self, braced: &str) -> Vec<u8> {
        if let Some((unit, times)) = braced.rsplit_once('*')
            && let Ok(times) = times.parse()
        {
            return self.expand(unit).repeat(times);
        }
        let (name, argument) = braced.split_once(' ').unwrap_or((braced, ""));
        let text = self.texts.get(name).unwrap_or_else(|| panic!("no text `{name}`"));
        self.expand(&text.replace('@', argument))
    }
}

/// The byte of an escape, and the escape's length without its backslash.
fn escaped(text: &str) -> Option<(u8, usize)> {
    Some(match text.as_bytes().first()? {
        b'r' => (b'\r', 1),
        b'n' => (b'\n', 1),
        b't' => (b'\t', 1),
        b'\\' => (b'\\', 1),
        b'x' => (u8::from_str_radix(text.get(1..3)?, 16).ok()?, 3),
        _ => return None,
    })
}
