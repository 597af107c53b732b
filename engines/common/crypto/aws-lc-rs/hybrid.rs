//! X25519 and ML-KEM-768 together, as TLS 1.3 uses them.

use aws_lc_rs::agreement::X25519;
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};
use weir_engine::{Error, Operate};

use crate::operations::{Agree, failed};

/// Both key pairs, agreement and decapsulation.
pub(crate) fn client() -> Result<Box<dyn Operate>, Error> {
    let key = DecapsulationKey::generate(&ML_KEM_768).map_err(failed)?;
    let secret_for_another_key = key.encapsulation_key().and_then(|key| key.encapsulate());
    let (ciphertext, _) = secret_for_another_key.map_err(failed)?;
    Ok(Box::new(Client { classical: Agree::new(&X25519)?, ciphertext: ciphertext.as_ref().to_vec() }))
}

/// One key pair, agreement and encapsulation.
pub(crate) fn server() -> Result<Box<dyn Operate>, Error> {
    let key = DecapsulationKey::generate(&ML_KEM_768).and_then(|key| key.encapsulation_key());
    let key = key.and_then(|key| key.key_bytes().map(|bytes| bytes.as_ref().to_vec())).map_err(failed)?;
    Ok(Box::new(Server { classical: Agree::new(&X25519)?, key }))
}

/// ML-KEM takes as long with a ciphertext that is meant for another key: it yields another secret, and no error.
struct Client {
    classical: Agree,
    ciphertext: Vec<u8>,
}

impl Operate for Client {
    fn run(&mut self) -> Result<(), Error> {
        let key = DecapsulationKey::generate(&ML_KEM_768).map_err(failed)?;
        let share = key.encapsulation_key().and_then(|key| key.key_bytes().map(drop));
        share.map_err(failed)?;
        key.decapsulate(Ciphertext::from(self.ciphertext.as_slice())).map_err(failed)?;
        self.classical.run()
    }
}

struct Server {
    classical: Agree,
    key: Vec<u8>,
}

impl Operate for Server {
    fn run(&mut self) -> Result<(), Error> {
        let key = EncapsulationKey::new(&ML_KEM_768, &self.key).map_err(failed)?;
        key.encapsulate().map_err(failed)?;
        self.classical.run()
    }
}
