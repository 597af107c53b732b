//! Compares ECDSA P-256 signing with AWS-LC's, in alternation: `cargo bench -p weir-ifma --bench p256`. Fails if the
//! median ratio exceeds 0.42.

#![allow(clippy::print_stdout)]

mod duet;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use aws_lc_rs::digest::{Digest, SHA256};
use aws_lc_rs::encoding::AsBigEndian;
use aws_lc_rs::rand;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use duet::duet;
use weir_ifma::Ifma;
use weir_ifma::p256::{SigningKey, self_test};

const MOST: f64 = 0.42;

fn main() -> ExitCode {
    let Ok(token) = Ifma::detect().inspect_err(|missing| println!("skipped: {missing}")) else {
        return ExitCode::SUCCESS;
    };
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
    let scalar = pair.private_key().as_be_bytes().expect("a scalar");
    let key = SigningKey::new(token, scalar.as_ref().try_into().expect("32 bytes")).expect("a valid scalar");
    let digest = [7; 32];
    let their_digest = Digest::import_less_safe(&digest, &SHA256).expect("32 bytes");
    let theirs = || {
        let _ = black_box(pair.sign_digest(black_box(&their_digest)));
    };

    let ours = || {
        let mut bytes = [0; 64];
        rand::fill(&mut bytes).expect("the system has random bytes");
        black_box(key.sign(black_box(&digest), &bytes).expect("a signature"));
    };
    let ratio = duet("signature", ours, theirs);
    let ours = || {
        let _ = black_box(key.sign(black_box(&digest), black_box(&[9; 64])));
    };
    duet("signature, without making random bytes", ours, theirs);

    let start = Instant::now();
    self_test(token).expect("correct signatures");
    println!("self-test: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    if ratio <= MOST { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
