//! Replays the fuzzer's corpus, and scripts derived from it.

use std::fs;
use std::path::{Path, PathBuf};
use weir_sim::connection;

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/connection");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut inputs: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    inputs.sort();
    assert!(inputs.len() >= 20, "{} inputs", inputs.len());
    inputs
}

#[test]
fn connections() {
    for (path, script) in corpus() {
        println!("{}", path.display());
        connection(&script);
    }
}

/// Runs each script cut off at up to 40 places.
#[test]
fn connections_that_end_anywhere() {
    for (path, script) in corpus() {
        println!("{}", path.display());
        for length in (0..script.len()).step_by(1 + script.len() / 40) {
            connection(&script[..length]);
        }
    }
}

/// Runs each script with every combination of the gateway's flags.
#[test]
fn connections_under_other_settings() {
    for (path, script) in corpus() {
        println!("{}", path.display());
        for flags in 0..16 {
            let other = [&[flags], script.get(1..).unwrap_or_default()].concat();
            connection(&other);
        }
    }
}

/// The gateway does not parse a head from its start for each byte of a slow client or origin.
#[test]
fn heads_that_trickle() {
    let say = |who: u8, bytes: &[u8], piece: usize| -> Vec<u8> {
        bytes.chunks(piece).flat_map(|piece| [&[who, piece.len() as u8], piece].concat()).collect()
    };
    let field = format!("X: {}\r\n\r\n", "y".repeat(1500));
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{field}");
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{field}");
    for (request_piece, answer_piece) in [(1, 255), (255, 1), (1, 1)] {
        // The gateway forwards bodies as they arrive, buffers messages, or mirrors requests.
        for flags in [0, 2, 8] {
            let request = say(0, request.as_bytes(), request_piece);
            connection(&[&[flags], &request[..], &say(1, answer.as_bytes(), answer_piece)].concat());
        }
    }
}
