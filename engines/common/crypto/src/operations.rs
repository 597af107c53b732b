//! Primitives over the common API of ring and aws-lc-rs; `api` is one of them.

use weir_engine::sealing::{self, Cipher, HEADER};
use weir_engine::{Certificate, Error, Operate, Operation, Primitive, Suite, pem};

use crate::api::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey,
};
use crate::api::agreement::{self, ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, X25519};
use crate::api::rand::SystemRandom;
use crate::api::signature::{
    self, ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1,
    ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, KeyPair, RSA_PSS_2048_8192_SHA256, RSA_PSS_SHA256,
    RsaKeyPair, VerificationAlgorithm,
};
use crate::{api, hybrid};

/// A prepared operation.
pub fn operation(primitive: &Primitive) -> Result<Box<dyn Operate>, Error> {
    match primitive.operation {
        Operation::Sign(certificate) => Ok(sign(Key::read(primitive, certificate)?)),
        Operation::Verify(certificate) => verify(&Key::read(primitive, certificate)?, certificate),
        Operation::X25519 => agree(&X25519),
        Operation::P256 => agree(&ECDH_P256),
        Operation::HybridClient => hybrid::client(agree(&X25519)?),
        Operation::HybridServer => hybrid::server(agree(&X25519)?),
        Operation::Seal(suite) => Ok(sealing::seal(aead(suite)?, primitive.record)),
        Operation::Open(suite) => sealing::open(aead(suite)?, primitive.record),
    }
}

/// The message to sign: as long as a digest.
const MESSAGE: [u8; 32] = [0x5a; 32];

enum Key {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
}

impl Key {
    fn read(primitive: &Primitive, certificate: Certificate) -> Result<Key, Error> {
        let der = pem::operation_key(primitive)?;
        let key = match certificate {
            Certificate::Rsa2048 => RsaKeyPair::from_pkcs8(&der).map(|key| Key::Rsa(Box::new(key))),
            Certificate::EcdsaP256 => api::ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING, &der).map(Key::Ecdsa),
            Certificate::EcdsaP384 => api::ecdsa(&ECDSA_P384_SHA384_ASN1_SIGNING, &der).map(Key::Ecdsa),
        };
        key.map_err(|error| Error::scenario(format!("key: {error}: expected a key for the operation")))
    }

    fn sign(&self, random: &SystemRandom) -> Result<Vec<u8>, Error> {
        match self {
            Key::Rsa(key) => {
                let mut signature = vec![0; api::modulus(key)];
                key.sign(&RSA_PSS_SHA256, random, &MESSAGE, &mut signature).map_err(Error::operation)?;
                Ok(signature)
            }
            Key::Ecdsa(key) => Ok(key.sign(random, &MESSAGE).map_err(Error::operation)?.as_ref().to_vec()),
        }
    }

    fn public(&self) -> Vec<u8> {
        match self {
            Key::Rsa(key) => key.public_key().as_ref().to_vec(),
            Key::Ecdsa(key) => key.public_key().as_ref().to_vec(),
        }
    }
}

fn sign(key: Key) -> Box<dyn Operate> {
    let random = SystemRandom::new();
    Box::new(move || key.sign(&random).map(drop))
}

/// The public key is parsed each time, as in a handshake.
fn verify(key: &Key, certificate: Certificate) -> Result<Box<dyn Operate>, Error> {
    let algorithm: &'static dyn VerificationAlgorithm = match certificate {
        Certificate::Rsa2048 => &RSA_PSS_2048_8192_SHA256,
        Certificate::EcdsaP256 => &ECDSA_P256_SHA256_ASN1,
        Certificate::EcdsaP384 => &ECDSA_P384_SHA384_ASN1,
    };
    let (public, signature) = (key.public(), key.sign(&SystemRandom::new())?);
    Ok(Box::new(move || {
        let key = signature::UnparsedPublicKey::new(algorithm, &public);
        key.verify(&MESSAGE, &signature).map_err(Error::operation)
    }))
}

/// One side's part: its key pair, public half included, and the shared secret.
fn agree(algorithm: &'static agreement::Algorithm) -> Result<Box<dyn Operate>, Error> {
    let random = SystemRandom::new();
    let peer = EphemeralPrivateKey::generate(algorithm, &random).map_err(Error::operation)?;
    let peer = peer.compute_public_key().map_err(Error::operation)?.as_ref().to_vec();
    Ok(Box::new(move || {
        let key = EphemeralPrivateKey::generate(algorithm, &random).map_err(Error::operation)?;
        key.compute_public_key().map_err(Error::operation)?;
        api::agree(key, UnparsedPublicKey::new(algorithm, &peer)).map_err(Error::operation)
    }))
}

fn aead(suite: Suite) -> Result<Aead, Error> {
    let algorithm = match suite {
        Suite::Aes128Gcm => &AES_128_GCM,
        Suite::Aes256Gcm => &AES_256_GCM,
        Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
    };
    let key = [0x42; 32];
    Ok(Aead(LessSafeKey::new(
        UnboundKey::new(algorithm, &key[..algorithm.key_len()]).map_err(Error::operation)?,
    )))
}

struct Aead(LessSafeKey);

impl Cipher for Aead {
    type Tag = Tag;

    fn seal(&self, nonce: [u8; 12], record: &mut [u8]) -> Result<Tag, Error> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_separate_tag(nonce, Aad::from(HEADER), record).map_err(Error::operation)
    }

    fn open(&self, nonce: [u8; 12], sealed: &mut [u8]) -> Result<(), Error> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0.open_in_place(nonce, Aad::from(HEADER), sealed).map(drop).map_err(Error::operation)
    }
}
