//! Compares rustls's buffered and unbuffered API behind the interface of [`weir_tls::Session`].
//!
//! `rustls_api API OPERATION COUNT [GROUP]` runs one operation. Under callgrind, `valgrind --tool=callgrind
//! --toggle-collect='*::measured_*'` counts only the server's calls. `rustls_api compare` times all operations,
//! alternating between the APIs, and prints the ratios. docs/decisions/0002-rustls-api.md lists the commands and the
//! figures.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::{ClientConnection, Resumption};
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::server::{NoServerSessionStorage, ServerConnection};
use rustls::{ClientConfig, Connection, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use weir_tls::issue::{Issued, KeyKind, issue};
use weir_tls::{
    Acceptor, Client, ClientSettings, Connector, Group, PeerName, Roots, Server, ServerSettings, Session,
};

const REQUEST: usize = 500;
const RECORD: usize = 16 * 1024;
const READ: usize = 64 * 1024;
const OPERATIONS: [(&str, usize); 5] =
    [("exchange", 4000), ("handshake", 100), ("receive-16k", 2000), ("receive-64k", 500), ("send-16k", 2000)];

type Outcome<T> = Result<T, Box<dyn Error>>;

/// One side of a connection, with either API.
trait End {
    fn receive(&mut self, tls: &mut [u8], plaintext: &mut Vec<u8>, reply: &mut Vec<u8>);
    fn send(&mut self, plaintext: &[u8], out: &mut Vec<u8>);
    fn is_handshaking(&self) -> bool;
}

impl End for Session {
    fn receive(&mut self, tls: &mut [u8], plaintext: &mut Vec<u8>, reply: &mut Vec<u8>) {
        Session::receive(self, tls, plaintext, reply).expect("the peer is ours");
    }

    fn send(&mut self, plaintext: &[u8], out: &mut Vec<u8>) {
        Session::send(self, plaintext, out).expect("the handshake is done");
    }

    fn is_handshaking(&self) -> bool {
        Session::is_handshaking(self)
    }
}

/// The buffered API: rustls copies its input into a deframer and queues its output.
struct Buffered(Box<Connection>);

impl Buffered {
    fn new(connection: impl Into<Connection>) -> Self {
        let mut connection = connection.into();
        connection.set_buffer_limit(None);
        Self(Box::new(connection))
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        while self.0.wants_write() {
            self.0.write_tls(out).expect("a Vec takes everything");
        }
    }
}

impl End for Buffered {
    fn receive(&mut self, mut tls: &mut [u8], plaintext: &mut Vec<u8>, reply: &mut Vec<u8>) {
        loop {
            let mut unread: &[u8] = tls;
            let before = unread.len();
            if before > 0 {
                self.0.read_tls(&mut unread).expect("room, since all plaintext is taken each time");
            }
            let taken = before - unread.len();
            let state = self.0.process_new_packets().expect("the peer is ours");
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let mut reader = self.0.reader();
                let chunk = reader.fill_buf().expect("plaintext is there");
                plaintext.extend_from_slice(chunk);
                let length = chunk.len();
                reader.consume(length);
                left -= length;
            }
            tls = &mut tls[taken..];
            if tls.is_empty() {
                break;
            }
        }
        self.flush(reply);
    }

    fn send(&mut self, plaintext: &[u8], out: &mut Vec<u8>) {
        self.0.writer().write_all(plaintext).expect("no limit");
        self.flush(out);
    }

    fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }
}

