//! One side of a connection: rustls's buffered API, the same since 0.21.

use std::io::{self, Read, Write};
use std::ops::DerefMut;

use rustls::{ConnectionCommon, SideData};
use weir_engine::{Error, Named, Outcome, Session, Side, notes};

use crate::negotiated::{code, negotiated};

/// A client's or server's connection.
pub struct Ended<C> {
    side: Side,
    connection: C,
}

impl<C, D> Ended<C>
where
    C: DerefMut<Target = ConnectionCommon<D>>,
    D: SideData,
{
    pub(crate) fn new(side: Side, mut connection: C) -> Ended<C> {
        connection.set_buffer_limit(None); // a call passes all its bytes
        Ended { side, connection }
    }

    /// Reads the decrypted data, if any; returns its length.
    fn plaintext(&mut self, plain: &mut [u8]) -> io::Result<usize> {
        match self.connection.reader().read(plain) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            read => read,
        }
    }

    fn failed(&self, error: impl std::fmt::Display) -> Error {
        Error::stack(self.side.name(), error)
    }
}

impl<C, D> Session for Ended<C>
where
    C: DerefMut<Target = ConnectionCommon<D>>,
    D: SideData,
{
    fn receive(&mut self, mut input: &[u8]) -> Result<(), Error> {
        while !input.is_empty() {
            self.connection.read_tls(&mut input).map_err(|error| self.failed(error))?;
            self.connection.process_new_packets().map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    fn send(&mut self, output: &mut Vec<u8>) -> Result<(), Error> {
        while self.connection.wants_write() {
            self.connection.write_tls(output).map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        if self.connection.is_handshaking() {
            return None;
        }
        let (kind, group) = negotiated(self.side, &self.connection);
        Some(Outcome {
            version: code(self.connection.protocol_version()?),
            kind,
            suite: code(self.connection.negotiated_cipher_suite()?.suite()),
            group,
            signature: notes::signed(self.side),
        })
    }

    fn write(&mut self, plain: &[u8], output: &mut Vec<u8>) -> Result<(), Error> {
        self.connection.writer().write_all(plain).map_err(|error| self.failed(error))?;
        self.send(output)
    }

    fn read(&mut self, mut input: &[u8], plain: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while !input.is_empty() {
            self.connection.read_tls(&mut input).map_err(|error| self.failed(error))?;
            let state = self.connection.process_new_packets().map_err(|error| self.failed(error))?;
            let end = filled + state.plaintext_bytes_to_read();
            while filled < end {
                let count = self.plaintext(&mut plain[filled..]).map_err(|error| self.failed(error))?;
                if count == 0 {
                    return Err(self.failed("more was read than was written"));
                }
                filled += count;
            }
        }
        Ok(filled)
    }
}
