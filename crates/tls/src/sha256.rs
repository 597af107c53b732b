//! SHA-256 for TLS 1.3 on processors that have instructions for it: for transcripts, HMAC and the key schedule, which
//! uses HMAC.
//!
//! AWS-LC hashes as fast, but the overhead of each call is about the time for one block, and a handshake makes about
//! forty calls for a block or two each (docs/decisions/0041-new-connections.md).

use rustls::crypto::hash::{self, HashAlgorithm, Output};
use rustls::crypto::hmac::{self, Tag};
use rustls::crypto::tls13::HkdfUsingHmac;
use sha2::block_api::compress256;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

pub(crate) static HASH: Hash = Hash;
pub(crate) static HKDF: HkdfUsingHmac<'static> = HkdfUsingHmac(&Hmac);

/// Whether this processor has the instructions. Without them AWS-LC is faster.
pub(crate) fn is_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = std::arch::is_x86_feature_detected!("sha") && std::arch::is_x86_feature_detected!("sse4.1");
    #[cfg(target_arch = "aarch64")]
    let has = std::arch::is_aarch64_feature_detected!("sha2");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let has = false;
    has
}

pub(crate) struct Hash;

impl hash::Hash for Hash {
    fn start(&self) -> Box<dyn hash::Context> {
        Box::new(Transcript(Sha256::new()))
    }

    fn hash(&self, data: &[u8]) -> Output {
        Output::new(&Sha256::digest(data))
    }

    fn output_len(&self) -> usize {
        LENGTH
    }

    fn algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }
}

struct Transcript(Sha256);

impl hash::Context for Transcript {
    fn fork_finish(&self) -> Output {
        Output::new(&self.0.clone().finalize())
    }

    fn fork(&self) -> Box<dyn hash::Context> {
        Box::new(Self(self.0.clone()))
    }

    fn finish(self: Box<Self>) -> Output {
        Output::new(&self.0.finalize())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

/// HMAC-SHA-256 (RFC 2104).
struct Hmac;

impl hmac::Hmac for Hmac {
    fn with_key(&self, key: &[u8]) -> Box<dyn hmac::Key> {
        Box::new(Key::new(key))
    }

    fn hash_output_len(&self) -> usize {
        LENGTH
    }
}

/// An HMAC key: the hash's states after the first block of the inner and of the outer message, which the padded key
/// fills.
struct Key {
    inner: State,
    outer: State,
}

type State = [u32; 8];

impl Key {
    fn new(key: &[u8]) -> Self {
        let mut block = Zeroizing::new([0; BLOCK]);
        match block.get_mut(..key.len()) {
            Some(start) => start.copy_from_slice(key),
            None => block[..LENGTH].copy_from_slice(&Sha256::digest(key)),
        }
        let after = |pad: u8| {
            let mut state = START;
            compress256(&mut state, &[*Zeroizing::new(block.map(|byte| byte ^ pad))]);
            state
        };
        Self { inner: after(0x36), outer: after(0x5c) }
    }
}

impl hmac::Key for Key {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> Tag {
        let parts = [first].into_iter().chain(middle.iter().copied()).chain([last]);
        let inner = finish(self.inner, parts);
        Tag::new(&finish(self.outer, [&inner[..]].into_iter()))
    }

    fn tag_len(&self) -> usize {
        LENGTH
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}

/// The hash of a message whose first block is in `state`, and whose rest is `parts` (FIPS 180-4 section 5.1.1).
fn finish<'a>(mut state: State, parts: impl Iterator<Item = &'a [u8]>) -> [u8; LENGTH] {
    let mut block = [0; BLOCK];
    let (mut used, mut length) = (0, BLOCK);
    for mut part in parts {
        length += part.len();
        while !part.is_empty() {
            let taken = part.len().min(BLOCK - used);
            block[used..used + taken].copy_from_slice(&part[..taken]);
            (used, part) = (used + taken, &part[taken..]);
            if used == BLOCK {
                compress256(&mut state, &[block]);
                used = 0;
            }
        }
    }
    block[used] = 0x80;
    block[used + 1..].fill(0);
    if used >= BLOCK - 8 {
        compress256(&mut state, &[block]);
        block.fill(0);
    }
    block[BLOCK - 8..].copy_from_slice(&(8 * length as u64).to_be_bytes());
    compress256(&mut state, &[block]);
    block.zeroize();
    let mut hash = [0; LENGTH];
    for (bytes, word) in hash.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

/// The initial hash value (FIPS 180-4 section 5.3.3).
const START: State =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

const BLOCK: usize = 64;
const LENGTH: usize = 32;
