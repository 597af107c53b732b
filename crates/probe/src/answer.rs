//! A parser for the cleartext part of a server's response to a ClientHello.

use crate::Version;
use crate::names::KeyAgreement;
use crate::wire::{ALERT, APPLICATION_DATA, Bytes, CHANGE_CIPHER_SPEC, HANDSHAKE, RECORD_HEADER};

/// RFC 5246 6.2.3: maximum expansion of a record of 2^14 bytes.
const MAX_RECORD: usize = (1 << 14) + 2048;
/// RFC 8446 6: a warning, after which the handshake continues.
const WARNING: u8 = 1;
const CLOSE_NOTIFY: u8 = 0;

const SERVER_HELLO: u8 = 2;
const NEW_SESSION_TICKET: u8 = 4;
const CERTIFICATE: u8 = 11;
const SERVER_KEY_EXCHANGE: u8 = 12;
const CERTIFICATE_REQUEST: u8 = 13;
const SERVER_HELLO_DONE: u8 = 14;
const CERTIFICATE_STATUS: u8 = 22;

const SUPPORTED_VERSIONS: u16 = 43;
const KEY_SHARE: u16 = 51;
/// RFC 8422 5.4: named-curve parameters.
const NAMED_CURVE: u32 = 3;

/// RFC 8446 4.1.3: a ServerHello with this random is a HelloRetryRequest.
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Maximum length of a response, in bytes: a chain of a hundred large certificates.
pub const MAX_ANSWER: usize = 256 * 1024;

/// How far to read a response. In TLS 1.3 all of them mean the ServerHello or HelloRetryRequest, since the
/// rest is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The ServerHello.
    Hello,
    /// The ServerHelloDone of TLS 1.2 and older.
    HelloDone,
    /// The server's ChangeCipherSpec, after which TLS 1.2 and older are encrypted.
    Encrypted,
}

/// A server's response to a ClientHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An alert that ends the connection, by its code (RFC 8446 6).
    Alert(u8),
    /// A ServerHello and what follows it.
    Flight(Flight),
}

/// A ServerHello or HelloRetryRequest, and the cleartext that follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// The version's number (RFC 8446 4.2.1).
    pub version: u16,
    /// The suite's number.
    pub suite: u16,
    /// Whether this is a HelloRetryRequest (RFC 8446 4.1.4).
    pub retry: bool,
    /// The length of the session identifier, in bytes.
    pub session_id: usize,
    /// The group of the key exchange, or the one that the HelloRetryRequest asks for.
    pub group: Option<u16>,
    /// The size of the prime in bits, for finite-field key exchange.
    pub prime_bits: Option<usize>,
    /// The signature scheme of the key exchange, in TLS 1.2.
    pub scheme: Option<u16>,
    /// The certificates in DER, leaf first.
    pub chain: Vec<Vec<u8>>,
    /// Whether a certificate's status was stapled (RFC 6066 8).
    pub stapled: bool,
    /// Whether the server asks for a certificate.
    pub asks_certificate: bool,
    /// The ticket, if any.
    pub ticket: Option<Ticket12>,
}

/// A ticket of TLS 1.2 (RFC 5077 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Ticket12 {
    /// The lifetime hint in seconds; 0 means none.
    pub lifetime_s: u32,
    /// Its length in bytes.
    pub bytes: usize,
}

/// Why a response cannot be parsed. Always the peer's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The first bytes are not a TLS record.
    #[error("{}", if *.http { "it responds with plain HTTP" } else { "its response is not a TLS record" })]
    NotTls {
        /// Whether they look like HTTP.
        http: bool,
    },
    /// A malformed message.
    #[error("a malformed {0}")]
    Malformed(&'static str),
    /// An unexpected message.
    #[error("unexpected message of type {0}")]
    OutOfPlace(u8),
    /// No end within [`MAX_ANSWER`].
    #[error("a response of more than {MAX_ANSWER} bytes")]
    TooLong,
}

