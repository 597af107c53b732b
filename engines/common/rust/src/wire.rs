//! The server's cleartext at the start of a connection.
//!
//! Not every library exposes the group, or a HelloRetryRequest; the bytes always do.

/// The facts found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// A HelloRetryRequest.
    pub(crate) retry: bool,
    /// The group of the key exchange.
    pub(crate) group: Option<u16>,
    /// Tickets of TLS 1.2; those of TLS 1.3 are encrypted.
    pub(crate) tickets: u32,
    encrypted: bool,
}

impl Seen {
    /// Parses the server's next bytes. Ignores anything that is not TLS.
    pub(crate) fn look(&mut self, flight: &[u8]) {
        let mut messages = Vec::new();
        for (kind, fragment) in records(flight) {
            match kind {
                HANDSHAKE if !self.encrypted => messages.extend_from_slice(fragment),
                // The messages after it are encrypted in TLS 1.2, and have another type in TLS 1.3.
                CHANGE_CIPHER_SPEC => self.encrypted = true,
                _ => {}
            }
        }
        let mut rest = messages.as_slice();
        while let Some((kind, body, after)) = message(rest) {
            match kind {
                SERVER_HELLO => self.hello(body),
                SERVER_KEY_EXCHANGE if body.first() == Some(&NAMED_CURVE) => self.group = number(body, 1),
                NEW_SESSION_TICKET => self.tickets += 1,
                _ => {}
            }
            rest = after;
        }
    }

    fn hello(&mut self, body: &[u8]) {
        self.retry |= body.get(2..34) == Some(&RETRY);
        if let Some(group) = key_share(body) {
            self.group = Some(group);
        }
    }
}

/// The most plaintext-and-overhead in one record, and how many records there are.
pub(crate) fn measure_records(flight: &[u8]) -> (usize, usize) {
    records(flight).fold((0, 0), |(largest, count), (_, fragment)| (largest.max(fragment.len()), count + 1))
}

const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const SERVER_HELLO: u8 = 2;
const NEW_SESSION_TICKET: u8 = 4;
const SERVER_KEY_EXCHANGE: u8 = 12;
const NAMED_CURVE: u8 = 3;
const KEY_SHARE: u16 = 51;

/// The random of a HelloRetryRequest (RFC 8446, section 4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

fn records(mut flight: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let kind = *flight.first()?;
        let end = 5 + usize::from(number(flight, 3)?);
        let fragment = flight.get(5..end)?;
        flight = &flight[end..];
        Some((kind, fragment))
    })
}

/// The first message: its type, its body and the rest.
fn message(messages: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [kind, high, middle, low, rest @ ..] = messages else { return None };
    let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
    Some((*kind, rest.get(..length)?, &rest[length..]))
}

/// The group of a server hello's key share.
fn key_share(hello: &[u8]) -> Option<u16> {
    let session_id = usize::from(*hello.get(34)?);
    // Session ID, suite and compression precede the extensions.
    let mut extensions = hello.get(35 + session_id + 3 + 2..)?;
    loop {
        let length = usize::from(number(extensions, 2)?);
        if number(extensions, 0)? == KEY_SHARE {
            return number(extensions, 4);
        }
        extensions = extensions.get(4 + length..)?;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_tls_13_is_in_the_hello() {
        let hello = hello([7; 32], &[(43, &[3, 4]), (KEY_SHARE, &[0x11, 0xec, 0, 1, 9])]);
        let mut seen = Seen::default();
        seen.look(&record(HANDSHAKE, &hello));
        assert_eq!((seen.retry, seen.group), (false, Some(0x11ec)));
    }

    #[test]
    fn a_retry_is_recognised() {
        let mut seen = Seen::default();
        seen.look(&record(HANDSHAKE, &hello(RETRY, &[(KEY_SHARE, &[0, 0x17])])));
        assert_eq!((seen.retry, seen.group), (true, Some(0x17)));
    }

    #[test]
    fn the_group_of_tls_12_is_in_the_key_exchange_though_records_cut_it() {
        let mut messages = hello([7; 32], &[]);
        messages.extend(handshake(SERVER_KEY_EXCHANGE, &[NAMED_CURVE, 0, 0x1d, 1, 2, 3]));
        let (first, second) = messages.split_at(50);
        let mut seen = Seen::default();
        seen.look(&[record(HANDSHAKE, first), record(HANDSHAKE, second)].concat());
        assert_eq!(seen.group, Some(0x1d));
    }

    #[test]
    fn tickets_of_tls_12_count_and_nothing_encrypted_does() {
        let ticket = handshake(NEW_SESSION_TICKET, &[0; 20]);
        let mut seen = Seen::default();
        seen.look(
            &[record(HANDSHAKE, &ticket), record(CHANGE_CIPHER_SPEC, &[1]), record(HANDSHAKE, &ticket)]
                .concat(),
        );
        seen.look(&record(HANDSHAKE, &ticket));
        assert_eq!(seen.tickets, 1);
    }

    #[test]
    fn nothing_is_made_of_what_is_not_tls() {
        for length in 0..64 {
            let mut seen = Seen::default();
            seen.look(&vec![HANDSHAKE; length]);
            seen.look(&record(HANDSHAKE, &handshake(SERVER_HELLO, &vec![1; length])));
            assert_eq!((seen.retry, seen.group), (false, None));
        }
    }

    #[test]
    fn records_are_measured() {
        let flight = [record(23, &[0; 10]), record(23, &[0; 30])].concat();
        assert_eq!(measure_records(&flight), (30, 2));
    }

    fn hello(random: [u8; 32], extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let extensions: Vec<u8> = extensions
            .iter()
            .flat_map(|(kind, body)| {
                [&kind.to_be_bytes(), &(body.len() as u16).to_be_bytes(), *body].concat()
            })
            .collect();
        let length = (extensions.len() as u16).to_be_bytes();
        handshake(SERVER_HELLO, &[&[3, 3], &random[..], &[0, 0x13, 0x01, 0], &length, &extensions].concat())
    }

    fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind, 0], &(body.len() as u16).to_be_bytes()[..], body].concat()
    }

    fn record(kind: u8, fragment: &[u8]) -> Vec<u8> {
        [&[kind, 3, 3], &(fragment.len() as u16).to_be_bytes()[..], fragment].concat()
    }
}
