//! Key exchange by weir-ifma's X25519, alone and as part of X25519MLKEM768.

use std::sync::OnceLock;

use aws_lc_rs::rand;
use rustls::crypto::aws_lc_rs::kx_group::MLKEM768;
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};
use weir_ifma::Ifma;
use weir_ifma::x25519::{self, Secret};
use zeroize::Zeroizing;

/// The size of ML-KEM-768's part of the key share: a client sends an encapsulation key, a server a ciphertext (FIPS 203
/// table 3). The X25519 key share follows (draft-ietf-tls-ecdhe-mlkem).
const ENCAPSULATION_KEY: usize = 1184;
const CIPHERTEXT: usize = 1088;

const BAD_SHARE: Error = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);

/// The group X25519 (RFC 7748), computed by weir-ifma.
pub(crate) fn x25519(ifma: Ifma) -> &'static dyn SupportedKxGroup {
    static GROUP: OnceLock<X25519> = OnceLock::new();
    GROUP.get_or_init(|| X25519(ifma))
}

/// The group X25519MLKEM768, with weir-ifma's X25519 and AWS-LC's ML-KEM-768.
pub(crate) fn x25519_mlkem768(ifma: Ifma) -> &'static dyn SupportedKxGroup {
    static GROUP: OnceLock<X25519Mlkem768> = OnceLock::new();
    GROUP.get_or_init(|| X25519Mlkem768(X25519(ifma)))
}

#[derive(Debug)]
struct X25519(Ifma);

impl X25519 {
    fn start(&self) -> Result<StartedX25519, Error> {
        let Self(ifma) = *self;
        let secret = new_secret()?;
        let public = x25519::public(ifma, &secret);
        Ok(StartedX25519 { ifma, secret, public })
    }
}

fn new_secret() -> Result<Secret, Error> {
    let mut bytes = Zeroizing::new([0; 32]);
    rand::fill(&mut *bytes).map_err(|_| Error::FailedToGetRandomBytes)?;
    Ok(Secret::new(&bytes))
}

fn shared(secret: [u8; 32]) -> SharedSecret {
    SharedSecret::from(&Zeroizing::new(secret)[..])
}

impl SupportedKxGroup for X25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(self.start()?))
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let peer = peer.try_into().map_err(|_| BAD_SHARE)?;
        let (public, secret) = x25519::exchange(self.0, &new_secret()?, peer).ok_or(BAD_SHARE)?;
        Ok(CompletedKeyExchange { group: self.name(), pub_key: public.to_vec(), secret: shared(secret) })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct StartedX25519 {
    ifma: Ifma,
    secret: Secret,
    public: [u8; 32],
}

impl ActiveKeyExchange for StartedX25519 {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer = peer.try_into().map_err(|_| BAD_SHARE)?;
        x25519::shared(self.ifma, &self.secret, peer).map(shared).ok_or(BAD_SHARE)
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

#[derive(Debug)]
struct X25519Mlkem768(X25519);

impl SupportedKxGroup for X25519Mlkem768 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let (x25519, ml_kem) = (self.0.start()?, MLKEM768.start()?);
        let share = [ml_kem.pub_key(), x25519.pub_key()].concat();
        Ok(Box::new(StartedX25519Mlkem768 { x25519: Box::new(x25519), ml_kem, share }))
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        let (of_ml_kem, of_x25519) = peer.split_at_checked(ENCAPSULATION_KEY).ok_or(BAD_SHARE)?;
        let x25519 = self.0.start_and_complete(of_x25519)?;
        let ml_kem = MLKEM768.start_and_complete(of_ml_kem)?;
        Ok(CompletedKeyExchange {
            group: self.name(),
            pub_key: [ml_kem.pub_key, x25519.pub_key].concat(),
            secret: joined(&ml_kem.secret, &x25519.secret),
        })
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

fn joined(ml_kem: &SharedSecret, x25519: &SharedSecret) -> SharedSecret {
    SharedSecret::from([ml_kem.secret_bytes(), x25519.secret_bytes()].concat())
}

struct StartedX25519Mlkem768 {
    x25519: Box<StartedX25519>,
    ml_kem: Box<dyn ActiveKeyExchange>,
    share: Vec<u8>,
}

impl ActiveKeyExchange for StartedX25519Mlkem768 {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let (of_ml_kem, of_x25519) = peer.split_at_checked(CIPHERTEXT).ok_or(BAD_SHARE)?;
        let x25519 = self.x25519.complete(of_x25519)?;
        Ok(joined(&self.ml_kem.complete(of_ml_kem)?, &x25519))
    }

    /// The X25519 key share, which a server without the hybrid can use without a further round trip.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((self.x25519.group(), self.x25519.pub_key()))
    }

    fn complete_hybrid_component(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        self.x25519.complete(peer)
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::aws_lc_rs::kx_group;

    /// Runs the test with each group and AWS-LC's group of the same name, in both roles.
    fn pairs(test: impl Fn(&'static dyn SupportedKxGroup, &'static dyn SupportedKxGroup)) {
        let Ok(ifma) = Ifma::detect() else {
            println!("skipped: this processor lacks AVX-512 IFMA");
            return;
        };
        for (ours, theirs) in
            [(x25519(ifma), kx_group::X25519), (x25519_mlkem768(ifma), kx_group::X25519MLKEM768)]
        {
            assert_eq!(ours.name(), theirs.name());
            for version in [ProtocolVersion::TLSv1_2, ProtocolVersion::TLSv1_3] {
                assert_eq!(ours.usable_for_version(version), theirs.usable_for_version(version));
            }
            test(ours, theirs);
            test(theirs, ours);
        }
    }

    #[test]
    fn both_sides_get_the_secret_of_aws_lc() {
        pairs(|client, server| {
            for _ in 0..100 {
                let started = client.start().unwrap();
                let CompletedKeyExchange { group, pub_key, secret } =
                    server.start_and_complete(started.pub_key()).unwrap();
                assert_eq!(group, started.group());
                assert_eq!(started.complete(&pub_key).unwrap().secret_bytes(), secret.secret_bytes());
            }
        });
    }

    #[test]
    fn a_server_without_the_hybrid_takes_its_x25519() {
        pairs(|client, _| {
            let started = client.start().unwrap();
            let Some((group, share)) = started.hybrid_component() else {
                assert_eq!(started.group(), NamedGroup::X25519);
                return;
            };
            assert_eq!(group, NamedGroup::X25519);
            let server = kx_group::X25519.start_and_complete(share).unwrap();
            let secret = started.complete_hybrid_component(&server.pub_key).unwrap();
            assert_eq!(secret.secret_bytes(), server.secret.secret_bytes());
        });
    }

    #[test]
    fn bad_shares_are_rejected() {
        pairs(|client, server| {
            let share = client.start().unwrap().pub_key().to_vec();
            let answer = server.start_and_complete(&share).unwrap().pub_key;
            for (good, complete) in [(&share, false), (&answer, true)] {
                let mut zero = good.clone();
                let at = zero.len() - 32;
                zero[at..].fill(0);
                for bad in [&good[1..], &[&good[..], &[0]].concat(), &good[..at], &[], &zero] {
                    let error = match complete {
                        true => client.start().unwrap().complete(bad).err(),
                        false => server.start_and_complete(bad).err(),
                    };
                    assert_eq!(error, Some(BAD_SHARE), "{} bytes, answer: {complete}", bad.len());
                }
            }
        });
    }
}
