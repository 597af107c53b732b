//! Measures the user-space instructions that the gateway executes per warm request and per connection. The production
//! worker runs over the simulated network under callgrind, whose counts do not depend on the machine's load. The cases
//! include one and ten thousand routes, and one and a thousand certificates.
//!
//! `cargo run --release --bin instructions` compares with `instructions.csv`. It fails if a count rises by more than 2
//! %, or if a case with many routes or certificates exceeds the case with one by more than 10 %. `-- --bless` writes
//! the file. Counts include the simulated sockets, which are the same for every version of the gateway, and exclude the
//! kernel.
#![expect(clippy::print_stdout, reason = "this program reports")]

use std::process::{Command, ExitCode};
use weir_sim::Steady;

/// One case. The difference between a shorter and a longer run excludes one-time work.
struct Cell {
    mode: &'static str,
    case: &'static str,
    bytes: usize,
}

const MODES: [&str; 4] = ["h1c-h1c", "h1-h1c", "h1c-h1", "h1-h1"];
const BYTES: [usize; 3] = [0, 1000, 65_536];
/// For each mode: a case with many entries, and the case with one entry. [`MOST_OF_ONE`] limits their ratio.
const MANY: [(&str, &str, &str); 2] =
    [("h1c-h1c", "routes-10000", "routes-1"), ("h1-h1c", "life-certs-1000", "life-certs-1")];
const MOST_OF_ONE: f64 = 1.1;
/// The maximum ratio of a count to the recorded one. To exceed it, run with `--bless`, and state the reason in the
/// commit.
const TOLERANCE: f64 = 1.02;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [child, mode, case, bytes, count] = &arguments[..]
        && child == "--child"
    {
        return one(mode, case, bytes, count);
    }
    let bless = arguments.iter().any(|argument| argument == "--bless");
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed");
        let required = std::env::var_os("WEIR_REQUIRE_PEERS").is_some();
        return if required { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.csv");
    let committed = std::fs::read_to_string(file).unwrap_or_default();
    let (mut table, mut risen, mut of_cases) = ("mode,case,bytes,instructions\n".to_owned(), 0, Vec::new());
    println!("{:<8} {:<18} {:>6} {:>12} {:>12}", "mode", "case", "bytes", "instructions", "committed");
    for cell in cells() {
        let (shorter, longer) = if cell.case.starts_with("life") { (5, 25) } else { (20, 120) };
        let counts = [shorter, longer].map(|count| collected(&cell, count));
        let each = (counts[1] - counts[0]) / (longer - shorter);
        let name = format!("{},{},{},", cell.mode, cell.case, cell.bytes);
        let before: Option<u64> =
            committed.lines().find_map(|line| line.strip_prefix(&name)?.trim().parse().ok());
        let is_risen = before.is_none_or(|before| each as f64 > before as f64 * TOLERANCE);
        risen += u32::from(is_risen);
        let shown = before.map_or("-".to_owned(), |before| before.to_string());
        let mark = if is_risen { "  RISEN" } else { "" };
        println!("{:<8} {:<18} {:>6} {each:>12} {shown:>12}{mark}", cell.mode, cell.case, cell.bytes);
        table.push_str(&format!("{name}{each}\n"));
        of_cases.push((cell.mode, cell.case, each));
    }
    for (mode, many, one) in MANY {
        let count =
            |case| of_cases.iter().find(|known| (known.0, known.1) == (mode, case)).map(|known| known.2);
        let (Some(of_many), Some(of_one)) = (count(many), count(one)) else { continue };
        let ratio = of_many as f64 / of_one as f64;
        let is_dear = ratio > MOST_OF_ONE;
        risen += u32::from(is_dear);
        println!("{mode} {many}: {ratio:.3} of {one}{}", if is_dear { "  TOO MUCH" } else { "" });
    }
    if bless {
        std::fs::write(file, table).expect("the figures can be written");
        return ExitCode::SUCCESS;
    }
    if risen > 0 {
        println!("{risen} figures are too high: fix that, or commit them with `-- --bless` and the reason");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn cells() -> Vec<Cell> {
    let warm = MODES.iter().flat_map(|mode| BYTES.map(|bytes| Cell { mode, case: "warm", bytes }));
    let lives = ["h1c-h1c", "h1-h1c"].map(|mode| Cell { mode, case: "life", bytes: 1000 });
    let of_many = |(mode, many, one)| [one, many].map(|case| Cell { mode, case, bytes: 1000 });
    warm.chain(lives).chain(MANY.into_iter().flat_map(of_many)).collect()
}

/// Instructions of `count` requests.
fn collected(cell: &Cell, count: u64) -> u64 {
    let this = std::env::current_exe().expect("this program");
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--toggle-collect=*harness*WorkerHarness*turn*",
        ])
        .arg(this)
        .args(["--child", cell.mode, cell.case, &cell.bytes.to_string(), &count.to_string()])
        .output()
        .expect("valgrind runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let collected = text.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    collected.filter(|count| *count > 0).unwrap_or_else(|| panic!("callgrind counted nothing:\n{text}"))
}

fn one(mode: &str, case: &str, bytes: &str, count: &str) -> ExitCode {
    let (down, up) = mode.split_once('-').expect("a mode");
    let (bytes, count) = (bytes.parse().expect("a size"), count.parse().expect("a count"));
    let number = |name| case.strip_prefix(name).map(|count: &str| count.parse().expect("a count"));
    let steady = Steady {
        client_tls: down == "h1",
        upstream_tls: up == "h1",
        bytes,
        requests: count,
        lives: case.starts_with("life"),
        routes: number("routes-").unwrap_or(0),
        certificates: number("life-certs-").unwrap_or(1),
    };
    let report = steady.run();
    assert!(report.violations.is_empty(), "{:?}", report.violations);
    println!("{}", report.counters);
    ExitCode::SUCCESS
}
