//! Distinguished names as text (RFC 4514): different names yield different texts of printable ASCII.

use std::fmt::Write as _;

use x509_parser::der_parser::asn1_rs::{Any, Class};
use x509_parser::x509::X509Name;

/// The text of a name, the most specific part first (RFC 4514 section 2.1).
pub(crate) fn text(name: &X509Name<'_>) -> String {
    let parts = name.iter_rdn().map(|part| {
        let attributes = part.iter().map(|attribute| {
            let oid = attribute.attr_type().to_id_string();
            let known = NAMES.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name);
            match (known, characters(attribute.attr_value())) {
                (Some(name), Some(characters)) => format!("{name}={}", escaped(&characters)),
                // An unknown attribute type, or a value that is not a string, has its encoding in hexadecimal (RFC 4514
                // section 2.4).
                (name, _) => format!("{}={}", name.unwrap_or(&oid), encoding(attribute.attr_value())),
            }
        });
        attributes.collect::<Vec<_>>().join("+")
    });
    let mut parts: Vec<_> = parts.collect();
    parts.reverse();
    parts.join(",")
}

/// The names in RFC 4514 section 3, and OpenSSL's names of other attributes.
const NAMES: [(&str, &str); 14] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.12", "title"),
    ("2.5.4.42", "GN"),
];

/// The characters of a string of any type; `None` for other types and invalid strings.
fn characters(value: &Any<'_>) -> Option<String> {
    let bytes = value.data;
    if value.class() != Class::Universal || value.header.is_constructed() {
        return None;
    }
    match value.tag().0 {
        // UTF8String.
        12 => String::from_utf8(bytes.to_vec()).ok(),
        // NumericString, PrintableString, IA5String, VisibleString.
        18 | 19 | 22 | 26 => bytes.is_ascii().then(|| bytes.iter().map(|byte| char::from(*byte)).collect()),
        // TeletexString (T61String), which contains Latin-1 in real certificates.
        20 => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        // UniversalString: UTF-32.
        28 => numbers::<4>(bytes)?.map(|number| char::from_u32(u32::from_be_bytes(number))).collect(),
        // BMPString: UCS-2, which has no surrogates.
        30 => numbers::<2>(bytes)?.map(|number| char::from_u32(u16::from_be_bytes(number).into())).collect(),
        _ => None,
    }
}

fn numbers<const N: usize>(bytes: &[u8]) -> Option<impl Iterator<Item = [u8; N]>> {
    let (numbers, rest) = bytes.as_chunks::<N>();
    rest.is_empty().then(|| numbers.iter().copied())
}

/// Escapes a value (RFC 4514 section 2.4). Escapes all but printable ASCII, too: a subject must not end a header field.
fn escaped(characters: &str) -> String {
    let last = characters.len().saturating_sub(1);
    characters.bytes().enumerate().fold(String::new(), |mut out, (at, byte)| {
        let is_special = match byte {
            b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' => true,
            b'#' => at == 0,
            b' ' => at == 0 || at == last,
            _ => false,
        };
        match byte {
            _ if is_special => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "\\{byte:02x}")),
        }
        out
    })
}

/// Writes `#` and the encoding (DER) of a value in hexadecimal digits.
fn encoding(value: &Any<'_>) -> String {
    use x509_parser::der_parser::asn1_rs::ToDer as _;
    value.to_der_vec().unwrap_or_default().iter().fold("#".to_owned(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use x509_parser::prelude::FromDer as _;

    const CN: &[u8] = &[0x55, 4, 3];
    const O: &[u8] = &[0x55, 4, 10];

    fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, content.len() as u8][..], content].concat()
    }

    /// Type of the attribute, and tag and content of its value.
    type Attribute<'a> = (&'a [u8], u8, &'a [u8]);

    /// The text of a name with these parts, each with its attributes.
    fn name(parts: &[&[Attribute<'_>]]) -> String {
        let parts = parts.iter().map(|part| {
            let attributes = part
                .iter()
                .map(|(oid, tag, content)| tagged(0x30, &[tagged(6, oid), tagged(*tag, content)].concat()));
            tagged(0x31, &attributes.collect::<Vec<_>>().concat())
        });
        let der = tagged(0x30, &parts.collect::<Vec<_>>().concat());
        text(&X509Name::from_der(&der).unwrap().1)
    }

    /// Regression test: the single value `alice, O=Admins` had the same text as two parts, and all T61String
    /// values with a non-ASCII byte had the same text.
    #[test]
    fn a_string_of_any_type_is_escaped() {
        for (tag, content, expected) in [
            (12, &b"alice"[..], "alice"),
            (12, b"alice, O=Admins", "alice\\, O=Admins"),
            (12, b"alice,O=Admins", "alice\\,O=Admins"),
            (12, b"alice+O=Admins", "alice\\+O=Admins"),
            (12, b"a\\,b", "a\\\\\\,b"),
            (12, b"\"a\";<b>", "\\\"a\\\"\\;\\<b\\>"),
            (12, b" a b ", "\\ a b\\ "),
            (12, b" ", "\\ "),
            (12, b"#a#", "\\#a#"),
            (12, b"", ""),
            (12, b"a\r\nX: b\0", "a\\0d\\0aX: b\\00"),
            (12, "\u{fc}\u{20ac}".as_bytes(), "\\c3\\bc\\e2\\82\\ac"),
            (12, b"\xff", "#0c01ff"),
            (19, b"alice, O=Admins", "alice\\, O=Admins"),
            (19, b"\xe9", "#1301e9"),
            (22, b"a@b.example", "a@b.example"),
            (22, b"\xe9", "#1601e9"),
            (18, b"12 3", "12 3"),
            (26, b"a,b", "a\\,b"),
            (20, b"alice, O=Admins", "alice\\, O=Admins"),
            (20, b"Ren\xe9", "Ren\\c3\\a9"),
            (20, b"Ren\xe8", "Ren\\c3\\a8"),
            (30, b"\0a\0,\x20\xac", "a\\,\\e2\\82\\ac"),
            (30, b"\0a\xd8\0", "#1e040061d800"),
            (30, b"\0", "#1e0100"),
            (28, b"\0\0\0a\0\x01\xf6\0", "a\\f0\\9f\\98\\80"),
            (28, b"\0\x11\0\0", "#1c0400110000"),
            (28, b"\0\0\0", "#1c03000000"),
            (3, b"\0a", "#03020061"),
            (2, b"\x07", "#020107"),
            (0x30, b"", "#3000"),
            (0x2c, b"a", "#2c0161"),
            (0x8c, b"a", "#8c0161"),
        ] {
            assert_eq!(name(&[&[(CN, tag, content)]]), format!("CN={expected}"), "{tag}: {content:x?}");
        }
    }

    #[test]
    fn parts_attributes_and_types_are_told_apart() {
        let (alice, admins) = ((CN, 12, &b"alice"[..]), (O, 12, &b"Admins"[..]));
        for (parts, expected) in [
            (&[][..], ""),
            (&[&[admins][..], &[alice]][..], "CN=alice,O=Admins"),
            (&[&[alice], &[admins]], "O=Admins,CN=alice"),
            (&[&[alice, admins]], "CN=alice+O=Admins"),
            (&[&[admins], &[alice, (CN, 19, b"b,c")]], "CN=alice+CN=b\\,c,O=Admins"),
            (&[&[(&[0x55, 4, 97], 12, b"alice")]], "2.5.4.97=#0c05616c696365"),
            (&[&[(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], 22, b"a@b")]], "emailAddress=a@b"),
        ] {
            assert_eq!(name(parts), expected);
        }
    }
}
