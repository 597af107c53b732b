//! The normal form of paths, which routes are matched against, and the other forms in which servers read paths.

use std::borrow::Cow;

/// The normal form of a path, which routes are matched against: unreserved characters are decoded, dot segments are
/// resolved (RFC 3986 section 6.2.2), and repeated slashes are merged. Borrowed if the path has no character that
/// servers treat differently.
pub(super) fn normal(path: &[u8]) -> Cow<'_, [u8]> {
    let mut last = 0;
    // Paths are short, so one pass over the bytes is cheaper than a SIMD search.
    let is_plain = path.first() == Some(&b'/')
        && path.iter().all(|byte| {
            let follows_slash = std::mem::replace(&mut last, *byte) == b'/';
            !(matches!(byte, b'%' | b';' | b'\\') || follows_slash && matches!(byte, b'/' | b'.'))
        });
    if is_plain { Cow::Borrowed(path) } else { Cow::Owned(Reading::OF_ROUTES.of(path)) }
}

/// One of the ways in which servers read a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Whether an encoded slash separates segments.
    pub slashes: bool,
    pub backslashes: Backslashes,
    pub parameters: Parameters,
    /// Whether the path ends at an encoded NUL.
    pub nul: bool,
    pub dots: Dots,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backslashes {
    /// A backslash is a character like others.
    Kept,
    /// A backslash separates segments, and an encoded one does not (WHATWG URL Standard).
    Separate,
    /// A backslash separates segments, encoded or not.
    SeparateEncoded,
}

/// The treatment of a segment's parameters: its first semicolon and the text after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameters {
    /// The parameters are part of the segment.
    Kept,
    /// The parameters are removed after escapes are decoded.
    Removed,
    /// The parameters are removed before escapes are decoded, so an encoded slash in them does not end them.
    RemovedFirst,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dots {
    /// Dot segments are resolved after repeated slashes are merged.
    Resolved,
    /// Dot segments are resolved before repeated slashes are merged, so `..` may remove an empty segment (RFC 3986
    /// section 5.2.4).
    ResolvedFirst,
    /// Dot segments are kept, like other segments.
    Kept,
}

impl Reading {
    pub(super) const OF_ROUTES: Self = Self {
        slashes: false,
        backslashes: Backslashes::Kept,
        parameters: Parameters::Kept,
        nul: false,
        dots: Dots::Resolved,
    };

    pub(super) fn of(self, path: &[u8]) -> Vec<u8> {
        let end = if self.nul { nul(path) } else { None };
        let path = &path[..end.unwrap_or(path.len())];
        let is_end = |byte: &u8| *byte == b'/' || self.backslashes != Backslashes::Kept && *byte == b'\\';
        let path = match self.parameters {
            Parameters::RemovedFirst => self.decoded(&without_parameters(path, is_end)),
            Parameters::Kept | Parameters::Removed => self.decoded(path),
        };
        let below = if path.first().is_some_and(is_end) { &path[1..] } else { &path[..] };
        let mut segments: Vec<&[u8]> = Vec::new();
        let mut ends_in_slash = false;
        for segment in below.split(is_end) {
            let end = match self.parameters {
                Parameters::Removed => memchr::memchr(b';', segment),
                Parameters::Kept | Parameters::RemovedFirst => None,
            };
            let segment = &segment[..end.unwrap_or(segment.len())];
            let is_dots = self.dots != Dots::Kept && matches!(segment, b"." | b"..");
            ends_in_slash = is_dots || segment.is_empty();
            match segment {
                b"" if self.dots != Dots::ResolvedFirst => {}
                b"." if is_dots => {}
                b".." if is_dots => drop(segments.pop()),
                segment => segments.push(segment),
            }
        }
        if self.dots == Dots::ResolvedFirst {
            segments.retain(|segment| !segment.is_empty());
        }
        let mut out = Vec::with_capacity(path.len() + 2);
        for segment in &segments {
            out.push(b'/');
            out.extend_from_slice(segment);
        }
        if ends_in_slash || segments.is_empty() {
            out.push(b'/');
        }
        out
    }

    /// Decodes once the characters that are plain in this reading, and writes all other escapes in upper case.
    pub(super) fn decoded(self, path: &[u8]) -> Vec<u8> {
        let is_plain = |byte: u8| match byte {
            b'/' => self.slashes,
            b'\\' => self.backslashes == Backslashes::SeparateEncoded,
            byte => byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
        };
        let mut out = Vec::with_capacity(path.len());
        let mut rest = path;
        while let Some(at) = memchr::memchr(b'%', rest) {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let Some(byte) = rest.get(1..3).and_then(hex) else {
                out.push(b'%');
                rest = &rest[1..];
                continue;
            };
            if is_plain(byte) {
                out.push(byte);
            } else {
                out.extend_from_slice(&rest[..3].to_ascii_uppercase());
            }
            rest = &rest[3..];
        }
        out.extend_from_slice(rest);
        out
    }
}

/// A path without the parameters of its segments. `is_end` returns true for the bytes that end a parameter.
fn without_parameters(path: &[u8], is_end: impl Fn(&u8) -> bool) -> Vec<u8> {
    let mut is_parameter = false;
    let mut out = path.to_vec();
    out.retain(|byte| {
        is_parameter = !is_end(byte) && (is_parameter || *byte == b';');
        !is_parameter
    });
    out
}

/// The position of the first encoded NUL.
pub(super) fn nul(path: &[u8]) -> Option<usize> {
    path.windows(3).position(|text| text == b"%00")
}

/// The byte with these two hexadecimal digits.
pub(super) fn hex(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(digits[0])? * 16 + digit(digits[1])?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_a_path_have_one_form() {
        for (path, form) in [
            ("/a/b", "/a/b"),
            ("/a.b/c.d", "/a.b/c.d"),
            ("/%61/b", "/a/b"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%252fb", "/a%252fb"),
            ("/a;b/c", "/a;b/c"),
            ("/a\\b", "/a\\b"),
            ("/a/./b", "/a/b"),
            ("/x/../a", "/a"),
            ("/x/%2e%2E/a", "/a"),
            ("/../../a", "/a"),
            ("//a///b", "/a/b"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/a//", "/a/"),
            ("/%", "/%"),
            ("/%zz%4", "/%zz%4"),
            ("/.hidden", "/.hidden"),
            ("", "/"),
            ("*", "/*"),
        ] {
            assert_eq!(String::from_utf8_lossy(&normal(path.as_bytes())), form, "{path}");
        }
    }
}
