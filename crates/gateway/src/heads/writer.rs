//! The two forms of a head: lines of text in HTTP/1.1, a field block in HTTP/2.

use weir_http::Field;
use weir_http1::{copy_fields, decimal};
use weir_http2::Scheme;
use weir_http2::hpack::Encoder;

/// Receives the parts of a head, in their order, and writes them in one of the two forms.
pub(crate) trait HeadWriter {
    /// Whether the head is text. Only text declares a chunked body in a field, and contains fields about the
    /// connection.
    const IS_TEXT: bool;

    /// Writes the method, and the path that `write_path` appends. HTTP/2 also writes scheme and authority here.
    fn request(
        &mut self,
        method: &[u8],
        scheme: Scheme,
        authority: &[u8],
        write_path: impl FnOnce(&mut Vec<u8>),
    );

    /// Writes the protocol of a request that opens a tunnel, after the parts of [`Self::request`]. In HTTP/1.1, a field
    /// takes its place.
    fn protocol(&mut self, name: &[u8]);

    /// Writes the status, with the reason phrase in HTTP/1.1.
    fn status(&mut self, status: u16, phrase: &[u8]);

    /// Writes the fields that `keep` accepts, from a head with these bytes.
    fn fields(&mut self, buf: &[u8], fields: &[Field], keep: impl FnMut(&Field) -> bool);

    /// Writes whole field lines, which `write` appends.
    fn lines(&mut self, write: impl FnOnce(&mut Vec<u8>));

    fn end(&mut self);
}

impl HeadWriter for Vec<u8> {
    const IS_TEXT: bool = true;

    #[inline]
    fn request(&mut self, method: &[u8], _: Scheme, _: &[u8], write_path: impl FnOnce(&mut Vec<u8>)) {
        self.extend_from_slice(method);
        self.push(b' ');
        write_path(self);
        self.extend_from_slice(b" HTTP/1.1\r\n");
    }

    #[inline]
    fn protocol(&mut self, _: &[u8]) {}

    #[inline]
    fn status(&mut self, status: u16, phrase: &[u8]) {
        self.extend_from_slice(b"HTTP/1.1 ");
        decimal(u64::from(status), self);
        self.push(b' ');
        self.extend_from_slice(phrase);
        self.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn fields(&mut self, buf: &[u8], fields: &[Field], keep: impl FnMut(&Field) -> bool) {
        copy_fields(buf, fields, keep, self);
    }

    #[inline]
    fn lines(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self);
    }

    #[inline]
    fn end(&mut self) {
        self.extend_from_slice(b"\r\n");
    }
}

/// A field block. The caller omits the fields that HTTP/2 forbids (RFC 9113 section 8.2.2).
#[derive(Debug)]
pub(crate) struct FieldBlock<'a, 'b> {
    pub encoder: &'a mut Encoder<'b>,
    /// A buffer for lines, empty between calls.
    pub lines: &'a mut Vec<u8>,
}

impl HeadWriter for FieldBlock<'_, '_> {
    const IS_TEXT: bool = false;

    fn request(
        &mut self,
        method: &[u8],
        scheme: Scheme,
        authority: &[u8],
        write_path: impl FnOnce(&mut Vec<u8>),
    ) {
        write_path(self.lines);
        self.encoder.request(method, scheme, authority, self.lines);
        self.lines.clear();
    }

    fn protocol(&mut self, name: &[u8]) {
        self.encoder.protocol(name);
    }

    fn status(&mut self, status: u16, _: &[u8]) {
        self.encoder.status(status);
    }

    fn fields(&mut self, buf: &[u8], fields: &[Field], keep: impl FnMut(&Field) -> bool) {
        self.encoder.fields(buf, fields, keep);
    }

    fn lines(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self.lines);
        encode_lines(self.lines, self.encoder);
        self.lines.clear();
    }

    fn end(&mut self) {}
}

/// Encodes field lines that the gateway has written or checked.
pub(crate) fn encode_lines(mut lines: &[u8], to: &mut Encoder<'_>) {
    while let Some(end) = lines.iter().position(|byte| *byte == b'\r') {
        let line = &lines[..end];
        if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            to.field(&line[..colon], line[colon + 1..].trim_ascii());
        }
        lines = lines.get(end + 2..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::{Limits, Parse, ResponseHead};
    use weir_http2::{Head, Section, hpack::Decoder};

    fn write(to: &mut impl HeadWriter) {
        let text = b"HTTP/1.1 200 OK\r\nServer: x\r\nX-Drop: 1\r\nEmpty:\r\n\r\n";
        let mut head = ResponseHead::new();
        assert_eq!(head.parse(text, &Limits::default()), Ok(Parse::Complete(text.len())));
        to.status(204, b"No Content");
        to.fields(text, &head.fields, |field| field.name.of(text) != b"X-Drop");
        to.lines(|out| out.extend_from_slice(b"Date: today\r\nVia: 1.1 weir\r\n"));
        to.end();
    }

    #[test]
    fn both_forms_have_the_same_fields() {
        let mut text = Vec::new();
        write(&mut text);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "HTTP/1.1 204 No Content\r\nServer: x\r\nEmpty:\r\nDate: today\r\nVia: 1.1 weir\r\n\r\n"
        );
        let (mut block, mut lines) = (Vec::new(), Vec::new());
        let mut encoder = Encoder::new(&mut block);
        write(&mut FieldBlock { encoder: &mut encoder, lines: &mut lines });
        let mut head = Head::new();
        let limits = weir_http2::Limits::default();
        Decoder::new(4096).decode(&block, Section::Response, &limits, &mut head).unwrap().unwrap();
        let fields: Vec<_> = head
            .fields
            .iter()
            .map(|field| {
                [field.name, field.value]
                    .map(|span| String::from_utf8_lossy(span.of(&head.bytes)).into_owned())
            })
            .collect();
        let expected = [["server", "x"], ["empty", ""], ["date", "today"], ["via", "1.1 weir"]];
        assert_eq!((head.status, fields), (204, expected.map(|pair| pair.map(String::from)).to_vec()));
    }
}
