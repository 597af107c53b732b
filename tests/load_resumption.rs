//! The share of resumed connections: `weir load` counts as many as nginx and OpenSSL's `s_server`.

use crate::common::load::{TRIAL, load, load_well, valid_or_late};
use crate::common::{Certificates, Client, DEADLINE, peer, poll_until};
use crate::servers::Server;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use weir_load::result::{LoadResult, Tickets};

const SHARES: [u32; 4] = [0, 30, 70, 100];
const WORKERS: u64 = 2;

/// One way to resume.
struct Kind {
    name: &'static str,
    /// The engine's flags.
    flags: &'static [&'static str],
    /// nginx's settings, which allow this kind only.
    nginx: &'static str,
    /// The flags of `s_server`.
    openssl: &'static [&'static str],
    /// nginx's name for the version.
    protocol: &'static str,
}

const ID: Kind = Kind {
    name: "resume-1.2-id",
    flags: &["--tls", "1.2", "--resume-by", "id"],
    nginx: "ssl_protocols TLSv1.2; ssl_session_cache shared:sessions:10m; ssl_session_tickets off;",
    openssl: &["-tls1_2", "-no_ticket"],
    protocol: "TLSv1.2",
};
const TICKET: Kind = Kind {
    name: "resume-1.2-ticket",
    flags: &["--tls", "1.2"],
    nginx: "ssl_protocols TLSv1.2; ssl_session_cache off; ssl_session_tickets on;",
    openssl: &["-tls1_2"],
    protocol: "TLSv1.2",
};
const PSK: Kind = Kind {
    name: "resume-1.3-psk",
    flags: &["--tls", "1.3"],
    nginx: "ssl_protocols TLSv1.3; ssl_session_cache off; ssl_session_tickets on;",
    openssl: &["-tls1_3"],
    protocol: "TLSv1.3",
};

#[test]
fn nginx_counts_the_same_resumptions_by_id() {
    nginx_counts_the_same(&ID);
}

#[test]
fn nginx_counts_the_same_resumptions_by_ticket() {
    nginx_counts_the_same(&TICKET);
}

#[test]
fn nginx_counts_the_same_resumptions_by_psk() {
    nginx_counts_the_same(&PSK);
}

/// A client that could resume by session ID or by ticket resumes as `--resume-by` asks.
#[test]
fn the_requested_kind_is_used_if_nginx_offers_both() {
    let settings = "ssl_protocols TLSv1.2; ssl_session_cache shared:sessions:10m; ssl_session_tickets on;";
    nginx_counts_the_same(&Kind { nginx: settings, ..ID });
    nginx_counts_the_same(&Kind { nginx: settings, ..TICKET });
}

#[test]
fn openssl_counts_the_same_resumptions_by_id() {
    openssl_counts_the_same(&ID);
}

#[test]
fn openssl_counts_the_same_resumptions_by_ticket() {
    openssl_counts_the_same(&TICKET);
}

#[test]
fn openssl_counts_the_same_resumptions_by_psk() {
    openssl_counts_the_same(&PSK);
}

/// After a resumption OpenSSL sends one ticket, regardless of `-num_tickets`.
#[test]
fn tickets_are_counted_by_the_kind_of_the_handshake() {
    let certificates = Certificates::new();
    for number in [1, 3] {
        let flags = ["-tls1_3", "-num_tickets", &number.to_string()];
        let Some(server) = OpenSsl::start(&certificates, &flags) else { return };
        let flags = ["--new-connection", "--rate", "100", "-c", "2"];
        let result = run(&PSK, 30, server.address, &certificates, &flags);
        let given = |number| Tickets { least: number, most: number };
        let expected = [("full".to_owned(), given(number)), (PSK.name.to_owned(), given(1))];
        assert_eq!(result.handshakes.tickets, expected.into());
    }
}

fn nginx_counts_the_same(kind: &Kind) {
    let certificates = Certificates::new();
    for share in SHARES {
        let Some(nginx) = Server::nginx_of_sessions(&certificates, kind.nginx) else { return };
        let result = run(kind, share, nginx.address(true), &certificates, &["--new-connection", "-c", "8"]);
        // nginx logs each request, and counts each connection. The connections that establish the first sessions may
        // carry no request; their handshakes are full.
        let opened = result.connections_opened + TRIAL;
        let mut asked = 0;
        let mut accepted = || {
            asked += 1;
            accepted(nginx.address(false)) - asked
        };
        poll_until(DEADLINE, "nginx has seen all connections", || accepted() >= opened);
        assert_eq!(accepted(), opened, "connections that nginx accepted");
        let lines = || -> Vec<String> { nginx.file("sessions").lines().map(str::to_owned).collect() };
        let answered = result.answered_in_all as usize;
        poll_until(DEADLINE, "nginx has logged all requests", || lines().len() >= answered);
        let lines = lines();
        assert_eq!(lines.len(), answered);
        let reused = lines.iter().filter(|line| **line == format!("r {}", kind.protocol)).count() as u64;
        let full = lines.iter().filter(|line| **line == format!(". {}", kind.protocol)).count() as u64;
        assert_eq!(reused + full, lines.len() as u64, "{lines:?}");
        let idle = opened - lines.len() as u64;
        assert!(idle <= result.handshakes.primed + TRIAL, "{idle} connections had no request");
        is_counted(&result, kind, full + idle - TRIAL, reused);
    }
}

