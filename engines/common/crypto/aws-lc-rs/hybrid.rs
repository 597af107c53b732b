//! X25519 and ML-KEM-768 together, as TLS 1.3 uses them.

use aws_lc_rs::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};
use aws_lc_rs::rand::SystemRandom;
use weir_engine::{Error, Operate};

use crate::api;

/// Both key pairs, agreement and decapsulation.
pub(crate) fn client() -> Result<Box<dyn Operate>, Error> {
    let key = DecapsulationKey::generate(&ML_KEM_768).map_err(failed)?;
    let secret_for_another_key = key.encapsulation_key().and_then(|key| key.encapsulate());
    let (ciphertext, _) = secret_for_another_key.map_err(failed)?;
    Ok(Box::new(Client { peer: x25519()?, ciphertext: ciphertext.as_ref().to_vec() }))
}

/// One key pair, agreement and encapsulation.
pub(crate) fn server() -> Result<Box<dyn Operate>, Error> {
    let key =
        DecapsulationKey::generate(&ML_KEM_768).and_then(|key| key.encapsulation_key()).map_err(failed)?;
    Ok(Box::new(Server { peer: x25519()?, key: key.key_bytes().map_err(failed)?.as_ref().to_vec() }))
}

/// ML-KEM takes as long with a ciphertext that is meant for another key: it yields another secret, and no error.
struct Client {
    peer: Vec<u8>,
    ciphertext: Vec<u8>,
}

impl Operate for Client {
    fn run(&mut self) -> Result<(), Error> {
        let key = DecapsulationKey::generate(&ML_KEM_768).map_err(failed)?;
        let share = key.encapsulation_key().and_then(|key| key.key_bytes().map(drop));
        share.map_err(failed)?;
        let classical = pair()?;
        key.decapsulate(Ciphertext::from(self.ciphertext.as_slice())).map_err(failed)?;
        api::agree(classical, UnparsedPublicKey::new(&X25519, &self.peer)).map_err(failed)
    }
}

struct Server {
    peer: Vec<u8>,
    key: Vec<u8>,
}

impl Operate for Server {
    fn run(&mut self) -> Result<(), Error> {
        let key = EncapsulationKey::new(&ML_KEM_768, &self.key).map_err(failed)?;
        key.encapsulate().map_err(failed)?;
        api::agree(pair()?, UnparsedPublicKey::new(&X25519, &self.peer)).map_err(failed)
    }
}

/// A key pair, its public half made too.
fn pair() -> Result<EphemeralPrivateKey, Error> {
    let key = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(failed)?;
    key.compute_public_key().map_err(failed)?;
    Ok(key)
}

fn x25519() -> Result<Vec<u8>, Error> {
    let key = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(failed)?;
    Ok(key.compute_public_key().map_err(failed)?.as_ref().to_vec())
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::stack("operation", error)
}
