//! The memory of a server's certificates, and the time to load and to change them: `cargo bench -p weir-tls --bench
//! certificates [NUMBER]`. docs/decisions/0039-certificates.md lists the figures.
#![allow(clippy::print_stdout, reason = "a bench reports")]

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use weir_tls::issue::{Authority, Issued, KeyKind};
use weir_tls::{
    Acceptor, Certificate, Client, ClientSettings, Connector, Roots, Server, ServerSettings, SystemTime,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const KINDS: [(&str, KeyKind); 4] = [
    ("ECDSA P-256", KeyKind::EcdsaP256),
    ("ECDSA P-384", KeyKind::EcdsaP384),
    ("Ed25519", KeyKind::Ed25519),
    ("RSA 2048", KeyKind::Rsa2048),
];

/// The number of timed handshakes, each with another name.
const TIMED: usize = 200;

fn main() -> Outcome<()> {
    let number: usize = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(10_000);
    let authority = Authority::new()?.intermediate()?;
    // Keep all certificates, so that no later one reuses the memory of an earlier one.
    let mut kept = Vec::new();
    for (name, kind) in KINDS {
        let issued = authority.issue(&["a.example", "*.a.example"], kind)?;
        let before = resident()?;
        // Checking an RSA key takes a hundred times as long as checking another key, so load fewer certificates.
        let number = if kind == KeyKind::Rsa2048 { number.div_ceil(10) } else { number };
        let loaded = (0..number).map(|_| load(&issued)).collect::<Outcome<Vec<_>>>()?;
        let bytes = resident()?.saturating_sub(before) / number;
        println!("{name}, two names, one intermediate: {bytes} bytes");
        kept.push(loaded);
    }
    let issue =
        |at| authority.issue(&[&format!("h{at}.example"), &format!("*.h{at}.example")], KeyKind::EcdsaP256);
    let issued = (0..number).map(issue).collect::<Result<Vec<_>, _>>()?;
    let (certificates, loading) = timed(|| issued.iter().map(load).collect::<Outcome<Vec<_>>>());
    let certificates = certificates?;
    println!("{number} certificates loaded in {loading:?}");
    let first_issued = issued.first().ok_or("expected at least one certificate")?;
    let settings = ServerSettings { resumption: false, ..ServerSettings::new(first_issued.identity()) };
    let before = resident()?;
    let (server, building) = timed(|| Server::with_certificates(&settings, certificates.clone()));
    let (server, bytes) = (server?, resident()?.saturating_sub(before) / number);
    println!("a server of them in {building:?}, with {bytes} bytes for each");
    let mut others = certificates.clone();
    if let Some(first) = others.first_mut() {
        *first = load(first_issued)?;
    }
    let (other, changing) = timed(|| server.presenting(others));
    println!("a server with one other certificate in {changing:?}");
    drop(other?);
    let few = Server::with_certificates(&settings, certificates.iter().take(TIMED).cloned().collect())?;
    let connector =
        Client::new(&ClientSettings { roots: Roots::DangerouslyNone, ..ClientSettings::default() })?.core();
    for _ in 0..2 {
        for (server, count) in [(&few, TIMED.min(number)), (&server, number)] {
            let each = handshakes(&connector, &server.core())?;
            println!("a handshake with one of {count} certificates: {each:?}");
        }
    }
    Ok(())
}

fn load(issued: &Issued) -> Outcome<Certificate> {
    Ok(Certificate::load(&issued.identity(), &SystemTime)?)
}

/// The mean time of a full handshake with the first names.
fn handshakes(connector: &Connector, acceptor: &Acceptor) -> Outcome<Duration> {
    let started = Instant::now();
    for at in 0..TIMED {
        let mut client = connector.connect(&format!("h{at}.example").parse()?);
        let mut server = acceptor.accept();
        let (mut to_server, mut to_client, mut data) = (Vec::new(), Vec::new(), Vec::new());
        client.receive(&mut [], &mut data, &mut to_server)?;
        while !to_server.is_empty() {
            server.receive(&mut std::mem::take(&mut to_server), &mut data, &mut to_client)?;
            client.receive(&mut std::mem::take(&mut to_client), &mut data, &mut to_server)?;
        }
        if client.is_handshaking() || server.is_handshaking() {
            return Err("the handshake stopped".into());
        }
    }
    Ok(started.elapsed() / TIMED as u32)
}

fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    (act(), started.elapsed())
}

/// The resident memory of this process, in bytes.
fn resident() -> Outcome<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("expected VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<usize>()? * 1024)
}
