//! graviola's primitives.

use graviola::aead::{AesGcm, ChaCha20Poly1305};
use graviola::hashing::{Sha256, Sha384};
use graviola::key_agreement::p256;
use graviola::signing::{ecdsa, rsa};
use weir_engine::{Certificate, Error, Operate, Operation, Primitive, Suite, pem};

use crate::hybrid;

/// An operation, ready to be done.
pub(crate) fn operation(primitive: &Primitive) -> Result<Box<dyn Operate>, Error> {
    Ok(match primitive.operation {
        Operation::Sign(certificate) => Box::new(Sign(Key::read(primitive, certificate)?)),
        Operation::Verify(certificate) => Box::new(Verify::new(&Key::read(primitive, certificate)?)?),
        Operation::X25519 => Box::new(hybrid::X25519::new()?),
        Operation::P256 => {
            let peer = p256::PrivateKey::new_random().map_err(failed)?;
            Box::new(P256 { peer: peer.public_key_uncompressed() })
        }
        Operation::HybridClient => Box::new(hybrid::Client::new()?),
        Operation::HybridServer => Box::new(hybrid::Server::new()?),
        Operation::Seal(suite) => {
            Box::new(Seal { key: Aead::new(suite), count: 0, buffer: vec![0x55; primitive.record] })
        }
        Operation::Open(suite) => Box::new(Open::new(Aead::new(suite), primitive.record)),
    })
}

/// What is signed: as long as a digest.
const MESSAGE: [u8; 32] = [0x5a; 32];

/// The header of a record of TLS 1.3, which is authenticated with it.
const HEADER: [u8; 5] = [23, 3, 3, 64, 17];

/// As long as the longest signature.
const SIGNATURE: usize = 512;

pub(crate) fn failed(error: graviola::Error) -> Error {
    Error::stack("operation", format!("{error:?}"))
}

enum Key {
    Rsa(Box<rsa::SigningKey>),
    P256(ecdsa::SigningKey<ecdsa::P256>),
    P384(ecdsa::SigningKey<ecdsa::P384>),
}

impl Key {
    fn read(primitive: &Primitive, certificate: Certificate) -> Result<Key, Error> {
        let path = primitive.key.as_deref().ok_or_else(|| Error::scenario("key `key` is missing"))?;
        let der = pem::private_key(path)?;
        let key = match certificate {
            Certificate::Rsa2048 => rsa::SigningKey::from_pkcs8_der(&der).map(|key| Key::Rsa(Box::new(key))),
            Certificate::EcdsaP256 => ecdsa::SigningKey::from_pkcs8_der(&der).map(Key::P256),
            Certificate::EcdsaP384 => ecdsa::SigningKey::from_pkcs8_der(&der).map(Key::P384),
        };
        key.map_err(|error| {
            Error::scenario(format!("key: one of the operation's kind is allowed: {error:?}"))
        })
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

struct Sign(Key);

impl Operate for Sign {
    fn run(&mut self) -> Result<(), Error> {
        self.0.sign().map(drop)
    }
}

enum Public {
    Rsa(Vec<u8>),
    P256(Vec<u8>),
    P384(Vec<u8>),
}

/// The public key is read each time, as it is in a handshake.
struct Verify {
    public: Public,
    signature: Vec<u8>,
}

impl Verify {
    fn new(key: &Key) -> Result<Verify, Error> {
        let public = match key {
            Key::Rsa(key) => {
                let mut buffer = [0; 2 * SIGNATURE];
                Public::Rsa(key.public_key().to_pkcs1_der(&mut buffer).map_err(failed)?.to_vec())
            }
            Key::P256(key) => Public::P256(key.private_key.public_key_uncompressed().to_vec()),
            Key::P384(key) => Public::P384(key.private_key.public_key_uncompressed().to_vec()),
        };
        Ok(Verify { public, signature: key.sign()? })
    }
}

impl Operate for Verify {
    fn run(&mut self) -> Result<(), Error> {
        let verified = match &self.public {
            Public::Rsa(key) => rsa::VerifyingKey::from_pkcs1_der(key)
                .and_then(|key| key.verify_pss_sha256(&self.signature, &MESSAGE)),
            Public::P256(key) => ecdsa::VerifyingKey::<ecdsa::P256>::from_x962_uncompressed(key)
                .and_then(|key| key.verify_asn1::<Sha256>(&[&MESSAGE], &self.signature)),
            Public::P384(key) => ecdsa::VerifyingKey::<ecdsa::P384>::from_x962_uncompressed(key)
                .and_then(|key| key.verify_asn1::<Sha384>(&[&MESSAGE], &self.signature)),
        };
        verified.map_err(failed)
    }
}

struct P256 {
    peer: [u8; 65],
}

impl Operate for P256 {
    fn run(&mut self) -> Result<(), Error> {
        let key = p256::PrivateKey::new_random().map_err(failed)?;
        std::hint::black_box(key.public_key_uncompressed());
        let peer = p256::PublicKey::from_x962_uncompressed(&self.peer).map_err(failed)?;
        key.diffie_hellman(&peer).map(drop).map_err(failed)
    }
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

    fn seal(&self, count: u64, record: &mut [u8]) -> Tag {
        let (nonce, mut tag) = (nonce(count), Tag::default());
        match self {
            Aead::Aes(key) => key.encrypt(&nonce, &HEADER, record, &mut tag),
            Aead::ChaCha(key) => key.encrypt(&nonce, &HEADER, record, &mut tag),
        }
        tag
    }

    fn open(&self, count: u64, record: &mut [u8], tag: &Tag) -> Result<(), Error> {
        let nonce = nonce(count);
        let opened = match self {
            Aead::Aes(key) => key.decrypt(&nonce, &HEADER, record, tag),
            Aead::ChaCha(key) => key.decrypt(&nonce, &HEADER, record, tag),
        };
        opened.map_err(failed)
    }
}

fn nonce(count: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&count.to_be_bytes());
    nonce
}

struct Seal {
    key: Aead,
    count: u64,
    buffer: Vec<u8>,
}

impl Operate for Seal {
    fn run(&mut self) -> Result<(), Error> {
        self.count += 1;
        self.key.seal(self.count, &mut self.buffer);
        Ok(())
    }
}

/// Opening is done in place, so each call needs a sealed record of its own.
struct Open {
    key: Aead,
    sealed: Vec<u8>,
    tag: Tag,
    records: Vec<u8>,
    next: usize,
}

impl Open {
    fn new(key: Aead, record: usize) -> Open {
        let mut sealed = vec![0x55; record];
        let tag = key.seal(0, &mut sealed);
        Open { key, sealed, tag, records: Vec::new(), next: 0 }
    }
}

impl Operate for Open {
    fn prepare(&mut self, times: usize) -> Result<(), Error> {
        self.records.clear();
        for _ in 0..times {
            self.records.extend_from_slice(&self.sealed);
        }
        self.next = 0;
        Ok(())
    }

    fn run(&mut self) -> Result<(), Error> {
        let end = self.next + self.sealed.len();
        let record = self.records.get_mut(self.next..end);
        let record = record.ok_or_else(|| Error::runner("operation", "not prepared"))?;
        self.next = end;
        self.key.open(0, record, &self.tag)
    }
}
