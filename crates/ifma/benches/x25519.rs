//! Compares X25519 with AWS-LC's, in alternation: `cargo bench -p weir-ifma --bench x25519`. Fails if the median ratio
//! exceeds 0.50 for a key pair and a shared secret, the server's part of a handshake.

#![allow(clippy::print_stdout)]

mod duet;

use std::hint::black_box;
use std::process::ExitCode;

use aws_lc_rs::agreement::{
    EphemeralPrivateKey, PrivateKey, UnparsedPublicKey, X25519, agree, agree_ephemeral,
};
use aws_lc_rs::rand::{self, SystemRandom};
use duet::duet;
use weir_ifma::Ifma;
use weir_ifma::x25519::{Secret, exchange, public, shared};

const MOST: f64 = 0.50;

fn main() -> ExitCode {
    let Ok(token) = Ifma::detect().inspect_err(|missing| println!("skipped: {missing}")) else {
        return ExitCode::SUCCESS;
    };
    let random = || {
        let mut bytes = [0; 32];
        rand::fill(&mut bytes).expect("the system has random bytes");
        Secret::new(&bytes)
    };
    let system = SystemRandom::new();
    let their_key = || EphemeralPrivateKey::generate(&X25519, &system).expect("the system has random bytes");
    let peer = public(token, &random());
    let agreed = |key| {
        let peer = UnparsedPublicKey::new(&X25519, black_box(&peer));
        let secret = agree_ephemeral(key, peer, (), |secret| Ok(secret.to_vec()));
        black_box(secret.expect("the peer's key is valid"));
    };

    duet(
        "key pair",
        || _ = black_box(public(token, &random())),
        || drop(black_box(their_key().compute_public_key())),
    );
    // AWS-LC computes the public key with a new private key, so reuse one key here.
    let (our_key, their_long_key) =
        (random(), PrivateKey::generate(&X25519).expect("the system has random bytes"));
    duet(
        "shared secret",
        || _ = black_box(shared(token, black_box(&our_key), black_box(&peer))),
        || {
            let peer = UnparsedPublicKey::new(&X25519, black_box(&peer));
            _ = black_box(agree(&their_long_key, peer, (), |secret| Ok(secret.to_vec())));
        },
    );
    let ratio = duet(
        "key pair and shared secret",
        || _ = black_box(exchange(token, &random(), black_box(&peer))),
        || {
            let key = their_key();
            drop(black_box(key.compute_public_key()));
            agreed(key);
        },
    );
    if ratio <= MOST { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
