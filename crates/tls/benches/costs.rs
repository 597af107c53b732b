//! The cost of each TLS setting for one side of a connection, as a table: instructions, counted by callgrind,
//! and time.
//!
//! `cargo bench -p weir-tls --bench costs > docs/decisions/0022-costs.csv` creates the table of decision 0022. Each
//! line changes one setting of the default: ECDSA P-256, X25519, AES-128-GCM, one ticket, no client certificate. A
//! connection consists of the hellos, a request of 100 bytes, a response of 300, and close_notify from both sides; a
//! body is 64 KiB from the server.
//!
//! Instructions are the difference of two counts, without one-time work. The time is the lowest median of several
//! rounds, which a busy machine disturbs least. Valgrind hides AVX-512, whose effect only the time includes.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench reports")]

mod pair;

use pair::{Choice, Outcome, Pair, Spent};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use weir_tls::issue::{KeyKind, issue};
use weir_tls::{Group, Suite, Version};

const KEYS: [(&str, KeyKind); 6] = [
    ("ECDSA P-256", KeyKind::EcdsaP256),
    ("ECDSA P-384", KeyKind::EcdsaP384),
    ("Ed25519", KeyKind::Ed25519),
    ("RSA 2048", KeyKind::Rsa2048),
    ("RSA 3072", KeyKind::Rsa3072),
    ("RSA 4096", KeyKind::Rsa4096),
];
const TICKETS: [u32; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const RECORD_SIZES: [usize; 4] = [16_384, 4096, 1400, 512];
const BODY: usize = 64 * 1024;

/// One measured value in the table.
#[derive(Clone, Debug)]
struct Cell {
    version: Version,
    kind: &'static str,
    aspect: &'static str,
    value: String,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [child, keys, version, kind, aspect, value, count] = &arguments[..]
        && child == "--child"
    {
        let kind = ["full", "resumed", "body"].into_iter().find(|known| known == kind).ok_or("a kind")?;
        let aspect = ASPECTS.into_iter().find(|known| known == aspect).ok_or("an aspect")?;
        let cell = Cell { version: version.parse()?, kind, aspect, value: value.clone() };
        cell.run(Path::new(keys), count.parse()?, &mut |_| {})?;
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    for (name, kind) in KEYS {
        let folder = directory.path().join(name);
        fs::create_dir(&folder)?;
        issue(&["localhost"], kind)?.write_to(&folder)?;
    }
    println!("# What each choice about TLS costs one side of a connection. Made by");
    println!("#   cargo bench -p weir-tls --bench costs > docs/decisions/0022-costs.csv");
    println!("# benches/costs.rs says how. cpu: {}", cpu());
    println!("side,version,kind,aspect,value,instructions,us");
    for cell in cells() {
        for side in ["server", "client"] {
            if side == "client" && !cell.concerns_clients() {
                continue;
            }
            let us = cell.time(directory.path(), side)?.as_secs_f64() * 1e6;
            let instructions = cell.instructions(directory.path(), side)?;
            let Cell { version, kind, aspect, value } = &cell;
            println!("{side},{version},{kind},{aspect},{value},{instructions},{us:.1}");
        }
    }
    Ok(())
}

const ASPECTS: [&str; 6] = ["certificate", "group", "suite", "tickets", "client certificate", "record size"];

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for version in Version::ALL {
        let mut add = |kind, aspect, value: String| cells.push(Cell { version, kind, aspect, value });
        for (key, _) in KEYS {
            add("full", "certificate", key.to_owned());
        }
        let with_group = if version == Version::Tls13 { &["full", "resumed"][..] } else { &["full"] };
        for kind in with_group {
            for group in Group::ALL.into_iter().filter(|group| group.fits(version)) {
                add(kind, "group", group.name().to_owned());
            }
        }
        let is_ecdsa = |suite: &Suite| !suite.name().starts_with("ecdhe-rsa");
        for suite in Suite::ALL.into_iter().filter(|suite| suite.version() == version).filter(is_ecdsa) {
            for kind in ["full", "resumed", "body"] {
                add(kind, "suite", suite.name().to_owned());
            }
        }
        // In TLS 1.2 a client without a ticket resumes a stored session by its ID; in TLS 1.3 it cannot
        // resume.
        let counts = if version == Version::Tls13 { &TICKETS[..] } else { &TICKETS[..2] };
        for tickets in counts {
            add("full", "tickets", tickets.to_string());
            if version == Version::Tls12 || *tickets > 0 {
                add("resumed", "tickets", tickets.to_string());
            }
        }
        for kind in ["full", "resumed"] {
            for (key, _) in KEYS {
                add(kind, "client certificate", key.to_owned());
            }
        }
        if version == Version::Tls13 {
            for size in RECORD_SIZES {
                add("body", "record size", size.to_string());
            }
        }
    }
    cells
}

impl Cell {
    /// Whether the setting applies to clients, too.
    fn concerns_clients(&self) -> bool {
        !["certificate", "tickets", "record size"].contains(&self.aspect)
    }

    /// Runs `count` connections or bodies and passes the time of each to `spent`.
    fn run(&self, keys: &Path, count: usize, spent: &mut dyn FnMut(Spent)) -> Outcome<()> {
        let mut choice = Choice::of(self.version);
        let (mut server, mut client) = (KEYS[0].0, None);
        match self.aspect {
            "certificate" => server = &self.value,
            "client certificate" => client = Some(keys.join(&self.value)),
            "group" => choice.group = self.value.parse()?,
            "suite" => choice.suites = vec![self.value.parse()?],
            "tickets" => choice.tickets = self.value.parse()?,
            _ => choice.record_size = self.value.parse()?,
        }
        let mut pair = Pair::new(&choice, &keys.join(server), client.as_deref())?;
        if self.kind == "body" {
            let (mut sessions, body) = (pair.answered(false), vec![b'b'; BODY]);
            for _ in 0..count {
                spent(pair.body(&mut sessions, &body));
            }
            return Ok(());
        }
        let resumed = self.kind == "resumed";
        if resumed {
            pair.connection(false);
        }
        for _ in 0..count {
            spent(pair.connection(resumed));
        }
        Ok(())
    }

    /// The lowest median of several rounds.
    fn time(&self, keys: &Path, side: &str) -> Outcome<Duration> {
        let mut least = Duration::MAX;
        for _ in 0..ROUNDS {
            let mut all = Vec::new();
            self.run(keys, EACH, &mut |spent| {
                all.push(if side == "server" { spent.server } else { spent.client });
            })?;
            all.sort_unstable();
            least = least.min(all[all.len() / 2]);
        }
        Ok(least)
    }

    fn instructions(&self, keys: &Path, side: &str) -> Outcome<u64> {
        let [shorter, longer] = [5, 25];
        let counts = [self.counted(keys, side, shorter)?, self.counted(keys, side, longer)?];
        Ok((counts[1] - counts[0]) / (longer - shorter))
    }

    fn counted(&self, keys: &Path, side: &str, count: u64) -> Outcome<u64> {
        let Self { version, kind, aspect, value } = self;
        let child: PathBuf = std::env::current_exe()?;
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
            .arg(format!("--toggle-collect=*::{side}_side*"))
            .arg(child)
            .arg("--child")
            .arg(keys)
            .args([version.name(), kind, aspect, value, &count.to_string()])
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let collected = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
        match collected {
            Some(count) if output.status.success() && count > 0 => Ok(count),
            _ => Err(format!("{self:?}: {text}").into()),
        }
    }
}

const ROUNDS: usize = 12;
const EACH: usize = 50;

/// The processor's model and its cryptographic features.
fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map_or("unknown", |(_, value)| value.trim())
    };
    let flags = ["aes", "sha_ni", "vaes", "avx512f", "avx512ifma"];
    let has = |flag: &&str| field("flags").split(' ').any(|known| known == *flag);
    let found: Vec<_> = flags.into_iter().filter(has).collect();
    format!(
        "{} (family {}, model {}; {})",
        field("model name"),
        field("cpu family"),
        field("model\t"),
        found.join(" ")
    )
}
