//! X25519, alone and with ML-KEM-768, as TLS 1.3 uses them.

use std::hint::black_box;

use graviola::key_agreement::mlkem768::{DecapKey, EncapKey};
use graviola::key_agreement::x25519::{PrivateKey, PublicKey};
use weir_engine::{Error, Operate};

use crate::operations::failed;

/// Key pair and agreement.
pub(crate) fn x25519() -> Result<Box<dyn Operate>, Error> {
    let peer = PrivateKey::new_random().map_err(failed)?.public_key().as_bytes();
    Ok(Box::new(move || {
        let key = PrivateKey::new_random().map_err(failed)?;
        black_box(key.public_key().as_bytes());
        key.diffie_hellman(&PublicKey::from_array(&peer)).map(drop).map_err(failed)
    }))
}

/// Both key pairs, agreement and decapsulation.
///
/// ML-KEM takes as long with a ciphertext that is meant for another key: it yields another secret, and no error.
pub(crate) fn client() -> Result<Box<dyn Operate>, Error> {
    let key = DecapKey::generate().map_err(failed)?.encapsulation_key();
    let (_, ciphertext) = key.encaps().map_err(failed)?;
    let mut classical = x25519()?;
    Ok(Box::new(move || {
        let key = DecapKey::generate().map_err(failed)?;
        black_box(key.encapsulation_key().as_bytes());
        black_box(key.decaps(&ciphertext));
        classical.run()
    }))
}

/// One key pair, agreement and encapsulation.
pub(crate) fn server() -> Result<Box<dyn Operate>, Error> {
    let key = DecapKey::generate().map_err(failed)?.encapsulation_key().as_bytes();
    let mut classical = x25519()?;
    Ok(Box::new(move || {
        let key = EncapKey::from_bytes(&key).map_err(failed)?;
        black_box(key.encaps().map_err(failed)?);
        classical.run()
    }))
}