impl Answer {
    /// Parses what a server has sent so far. `None` if more is needed; ignores bytes after the end.
    ///
    /// # Errors
    /// When it is not TLS, or violates the protocol so that it cannot be parsed.
    pub fn read(bytes: &[u8], until: Until) -> Result<Option<Self>, AnswerError> {
        let mut records = Bytes(bytes);
        let mut messages = Vec::new();
        let mut reader = Reader { flight: None, used: 0, until };
        while let Some((kind, body)) = record(&mut records)? {
            match kind {
                HANDSHAKE => {
                    messages.extend_from_slice(body);
                    if reader.advance(&messages)? {
                        return Ok(reader.flight.map(Self::Flight));
                    }
                }
                ALERT => match body {
                    [WARNING, code] if *code != CLOSE_NOTIFY => {}
                    [_, code] => return Ok(Some(Self::Alert(*code))),
                    // Encrypted, and so past the requested end.
                    _ => return Err(AnswerError::Malformed("alert")),
                },
                CHANGE_CIPHER_SPEC => match reader.flight {
                    None => return Err(AnswerError::OutOfPlace(kind)),
                    Some(flight) => return Ok(Some(Self::Flight(flight))),
                },
                _ => return Err(AnswerError::OutOfPlace(kind)),
            }
        }
        if bytes.len() > MAX_ANSWER { Err(AnswerError::TooLong) } else { Ok(None) }
    }
}

/// The next complete record. `None` for an incomplete one with a plausible header.
fn record<'a>(records: &mut Bytes<'a>) -> Result<Option<(u8, &'a [u8])>, AnswerError> {
    let start = records.0;
    let is_record = match *start {
        [] => return Ok(None),
        [kind] => (CHANGE_CIPHER_SPEC..=APPLICATION_DATA).contains(&kind),
        [kind, major, ..] => (CHANGE_CIPHER_SPEC..=APPLICATION_DATA).contains(&kind) && major == 3,
    };
    if !is_record {
        return Err(AnswerError::NotTls { http: looks_like_http(start) });
    }
    let Some(header) = start.get(..RECORD_HEADER) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if length > MAX_RECORD {
        return Err(AnswerError::Malformed("record"));
    }
    let Some(body) = start.get(RECORD_HEADER..RECORD_HEADER + length) else { return Ok(None) };
    records.0 = &start[RECORD_HEADER + length..];
    Ok(Some((header[0], body)))
}

/// HTTP servers answer a ClientHello with an error: in HTTP, or in HTTP/0.9 as bare
/// HTML.
fn looks_like_http(bytes: &[u8]) -> bool {
    [&b"HTTP/"[..], b"<"].iter().any(|start| {
        let common = start.len().min(bytes.len());
        start[..common] == bytes[..common]
    })
}

/// Reads messages as they become complete.
struct Reader {
    flight: Option<Flight>,
    /// Bytes of the messages read.
    used: usize,
    until: Until,
}

impl Reader {
    /// Whether the end was reached.
    fn advance(&mut self, messages: &[u8]) -> Result<bool, AnswerError> {
        loop {
            let mut rest = Bytes(&messages[self.used..]);
            let Some((kind, body)) = rest.number::<1>().zip(rest.vector::<3>()) else {
                return if messages.len() > MAX_ANSWER { Err(AnswerError::TooLong) } else { Ok(false) };
            };
            self.used = messages.len() - rest.0.len();
            if self.message(kind as u8, body)? {
                return Ok(true);
            }
        }
    }

    fn message(&mut self, kind: u8, body: Bytes<'_>) -> Result<bool, AnswerError> {
        let Some(flight) = &mut self.flight else {
            if kind != SERVER_HELLO {
                return Err(AnswerError::OutOfPlace(kind));
            }
            let flight = server_hello(body).ok_or(AnswerError::Malformed("ServerHello"))?;
            let last = self.until == Until::Hello || flight.version == Version::Tls13.number();
            self.flight = Some(flight);
            return Ok(last);
        };
        match kind {
            CERTIFICATE => {
                flight.chain = certificates(body).ok_or(AnswerError::Malformed("Certificate"))?;
            }
            SERVER_KEY_EXCHANGE => {
                key_exchange(flight, body).ok_or(AnswerError::Malformed("ServerKeyExchange"))?;
            }
            CERTIFICATE_STATUS => flight.stapled = true,
            CERTIFICATE_REQUEST => flight.asks_certificate = true,
            SERVER_HELLO_DONE => return Ok(self.until == Until::HelloDone),
            NEW_SESSION_TICKET => {
                flight.ticket = Some(ticket(body).ok_or(AnswerError::Malformed("NewSessionTicket"))?);
            }
            SERVER_HELLO => return Err(AnswerError::OutOfPlace(kind)),
            // Other extensions.
            _ => {}
        }
        Ok(false)
    }
}

