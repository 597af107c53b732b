//! Signatures by weir-ifma's ECDSA P-256.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsBigEndian as _, EcPrivateKeyBin};
use aws_lc_rs::rand;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use weir_ifma::{Ifma, p256};
use zeroize::Zeroizing;

/// The maximum number of nonces to try. A nonce yields no valid signature with a probability of about 2^-32, so
/// repeated failures indicate a fault.
const ATTEMPTS: usize = 4;

/// Loads the key in `der` (PKCS#8 or SEC1) to sign with weir-ifma; `None` if it is not on P-256. `aws_lc` is the same
/// key in AWS-LC. Fails if weir-ifma derives another public key than AWS-LC.
pub(crate) fn signing_key(
    ifma: Ifma,
    der: &[u8],
    aws_lc: &Arc<dyn SigningKey>,
) -> Result<Option<Arc<dyn SigningKey>>, Error> {
    let Ok(pair) = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, der) else {
        return Ok(None);
    };
    let scalar: Option<EcPrivateKeyBin<'_>> = pair.private_key().as_be_bytes().ok();
    let scalar = scalar.as_ref().and_then(|scalar| scalar.as_ref().try_into().ok());
    let key = scalar.and_then(|scalar| p256::SigningKey::new(ifma, scalar));
    let key = key.filter(|key| key.public()[..] == *pair.public_key().as_ref());
    let key = key.ok_or_else(|| Error::General(DIFFERS.to_owned()))?;
    Ok(Some(Arc::new(OfIfma { key: Arc::new(key), aws_lc: Arc::clone(aws_lc) })))
}

const DIFFERS: &str = "AVX-512 IFMA and AWS-LC compute different public keys for an ECDSA P-256 key";

struct OfIfma {
    key: Arc<p256::SigningKey>,
    aws_lc: Arc<dyn SigningKey>,
}

impl SigningKey for OfIfma {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = || Box::new(KeySigner(Arc::clone(&self.key))) as Box<dyn Signer>;
        offered.contains(&SignatureScheme::ECDSA_NISTP256_SHA256).then(signer)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.aws_lc.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl fmt::Debug for OfIfma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfIfma").finish_non_exhaustive()
    }
}

struct KeySigner(Arc<p256::SigningKey>);

impl Signer for KeySigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let digest = digest(&SHA256, message);
        let digest = digest.as_ref().try_into().map_err(|_| Error::General(FAILED.to_owned()))?;
        for _ in 0..ATTEMPTS {
            let mut random = Zeroizing::new([0; 64]);
            rand::fill(&mut *random).map_err(|_| Error::FailedToGetRandomBytes)?;
            if let Some(signature) = self.0.sign(digest, &random) {
                return Ok(encoded(&signature));
            }
        }
        Err(Error::General(FAILED.to_owned()))
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP256_SHA256
    }
}

impl fmt::Debug for KeySigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySigner").finish_non_exhaustive()
    }
}

const FAILED: &str = "no ECDSA P-256 signature passed its check";

/// ASN.1 tags (X.680 section 8.4), with the bit for constructed values.
const INTEGER: u8 = 2;
const SEQUENCE: u8 = 0x30;

/// The DER of a signature (RFC 3279 section 2.2.3). `signature` is r and s, big-endian.
fn encoded(signature: &[u8; 64]) -> Vec<u8> {
    let mut der = Vec::with_capacity(72);
    der.extend([SEQUENCE, 0]);
    for number in signature.chunks_exact(32) {
        let zeros = number.iter().take(31).take_while(|byte| **byte == 0).count();
        let number = &number[zeros..];
        // Without a leading zero, the number would be negative.
        let sign = usize::from(number[0] >= 0x80);
        der.extend([INTEGER, (sign + number.len()) as u8]);
        der.extend(&[0][..sign]);
        der.extend(number);
    }
    der[1] = (der.len() - 2) as u8;
    der
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::{KeyKind, issue};
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
    use rustls::crypto::aws_lc_rs::sign::any_supported_type;
    use rustls_pki_types::PrivateKeyDer;
    use rustls_pki_types::pem::PemObject as _;

    #[test]
    fn numbers_are_short_and_positive() {
        let mut signature = [0; 64];
        assert_eq!(encoded(&signature), [SEQUENCE, 6, INTEGER, 1, 0, INTEGER, 1, 0]);
        signature[31] = 0x7f;
        signature[63] = 0x80;
        assert_eq!(encoded(&signature), [SEQUENCE, 7, INTEGER, 1, 0x7f, INTEGER, 2, 0, 0x80]);
        let longest = encoded(&[0xff; 64]);
        assert_eq!((longest.len(), longest.capacity()), (72, 72));
        assert_eq!(longest[..6], [SEQUENCE, 70, INTEGER, 33, 0, 0xff]);
    }

    #[test]
    fn aws_lc_verifies_the_signatures() {
        let Ok(ifma) = Ifma::detect() else {
            println!("skipped: this processor lacks AVX-512 IFMA");
            return;
        };
        for kind in [KeyKind::EcdsaP256, KeyKind::EcdsaP384, KeyKind::Ed25519, KeyKind::Rsa2048] {
            let issued = issue(&["localhost"], kind).unwrap();
            let der = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
            let aws_lc = any_supported_type(&der).unwrap();
            let key = signing_key(ifma, der.secret_der(), &aws_lc).unwrap();
            assert_eq!(key.is_some(), kind == KeyKind::EcdsaP256, "{kind:?}");
            let Some(key) = key else { continue };
            assert_eq!(key.public_key(), aws_lc.public_key());
            assert!(key.choose_scheme(&[SignatureScheme::ECDSA_NISTP384_SHA384]).is_none());
            let pair = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, der.secret_der());
            let public =
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, pair.unwrap().public_key().as_ref().to_vec());
            let signer = key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]).unwrap();
            let mut signatures: Vec<_> = (0..1000).map(|_| signer.sign(b"message").unwrap()).collect();
            for signature in &signatures {
                public.verify(b"message", signature).unwrap();
                assert!(public.verify(b"another", signature).is_err());
            }
            signatures.sort();
            signatures.dedup();
            assert_eq!(signatures.len(), 1000, "each signature has a nonce of its own");
        }
    }
}
