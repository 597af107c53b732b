//! weir-ifma's primitives as rustls calls them, and AWS-LC's.

use std::hint::black_box;

use rustls::SignatureScheme;
use rustls::crypto::SupportedKxGroup;
use rustls_pki_types::PrivatePkcs8KeyDer;
use weir_engine::{Certificate, Error, Operate, Operation, Primitive, pem};

use crate::exchange;
use crate::provider::{ifma, provider};

/// A prepared operation.
pub(crate) fn operation(primitive: &Primitive) -> Result<Box<dyn Operate>, Error> {
    match primitive.operation {
        Operation::Sign(Certificate::EcdsaP256) => sign(primitive),
        Operation::X25519 => server(exchange::x25519(ifma())),
        Operation::HybridServer => server(exchange::x25519_mlkem768(ifma())),
        Operation::HybridClient => client(exchange::x25519_mlkem768(ifma())),
        _ => weir_engine_aws_lc_rs::operation(primitive),
    }
}

/// The message to sign: as long as a digest.
const MESSAGE: [u8; 32] = [0x5a; 32];

fn sign(primitive: &Primitive) -> Result<Box<dyn Operate>, Error> {
    let key = PrivatePkcs8KeyDer::from(pem::operation_key(primitive)?);
    let wrong = |error| Error::scenario(format!("key: {error}: expected a key for the operation"));
    let key = provider().key_provider.load_private_key(key.into()).map_err(wrong)?;
    let signer = key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]);
    let signer = signer.ok_or_else(|| Error::scenario("key: expected a key on P-256"))?;
    Ok(Box::new(move || signer.sign(&MESSAGE).map(drop).map_err(Error::operation)))
}

/// A server's part: its key pair, public half included, and the shared secret.
fn server(group: &'static dyn SupportedKxGroup) -> Result<Box<dyn Operate>, Error> {
    let share = group.start().map_err(Error::operation)?.pub_key().to_vec();
    Ok(Box::new(move || {
        black_box(group.start_and_complete(&share).map_err(Error::operation)?);
        Ok(())
    }))
}

/// A client's part. ML-KEM takes the same time with a ciphertext for another key: it returns another secret, not an error.
fn client(group: &'static dyn SupportedKxGroup) -> Result<Box<dyn Operate>, Error> {
    let of_another = group.start().map_err(Error::operation)?;
    let share = group.start_and_complete(of_another.pub_key()).map_err(Error::operation)?.pub_key;
    Ok(Box::new(move || {
        let started = group.start().map_err(Error::operation)?;
        black_box(started.complete(&share).map_err(Error::operation)?);
        Ok(())
    }))
}
