//! Interoperability with OpenSSL's client and server over loopback. Skipped, with a message, if `openssl` is
//! not on the PATH.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::common::{Pki, localhost, only};
use weir_tls::issue::KeyKind;
use weir_tls::{Acceptor, ClientAuth, Facts, HandshakeKind, Session, Signature, Version};

/// The timeout of each step, far longer than a step takes.
const DEADLINE: Duration = Duration::from_secs(30);

fn openssl_is_missing() -> bool {
    let missing = Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_err();
    if missing {
        println!("skipped: openssl is not on the PATH");
    }
    missing
}

/// A child process that is killed on drop.
struct Process(Child);

impl Process {
    fn openssl(arguments: &[&str]) -> Self {
        let child = Command::new("openssl")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn stdin(&mut self) -> ChildStdin {
        self.0.stdin.take().unwrap()
    }

    /// Waits for the end of the process, and returns its stdout and stderr.
    fn output(mut self) -> String {
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        self.0.wait().unwrap();
        text
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Carries bytes between a socket and a session, until `done` or the end of the stream.
fn pump(
    session: &mut Session,
    socket: &mut TcpStream,
    plaintext: &mut Vec<u8>,
    done: impl Fn(&Session, &[u8]) -> bool,
) {
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut buffer = vec![0; 16 * 1024];
    while !done(session, plaintext) {
        let length = socket.read(&mut buffer).unwrap();
        if length == 0 {
            return;
        }
        let mut reply = Vec::new();
        session.receive(&mut buffer[..length], plaintext, &mut reply).unwrap();
        socket.write_all(&reply).unwrap();
    }
}

/// Serves `connections`, one at a time: responds to the first line with `hello, ` and the line. Reports the
/// facts.
fn serve(acceptor: Acceptor, connections: usize) -> (u16, Receiver<Facts>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (report, facts) = channel();
    thread::spawn(move || {
        for _ in 0..connections {
            let (mut socket, _) = listener.accept().unwrap();
            let mut session = acceptor.accept();
            let mut plaintext = Vec::new();
            pump(&mut session, &mut socket, &mut plaintext, |session, plaintext| {
                plaintext.ends_with(b"\n") || session.peer_closed()
            });
            let mut out = Vec::new();
            let answer = [b"hello, ", &plaintext[..]].concat();
            if !session.peer_closed() {
                session.send(&answer, &mut out).unwrap();
                session.close(&mut out);
            }
            // The client may have disconnected, as with `-reconnect`.
            let _ = socket.write_all(&out);
            report.send(session.facts().unwrap().clone()).unwrap();
        }
    });
    (port, facts)
}

/// Starts `s_client`, which verifies the test certificate.
fn s_client_process(port: u16, pki: &Pki, version: &str, more: &[&str]) -> Process {
    let address = format!("127.0.0.1:{port}");
    let ca = pki.files.ca.to_str().unwrap();
    let mut arguments =
        vec!["s_client", "-connect", &address, "-CAfile", ca, "-verify_return_error", version];
    arguments.extend_from_slice(&["-servername", "localhost", "-verify_hostname", "localhost"]);
    arguments.extend_from_slice(more);
    Process::openssl(&arguments)
}

/// Runs `s_client`, which sends a line; returns all its output.
fn s_client(port: u16, pki: &Pki, version: &str, more: &[&str]) -> String {
    let mut client = s_client_process(port, pki, version, more);
    // Keep stdin open: at its end the client would exit before the response.
    let mut stdin = client.stdin();
    stdin.write_all(b"weir\n").unwrap();
    let output = client.output();
    drop(stdin);
    output
}

#[test]
fn openssl_s_client_talks_to_our_server_and_resumes() {
    if openssl_is_missing() {
        return;
    }
    for kind in [KeyKind::EcdsaP256, KeyKind::Rsa2048] {
        let pki = Pki::new(kind);
        for (flag, version, stateful, resumed) in [
            ("-tls1_3", Version::Tls13, false, HandshakeKind::Resume13Psk),
            ("-tls1_3", Version::Tls13, true, HandshakeKind::Resume13Psk),
            ("-tls1_2", Version::Tls12, false, HandshakeKind::Resume12Ticket),
            ("-tls1_2", Version::Tls12, true, HandshakeKind::Resume12Id),
        ] {
            let (port, facts) = serve(pki.acceptor(|settings| settings.stateful = stateful), 2);
            let directory = tempfile::tempdir().unwrap();
            let saved = directory.path().join("session.pem");
            let saved = saved.to_str().unwrap();

            let output = s_client(port, &pki, flag, &["-sess_out", saved]);
            assert!(output.contains("hello, weir"), "{output}");
            assert!(output.contains("New, TLSv1"), "{output}");
            assert!(output.contains("Verify return code: 0 (ok)"), "{output}");
            let first = facts.recv_timeout(DEADLINE).unwrap();
            assert_eq!((first.version, first.kind), (version, HandshakeKind::Full));

            let output = s_client(port, &pki, flag, &["-sess_in", saved]);
            assert!(output.contains("hello, weir"), "{output}");
            assert!(output.contains("Reused, TLSv1"), "{output}");
            assert_eq!(facts.recv_timeout(DEADLINE).unwrap().kind, resumed);
        }
    }
}

/// Without the ticket extension a TLS 1.2 client resumes by session ID, even if the server issues tickets.
#[test]
fn openssl_s_client_without_tickets_reconnects_by_session_id() {
    if openssl_is_missing() {
        return;
    }
    let pki = Pki::new(KeyKind::EcdsaP256);
    let (port, facts) = serve(pki.acceptor(|_| {}), 6);
    let output = s_client(port, &pki, "-tls1_2", &["-no_ticket", "-reconnect"]);
    assert_eq!(output.matches("Reused, TLSv1.2").count(), 5, "{output}");
    let kinds: Vec<HandshakeKind> = (0..6).map(|_| facts.recv_timeout(DEADLINE).unwrap().kind).collect();
    assert_eq!(kinds[0], HandshakeKind::Full);
    assert_eq!(kinds[1..], [HandshakeKind::Resume12Id; 5]);
}

/// The command `K` makes `s_client` update its key and request an update of the server's (RFC 8446 4.6.3),
/// without any plaintext.
#[test]
fn openssl_s_client_updates_its_keys() {
    if openssl_is_missing() {
        return;
    }
    let pki = Pki::new(KeyKind::EcdsaP256);
    let (port, facts) = serve(pki.acceptor(|_| {}), 1);
    let mut client = s_client_process(port, &pki, "-tls1_3", &["-msg"]);
    let mut stdin = client.stdin();
    // `s_client` takes a whole read as a command, so the request must wait until it has processed `K`.
    stdin.write_all(b"K\n").unwrap();
    let stderr = BufReader::new(client.0.stderr.as_mut().unwrap());
    assert!(stderr.lines().any(|line| line.unwrap() == "KEYUPDATE"));
    stdin.write_all(b"weir\n").unwrap();
    let output = client.output();
    drop(stdin);
    assert!(output.contains("hello, weir"), "{output}");
    let updates = output.lines().filter(|line| line.contains("KeyUpdate"));
    assert_eq!(updates.filter(|line| line.starts_with("<<<")).count(), 1, "{output}");
    facts.recv_timeout(DEADLINE).unwrap();
}

#[test]
fn openssl_s_client_presents_a_certificate() {
    if openssl_is_missing() {
        return;
    }
    let pki = Pki::new(KeyKind::EcdsaP256);
    for flag in ["-tls1_2", "-tls1_3"] {
        let acceptor =
            pki.acceptor(|settings| settings.client_auth = Some(ClientAuth::required(pki.files.ca.clone())));
        let (port, facts) = serve(acceptor, 1);
        let (certificates, key) = (pki.files.certificates.to_str().unwrap(), pki.files.key.to_str().unwrap());
        let output = s_client(port, &pki, flag, &["-cert", certificates, "-key", key]);
        assert!(output.contains("hello, weir"), "{output}");
        facts.recv_timeout(DEADLINE).unwrap();
    }
}

/// `s_server` on a free port.
struct OpensslServer {
    process: Process,
    port: u16,
}

impl OpensslServer {
    fn start(pki: &Pki, more: &[&str]) -> Self {
        let (certificates, key) = (pki.files.certificates.to_str().unwrap(), pki.files.key.to_str().unwrap());
        let mut arguments =
            vec!["s_server", "-accept", "127.0.0.1:0", "-cert", certificates, "-key", key, "-www"];
        arguments.extend_from_slice(more);
        let mut process = Process::openssl(&arguments);
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let port =
            lines.find_map(|line| line.unwrap().strip_prefix("ACCEPT 127.0.0.1:")?.parse().ok()).unwrap();
        // Keep reading, or the server blocks on a full pipe.
        thread::spawn(move || lines.for_each(drop));
        Self { process, port }
    }

    /// Sends one request on a new connection; returns the facts of the handshake and the page.
    fn get(&self, mut session: Session) -> (Facts, String) {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let (mut plaintext, mut out) = (Vec::new(), Vec::new());
        session.receive(&mut [], &mut plaintext, &mut out).unwrap();
        socket.write_all(&out).unwrap();
        pump(&mut session, &mut socket, &mut plaintext, |session, _| !session.is_handshaking());
        out.clear();
        session.send(b"GET / HTTP/1.0\r\n\r\n", &mut out).unwrap();
        socket.write_all(&out).unwrap();
        pump(&mut session, &mut socket, &mut plaintext, |session, _| session.peer_closed());
        (session.facts().unwrap().clone(), String::from_utf8_lossy(&plaintext).into_owned())
    }
}

#[test]
fn our_client_talks_to_openssl_s_server_and_resumes() {
    if openssl_is_missing() {
        return;
    }
    for kind in [KeyKind::EcdsaP256, KeyKind::Rsa2048] {
        let pki = Pki::new(kind);
        for (flags, version, resumed) in [
            (&["-tls1_3"][..], Version::Tls13, HandshakeKind::Resume13Psk),
            (&["-tls1_2"], Version::Tls12, HandshakeKind::Resume12Ticket),
            (&["-tls1_2", "-no_ticket"], Version::Tls12, HandshakeKind::Resume12Id),
        ] {
            let server = OpensslServer::start(&pki, flags);
            let connector = pki.connector(|_| {});
            for _ in 0..2 {
                let (facts, page) = server.get(connector.connect_full(&localhost()));
                assert_eq!((facts.version, facts.kind), (version, HandshakeKind::Full));
                assert!(facts.signature.is_some() && page.contains("New, TLSv1"), "{facts}: {page}");
                for session in
                    [connector.connect_resuming(&localhost()), Some(connector.connect(&localhost()))]
                {
                    let (facts, page) = server.get(session.unwrap());
                    assert_eq!(facts.kind, resumed);
                    assert!(page.contains("Reused, TLSv1"), "{facts}: {page}");
                }
            }
            let connector = pki.connector(|settings| settings.tickets = false);
            server.get(connector.connect_full(&localhost()));
            let (facts, _) = server.get(connector.connect_resuming(&localhost()).unwrap());
            let by_id = version == Version::Tls12;
            assert_eq!(facts.kind, if by_id { HandshakeKind::Resume12Id } else { resumed });
            drop(server.process);
        }
    }
}

#[test]
fn openssl_asks_our_client_to_retry_with_another_group() {
    if openssl_is_missing() {
        return;
    }
    let pki = Pki::new(KeyKind::EcdsaP256);
    let server = OpensslServer::start(&pki, &["-groups", "P-384"]);
    let (facts, _) = server.get(pki.connector(|_| {}).connect(&localhost()));
    assert_eq!((facts.hello_retry, facts.group), (true, Some(weir_tls::Group::P384)));
    drop(server.process);
}

#[test]
fn openssl_signs_with_the_scheme_that_our_client_pins() {
    if openssl_is_missing() {
        return;
    }
    let pki = Pki::new(KeyKind::Rsa2048);
    for (flag, signature) in [
        ("-tls1_3", Signature::RsaPssSha256),
        ("-tls1_3", Signature::RsaPssSha384),
        ("-tls1_2", Signature::RsaPssSha512),
        ("-tls1_2", Signature::RsaPkcs1Sha256),
    ] {
        let server = OpensslServer::start(&pki, &[flag]);
        let version = if flag == "-tls1_3" { Version::Tls13 } else { Version::Tls12 };
        let connector = pki.connector(|settings| {
            only(version)(settings);
            settings.signatures = vec![signature];
        });
        let (facts, _) = server.get(connector.connect(&localhost()));
        assert_eq!(facts.signature, Some(signature));
        drop(server.process);
    }
}
