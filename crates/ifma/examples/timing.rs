//! Tests whether the time of a function depends on its secrets: Welch's t between a fixed secret and random ones, as
//! dudect measures it (Reparaz, Balasch and Verbauwhede, 2017).
//!
//! `cargo run --release -p weir-ifma --example timing -- [RUNS [NAME]]` measures each function, or those whose names
//! begin with NAME, RUNS times (100 000 by default). It fails if |t| of a function is 4.5 or more twice in succession,
//! or if it does not find the leak of the control function.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use aws_lc_rs::rand;
use weir_ifma::Ifma;
use weir_ifma::p256::SigningKey;
use weir_ifma::x25519::{Secret, exchange, public, shared};

/// The |t| from which the times of the two classes, fixed and random secrets, differ significantly.
const LIMIT: f64 = 4.5;

/// The secrets of one run.
type Secrets = [u8; 96];

type Run = Box<dyn Fn(&Secrets)>;

/// A function to measure.
struct Row {
    name: &'static str,
    fixed: Secrets,
    run: Run,
    /// Whether its time depends on the secrets.
    leaks: bool,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let runs = arguments.next().map_or(100_000, |runs| runs.parse().expect("RUNS is a number"));
    let name = arguments.next().unwrap_or_default();
    let Ok(token) = Ifma::detect().inspect_err(|missing| println!("skipped: {missing}")) else {
        return ExitCode::SUCCESS;
    };
    let mut wrong = 0;
    for row in rows(token).iter().filter(|row| row.name.starts_with(&name)) {
        // Other activity of the machine rarely slows the same class twice.
        let found = (0..2).all(|_| measure(row, runs).abs() >= LIMIT);
        if found != row.leaks {
            println!("{}: {}", row.name, if found { "depends on secrets" } else { "a leak was not found" });
            wrong += 1;
        }
    }
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn rows(token: Ifma) -> Vec<Row> {
    let mut rows = controls();
    rows.extend(x25519(token));
    rows.extend(p256(token));
    rows
}

/// Functions with a known result, which test the measurement itself.
fn controls() -> Vec<Row> {
    let none = |secrets: &Secrets| {
        let sum: u64 = secrets.iter().map(|byte| u64::from(*byte)).sum();
        for i in 0..1000u64 {
            black_box(i ^ sum);
        }
    };
    vec![
        Row { name: "control with a leak", fixed: [0; 96], run: Box::new(leak), leaks: true },
        Row { name: "control without", fixed: [0; 96], run: Box::new(none), leaks: false },
    ]
}

/// A function whose time depends on the secrets. `proofs/machine_code.py` must find this leak, too.
#[inline(never)]
fn leak(secrets: &Secrets) {
    for byte in &secrets[..32] {
        // An additional multiplication for each odd byte.
        if byte & 1 == 1 {
            black_box(black_box(3u64) * u64::from(*byte));
        }
    }
    for i in 0..1000u64 {
        black_box(i);
    }
}

fn x25519(token: Ifma) -> Vec<Row> {
    let peer = public(token, &Secret::new(&[7; 32]));
    let mut rows = Vec::new();
    for (names, byte) in [
        (["x25519::public, zeros", "x25519::shared, zeros", "x25519::exchange, zeros"], 0),
        (["x25519::public, 0x55", "x25519::shared, 0x55", "x25519::exchange, 0x55"], 0x55),
    ] {
        let runs: [Run; 3] = [
            Box::new(move |secrets| _ = black_box(public(token, &secret(secrets)))),
            Box::new(move |secrets| _ = black_box(shared(token, &secret(secrets), &peer))),
            Box::new(move |secrets| _ = black_box(exchange(token, &secret(secrets), &peer))),
        ];
        for (name, run) in names.into_iter().zip(runs) {
            rows.push(Row { name, fixed: [byte; 96], run, leaks: false });
        }
    }
    rows
}

fn p256(token: Ifma) -> Vec<Row> {
    let mut rows = Vec::new();
    for (names, byte) in [
        (
            [
                "p256::SigningKey::public, 0x11",
                "p256::SigningKey::sign, 0x11",
                "p256::SigningKey::sign, nonces, 0x11",
            ],
            0x11,
        ),
        (
            [
                "p256::SigningKey::public, 0xaa",
                "p256::SigningKey::sign, 0xaa",
                "p256::SigningKey::sign, nonces, 0xaa",
            ],
            0xaa,
        ),
    ] {
        let key = signing_key(token, &[7; 32]);
        let runs: [Run; 3] = [
            Box::new(move |secrets| drop(black_box(signing_key(token, scalar(secrets)).public().to_vec()))),
            Box::new(move |secrets| {
                let (key, random) = (signing_key(token, scalar(secrets)), random(secrets));
                black_box(key.sign(&[7; 32], random));
            }),
            // Sign with one key, and with fixed or random nonces.
            Box::new(move |secrets| {
                black_box(key.sign(&[7; 32], random(secrets)));
            }),
        ];
        for (name, run) in names.into_iter().zip(runs) {
            rows.push(Row { name, fixed: [byte; 96], run, leaks: false });
        }
    }
    rows
}

fn scalar(secrets: &Secrets) -> &[u8; 32] {
    secrets.first_chunk().expect("96 bytes are more than 32")
}

fn random(secrets: &Secrets) -> &[u8; 64] {
    secrets.last_chunk().expect("96 bytes are more than 64")
}

fn signing_key(token: Ifma, scalar: &[u8; 32]) -> SigningKey {
    SigningKey::new(token, scalar).expect("a scalar of random bytes is below the order but once in 2^32")
}

fn secret(secrets: &Secrets) -> Secret {
    Secret::new(secrets.first_chunk().expect("96 bytes are more than 32"))
}

/// The t of greatest magnitude, for several upper limits on the times: times above a limit are dropped, since other
/// activity of the machine causes them.
fn measure(row: &Row, runs: usize) -> f64 {
    let mut samples = Vec::with_capacity(runs);
    while samples.len() < runs {
        batch(row, (runs - samples.len()).min(10_000), &mut samples);
    }
    let mut sorted: Vec<u32> = samples.iter().map(|(_, time)| *time).collect();
    sorted.sort_unstable();
    let worst = [30, 50, 70, 90, 99]
        .map(|percent| welch(&samples, sorted[sorted.len() * percent / 100]))
        .into_iter()
        .reduce(|worst, t| if t.abs() > worst.abs() { t } else { worst })
        .unwrap_or_default();
    println!("{}: {runs} runs, median {} ns, greatest t {worst:.2}", row.name, sorted[sorted.len() / 2]);
    worst
}

/// Measures runs with fixed and random secrets in random order. Appends for each run whether its secrets were fixed,
/// and its time in nanoseconds.
fn batch(row: &Row, runs: usize, samples: &mut Vec<(bool, u32)>) {
    let mut inputs = vec![row.fixed; runs];
    let mut classes = vec![0u8; runs];
    rand::fill(&mut classes).expect("the system has random bytes");
    for (input, class) in inputs.iter_mut().zip(&classes) {
        // Prepare both classes in the same way.
        let mut random = [0; 96];
        rand::fill(&mut random).expect("the system has random bytes");
        *input = if class & 1 == 1 { row.fixed } else { random };
    }
    for (input, class) in inputs.iter().zip(&classes) {
        let start = Instant::now();
        (row.run)(black_box(input));
        let time = start.elapsed().as_nanos();
        samples.push((class & 1 == 1, u32::try_from(time).unwrap_or(u32::MAX)));
    }
}

/// Welch's t between the times with fixed secrets and those with random ones, of the times below `limit`.
fn welch(samples: &[(bool, u32)], limit: u32) -> f64 {
    let [fixed, random] = [true, false].map(|class| {
        let times = || {
            samples
                .iter()
                .filter(move |(fixed, time)| *fixed == class && *time < limit)
                .map(|(_, t)| f64::from(*t))
        };
        let count = times().count().max(1) as f64;
        let mean = times().sum::<f64>() / count;
        (mean, times().map(|time| (time - mean).powi(2)).sum::<f64>() / (count * count))
    });
    let spread = (fixed.1 + random.1).sqrt();
    // A coarse clock may report the same time for all runs.
    if spread == 0.0 { 0.0 } else { (fixed.0 - random.0) / spread }
}
