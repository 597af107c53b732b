//! Parsing handshake records for facts that rustls does not expose.

/// The length of a record header: content type, version, length (RFC 8446 5.1).
const RECORD_HEADER: usize = 5;
const CONTENT_TYPES: std::ops::RangeInclusive<u8> = 20..=23;
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// The extension for TLS 1.2 tickets (RFC 5077 3.2).
const SESSION_TICKET: [u8; 2] = [0, 35];
/// The extension for TLS 1.3 pre-shared keys (RFC 8446 4.2.11).
const PRE_SHARED_KEY: [u8; 2] = [0, 41];

/// The random of a ServerHello that is a HelloRetryRequest (RFC 8446 4.1.3).
const RETRY_RANDOM: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// The first bytes that indicate HTTP: the methods of RFC 9110 and RFC 5789, and the start of the HTTP/2 preface and of
/// an HTTP/1 response.
const HTTP_STARTS: [&[u8]; 11] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"CONNECT ",
    b"OPTIONS ",
    b"TRACE ",
    b"PATCH ",
    b"PRI * ",
    b"HTTP/",
];

/// The protocol of a peer's first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FirstBytes {
    None,
    Tls,
    Other { http: bool },
}

/// Classifies the first bytes from a peer; [`FirstBytes::None`] without any byte.
pub(crate) fn first_bytes(bytes: &[u8]) -> FirstBytes {
    match bytes.first() {
        None => FirstBytes::None,
        Some(first) if CONTENT_TYPES.contains(first) => FirstBytes::Tls,
        Some(_) => {
            let http = HTTP_STARTS.iter().any(|start| {
                let common = start.len().min(bytes.len());
                start[..common] == bytes[..common]
            });
            FirstBytes::Other { http }
        }
    }
}

/// The number of bytes missing from the record header in `partial` or, if the header is complete, from its record;
/// `None` if the record is complete.
pub(crate) fn missing(partial: &[u8]) -> Option<usize> {
    let wanted = match partial.first_chunk::<RECORD_HEADER>() {
        None => RECORD_HEADER,
        Some(&[_, _, _, high, low]) => RECORD_HEADER + usize::from(u16::from_be_bytes([high, low])),
    };
    wanted.checked_sub(partial.len()).filter(|missing| *missing > 0)
}

/// The maximum length of a ClientHello with its record headers. Real ClientHellos have up to 2 KiB with a hybrid key
/// share, and more with many tickets.
const MOST_BYTES: usize = 16 * 1024 + MOST_RECORDS * RECORD_HEADER;
/// The maximum number of records of a ClientHello. Libraries send one record; censorship circumvention tools split the
/// ClientHello into several.
const MOST_RECORDS: usize = 64;

/// The headers of the handshake records that a server has received since its last hello.
#[derive(Default)]
pub(crate) struct Received {
    records: usize,
    bytes: usize,
    /// A partial record header.
    header: [u8; RECORD_HEADER],
    have: usize,
    /// The bytes missing from the current record.
    missing: usize,
}

impl Received {
    /// Counts received bytes. Returns whether the handshake records are still within the limits of a ClientHello.
    pub(crate) fn is_bounded_with(&mut self, mut input: &[u8]) -> bool {
        loop {
            let body = self.missing.min(input.len());
            self.missing -= body;
            let [byte, rest @ ..] = &input[body..] else { break };
            input = rest;
            self.header[self.have] = *byte;
            self.have += 1;
            if self.have == RECORD_HEADER {
                self.have = 0;
                self.missing = usize::from(u16::from_be_bytes([self.header[3], self.header[4]]));
                // Count only handshake records: early data may follow the ClientHello.
                if self.header[0] == HANDSHAKE {
                    self.records += 1;
                    self.bytes += RECORD_HEADER + self.missing;
                }
            }
        }
        self.records <= MOST_RECORDS && self.bytes <= MOST_BYTES
    }
}

/// The hellos sent by this side.
#[derive(Default)]
pub(crate) struct Sent {
    client_hellos: u8,
    /// Whether this side sent a ServerHello other than a HelloRetryRequest.
    pub(crate) server_hello: bool,
    retry_request: bool,
    /// Whether the ClientHello offered a TLS 1.2 ticket.
    pub(crate) offered_ticket: bool,
}

impl Sent {
    /// Inspects outgoing records during the handshake. Hellos are never encrypted, and rustls puts each hello into its
    /// own record.
    pub(crate) fn see(&mut self, mut records: &[u8]) {
        while let Some((record, rest)) = split_record(records) {
            records = rest;
            match record {
                [HANDSHAKE, _, _, _, _, CLIENT_HELLO, ..] if is_one_message(record) => {
                    self.client_hellos = self.client_hellos.saturating_add(1);
                    self.offered_ticket |= offer(record).is_some_and(|offer| offer.ticket);
                }
                [HANDSHAKE, _, _, _, _, SERVER_HELLO, _, _, _, _, _, random @ ..] => {
                    let is_retry = random.starts_with(&RETRY_RANDOM);
                    self.retry_request |= is_retry;
                    self.server_hello |= !is_retry;
                }
                // Skip a ChangeCipherSpec, which is sent between two hellos for middlebox compatibility (RFC 8446 D.4).
                [CHANGE_CIPHER_SPEC, ..] => {}
                _ => return,
            }
        }
    }