fn openssl_counts_the_same(kind: &Kind) {
    let certificates = Certificates::new();
    for share in SHARES {
        // s_server serves one connection at a time, and stores 128 sessions.
        for flags in [&["--new-connection", "--rate", "100"][..], &["--handshake-only", "--rate", "100"]] {
            let Some(server) = OpenSsl::start(&certificates, kind.openssl) else { return };
            let flags = [&["-c", "2"], flags].concat();
            let result = run(kind, share, server.address, &certificates, &flags);
            let (finished, hits) = server.counts(&certificates);
            is_counted(&result, kind, finished - hits - TRIAL, hits);
        }
    }
}

/// A run with two workers and without errors, in which the requested share of the window's handshakes are resumptions.
fn run(
    kind: &Kind,
    share: u32,
    server: SocketAddr,
    certificates: &Certificates,
    flags: &[&str],
) -> LoadResult {
    let (url, percent) = (format!("https://{server}/"), share.to_string());
    let ca = certificates.ca.to_str().unwrap();
    let args =
        [url.as_str(), "-t", "2", "-d", "500ms", "--warmup", "100ms", "--resume", &percent, "--cacert", ca];
    let result = load_well(&[&args[..], kind.flags, flags].concat());
    let what = format!("{} at {share} %, {flags:?}", kind.name);
    let handshakes = &result.handshakes;
    valid_or_late(&result);
    assert_eq!(result.asked.resume_percent, f64::from(share), "{what}");
    assert_eq!((handshakes.had_nothing, handshakes.declined), (0, 0), "{what}: {handshakes:?}");
    assert!(handshakes.in_window >= 20, "{what}: {} handshakes", handshakes.in_window);
    let expected = handshakes.in_window as f64 * f64::from(share) / 100.0;
    let off = (handshakes.resumed_in_window as f64 - expected).abs();
    assert!(
        off <= 2.0 * WORKERS as f64,
        "{what}: {} of {}",
        handshakes.resumed_in_window,
        handshakes.in_window
    );
    if share == 0 || share == 100 {
        assert_eq!(handshakes.resumed_in_window as f64, expected, "{what}: all or none");
    }
    assert_eq!(handshakes.primed == 0, share == 0, "{what}: {handshakes:?}");
    result
}

/// Checks that the handshakes of the whole run match the server's counts.
fn is_counted(result: &LoadResult, kind: &Kind, full: u64, resumed: u64) {
    let handshakes = &result.handshakes;
    let ours: u64 = handshakes.resumed.get(kind.name).copied().unwrap_or(0);
    let share = result.asked.resume_percent;
    let what = format!("{} at {share} %: {handshakes:?}", kind.name);
    assert_eq!((handshakes.full, ours), (full, resumed), "full and resumed, ours and the server's: {what}");
    assert_eq!(handshakes.resumed.values().sum::<u64>(), ours, "no other kind: {what}");
    let negotiated: u64 = handshakes.negotiated.iter().map(|each| each.count).sum();
    assert_eq!(negotiated, full + resumed, "{what}");
    assert_eq!(handshakes.offered, resumed, "each offer was accepted: {what}");
}

/// The connections that nginx has accepted, this one included.
fn accepted(status: SocketAddr) -> u64 {
    let answer = Client::connect(status, None).ask("GET / HTTP/1.0\r\n\r\n");
    let text = answer.text();
    // server accepts handled requests
    let counts = text.lines().nth(2).unwrap_or_else(|| panic!("{text}"));
    counts.split_whitespace().next().unwrap().parse().unwrap()
}

/// OpenSSL's test server, which responds to any request with its counters; dropping it terminates it.
struct OpenSsl {
    child: Child,
    address: SocketAddr,
}

/// Regression test: in TLS 1.3 a client finishes its handshake before the server has seen the client's certificate.
/// Handshakes that the server then rejected counted as successful.
#[test]
fn a_handshake_that_the_server_rejects_afterwards_is_an_error() {
    let certificates = Certificates::new();
    let Some(server) = OpenSsl::start(&certificates, &["-tls1_3", "-Verify", "1"]) else { return };
    let url = format!("https://{}/", server.address);
    let flags = ["-k", "-c", "2", "--handshake-only", "-d", "300ms", "--warmup", "0s"];
    let result = load(&[&[url.as_str()], &flags[..]].concat()).result;
    assert!(
        result.errors["tls"] > 0 && result.validity.starts_with("invalid: errors"),
        "{}",
        result.validity
    );
}

impl OpenSsl {
    fn start(certificates: &Certificates, flags: &[&str]) -> Option<Self> {
        let mut command = Command::new(peer("openssl")?);
        command.args(["s_server", "-www", "-accept", "127.0.0.1:0"]).args(flags);
        command.arg("-cert").arg(&certificates.cert).arg("-key").arg(&certificates.key);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.by_ref().find_map(|line| line.unwrap().strip_prefix("ACCEPT ")?.parse().ok());
        // Its further output must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, address: address.expect("s_server prints its port") })
    }

    /// Finished handshakes, and the resumptions among them.
    fn counts(&self, certificates: &Certificates) -> (u64, u64) {
        let mut client = Client::connect(self.address, Some(certificates.session()));
        let answer = client.ask("GET / HTTP/1.0\r\n\r\n");
        let count = |what: &str| -> u64 {
            let line = answer.text().lines().find(|line| line.ends_with(what)).unwrap();
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        // The handshake of this request is not one of the engine's.
        (count("server accepts that finished") - 1, count("session cache hits"))
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        // An error means that it has already exited.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}
