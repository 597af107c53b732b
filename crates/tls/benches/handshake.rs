//! In-memory connections of one request each, to measure one side.
//!
//! `handshake KIND COUNT [TICKETS [VERSION]]` runs COUNT connections: hellos, a request, a response, close_notify from
//! both sides. KIND is `full` or `resumed`. Under callgrind, `--collect-atstart=no` with
//! `--toggle-collect='*::server_side*'` or `'*::client_side*'` counts the calls of one side; the difference of two
//! counts excludes one-time work. `handshake idle KIND COUNT ...` stops with the servers' sessions open after a
//! response, for a heap profiler. docs/decisions/0018-new-connections.md lists the commands and the figures.

#![allow(clippy::print_stdout)]

mod pair;

use pair::{Choice, Outcome, Pair};
use weir_tls::issue::{KeyKind, issue};
use weir_tls::{Session, Version};

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let mut arguments = arguments.iter().map(String::as_str).peekable();
    let idle = arguments.next_if_eq(&"idle").is_some();
    let resumed = match arguments.next().unwrap_or("full") {
        "full" => false,
        "resumed" => true,
        other => return Err(format!("kind {other:?}: expected full or resumed").into()),
    };
    let count: usize = arguments.next().map_or(Ok(10), str::parse)?;
    let tickets = arguments.next().map_or(Ok(1), str::parse)?;
    let version = arguments.next().map_or(Ok(Version::Tls13), str::parse)?;
    let directory = tempfile::tempdir()?;
    issue(&["localhost"], KeyKind::EcdsaP256)?.write_to(directory.path())?;
    let choice = Choice { tickets, ..Choice::of(version) };
    let mut pair = Pair::new(&choice, directory.path(), None)?;
    if resumed {
        pair.connection(false);
    }
    if !idle {
        let both = (0..count).map(|_| pair.connection(resumed)).map(|spent| spent.server + spent.client);
        println!("{:?}, the fastest connection, both sides", both.min().unwrap_or_default());
        return Ok(());
    }
    let mut servers = Vec::with_capacity(count);
    for _ in 0..count {
        servers.push(pair.answered(resumed).1);
    }
    println!("{} bytes in the session itself", size_of::<Session>());
    // Exit without freeing the sessions, so that a heap profiler sees them.
    std::process::exit(0);
}
