//! The static table (RFC 7541, appendix A).

use crate::head::{Name, NameKind, Pseudo};
use weir_http::FieldName;

/// An entry of the static table.
pub(super) struct Static {
    pub(super) name: &'static [u8],
    pub(super) value: &'static [u8],
    pub(super) kind: NameKind,
}

pub(super) const LEN: usize = 61;
const OTHER: NameKind = NameKind::Field(FieldName::Other);

const fn pseudo(name: &'static str, value: &'static str, kind: Pseudo) -> Static {
    Static { name: name.as_bytes(), value: value.as_bytes(), kind: NameKind::Pseudo(kind) }
}

const fn known(name: &'static str, known: FieldName) -> Static {
    Static { name: name.as_bytes(), value: b"", kind: NameKind::Field(known) }
}

const fn other(name: &'static str) -> Static {
    known(name, FieldName::Other)
}

/// The entries; index 1 of HPACK is the first one.
pub(super) static TABLE: [Static; LEN] = ENTRIES;

const ENTRIES: [Static; LEN] = [
    pseudo(":authority", "", Pseudo::Authority),
    pseudo(":method", "GET", Pseudo::Method),
    pseudo(":method", "POST", Pseudo::Method),
    pseudo(":path", "/", Pseudo::Path),
    pseudo(":path", "/index.html", Pseudo::Path),
    pseudo(":scheme", "http", Pseudo::Scheme),
    pseudo(":scheme", "https", Pseudo::Scheme),
    pseudo(":status", "200", Pseudo::Status),
    pseudo(":status", "204", Pseudo::Status),
    pseudo(":status", "206", Pseudo::Status),
    pseudo(":status", "304", Pseudo::Status),
    pseudo(":status", "400", Pseudo::Status),
    pseudo(":status", "404", Pseudo::Status),
    pseudo(":status", "500", Pseudo::Status),
    other("accept-charset"),
    Static { name: b"accept-encoding", value: b"gzip, deflate", kind: OTHER },
    other("accept-language"),
    other("accept-ranges"),
    other("accept"),
    other("access-control-allow-origin"),
    other("age"),
    other("allow"),
    known("authorization", FieldName::Authorization),
    other("cache-control"),
    other("content-disposition"),
    other("content-encoding"),
    other("content-language"),
    known("content-length", FieldName::ContentLength),
    other("content-location"),
    other("content-range"),
    other("content-type"),
    Static { name: b"cookie", value: b"", kind: NameKind::Cookie },
    known("date", FieldName::Date),
    other("etag"),
    known("expect", FieldName::Expect),
    other("expires"),
    other("from"),
    known("host", FieldName::Host),
    other("if-match"),
    other("if-modified-since"),
    other("if-none-match"),
    other("if-range"),
    other("if-unmodified-since"),
    other("last-modified"),
    other("link"),
    other("location"),
    known("max-forwards", FieldName::MaxForwards),
    known("proxy-authenticate", FieldName::ProxyAuthenticate),
    known("proxy-authorization", FieldName::ProxyAuthorization),
    other("range"),
    other("referer"),
    other("refresh"),
    other("retry-after"),
    other("server"),
    other("set-cookie"),
    other("strict-transport-security"),
    known("transfer-encoding", FieldName::TransferEncoding),
    other("user-agent"),
    other("vary"),
    known("via", FieldName::Via),
    known("www-authenticate", FieldName::WwwAuthenticate),
];

impl Static {
    /// Classifies the entry's name, which is valid.
    #[inline]
    pub(super) fn name_verdict(&self) -> Name {
        Name::of_kind(self.kind)
    }
}

/// The number of lengths that [`ByLength`] covers: the longest static name has 27 bytes.
const LENGTHS: usize = 28;

/// The indices of entries with a name of each length, without repeated names: `starts[n]..starts[n + 1]`.
struct ByLength {
    indices: [u8; LEN],
    starts: [u8; LENGTHS + 1],
}

static BY_LENGTH: ByLength = {
    let mut by_length = ByLength { indices: [0; LEN], starts: [0; LENGTHS + 1] };
    let (mut filled, mut length) = (0, 0);
    while length < LENGTHS {
        by_length.starts[length] = filled as u8;
        let mut at = 0;
        while at < LEN {
            // Only pseudo-fields occur in several entries, which differ in their values.
            let repeated = at > 0 && matches!(ENTRIES[at].kind, NameKind::Pseudo(_)) && same_name(at - 1, at);
            if ENTRIES[at].name.len() == length && !repeated {
                by_length.indices[filled] = at as u8 + 1;
                filled += 1;
            }
            at += 1;
        }
        length += 1;
    }
    by_length.starts[LENGTHS] = filled as u8;
    by_length
};

/// Whether two pseudo-fields are the same: two of equal length differ in the second letter.
const fn same_name(one: usize, other: usize) -> bool {
    let (one, other) = (ENTRIES[one].name, ENTRIES[other].name);
    one.len() == other.len() && one[2] == other[2]
}

/// The index of the first entry with this name, ignoring case; 0 if there is none.
#[inline]
pub(super) fn find(name: &[u8]) -> usize {
    if name.len() >= LENGTHS {
        return 0;
    }
    let (start, end) = (BY_LENGTH.starts[name.len()], BY_LENGTH.starts[name.len() + 1]);
    let candidates = &BY_LENGTH.indices[start.into()..end.into()];
    let found =
        candidates.iter().find(|index| TABLE[usize::from(**index) - 1].name.eq_ignore_ascii_case(name));
    found.copied().unwrap_or(0).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_the_names() {
        for entry in &TABLE {
            assert_eq!(Name::of(entry.name), entry.name_verdict(), "{}", entry.name.escape_ascii());
        }
    }

    #[test]
    fn each_name_is_found() {
        for entry in &TABLE {
            let first = TABLE.iter().position(|other| other.name == entry.name).unwrap();
            assert_eq!(find(&entry.name.to_ascii_uppercase()), first + 1);
        }
        for name in ["", "x", "via2", "content-typf", "access-control-allow-methods", ":protocol"] {
            assert_eq!(find(name.as_bytes()), 0, "{name}");
        }
    }
}