/// Creates connected pairs of either API with the same negotiated parameters.
struct Maker {
    acceptor: Acceptor,
    connector: Connector,
    peer: PeerName,
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Maker {
    /// A maker whose connections never resume, so that both APIs do the same work. The tickets are Weir's own; other
    /// benches measure their cost.
    fn new(group: Group, tickets: u32) -> Outcome<Self> {
        let issued = issue(&["localhost"], KeyKind::EcdsaP256)?;
        let directory = std::env::temp_dir().join(format!("rustls-api-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let files = issued.write_to(&directory)?;
        let settings = ServerSettings {
            resumption: tickets > 0,
            tickets,
            groups: vec![group, Group::P384],
            ..ServerSettings::new(issued.identity())
        };
        let roots = Roots::File(files.ca);
        let client = ClientSettings {
            resumption: false,
            roots,
            groups: vec![group, Group::P384],
            ..ClientSettings::default()
        };
        let maker = Self {
            acceptor: Server::new(&settings)?.core(),
            connector: Client::new(&client)?.core(),
            peer: "localhost".parse()?,
            server: Arc::new(buffered_server(&issued)?),
            client: Arc::new(buffered_client(&issued)?),
        };
        std::fs::remove_dir_all(directory)?;
        Ok(maker)
    }

    fn pair(&self, api: &str) -> Outcome<(Box<dyn End>, Box<dyn End>)> {
        Ok(match api {
            "unbuffered" => (Box::new(self.connector.connect(&self.peer)), Box::new(self.acceptor.accept())),
            "buffered" => (
                Box::new(Buffered::new(ClientConnection::new(
                    self.client.clone(),
                    ServerName::try_from("localhost")?,
                )?)),
                Box::new(Buffered::new(ServerConnection::new(self.server.clone())?)),
            ),
            other => return Err(format!("API {other:?}: expected buffered or unbuffered").into()),
        })
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::CryptoProvider {
        cipher_suites: vec![cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![kx_group::X25519],
        ..aws_lc_rs::default_provider()
    })
}

fn buffered_server(issued: &Issued) -> Outcome<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_slice(issued.certificates.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes())?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn buffered_client(issued: &Issued) -> Outcome<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(issued.ca.as_bytes())?)?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// Buffers that live as long as a core.
#[derive(Default)]
struct Buffers {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    at_server: Vec<u8>,
    at_client: Vec<u8>,
}

impl Buffers {
    /// Delivers the client's output to the server.
    fn reach(&mut self, server: &mut dyn End) {
        measured_receive(server, &mut self.to_server, &mut self.at_server, &mut self.to_client);
    }

    /// Delivers the server's output to the client: `expected` bytes of plaintext.
    fn answer(&mut self, client: &mut dyn End, expected: usize) {
        self.at_client.clear();
        client.receive(&mut self.to_client, &mut self.at_client, &mut self.to_server);
        assert_eq!(self.at_client.len(), expected);
    }
}

#[inline(never)]
fn measured_receive(server: &mut dyn End, bytes: &mut [u8], plaintext: &mut Vec<u8>, reply: &mut Vec<u8>) {
    plaintext.clear();
    server.receive(bytes, plaintext, reply);
}

#[inline(never)]
fn measured_send(server: &mut dyn End, plaintext: &[u8], out: &mut Vec<u8>) {
    out.clear();
    server.send(plaintext, out);
}

/// Adds the time of a call to `spent`.
fn timed(spent: &mut Duration, call: impl FnOnce()) {
    let start = Instant::now();
    call();
    *spent += start.elapsed();
}

fn handshake(pair: &mut (Box<dyn End>, Box<dyn End>), buffers: &mut Buffers, spent: &mut Duration) {
    let (client, server) = pair;
    buffers.to_server.clear();
    client.receive(&mut [], &mut buffers.at_client, &mut buffers.to_server);
    while !buffers.to_server.is_empty() {
        buffers.to_client.clear();
        timed(spent, || buffers.reach(&mut **server));
        buffers.to_server.clear();
        client.receive(&mut buffers.to_client, &mut buffers.at_client, &mut buffers.to_server);
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
}

/// Runs the operation; returns the server's time for it and the number of repetitions.
fn run(maker: &Maker, api: &str, operation: &str, count: usize) -> Outcome<(Duration, usize)> {
    let mut buffers = Buffers::default();
    let mut spent = Duration::ZERO;
    if operation == "handshake" {
        for _ in 0..count {
            handshake(&mut maker.pair(api)?, &mut buffers, &mut spent);
        }
        return Ok((spent, count));
    }
    let mut pair = maker.pair(api)?;
    handshake(&mut pair, &mut buffers, &mut Duration::default());
    let (client, server) = (&mut *pair.0, &mut *pair.1);
    let payload = vec![0x5a; RECORD];
    let mut stream: Vec<u8> = Vec::new();
    let mut done = 0;
    while done < count {
        match operation {
            "exchange" => {
                buffers.to_server.clear();
                client.send(&payload[..REQUEST], &mut buffers.to_server);
                timed(&mut spent, || {
                    buffers.reach(server);
                    measured_send(server, &payload[..REQUEST], &mut buffers.to_client);
                });
                assert_eq!(buffers.at_server.len(), REQUEST);
                buffers.answer(client, REQUEST);
                done += 1;
            }
            "receive-16k" => {
                buffers.to_server.clear();
                client.send(&payload, &mut buffers.to_server);
                timed(&mut spent, || buffers.reach(server));
                assert_eq!(buffers.at_server.len(), RECORD);
                done += 1;
            }
            // The reads end within a record, as for a streamed body. The time is per 16 KiB.
            "receive-64k" => {
                while stream.len() < READ {
                    client.send(&payload, &mut stream);
                }
                let rest = stream.split_off(READ);
                timed(&mut spent, || {
                    measured_receive(server, &mut stream, &mut buffers.at_server, &mut buffers.to_client);
                });
                done += buffers.at_server.len() / RECORD;
                stream = rest;
            }
            "send-16k" => {
                timed(&mut spent, || measured_send(server, &payload, &mut buffers.to_client));
                buffers.answer(client, RECORD);
                done += 1;
            }
            other => return Err(format!("operation {other:?}: expected one of {OPERATIONS:?}, idle").into()),
        }
    }
    black_box(&buffers.at_server);
    Ok((spent, done))
}

/// The resident memory per established server session, after a response.
fn idle(maker: &Maker, api: &str, count: usize) -> Outcome<usize> {
    let mut buffers = Buffers::default();
    let mut sessions = Vec::with_capacity(count);
    let warm = 200;
    let mut before = 0;
    for made in 0..count + warm {
        if made == warm {
            before = resident()?;
        }
        let mut pair = maker.pair(api)?;
        handshake(&mut pair, &mut buffers, &mut Duration::default());
        let (mut client, mut server) = pair;
        buffers.to_server.clear();
        client.send(&[0x5a; REQUEST], &mut buffers.to_server);
        server.receive(&mut buffers.to_server, &mut buffers.at_server, &mut buffers.to_client);
        server.send(&[0x5a; REQUEST], &mut buffers.to_client);
        buffers = Buffers::default();
        sessions.push(server);
    }
    let after = resident()?;
    drop(sessions);
    Ok((after - before) / count)
}

fn resident() -> Outcome<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    let kib: usize = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(kib * 1024)
}

fn compare(maker: &Maker) -> Outcome<()> {
    println!("{:12} {:>14} {:>14} {:>8}", "operation", "buffered ns", "unbuffered ns", "ratio");
    for (operation, count) in OPERATIONS {
        let mut rounds = Vec::new();
        for round in 0..15 {
            let mut nanos = [0.0; 2];
            for turn in 0..2 {
                let which = (turn + round) % 2;
                let (spent, done) = run(maker, ["buffered", "unbuffered"][which], operation, count)?;
                nanos[which] = spent.as_nanos() as f64 / done as f64;
            }
            rounds.push((nanos[1] / nanos[0], nanos));
        }
        rounds.sort_by(|left, right| left.0.total_cmp(&right.0));
        let (ratio, nanos) = rounds[rounds.len() / 2];
        println!("{operation:12} {:>14.0} {:>14.0} {ratio:>8.3}", nanos[0], nanos[1]);
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["compare"] => compare(&Maker::new(Group::X25519, 0)?),
        [api, "idle", count] => {
            println!("{} bytes per session", idle(&Maker::new(Group::X25519, 0)?, api, count.parse()?)?);
            Ok(())
        }
        [api, operation, count, ref rest @ ..] => {
            let group = rest.first().map_or(Ok(Group::X25519), |name| name.parse())?;
            let tickets = rest.get(1).map_or(Ok(0), |count| count.parse())?;
            let (spent, done) = run(&Maker::new(group, tickets)?, api, operation, count.parse()?)?;
            println!("{operation} {api}: {done} in {spent:?}, {:?} each", spent / done as u32);
            Ok(())
        }
        _ => Err("usage: rustls_api compare | API OPERATION COUNT [GROUP [TICKETS]]".into()),
    }
}
