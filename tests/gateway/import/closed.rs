//! Requests that nginx or HAProxy rejects stay rejected after `weir import`: the test sends each row to the gateway and
//! to the product itself.

mod haproxy;
mod nginx;

use super::super::named;
use crate::common::{Answer, Certificates, Client, Stream, Weir, peer};
use crate::servers::Server;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use weir_http::Method;

/// A configuration with its rejected and forwarded requests. A request is `[METHOD] [HOST] /TARGET [Name:value]`.
pub(super) struct Row {
    /// The test fills in `@PORT@` and `@TO@`. Lines that reject requests end with `# closed`.
    pub source: &'static str,
    pub closed: &'static [&'static str],
    pub open: &'static [&'static str],
    /// Open requests that Weir cannot distinguish from closed ones, and so rejects too.
    pub lost: &'static [&'static str],
    /// Whether the test machines' version of the product supports this.
    pub has_peer: bool,
}

impl Row {
    pub(super) const fn new(
        source: &'static str,
        closed: &'static [&'static str],
        open: &'static [&'static str],
        lost: &'static [&'static str],
    ) -> Self {
        Self { source, closed, open, lost, has_peer: true }
    }

    /// A row for a module or version that the test machines lack.
    pub(super) const fn alone(
        source: &'static str,
        closed: &'static [&'static str],
        open: &'static [&'static str],
    ) -> Self {
        Self { source, closed, open, lost: &[], has_peer: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The service received the request.
    Passed,
    /// The gateway rejected the request or closed the connection.
    Denied,
    Other(u16),
}

fn verdict(address: SocketAddr, request: &str) -> Verdict {
    let mut words: Vec<&str> = request.split(' ').collect();
    let field = words.last().filter(|word| !word.starts_with('/') && word.contains(':')).copied();
    words.truncate(words.len() - usize::from(field.is_some()));
    let target = words.pop().unwrap();
    let method = words.first().filter(|word| word.bytes().all(|byte| byte.is_ascii_uppercase())).copied();
    let host = words.last().filter(|word| Some(**word) != method).copied().unwrap_or("h");
    let method = method.unwrap_or("GET");
    let field = field.map_or(String::new(), |field| format!("{field}\r\n"));
    let stream = match Stream::connect(address, None) {
        // A peer that rejects a connection may reset it before `connect` returns.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => return Verdict::Denied,
        connected => connected.unwrap(),
    };
    let mut client = Client { stream };
    let request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{field}Connection: close\r\n\r\n");
    // If sending fails, there may still be a response to read; otherwise the connection has ended early.
    let _ = client.stream.send(request.as_bytes());
    match client.next_answer(Method::of(method.as_bytes())) {
        Ok(answer) if is_passed(&answer) => Verdict::Passed,
        Ok(Answer { status: 400..=499, .. }) | Err(_) => Verdict::Denied,
        Ok(answer) => Verdict::Other(answer.status),
    }
}

fn is_passed(answer: &Answer) -> bool {
    !answer.fields("x-server").is_empty()
}

fn faults_of_import(kind: &str, row: &Row, to: SocketAddr, file: &Path) -> Vec<String> {
    let source = row.source.replace("@PORT@", "8080").replace("@TO@", &to.to_string());
    fs::write(file, &source).unwrap();
    let ended = Weir::run(&["import", file.to_str().unwrap(), "--from", kind]);
    assert_eq!(ended.code, Some(0), "{}\n{source}", ended.stderr);
    let toml = format!("workers = 1\n{}", ended.stdout.replace("127.0.0.1:8080", "127.0.0.1:0"));
    let weir = Weir::configured(&toml, source.matches("bind ").count().max(1));
    let wanted = |requests: &'static [&str], wanted| requests.iter().map(move |request| (*request, wanted));
    let kept_out = wanted(row.closed, Verdict::Denied).chain(wanted(row.lost, Verdict::Denied));
    let mut faults = faults(weir.address(), kept_out.chain(wanted(row.open, Verdict::Passed)));
    // Comments above routes name the lines, too, not only those at the top.
    let (_, parts) = toml.split_once("\n[").unwrap_or_default();
    for (index, line) in source.lines().enumerate().filter(|(_, line)| line.ends_with("# closed")) {
        let at = format!("source:{}", index + 1);
        let is_it = |word: &str| word.trim_end_matches([':', ';', ')']).ends_with(&at);
        if !parts.lines().any(|line| line.starts_with('#') && line.split(' ').any(is_it)) {
            faults.push(format!("no comment has `{line}`"));
        }
    }
    // `/a/*` also matches `/a`, which needs no loss.
    let has_slash = |lost: &&str| row.closed.iter().any(|closed| closed.strip_prefix(*lost) == Some("/x"));
    if !row.lost.iter().all(has_slash) && ended.stderr.is_empty() {
        faults.push("nothing on stderr".to_owned());
    }
    match faults.is_empty() {
        true => faults,
        false => vec![format!("{}\n{source}\n{toml}", faults.join("\n"))],
    }
}

fn faults(address: SocketAddr, requests: impl Iterator<Item = (&'static str, Verdict)>) -> Vec<String> {
    let mut faults = Vec::new();
    for (request, wanted) in requests {
        let found = verdict(address, request);
        if found != wanted {
            faults.push(format!("{request}: {found:?}, expected {wanted:?}"));
        }
    }
    faults
}

#[track_caller]
fn assert_kept_out(kind: &str, rows: &[Row]) {
    let app = named("app");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("source");
    let faults: Vec<_> =
        rows.iter().flat_map(|row| faults_of_import(kind, row, app.address, &file)).collect();
    assert!(faults.is_empty(), "{} of {} rows:\n{}", faults.len(), rows.len(), faults.join("\n\n"));
}

#[track_caller]
fn assert_so_in_the_product(rows: &[Row], start: impl Fn(&str) -> Server) {
    let app = named("app");
    let mut all = Vec::new();
    for row in rows.iter().filter(|row| row.has_peer) {
        let source = row.source.replace("@TO@", &app.address.to_string());
        let server = start(&source);
        let wanted =
            |requests: &'static [&str], wanted| requests.iter().map(move |request| (*request, wanted));
        let passed = wanted(row.open, Verdict::Passed).chain(wanted(row.lost, Verdict::Passed));
        let found = faults(server.address(false), wanted(row.closed, Verdict::Denied).chain(passed));
        all.extend(found.into_iter().map(|fault| format!("{fault}\n{source}")));
    }
    assert!(all.is_empty(), "{}", all.join("\n\n"));
}

#[test]
fn what_nginx_keeps_out_stays_out() {
    assert_kept_out("nginx", nginx::ROWS);
}

#[test]
fn what_haproxy_keeps_out_stays_out() {
    assert_kept_out("haproxy", haproxy::ROWS);
}

/// nginx itself handles the rows in the same way.
#[test]
fn nginx_keeps_out_what_the_rows_say() {
    let Some(program) = peer("nginx") else { return };
    let certificates = Certificates::new();
    assert_so_in_the_product(nginx::ROWS, |source| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("users"), "a:{PLAIN}b\n").unwrap();
        let template = nginx::AROUND.replace("@SERVERS@", source);
        Server::nginx_with(&program, folder, &template, &certificates)
    });
}

/// HAProxy itself handles the rows in the same way.
#[test]
fn haproxy_keeps_out_what_the_rows_say() {
    let Some(program) = peer("haproxy") else { return };
    assert_so_in_the_product(haproxy::ROWS, |source| Server::haproxy_with(&program, source));
}
