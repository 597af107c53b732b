//! TLS 1.3 tickets, parsed from the wire: rustls exposes neither their lifetime nor each ticket.

use crate::names;
use crate::wire::{ALERT, APPLICATION_DATA, Bytes, HANDSHAKE, RECORD_HEADER, take_record};
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::ConnectionTrafficSecrets;
use serde::Serialize;

const NEW_SESSION_TICKET: u32 = 4;
const KEY_UPDATE: u32 = 24;
const EARLY_DATA: u16 = 42;

/// A TLS 1.3 ticket (RFC 8446 4.6.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ticket13 {
    /// Lifetime in seconds; at most a week.
    pub lifetime_s: u32,
    /// Its length in bytes.
    pub bytes: usize,
    /// Maximum early data in bytes; 0 if none.
    pub max_early_data: u32,
}

/// Decrypts what a server sends after the handshake, and collects the tickets.
pub(crate) struct TicketReader {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
    messages: Vec<u8>,
    pub(crate) tickets: Vec<Ticket13>,
    /// The alert that ended it, by name.
    pub(crate) alert: Option<String>,
    /// Nothing more can be read.
    pub(crate) ended: bool,
}

impl TicketReader {
    /// A reader starting at record number `sequence`. `None` for keys other than TLS 1.3's.
    pub(crate) fn new(sequence: u64, secrets: &ConnectionTrafficSecrets) -> Option<Self> {
        let (algorithm, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return None,
        };
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key.as_ref()).ok()?);
        let iv = iv.as_ref().try_into().ok()?;
        Some(Self { key, iv, sequence, messages: Vec::new(), tickets: Vec::new(), alert: None, ended: false })
    }

    /// Consumes the complete records received.
    pub(crate) fn read(&mut self, received: &mut Vec<u8>) {
        while !self.ended
            && let Some(record) = take_record(received)
        {
            self.record(record);
        }
    }

    fn record(&mut self, mut record: Vec<u8>) {
        // Only a stray ChangeCipherSpec is not encrypted (RFC 8446 D.4).
        if record[0] != APPLICATION_DATA {
            return;
        }
        let (header, body) = record.split_at_mut(RECORD_HEADER);
        let Ok(plain) = self.key.open_in_place(self.nonce(), Aad::from(&*header), body) else {
            self.ended = true;
            return;
        };
        self.sequence += 1;
        // RFC 8446 5.2: content, its type, zeros.
        let Some(at) = plain.iter().rposition(|byte| *byte != 0) else { return };
        let (content, kind) = (&plain[..at], plain[at]);
        match (kind, content) {
            (HANDSHAKE, content) => {
                self.messages.extend_from_slice(content);
                self.messages();
            }
            (ALERT, [_, code]) => {
                // close_notify is not an error.
                self.alert = (*code != 0).then(|| names::alert(*code));
                self.ended = true;
            }
            _ => {}
        }
    }

    /// RFC 8446 5.3.
    fn nonce(&self) -> Nonce {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }

    fn messages(&mut self) {
        let mut rest = Bytes(&self.messages);
        let mut used = 0;
        while let Some((kind, body)) = rest.number::<1>().zip(rest.vector::<3>()) {
            used = self.messages.len() - rest.0.len();
            match kind {
                NEW_SESSION_TICKET => self.tickets.extend(ticket(body)),
                // What follows uses other keys.
                KEY_UPDATE => self.ended = true,
                _ => {}
            }
        }
        self.messages.drain(..used);
    }
}

fn ticket(mut body: Bytes<'_>) -> Option<Ticket13> {
    let lifetime_s = body.number::<4>()?;
    let _age_add = body.number::<4>()?;
    let _nonce = body.vector::<1>()?;
    let bytes = body.vector::<2>()?.0.len();
    let mut max_early_data = 0;
    for extension in body.vector::<2>()?.extensions() {
        if let (EARLY_DATA, mut body) = extension? {
            max_early_data = body.number::<4>()?;
        }
    }
    Some(Ticket13 { lifetime_s, bytes, max_early_data })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::cipher::{AeadKey, Iv};

    const KEY: [u8; 32] = [9; 32];
    const IV: [u8; 12] = [3; 12];

    fn reader() -> TicketReader {
        let (key, iv) = (AeadKey::from(KEY), Iv::from(IV));
        TicketReader::new(0, &ConnectionTrafficSecrets::Aes256Gcm { key, iv }).unwrap()
    }

    /// A record as encrypted by a server, with content and type inside.
    fn sealed(sequence: u64, plain: &[u8]) -> Vec<u8> {
        let mut server = reader();
        server.sequence = sequence;
        let length = (plain.len() + 16) as u16;
        let mut record = vec![APPLICATION_DATA, 3, 3];
        record.extend_from_slice(&length.to_be_bytes());
        let mut body = plain.to_vec();
        server.key.seal_in_place_append_tag(server.nonce(), Aad::from(record.clone()), &mut body).unwrap();
        record.extend_from_slice(&body);
        record
    }

    /// A ticket of two bytes, with a lifetime of an hour and 16384 bytes of early data.
    const TICKET: [u8; 29] =
        [4, 0, 0, 24, 0, 0, 0x0e, 0x10, 1, 2, 3, 4, 1, 0, 0, 2, 7, 7, 0, 8, 0, 42, 0, 4, 0, 0, 0x40, 0, 22];

    #[test]
    fn tickets_in_pieces_of_any_size() {
        let hour = Ticket13 { lifetime_s: 3600, bytes: 2, max_early_data: 16384 };
        // A stray ChangeCipherSpec, a padded record, and a message in two records with application data
        // after it.
        let (front, back) = TICKET[..28].split_at(10);
        let stream = [
            vec![20, 3, 3, 0, 1, 1],
            sealed(0, &[&TICKET[..], &[0, 0, 0]].concat()),
            sealed(1, &[front, &[HANDSHAKE]].concat()),
            sealed(2, &[back, &[HANDSHAKE]].concat()),
            sealed(3, &[b'h', b'i', APPLICATION_DATA]),
            sealed(4, &[2, 116, ALERT]),
        ]
        .concat();
        for size in [1, 7, stream.len()] {
            let (mut reader, mut received) = (reader(), Vec::new());
            for piece in stream.chunks(size) {
                received.extend_from_slice(piece);
                reader.read(&mut received);
            }
            assert_eq!(reader.tickets, [hour.clone(), hour.clone()]);
            assert_eq!(reader.alert.as_deref(), Some("certificate_required"));
            assert!(reader.ended);
        }
    }

    #[test]
    fn a_record_that_does_not_decrypt_ends_it() {
        let mut reader = reader();
        reader.read(&mut sealed(1, &TICKET));
        assert!(reader.ended && reader.tickets.is_empty());
    }

    #[test]
    fn a_cut_ticket_is_none() {
        for length in 0..24 {
            assert_eq!(ticket(Bytes(&TICKET[4..4 + length])), None, "{length}");
        }
        assert!(ticket(Bytes(&TICKET[4..28])).is_some());
    }
}
