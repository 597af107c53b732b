//! X25519 (passed in) combined with ML-KEM-768, as in TLS 1.3.

use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};
use weir_engine::{Error, Operate};

/// Both key pairs, agreement and decapsulation.
///
/// ML-KEM takes the same time with a ciphertext for another key: it returns another secret, not an error.
pub(crate) fn client(mut classical: Box<dyn Operate>) -> Result<Box<dyn Operate>, Error> {
    let key = DecapsulationKey::generate(&ML_KEM_768).map_err(Error::operation)?;
    let secret_for_another_key = key.encapsulation_key().and_then(|key| key.encapsulate());
    let ciphertext = secret_for_another_key.map_err(Error::operation)?.0.as_ref().to_vec();
    Ok(Box::new(move || {
        let key = DecapsulationKey::generate(&ML_KEM_768).map_err(Error::operation)?;
        let share = key.encapsulation_key().and_then(|key| key.key_bytes().map(drop));
        share.map_err(Error::operation)?;
        key.decapsulate(Ciphertext::from(ciphertext.as_slice())).map_err(Error::operation)?;
        classical.run()
    }))
}

/// One key pair, agreement and encapsulation.
pub(crate) fn server(mut classical: Box<dyn Operate>) -> Result<Box<dyn Operate>, Error> {
    let key = DecapsulationKey::generate(&ML_KEM_768).and_then(|key| key.encapsulation_key());
    let key =
        key.and_then(|key| key.key_bytes().map(|bytes| bytes.as_ref().to_vec())).map_err(Error::operation)?;
    Ok(Box::new(move || {
        let key = EncapsulationKey::new(&ML_KEM_768, &key).map_err(Error::operation)?;
        key.encapsulate().map_err(Error::operation)?;
        classical.run()
    }))
}
