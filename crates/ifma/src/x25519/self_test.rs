//! The self-test before the first use.

use super::{Secret, exchange, public, shared};
use crate::{Failed, Ifma};

const FAILED: Failed = Failed("X25519");

/// The number of exchanges in the chain.
const EXCHANGES: usize = 1000;

/// The initial peer and secret of the chain.
const FIRST: ([u8; 32], [u8; 32]) = ([9; 32], [9; 32]);

/// The last public key and shared secret of the chain, computed by AWS-LC.
const LAST: ([u8; 32], [u8; 32]) = (
    [
        0x50, 0xf1, 0xd2, 0xd5, 0x3a, 0x4a, 0xf2, 0x16, 0x95, 0x9c, 0x7d, 0xf4, 0x55, 0xd7, 0x5c, 0x92, 0x5c,
        0x08, 0x38, 0x3d, 0xed, 0xa9, 0x6c, 0x0c, 0xf3, 0x98, 0x2f, 0x40, 0xa5, 0x1d, 0xdf, 0x36,
    ],
    [
        0xea, 0xc4, 0x53, 0x9e, 0x7b, 0x6a, 0xb9, 0x29, 0x4a, 0x0a, 0x83, 0x4d, 0xd8, 0xcf, 0x44, 0xb4, 0x31,
        0xdb, 0x0d, 0xd5, 0xa4, 0x26, 0x48, 0x21, 0x01, 0xc8, 0x2b, 0x15, 0x26, 0x59, 0xbd, 0x52,
    ],
);

/// Runs a chain of 1000 exchanges, each with the previous results as secret and peer, and compares the last result with
/// AWS-LC's. For every tenth exchange, [`public`] and [`shared`] must return the same results. This takes about 15 ms
/// on a Zen 5 core.
///
/// # Errors
///
/// A result was wrong.
pub fn self_test(token: Ifma) -> Result<(), Failed> {
    let mut last = FIRST;
    for i in 0..EXCHANGES {
        let (peer, secret) = (last.0, Secret::new(&last.1));
        last = exchange(token, &secret, &peer).ok_or(FAILED)?;
        if i % 10 == 0 && (public(token, &secret), shared(token, &secret, &peer)) != (last.0, Some(last.1)) {
            return Err(FAILED);
        }
    }
    if last == LAST { Ok(()) } else { Err(FAILED) }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};

    use super::{EXCHANGES, FIRST, LAST};

    /// Checks the expected result with another implementation.
    #[test]
    fn the_chain_is_that_of_aws_lc() {
        let (mut peer, mut secret) = FIRST;
        for _ in 0..EXCHANGES {
            let key = PrivateKey::from_private_key(&X25519, &secret).unwrap();
            let copied = |bytes: &[u8]| Ok(bytes.try_into().unwrap());
            secret = agree(&key, UnparsedPublicKey::new(&X25519, &peer), (), copied).unwrap();
            peer = key.compute_public_key().unwrap().as_ref().try_into().unwrap();
        }
        assert_eq!((peer, secret), LAST);
    }
}
