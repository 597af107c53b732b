//! The blocks of a PEM file, and damaged boundaries.

/// The label of a certificate.
pub(super) const CERTIFICATE: &str = "CERTIFICATE";
/// The label of a private key in PKCS#8.
pub(super) const KEY: &str = "PRIVATE KEY";
/// The label of a certificate revocation list.
pub(super) const LIST: &str = "X509 CRL";

/// A block, from its `-----BEGIN` to its `-----END`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block<'a> {
    pub(super) label: &'a str,
    /// The line of the block's `-----BEGIN`, from 1.
    pub(super) line: usize,
    /// The block with both boundaries.
    pub(super) text: &'a [u8],
}

/// The reason why a file cannot be split into blocks and text. Quotes no line, since a line may belong to a private
/// key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) line: usize,
    pub(super) why: String,
}

impl Block<'_> {
    /// Whether the block is an unencrypted private key: PKCS#8, PKCS#1 or SEC1.
    pub(super) fn is_key(&self) -> bool {
        [KEY, "RSA PRIVATE KEY", "EC PRIVATE KEY"].contains(&self.label)
    }

    /// Whether the block is an encrypted private key: PKCS#8, or the older encryption of RFC 1421.
    pub(super) fn is_encrypted(&self) -> bool {
        self.label == "ENCRYPTED PRIVATE KEY"
            || self.is_key() && contains(self.text, b"Proc-Type: 4,ENCRYPTED")
    }

    /// Whether the block contains parameters that are also in the key, or that no supported suite needs.
    pub(super) fn is_parameters(&self) -> bool {
        ["EC PARAMETERS", "DH PARAMETERS"].contains(&self.label)
    }
}

/// Splits `content` into its blocks. There are none if no line resembles a boundary, as in DER.
pub(super) fn read(content: &[u8]) -> Result<Vec<Block<'_>>, Damage> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, usize, usize)> = None;
    let has_any = Lines { content, at: 0 }.any(|(_, line)| is_like_a_boundary(line));
    let lines = Lines { content, at: 0 }.zip(1..);
    for ((start, text), line) in lines.filter(|_| has_any) {
        let damage = |line, why: String| Err(Damage { line, why });
        match (open, Boundary::of(text)) {
            (_, Boundary::Damaged(why)) => return damage(line, why.to_owned()),
            (_, Boundary::None) => {}
            (None, Boundary::Begin(label)) => open = Some((label, line, start)),
            (None, Boundary::End(label)) => {
                return damage(line, format!("-----END {label}----- without its -----BEGIN {label}-----"));
            }
            (Some((label, begin, from)), Boundary::End(end)) if label == end => {
                blocks.push(Block { label, line: begin, text: &content[from..start + text.len()] });
                open = None;
            }
            (Some((label, begin, _)), Boundary::End(end)) => {
                return damage(
                    line,
                    format!("-----END {end}-----: expected the -----END {label}----- of line {begin}"),
                );
            }
            (Some((label, begin, _)), Boundary::Begin(_)) => return damage(begin, missing_end(label)),
        }
    }
    match open {
        Some((label, begin, _)) => Err(Damage { line: begin, why: missing_end(label) }),
        None => Ok(blocks),
    }
}

fn missing_end(label: &str) -> String {
    format!("missing line -----END {label}-----")
}

/// The kind of a line.
enum Boundary<'a> {
    None,
    Begin(&'a str),
    End(&'a str),
    /// A damaged boundary, with the reason.
    Damaged(&'static str),
}

impl<'a> Boundary<'a> {
    fn of(line: &'a [u8]) -> Self {
        if line.contains(&0) {
            return Self::Damaged("a NUL byte: expected text, and not UTF-16; save the file as UTF-8");
        }
        if !is_like_a_boundary(line) {
            return Self::None;
        }
        // RFC 7468 section 3 allows blanks at the end of a line.
        let text = line.trim_ascii_end();
        let label = |start: &[u8]| {
            let label = str::from_utf8(text.strip_prefix(start)?.strip_suffix(DASHES)?).ok()?;
            let is_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b' ';
            (!label.is_empty() && label.len() <= LONGEST_LABEL && label.bytes().all(is_label))
                .then_some(label)
        };
        if let Some(label) = label(b"-----BEGIN ") {
            return Self::Begin(label);
        }
        if let Some(label) = label(b"-----END ") {
            return Self::End(label);
        }
        let has = |part: &[u8]| contains(text, part);
        Self::Damaged(match text {
            [0xef, 0xbb, 0xbf, ..] => "a byte order mark precedes the block; save the file without one",
            [b' ' | b'\t', ..] => "blanks precede the boundary of a block; remove them",
            _ if has(b"-----END ") && has(b"-----BEGIN ") => {
                "more than one boundary of a block; put each on a line of its own"
            }
            _ => "a damaged boundary of a block: expected -----BEGIN LABEL----- or -----END LABEL----- alone",
        })
    }
}

/// Whether a line resembles a boundary, even with a missing dash or another kind of dash.
fn is_like_a_boundary(line: &[u8]) -> bool {
    // A fast path: base64 lines contain neither character, and a revocation list may have a million of them.
    if !line.contains(&b'-') && !line.contains(&b' ') {
        return false;
    }
    let is = |part: &[u8]| line.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part));
    is(b"---BEGIN")
        || is(b"---END")
        || contains(line, b"BEGIN CERTIFICATE")
        || contains(line, b"BEGIN X509 CRL")
}