    /// Whether the handshake had a HelloRetryRequest.
    pub(crate) fn retried(&self) -> bool {
        self.retry_request || self.client_hellos > 1
    }
}

/// Whether the first message fills the record. An encrypted TLS 1.2 record may also have the handshake type, but starts
/// with random bytes, which hardly ever form such a message.
fn is_one_message(record: &[u8]) -> bool {
    let message = &record[RECORD_HEADER..];
    matches!(message, [_, a, b, c, rest @ ..] if rest.len() == usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c))
}

fn split_record(records: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = records.first_chunk::<RECORD_HEADER>()?;
    records.split_at_checked(RECORD_HEADER + usize::from(u16::from_be_bytes([header[3], header[4]])))
}

/// The resumptions that a ClientHello offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer<'a> {
    /// A session ID, a random value (RFC 5077 3.4, RFC 8446 D.4), or empty.
    pub(crate) session_id: &'a [u8],
    /// Whether the ClientHello contains a non-empty TLS 1.2 ticket (RFC 5077 3.2).
    pub(crate) ticket: bool,
    /// Whether it contains a TLS 1.3 pre-shared key (RFC 8446 4.2.11).
    pub(crate) psk: bool,
}

/// Parses this side's own ClientHello; `None` if the record is incomplete.
pub(crate) fn offer(record: &[u8]) -> Option<Offer<'_>> {
    // Skip record header, message type and length, version, random.
    let rest = record.get(RECORD_HEADER + 4 + 2 + 32..)?;
    let (session_id, rest) = split_vector::<1>(rest)?;
    let (_suites, rest) = split_vector::<2>(rest)?;
    let (_compression, rest) = split_vector::<1>(rest)?;
    let (mut extensions, _) = split_vector::<2>(rest)?;
    let mut offer = Offer { session_id, ticket: false, psk: false };
    while let Some((kind, rest)) = extensions.split_first_chunk::<2>() {
        let (body, rest) = split_vector::<2>(rest)?;
        match *kind {
            SESSION_TICKET => offer.ticket = !body.is_empty(),
            PRE_SHARED_KEY => offer.psk = true,
            _ => {}
        }
        extensions = rest;
    }
    Some(offer)
}

/// Splits off a vector with a length prefix of `N` bytes. Returns the vector, and the remaining bytes.
fn split_vector<const N: usize>(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<N>()?;
    rest.split_at_checked(length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_record_misses() {
        assert_eq!(missing(&[]), Some(5));
        assert_eq!(missing(&[23, 3, 3, 1]), Some(1));
        assert_eq!(missing(&[23, 3, 3, 1, 2]), Some(258));
        assert_eq!(missing(&[23, 3, 3, 0, 2, 9]), Some(1));
        assert_eq!(missing(&[23, 3, 3, 0, 2, 9, 9]), None);
        assert_eq!(missing(&[23, 3, 3, 0, 2, 9, 9, 9]), None);
    }

    /// Regression test: one in 256 TLS 1.2 resumptions reported a HelloRetryRequest, because the encrypted
    /// Finished, a handshake record with a random first byte, looked like a ClientHello.
    #[test]
    fn an_encrypted_finished_is_no_second_client_hello() {
        let mut sent = Sent::default();
        sent.see(&[HANDSHAKE, 3, 1, 0, 6, CLIENT_HELLO, 0, 0, 2, 3, 3]);
        sent.see(&[
            CHANGE_CIPHER_SPEC,
            3,
            3,
            0,
            1,
            1,
            HANDSHAKE,
            3,
            3,
            0,
            8,
            CLIENT_HELLO,
            0x5a,
            0x17,
            9,
            9,
            9,
            9,
            9,
        ]);
        assert!(!sent.retried());
        sent.see(&[CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1, HANDSHAKE, 3, 3, 0, 6, CLIENT_HELLO, 0, 0, 2, 3, 3]);
        assert!(sent.retried());
    }

    #[test]
    fn a_cut_hello_offers_nothing() {
        // A ClientHello with a session ID of two bytes, one suite, a ticket of one byte and a pre-shared key.
        let mut hello = vec![HANDSHAKE, 3, 1, 0, 58, CLIENT_HELLO, 0, 0, 54, 3, 3];
        hello.extend_from_slice(&[7; 32]);
        hello.extend_from_slice(&[2, 5, 6, 0, 2, 0xc0, 0x2b, 1, 0, 0, 9, 0, 35, 0, 1, 9, 0, 41, 0, 0]);
        assert_eq!(offer(&hello), Some(Offer { session_id: &[5, 6], ticket: true, psk: true }));
        for length in 0..hello.len() {
            assert_eq!(offer(&hello[..length]), None, "{length}");
        }
    }
}