/// RFC 5246 7.4.1.3, RFC 8446 4.1.3.
fn server_hello(mut body: Bytes<'_>) -> Option<Flight> {
    let mut flight = Flight { version: body.u16()?, ..Flight::default() };
    flight.retry = body.take(32)? == RETRY_RANDOM;
    flight.session_id = body.vector::<1>()?.0.len();
    flight.suite = body.u16()?;
    let _compression = body.take(1)?;
    if body.is_empty() {
        return Some(flight);
    }
    for extension in body.vector::<2>()?.extensions() {
        match extension? {
            (SUPPORTED_VERSIONS, mut body) => flight.version = body.u16()?,
            (KEY_SHARE, mut body) => flight.group = Some(body.u16()?),
            _ => {}
        }
    }
    Some(flight)
}

/// RFC 5246 7.4.2.
fn certificates(mut body: Bytes<'_>) -> Option<Vec<Vec<u8>>> {
    let mut list = body.vector::<3>()?;
    let mut chain = Vec::new();
    while !list.is_empty() {
        let certificate = list.vector::<3>()?.0;
        if certificate.is_empty() || chain.len() == MAX_CERTIFICATES {
            return None;
        }
        chain.push(certificate.to_vec());
    }
    Some(chain)
}

/// Far more than anyone sends: limits memory for a message full of empty certificates.
const MAX_CERTIFICATES: usize = 64;

/// RFC 8422 5.4, RFC 5246 7.4.3. Explicit curve parameters are obsolete and
/// skipped.
fn key_exchange(flight: &mut Flight, mut body: Bytes<'_>) -> Option<()> {
    let signed = match KeyAgreement::of(flight.suite) {
        KeyAgreement::Ecdhe { signed } => {
            if body.number::<1>()? != NAMED_CURVE {
                return Some(());
            }
            flight.group = Some(body.u16()?);
            let _point = body.vector::<1>()?;
            signed
        }
        KeyAgreement::Dhe { signed } => {
            flight.prime_bits = Some(bits(body.vector::<2>()?.0));
            let _generator = body.vector::<2>()?;
            let _public = body.vector::<2>()?;
            signed
        }
        KeyAgreement::None => return Some(()),
    };
    if signed && flight.version == Version::Tls12.number() {
        flight.scheme = Some(body.u16()?);
    }
    Some(())
}

fn bits(number: &[u8]) -> usize {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let first = number.get(zeros).map_or(0, |byte| byte.leading_zeros() as usize);
    (number.len() - zeros) * 8 - first
}

fn ticket(mut body: Bytes<'_>) -> Option<Ticket12> {
    let lifetime_s = body.number::<4>()?;
    let bytes = body.vector::<2>()?.0.len();
    Some(Ticket12 { lifetime_s, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression test: a Certificate message of empty entries became tens of thousands of certificates.
    #[test]
    fn a_chain_is_bounded_and_has_no_empty_certificates() {
        let chain = |entry: &[u8], times: usize| {
            let list = entry.repeat(times);
            let length = (list.len() as u32).to_be_bytes();
            certificates(Bytes(&[&length[1..], &list].concat())).map(|chain| chain.len())
        };
        let one = [0, 0, 2, 0x30, 0x00];
        assert_eq!(chain(&one, 3), Some(3));
        assert_eq!(chain(&one, MAX_CERTIFICATES), Some(MAX_CERTIFICATES));
        assert_eq!(chain(&one, MAX_CERTIFICATES + 1), None);
        assert_eq!(chain(&[0, 0, 0], 1), None);
    }
}
