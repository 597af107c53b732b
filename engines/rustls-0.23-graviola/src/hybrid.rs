//! X25519, alone and with ML-KEM-768, as TLS 1.3 uses them.

use std::hint::black_box;

use graviola::key_agreement::mlkem768::{Ciphertext, DecapKey, EncapKey};
use graviola::key_agreement::x25519::{PrivateKey, PublicKey};
use weir_engine::{Error, Operate};

use crate::operations::failed;

/// Key pair and agreement.
pub(crate) struct X25519 {
    peer: [u8; 32],
}

impl X25519 {
    pub(crate) fn new() -> Result<X25519, Error> {
        Ok(X25519 { peer: PrivateKey::new_random().map_err(failed)?.public_key().as_bytes() })
    }
}

impl Operate for X25519 {
    fn run(&mut self) -> Result<(), Error> {
        let key = PrivateKey::new_random().map_err(failed)?;
        black_box(key.public_key().as_bytes());
        key.diffie_hellman(&PublicKey::from_array(&self.peer)).map(drop).map_err(failed)
    }
}

/// Both key pairs, agreement and decapsulation.
///
/// ML-KEM takes as long with a ciphertext that is meant for another key: it yields another secret, and no error.
pub(crate) struct Client {
    classical: X25519,
    ciphertext: Ciphertext,
}

impl Client {
    pub(crate) fn new() -> Result<Client, Error> {
        let key = DecapKey::generate().map_err(failed)?.encapsulation_key();
        let (_, ciphertext) = key.encaps().map_err(failed)?;
        Ok(Client { classical: X25519::new()?, ciphertext })
    }
}

impl Operate for Client {
    fn run(&mut self) -> Result<(), Error> {
        let key = DecapKey::generate().map_err(failed)?;
        black_box(key.encapsulation_key().as_bytes());
        black_box(key.decaps(&self.ciphertext));
        self.classical.run()
    }
}

/// One key pair, agreement and encapsulation.
pub(crate) struct Server {
    classical: X25519,
    key: [u8; 1184],
}

impl Server {
    pub(crate) fn new() -> Result<Server, Error> {
        let key = DecapKey::generate().map_err(failed)?.encapsulation_key().as_bytes();
        Ok(Server { classical: X25519::new()?, key })
    }
}

impl Operate for Server {
    fn run(&mut self) -> Result<(), Error> {
        let key = EncapKey::from_bytes(&self.key).map_err(failed)?;
        black_box(key.encaps().map_err(failed)?);
        self.classical.run()
    }
}
