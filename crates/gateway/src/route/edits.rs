//! A route's changes to a message.

use super::hosts::path_of;
use super::normal_path::normal;
use super::template::{Template, Values};
use crate::heads::imitations::reads_as;
use weir_http::Field;

#[derive(Clone, Debug, Default)]
pub(crate) struct Edits {
    /// Names of the fields to drop.
    pub remove: Vec<Box<[u8]>>,
    /// Names and values of the fields to add.
    pub add: Vec<(Box<[u8]>, Template)>,
}

impl Edits {
    /// Merges the changes of `other`, which apply after the existing ones: fields that `other` drops are no longer
    /// added.
    pub(crate) fn extend(&mut self, other: Self) {
        self.add.retain(|(name, _)| !other.drops_name(name));
        self.remove.extend(other.remove);
        self.add.extend(other.add);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.add.is_empty()
    }

    pub(crate) fn drops(&self, buf: &[u8], field: &Field) -> bool {
        !self.remove.is_empty() && self.drops_name(field.name.of(buf))
    }

    /// Whether this field is dropped because its name, or one that servers may read as the same, is in the list of
    /// fields to drop. So a client cannot add a second value to a field that the route sets.
    pub(crate) fn drops_spelling(&self, buf: &[u8], field: &Field) -> bool {
        !self.remove.is_empty() && self.remove.iter().any(|removed| reads_as(field.name.of(buf), removed))
    }

    /// Whether the edits set, add or drop a field of this name, in any spelling.
    pub(crate) fn owns(&self, name: &[u8]) -> bool {
        let mut names = self.remove.iter().chain(self.add.iter().map(|(name, _)| name));
        names.any(|own| reads_as(name, own))
    }

    /// Whether the edits drop fields of this name, regardless of case.
    pub(crate) fn drops_name(&self, name: &[u8]) -> bool {
        self.remove.iter().any(|removed| removed.eq_ignore_ascii_case(name))
    }

    /// Appends the fields to add to a response. Their values contain no variables.
    pub(crate) fn write_fixed(&self, out: &mut Vec<u8>) {
        self.write(&Values::none(), out);
    }

    /// Appends the lines of the fields to add, with `values` for their variables.
    pub(crate) fn write(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        self.write_if(|_| true, values, out);
    }

    /// As [`Self::write`], without `Host`, which HTTP/2 replaces with `:authority`.
    pub(crate) fn write_without_host(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        self.write_if(|name| !name.eq_ignore_ascii_case(b"host"), values, out);
    }

    /// The host that the changes set, if they set one.
    pub(crate) fn host(&self, values: &Values<'_>) -> Option<Vec<u8>> {
        let (_, value) = self.add.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"host"))?;
        let mut host = Vec::new();
        value.write(values, &mut host);
        Some(host)
    }

    #[inline]
    fn write_if(&self, keeps: impl Fn(&[u8]) -> bool, values: &Values<'_>, out: &mut Vec<u8>) {
        for (name, value) in self.add.iter().filter(|(name, _)| keeps(name)) {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            value.write(values, out);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// A change to a path's prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathEdit {
    /// The prefix to remove, without a trailing slash.
    pub strip: Box<[u8]>,
    /// The prefix that replaces `strip`, without a trailing slash.
    pub add: Box<[u8]>,
}

impl PathEdit {
    /// Appends path and query for the upstream. The path is in normal form, since the prefix is removed from the text
    /// that was matched against the route.
    pub(crate) fn write(&self, target: &[u8], out: &mut Vec<u8>) {
        let path = path_of(target);
        let query = &target[path.len()..];
        self.write_path(&normal(path), out);
        out.extend_from_slice(query);
    }

    pub(super) fn changed(&self, normal: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_path(normal, &mut out);
        out
    }

    fn write_path(&self, normal: &[u8], out: &mut Vec<u8>) {
        let rest = match normal.strip_prefix(&*self.strip) {
            Some(rest) if rest.is_empty() || rest.starts_with(b"/") => rest,
            Some(_) | None => normal,
        };
        out.extend_from_slice(&self.add);
        if rest.is_empty() && self.add.is_empty() {
            out.push(b'/');
        }
        out.extend_from_slice(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_replaced() {
        for (strip, add, target, path) in [
            ("/api", "", "/api/x?q=/api", "/x?q=/api"),
            ("/api", "", "/api", "/"),
            ("/api", "", "/api?q", "/?q"),
            ("/api", "", "/api/", "/"),
            ("/api", "", "/apix", "/apix"),
            ("/api", "/v2", "/api/x", "/v2/x"),
            ("/api", "/v2", "/api", "/v2"),
            ("", "/v2", "/x", "/v2/x"),
            ("/api", "", "/x/../%61pi/y", "/y"),
        ] {
            let edit = PathEdit { strip: strip.as_bytes().into(), add: add.as_bytes().into() };
            let mut out = Vec::new();
            edit.write(target.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), path, "{strip} {add} {target}");
        }
    }
}
