//! Encoding without a dynamic table (RFC 7541, section 6).

use super::table::SEPARATORS;
use super::{huffman, integer, statics};
use weir_http::Field;

/// Writes a field block: entries of the static table, and literals without indexing. The first block of a connection
/// starts with [`Encoder::without_table`].
#[derive(Debug)]
pub struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    /// Bytes of the fields as lines of text.
    lines: usize,
}

/// Indices of the static table.
mod index {
    pub(super) const AUTHORITY: usize = 1;
    pub(super) const METHOD: usize = 2;
    pub(super) const PATH: usize = 4;
    pub(super) const SCHEME_HTTP: usize = 6;
    pub(super) const SCHEME_HTTPS: usize = 7;
    pub(super) const STATUS: usize = 8;
    pub(super) const AUTHORIZATION: usize = 23;
    pub(super) const COOKIE: usize = 32;
    pub(super) const PROXY_AUTHORIZATION: usize = 49;
    pub(super) const SET_COOKIE: usize = 55;
}

impl<'a> Encoder<'a> {
    /// An encoder that appends to `out`.
    #[must_use]
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, lines: 0 }
    }

    /// The bytes of the fields so far as lines of text: name, value and 4 bytes each. Fields of [`Encoder::encoded`]
    /// count with their encoded length.
    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    /// Sets the size of the peer's table to 0, which is valid for every later SETTINGS_HEADER_TABLE_SIZE (RFC 7541,
    /// section 4.2). Call only before the first field of a block.
    pub fn without_table(&mut self) {
        self.out.push(0x20);
    }

    /// Appends the pseudo-fields of any request except a CONNECT without a protocol. They precede all fields (RFC 9113,
    /// section 8.3.1). Omits an empty authority.
    pub fn request(&mut self, method: &[u8], scheme: crate::Scheme, authority: &[u8], path: &[u8]) {
        self.named(index::METHOD, method, false);
        match scheme {
            crate::Scheme::Http => self.named(index::SCHEME_HTTP, b"http", false),
            crate::Scheme::Https => self.named(index::SCHEME_HTTPS, b"https", false),
        }
        if !authority.is_empty() {
            self.named(index::AUTHORITY, authority, false);
        }
        self.named(index::PATH, path, false);
    }

    /// Appends the protocol of an extended CONNECT, after the pseudo-fields of [`Self::request`] (RFC 8441, section 4).
    pub fn protocol(&mut self, protocol: &[u8]) {
        self.any_field(b":protocol", protocol, false);
    }

    /// Appends the status of a response, 100 to 999, as its pseudo-field (RFC 9113, section 8.3.2).
    pub fn status(&mut self, status: u16) {
        let digit = |n: u16| b'0' + (n % 10) as u8;
        self.named(index::STATUS, &[digit(status / 100), digit(status / 10), digit(status)], false);
    }

    /// Appends a field, with its name in lower case, as RFC 9113, section 8.2.1 requires. The caller omits
    /// connection-specific fields (section 8.2.2). Credentials and cookies are marked so that no hop indexes them (RFC
    /// 7541, section 7.1.3).
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        self.any_field(name, value, false);
    }

    /// Appends the fields that `keep` accepts; `bytes` are the head's bytes.
    pub fn fields(&mut self, bytes: &[u8], fields: &[Field], mut keep: impl FnMut(&Field) -> bool) {
        for field in fields.iter().filter(|field| keep(field)) {
            self.any_field(field.name.of(bytes), field.value.of(bytes), field.never_indexed);
        }
    }

    /// Appends fields that another encoder wrote. They stay valid in every later block, since encoded fields refer to
    /// no dynamic table.
    #[inline]
    pub fn encoded(&mut self, fields: &[u8]) {
        self.out.extend_from_slice(fields);
        self.lines += fields.len();
    }

    #[inline]
    fn any_field(&mut self, name: &[u8], value: &[u8], never_indexed: bool) {
        match statics::find(name) {
            0 => {
                self.lines += name.len() + value.len() + SEPARATORS;
                self.out.push(literal(never_indexed));
                self.name(name);
                self.string(value);
            }
            index => {
                let is_credential = matches!(
                    index,
                    index::AUTHORIZATION | index::COOKIE | index::PROXY_AUTHORIZATION | index::SET_COOKIE
                );
                self.named(index, value, never_indexed || is_credential);
            }
        }
    }

    /// Writes a field with the name of a static entry, or the entry itself if it has the same value.
    #[inline]
    fn named(&mut self, index: usize, value: &[u8], never_indexed: bool) {
        let name = statics::TABLE[index - 1].name;
        self.lines += name.len() + value.len() + SEPARATORS;
        let same_name = statics::TABLE[index - 1..].iter().take_while(|entry| entry.name == name);
        match same_name.map(|entry| entry.value).position(|known| known == value) {
            Some(offset) if !never_indexed => self.indexed(index + offset),
            _ => {
                integer::write(index, 4, literal(never_indexed), self.out);
                self.string(value);
            }
        }
    }

    fn indexed(&mut self, index: usize) {
        integer::write(index, 7, 0x80, self.out);
    }

    /// Writes a name in lower case. Names with capitals, from HTTP/1 clients, are short and stay uncompressed.
    fn name(&mut self, name: &[u8]) {
        if name.iter().any(u8::is_ascii_uppercase) {
            integer::write(name.len(), 7, 0, self.out);
            self.out.extend(name.iter().map(u8::to_ascii_lowercase));
        } else {
            self.string(name);
        }
    }

    /// Writes a string literal, with Huffman codes if these are shorter (RFC 7541, section 5.2).
    #[inline]
    fn string(&mut self, text: &[u8]) {
        let coded = huffman::encoded_length(text);
        if coded < text.len() {
            integer::write(coded, 7, 0x80, self.out);
            huffman::encode(text, self.out);
        } else {
            integer::write(text.len(), 7, 0, self.out);
            self.out.extend_from_slice(text);
        }
    }
}

/// The pattern of a literal without indexing, or never indexed (RFC 7541, sections 6.2.2 and 6.2.3).
fn literal(never_indexed: bool) -> u8 {
    if never_indexed { 0x10 } else { 0x00 }
}
