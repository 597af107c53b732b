//! graviola's primitives.

use std::hint::black_box;

use graviola::aead::{AesGcm, ChaCha20Poly1305};
use graviola::hashing::{Sha256, Sha384};
use graviola::key_agreement::mlkem768::{DecapKey, EncapKey};
use graviola::key_agreement::{p256, x25519};
use graviola::signing::{ecdsa, rsa};
use weir_engine::sealing::{self, Cipher, HEADER};
use weir_engine::{Certificate, Error, Operate, Operation, Primitive, Suite, pem};

/// A prepared operation.
pub(crate) fn operation(primitive: &Primitive) -> Result<Box<dyn Operate>, Error> {
    match primitive.operation {
        Operation::Sign(certificate) => {
            let key = Key::read(primitive, certificate)?;
            Ok(Box::new(move || key.sign().map(drop)))
        }
        Operation::Verify(certificate) => verify(&Key::read(primitive, certificate)?),
        Operation::X25519 => x25519(),
        Operation::P256 => p256(),
        Operation::HybridClient => hybrid_client(),
        Operation::HybridServer => hybrid_server(),
        Operation::Seal(suite) => Ok(sealing::seal(Aead::new(suite), primitive.record)),
        Operation::Open(suite) => sealing::open(Aead::new(suite), primitive.record),
    }
}

/// The message to sign: as long as a digest.
const MESSAGE: [u8; 32] = [0x5a; 32];

/// As long as the longest signature.
const SIGNATURE: usize = 512;

fn failed(error: graviola::Error) -> Error {
    Error::stack("operation", format!("{error:?}"))
}

enum Key {
    Rsa(Box<rsa::SigningKey>),
    P256(ecdsa::SigningKey<ecdsa::P256>),
    P384(ecdsa::SigningKey<ecdsa::P384>),
}

impl Key {
    fn read(primitive: &Primitive, certificate: Certificate) -> Result<Key, Error> {
        let der = pem::operation_key(primitive)?;
        let key = match certificate {
            Certificate::Rsa2048 => rsa::SigningKey::from_pkcs8_der(&der).map(|key| Key::Rsa(Box::new(key))),
            Certificate::EcdsaP256 => ecdsa::SigningKey::from_pkcs8_der(&der).map(Key::P256),
            Certificate::EcdsaP384 => ecdsa::SigningKey::from_pkcs8_der(&der).map(Key::P384),
        };
        key.map_err(|error| Error::scenario(format!("key: {error:?}: expected a key for the operation")))
    }

    fn sign(&self) -> Result<Vec<u8>, Error> {
        let mut buffer = [0; SIGNATURE];
        let signature = match self {
            Key::Rsa(key) => key.sign_pss_sha256(&mut buffer[..key.modulus_len_bytes()], &MESSAGE),
            Key::P256(key) => key.sign_asn1::<Sha256>(&[&MESSAGE], &mut buffer),
            Key::P384(key) => key.sign_asn1::<Sha384>(&[&MESSAGE], &mut buffer),
        };
        signature.map(<[u8]>::to_vec).map_err(failed)
    }
}

/// The public key is parsed each time, as in a handshake.
fn verify(key: &Key) -> Result<Box<dyn Operate>, Error> {
    let signature = key.sign()?;
    Ok(match key {
        Key::Rsa(key) => {
            let mut buffer = [0; 2 * SIGNATURE];
            let public = key.public_key().to_pkcs1_der(&mut buffer).map_err(failed)?.to_vec();
            Box::new(move || {
                let key = rsa::VerifyingKey::from_pkcs1_der(&public).map_err(failed)?;
                key.verify_pss_sha256(&signature, &MESSAGE).map_err(failed)
            })
        }
        Key::P256(key) => {
            let public = key.private_key.public_key_uncompressed();
            Box::new(move || {
                let key =
                    ecdsa::VerifyingKey::<ecdsa::P256>::from_x962_uncompressed(&public).map_err(failed)?;
                key.verify_asn1::<Sha256>(&[&MESSAGE], &signature).map_err(failed)
            })
        }
        Key::P384(key) => {
            let public = key.private_key.public_key_uncompressed();
            Box::new(move || {
                let key =
                    ecdsa::VerifyingKey::<ecdsa::P384>::from_x962_uncompressed(&public).map_err(failed)?;
                key.verify_asn1::<Sha384>(&[&MESSAGE], &signature).map_err(failed)
            })
        }
    })
}

fn p256() -> Result<Box<dyn Operate>, Error> {
    let peer = p256::PrivateKey::new_random().map_err(failed)?.public_key_uncompressed();
    Ok(Box::new(move || {
        let key = p256::PrivateKey::new_random().map_err(failed)?;
        black_box(key.public_key_uncompressed());
        let peer = p256::PublicKey::from_x962_uncompressed(&peer).map_err(failed)?;
        key.diffie_hellman(&peer).map(drop).map_err(failed)
    }))
}

fn x25519() -> Result<Box<dyn Operate>, Error> {
    let peer = x25519::PrivateKey::new_random().map_err(failed)?.public_key().as_bytes();
    Ok(Box::new(move || {
        let key = x25519::PrivateKey::new_random().map_err(failed)?;
        black_box(key.public_key().as_bytes());
        key.diffie_hellman(&x25519::PublicKey::from_array(&peer)).map(drop).map_err(failed)
    }))
}

/// Both key pairs, agreement and decapsulation.
///
/// ML-KEM takes the same time with a ciphertext for another key: it returns another secret, not an error.
fn hybrid_client() -> Result<Box<dyn Operate>, Error> {
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
fn hybrid_server() -> Result<Box<dyn Operate>, Error> {
    let key = DecapKey::generate().map_err(failed)?.encapsulation_key().as_bytes();
    let mut classical = x25519()?;
    Ok(Box::new(move || {
        let key = EncapKey::from_bytes(&key).map_err(failed)?;
        black_box(key.encaps().map_err(failed)?);
        classical.run()
    }))
}

enum Aead {
    Aes(Box<AesGcm>),
    ChaCha(ChaCha20Poly1305),
}

type Tag = [u8; 16];

impl Aead {
    fn new(suite: Suite) -> Aead {
        match suite {
            Suite::Aes128Gcm => Aead::Aes(Box::new(AesGcm::new(&[0x42; 16]))),
            Suite::Aes256Gcm => Aead::Aes(Box::new(AesGcm::new(&[0x42; 32]))),
            Suite::ChaCha20Poly1305 => Aead::ChaCha(ChaCha20Poly1305::new([0x42; 32])),
        }
    }
}

impl Cipher for Aead {
    type Tag = Tag;

    fn seal(&self, nonce: [u8; 12], record: &mut [u8]) -> Result<Tag, Error> {
        let mut tag = Tag::default();
        match self {
            Aead::Aes(key) => key.encrypt(&nonce, &HEADER, record, &mut tag),
            Aead::ChaCha(key) => key.encrypt(&nonce, &HEADER, record, &mut tag),
        }
        Ok(tag)
    }

    fn open(&self, nonce: [u8; 12], sealed: &mut [u8]) -> Result<(), Error> {
        let (record, tag) = sealed.split_at_mut(sealed.len() - size_of::<Tag>());
        let opened = match self {
            Aead::Aes(key) => key.decrypt(&nonce, &HEADER, record, tag),
            Aead::ChaCha(key) => key.decrypt(&nonce, &HEADER, record, tag),
        };
        opened.map_err(failed)
    }
}
