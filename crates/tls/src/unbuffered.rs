//! One side of a connection with rustls's unbuffered API, which decrypts in the caller's buffer.

use std::ops::Deref;

use rustls::Error;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedConnectionCommon, UnbufferedStatus,
    WriteTraffic,
};

use crate::early_data;

/// The length of a record header: type, version and length (RFC 8446 5.1).
pub(crate) const RECORD_HEADER: usize = 5;
/// The maximum expansion of a record: header, explicit nonce (TLS 1.2) or content type (TLS 1.3), tag.
const RECORD_OVERHEAD: usize = RECORD_HEADER + 8 + 16;
/// The maximum plaintext of a record, in bytes (RFC 8446 5.1).
pub(crate) const RECORD_PLAINTEXT: usize = 16 * 1024;

/// A common interface to client and server connections; rustls has no trait for it.
pub(crate) trait Records: Deref<Target = UnbufferedConnectionCommon<Self::Data>> {
    type Data;

    fn process<'c, 'i>(&'c mut self, tls: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Records for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, tls: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(tls)
    }
}

impl Records for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, tls: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(tls)
    }
}

/// The output of [`receive`].
pub(crate) struct Sink<'a> {
    pub(crate) plaintext: &'a mut Vec<u8>,
    pub(crate) reply: &'a mut Vec<u8>,
    pub(crate) peer_closed: &'a mut bool,
}

/// Processes every complete message at the front of `tls`, decrypting in place. Returns the number of consumed bytes;
/// the caller must pass the remaining bytes again, unchanged, at the front of the next call.
pub(crate) fn receive(conn: &mut impl Records, tls: &mut [u8], sink: &mut Sink<'_>) -> Result<usize, Error> {
    let mut done = 0;
    loop {
        let UnbufferedStatus { discard, state } = conn.process(&mut tls[done..]);
        let mut extra = 0;
        let next = match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    sink.plaintext.extend_from_slice(record.payload);
                    extra += record.discard;
                }
                Next::TurnUnlessDrained
            }
            Ok(ConnectionState::EncodeTlsData(data)) => {
                encode(data, sink.reply)?;
                Next::Turn
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                extra = early_data::take_skipped();
                Next::Turn
            }
            // RFC 8446 6.1: ignore everything after a close_notify.
            Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                *sink.peer_closed = true;
                return Ok(tls.len());
            }
            Ok(ConnectionState::BlockedHandshake) => {
                extra = early_data::take_skipped();
                Next::Stop
            }
            Ok(ConnectionState::WriteTraffic(_)) => Next::Stop,
            Ok(_) => return Err(Error::General("early data, which is never enabled".to_owned())),
            Err(error) => {
                send_pending(conn, sink.reply);
                return Err(error);
            }
        };
        done += discard + extra;
        match next {
            Next::Turn => {}
            Next::TurnUnlessDrained if done < tls.len() || conn.wants_write() => {}
            Next::TurnUnlessDrained | Next::Stop => return Ok(done),
        }
    }
}

enum Next {
    /// Continue: another state may follow, such as a close_notify just read.
    Turn,
    /// Stop if no input and no output remains: this is usually the last state on an established connection.
    TurnUnlessDrained,
    Stop,
}

/// Encrypts all of `plaintext` into records with `record_size` bytes of plaintext each. `partial` is the
/// leftover of [`receive`].
pub(crate) fn send(
    conn: &mut impl Records,
    partial: &mut [u8],
    plaintext: &[u8],
    record_size: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    loop {
        let UnbufferedStatus { state, .. } = conn.process(partial);
        match state? {
            ConnectionState::WriteTraffic(traffic) => return encrypt(traffic, plaintext, record_size, out),
            ConnectionState::EncodeTlsData(data) => encode(data, out)?,
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::PeerClosed => {}
            _ => return Err(Error::HandshakeNotComplete),
        }
    }
}

/// Appends a close_notify if keys exist. `partial` is the leftover of [`receive`].
pub(crate) fn close(conn: &mut impl Records, partial: &mut [u8], out: &mut Vec<u8>) {
    loop {
        match conn.process(partial).state {
            Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                // Queues the alert but, without room, fails and leaves it pending, as intended.
                let _ = traffic.queue_close_notify(&mut []);
                break;
            }
            Ok(ConnectionState::EncodeTlsData(data)) => match encode(data, out) {
                Ok(()) => {}
                Err(_) => return,
            },
            Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
            Ok(ConnectionState::PeerClosed) => {}
            _ => break,
        }
    }
    send_pending(conn, out);
}

/// Appends pending output: a fatal or closing alert.
pub(crate) fn send_pending(conn: &mut impl Records, out: &mut Vec<u8>) {
    while conn.wants_write() {
        match conn.process(&mut []).state {
            Ok(ConnectionState::EncodeTlsData(data)) => match encode(data, out) {
                Ok(()) => {}
                Err(_) => return,
            },
            Ok(ConnectionState::ReadTraffic(mut traffic)) => while traffic.next_record().is_some() {},
            _ => return,
        }
    }
}

fn encode<Data>(mut data: EncodeTlsData<'_, Data>, out: &mut Vec<u8>) -> Result<(), Error> {
    let start = out.len();
    match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(needed)) => out.resize(start + needed.required_size, 0),
        Err(error) => return Err(Error::General(error.to_string())),
        Ok(_) => return Ok(()),
    }
    data.encode(&mut out[start..]).map(drop).map_err(|error| Error::General(error.to_string()))
}

fn encrypt<Data>(
    mut traffic: WriteTraffic<'_, Data>,
    plaintext: &[u8],
    record_size: usize,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let start = out.len();
    let records = plaintext.len().div_ceil(record_size);
    let mut room = plaintext.len() + records * RECORD_OVERHEAD;
    loop {
        out.resize(start + room, 0);
        match traffic.encrypt(plaintext, &mut out[start..]) {
            Ok(written) => {
                out.truncate(start + written);
                return Ok(());
            }
            // A pending key update goes first, and needs more room.
            Err(EncryptError::InsufficientSize(needed)) if needed.required_size > room => {
                room = needed.required_size;
            }
            Err(_) => {
                out.truncate(start);
                return Err(Error::EncryptError);
            }
        }
    }
}