/// Iterates over the lines of a file with their offsets. A line ends with LF, CR LF or CR (RFC 7468 section 3).
struct Lines<'a> {
    content: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let rest = self.content.get(start..).filter(|rest| !rest.is_empty())?;
        let len = rest.iter().position(|byte| b"\r\n".contains(byte)).unwrap_or(rest.len());
        self.at += len + if rest[len..].starts_with(b"\r\n") { 2 } else { 1 };
        Some((start, &rest[..len]))
    }
}

pub(super) fn contains(content: &[u8], part: &[u8]) -> bool {
    content.windows(part.len()).any(|window| window == part)
}

const DASHES: &[u8] = b"-----";
/// The maximum length of a label, in bytes; the longest in use has 22.
const LONGEST_LABEL: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &str) -> Result<Vec<(&str, usize)>, (usize, String)> {
        match read(content.as_bytes()) {
            Ok(blocks) => Ok(blocks.iter().map(|block| (block.label, block.line)).collect()),
            Err(Damage { line, why }) => Err((line, why)),
        }
    }

    #[test]
    fn every_block_is_found_whatever_ends_its_lines() {
        let text = "-----BEGIN A-----\nAAAA\n-----END A-----\n\
                    # the next one\n\n-----BEGIN B C-----  \nAAAA\n-----END B C-----\t";
        for end in ["\n", "\r\n", "\r"] {
            assert_eq!(of(&text.replace('\n', end)), Ok(vec![("A", 1), ("B C", 6)]), "{end:?}");
        }
        assert_eq!(of("Subject: CN=a\nno block -----\n- BEGIN -\n"), Ok(Vec::new()));
        assert_eq!(of(""), Ok(Vec::new()));
        assert_eq!(read(b"\x30\x82\0\0\n\0"), Ok(Vec::new()), "DER is diagnosed by its reader");
        let text = "before\n-----BEGIN A-----\nAAAA\n-----END A-----\nafter\n";
        assert_eq!(read(text.as_bytes()).unwrap()[0].text, &text.as_bytes()[7..45]);
    }

    /// Regression test: of two revocation lists joined without a line break, the parser silently skipped the
    /// second, and a client that it revoked was accepted.
    #[test]
    fn what_looks_like_a_block_and_is_none_is_damage() {
        let (block, damaged) =
            ("-----BEGIN A-----\nAAAA\n-----END A-----\n", "a damaged boundary of a block");
        for (content, line, why) in [
            (format!("{}{block}", block.trim_end()), 3, "more than one boundary"),
            (format!("\u{feff}{block}"), 1, "a byte order mark"),
            (format!("{block}\u{feff}{block}"), 4, "a byte order mark"),
            (format!("{block}  {block}"), 4, "blanks precede"),
            (format!("{block}\t{block}"), 4, "blanks precede"),
            (format!("{block}> {block}"), 4, damaged),
            (format!("{block}Key: {block}"), 4, damaged),
            (block.replace("\n", ""), 1, "more than one boundary"),
            (block.replace("\n", "\\n"), 1, "more than one boundary"),
            (format!("{block}-{block}"), 4, damaged),
            (block.replacen("-----", "----", 1), 1, damaged),
            (block.replace("BEGIN", "begin"), 1, damaged),
            (block.replace("BEGIN A-----", "BEGIN A----"), 1, damaged),
            (block.replace("BEGIN A-----", "BEGIN A-----AAAA"), 1, damaged),
            (block.replace("BEGIN A", "BEGIN "), 1, damaged),
            (format!("{block}\u{2014}BEGIN CERTIFICATE\u{2014}\nAAAA\n"), 4, damaged),
            (format!("{block}----- BEGIN X509 CRL -----\nAAAA\n"), 4, damaged),
            (block.replace("AAAA\n-----END A", "AAAA-----END A"), 2, damaged),
            (block.replace("-----END A-----\n", ""), 1, "missing line -----END A-----"),
            (block.replace("-----END A-----", "-----END A"), 3, damaged),
            (format!("{}{block}", &block[..23]), 1, "missing line -----END A-----"),
            (block.replace("END A", "END B"), 3, "-----END B-----: expected the -----END A----- of line 1"),
            (format!("AAAA\n-----END A-----\n{block}"), 2, "-----END A----- without its -----BEGIN A-----"),
            (format!("{block}-\0-\0-\0-\0-\0B\0E\0G\0I\0N\0"), 4, "a NUL byte"),
        ] {
            match of(&content) {
                Err((at, found)) => {
                    assert!(at == line && found.starts_with(why), "{content:?}: {at}, {found}");
                }
                Ok(blocks) => panic!("{content:?}: {blocks:?}"),
            }
        }
    }

    #[test]
    fn damage_does_not_repeat_what_may_be_a_private_key() {
        for content in [
            "-----BEGIN PRIVATE KEY-----SECRET-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----SECRET",
            "-----BEGIN PRIVATE KEY-----\nSECRET-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nSECRET",
            "SECRET-----BEGIN PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\n-----END SECRET=-----",
        ] {
            let (_, why) = of(content).unwrap_err();
            assert!(!why.contains("SECRET"), "{why}");
        }
    }
}
