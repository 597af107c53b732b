//! A TLS ClientHello (RFC 8446 section 4.1.2), read without responding to it.

use crate::Look;

/// The routing information of a ClientHello.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The server name in lower case (RFC 6066 section 3); `None` without SNI.
    pub server_name: Option<String>,
    /// The protocols offered in ALPN, most preferred first (RFC 7301).
    pub alpn: Vec<Vec<u8>>,
}

/// The reason for rejecting bytes as a ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The first record is not a TLS handshake record.
    #[error("not TLS")]
    NotTls,
    /// The message is not a ClientHello, or its lengths contradict each other.
    #[error("an invalid ClientHello")]
    Invalid,
    /// Two extensions of the same type, or two host names.
    #[error("a ClientHello with two extensions of a kind or two names")]
    TwoOfAKind,
    /// The server name is not a valid DNS name.
    #[error("a ClientHello with an invalid name")]
    Name,
    /// More than [`MOST_RECORDS`] records.
    #[error("a ClientHello in more than {MOST_RECORDS} records")]
    TooManyRecords,
    /// More than [`LONGEST`] bytes.
    #[error("a ClientHello of more than {LONGEST} bytes")]
    TooLong,
}

/// Reads the ClientHello at the beginning of `bytes`, which may span several records and, with a hybrid key share,
/// several packets. Fails if no further bytes can make `bytes` a ClientHello.
///
/// Does not copy a partial message, and reads only the headers of its records.
pub fn read(bytes: &[u8]) -> Result<Look<Hello>, HelloError> {
    let (mut records, mut header, mut come) = (Records { bytes }, Vec::with_capacity(HEADER), 0);
    for nth in 0.. {
        let Some(fragment) = records.next()? else { return Ok(Look::Partial) };
        if nth == MOST_RECORDS {
            return Err(HelloError::TooManyRecords);
        }
        come += fragment.len();
        header.extend(fragment.iter().take(HEADER - header.len()));
        if let Some(len) = wanted(&header)?.filter(|len| come >= *len) {
            return parse(&message(bytes, len)?[HEADER..]).map(Look::Complete);
        }
    }
    Ok(Look::Partial)
}

/// Assembles a complete message of `len` bytes from its records.
fn message(bytes: &[u8], len: usize) -> Result<Vec<u8>, HelloError> {
    let (mut records, mut message) = (Records { bytes }, Vec::with_capacity(len));
    while let Some(fragment) = records.next()? {
        message.extend(&fragment[..fragment.len().min(len - message.len())]);
        if message.len() == len {
            break;
        }
    }
    Ok(message)
}

/// The length of the message with its header; `None` while the header is partial.
fn wanted(message: &[u8]) -> Result<Option<usize>, HelloError> {
    match message {
        [] => return Ok(None),
        [CLIENT_HELLO, ..] => {}
        _ => return Err(HelloError::Invalid),
    }
    let [_, a, b, c, ..] = message else { return Ok(None) };
    let len = HEADER + u32::from_be_bytes([0, *a, *b, *c]) as usize;
    if len > LONGEST { Err(HelloError::TooLong) } else { Ok(Some(len)) }
}

/// The fragments of a message in its records (RFC 8446 section 5.1).
struct Records<'a> {
    bytes: &'a [u8],
}

impl<'a> Records<'a> {
    /// The received part of the next fragment; `None` if there is none.
    fn next(&mut self) -> Result<Option<&'a [u8]>, HelloError> {
        let header = &self.bytes[..self.bytes.len().min(RECORD_HEADER)];
        match header {
            [] => return Ok(None),
            [HANDSHAKE] | [HANDSHAKE, 3, ..] => {}
            _ => return Err(HelloError::NotTls),
        }
        let [_, _, _, high, low] = header else { return Ok(None) };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if len == 0 || len > LARGEST_RECORD {
            return Err(HelloError::Invalid);
        }
        let rest = &self.bytes[RECORD_HEADER..];
        let (fragment, rest) = rest.split_at(len.min(rest.len()));
        self.bytes = rest;
        Ok(Some(fragment).filter(|fragment| !fragment.is_empty()))
    }
}

