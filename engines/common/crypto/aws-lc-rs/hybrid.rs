//! X25519 and ML-KEM-768 together, as TLS 1.3 uses them.

use aws_lc_rs::agreement::X25519;
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};
use weir_engine::{Error, Operate};

use crate::operations::{agree, failed};

/// Both key pairs, agreement and decapsulation.
///
/// ML-KEM takes as long with a ciphertext that is meant for another key: it yields another secret, and no error.
pub(crate) fn client() -> Result<Box<dyn Operate>, Error> {
    let key = DecapsulationKey::generate(&ML_KEM_768).map_err(failed)?;
    let secret_for_another_key = key.encapsulation_key().and_then(|key| key.encapsulate());
    let ciphertext = secret_for_another_key.map_err(failed)?.0.as_ref().to_vec();
    let mut classical = agree(&X25519)?;
    Ok(Box::new(move || {
        let key = DecapsulationKey::generate(&ML_KEM_768).map_err(failed)?;
        let share = key.encapsulation_key().and_then(|key| key.key_bytes().map(drop));
        share.map_err(failed)?;
        key.decapsulate(Ciphertext::from(ciphertext.as_slice())).map_err(failed)?;
        classical.run()
    }))
}

/// One key pair, agreement and encapsulation.
pub(crate) fn server() -> Result<Box<dyn Operate>, Error> {
    let key = DecapsulationKey::generate(&ML_KEM_768).and_then(|key| key.encapsulation_key());
    let key = key.and_then(|key| key.key_bytes().map(|bytes| bytes.as_ref().to_vec())).map_err(failed)?;
    let mut classical = agree(&X25519)?;
    Ok(Box::new(move || {
        let key = EncapsulationKey::new(&ML_KEM_768, &key).map_err(failed)?;
        key.encapsulate().map_err(failed)?;
        classical.run()
    }))
}