fn parse(body: &[u8]) -> Result<Hello, HelloError> {
    let mut body = Reader { rest: body };
    body.take(VERSION_AND_RANDOM)?;
    body.vector(1)?;
    body.vector(2)?;
    body.vector(1)?;
    let mut hello = Hello::default();
    if body.rest.is_empty() {
        // A TLS 1.2 ClientHello may have no extensions.
        return Ok(hello);
    }
    let mut extensions = body.last()?;
    let mut kinds = Vec::new();
    while !extensions.rest.is_empty() {
        let kind = extensions.number(2)?;
        let data = Reader { rest: extensions.vector(2)? };
        kinds.push(kind);
        match kind {
            SERVER_NAME => hello.server_name = server_name(data)?,
            ALPN => hello.alpn = protocols(data)?,
            _ => {}
        }
    }
    // RFC 8446 section 4.2 forbids duplicates. Servers differ in which duplicate they use, so the gateway could route
    // by one while the server uses the other.
    kinds.sort_unstable();
    if kinds.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(HelloError::TwoOfAKind);
    }
    Ok(hello)
}

fn server_name(mut data: Reader<'_>) -> Result<Option<String>, HelloError> {
    let mut names = data.last()?;
    let mut found = None;
    while !names.rest.is_empty() {
        let kind = names.number(1)?;
        let name = names.vector(2)?;
        if kind != HOST_NAME {
            continue;
        }
        // RFC 6066 section 3 allows one name of each type.
        if found.is_some() {
            return Err(HelloError::TwoOfAKind);
        }
        found = Some(host_name(name)?);
    }
    Ok(found)
}

/// Parses a DNS name (RFC 1035 section 2.3.4), and returns it in lower case. Removes a trailing dot, which some clients
/// send although RFC 6066 section 3 forbids it.
fn host_name(name: &[u8]) -> Result<String, HelloError> {
    let name = name.strip_suffix(b".").unwrap_or(name);
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let is_label = |label: &[u8]| (1..=LONGEST_LABEL).contains(&label.len()) && label.iter().all(is_plain);
    match name.len() <= LONGEST_NAME && name.split(|byte| *byte == b'.').all(is_label) {
        true => Ok(String::from_utf8_lossy(name).to_ascii_lowercase()),
        false => Err(HelloError::Name),
    }
}

fn protocols(mut data: Reader<'_>) -> Result<Vec<Vec<u8>>, HelloError> {
    let mut list = data.last()?;
    let mut protocols = Vec::new();
    while !list.rest.is_empty() {
        protocols.push(list.vector(1)?.to_vec());
    }
    Ok(protocols)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], HelloError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(HelloError::Invalid)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes a number of `bytes` bytes, at most 2.
    fn number(&mut self, bytes: usize) -> Result<usize, HelloError> {
        Ok(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// Takes a list after its length of 2 bytes. The list must end the data.
    fn last(&mut self) -> Result<Self, HelloError> {
        let list = Self { rest: self.vector(2)? };
        if self.rest.is_empty() { Ok(list) } else { Err(HelloError::Invalid) }
    }

    /// Takes a vector after its length of `bytes` bytes.
    fn vector(&mut self, bytes: usize) -> Result<&'a [u8], HelloError> {
        let len = self.number(bytes)?;
        self.take(len)
    }
}

/// The maximum length of a message with its header. Real messages take up to 2 KiB with a hybrid key share, and more
/// with many tickets.
pub const LONGEST: usize = 16 * 1024;

/// The maximum number of records. Libraries send one record; censorship circumvention tools split the ClientHello into
/// several.
pub const MOST_RECORDS: usize = 64;

const RECORD_HEADER: usize = 5;
const LARGEST_RECORD: usize = 1 << 14;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// The size of a handshake message's type and length, in bytes.
const HEADER: usize = 4;
const VERSION_AND_RANDOM: usize = 2 + 32;
const SERVER_NAME: usize = 0;
const ALPN: usize = 16;
const HOST_NAME: usize = 0;
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;
