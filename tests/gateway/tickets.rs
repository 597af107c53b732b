//! Tickets and stored sessions: which gateways accept them, their lifetime, and their metrics.

use crate::common::sessions::{connector, resumes};
use crate::common::{Certificates, Client, DEADLINE, Stream, Weir, peer, poll_until};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use weir_tls::Version;

const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// A gateway that generates its responses, with these TLS lines, and its admin address.
pub(super) fn answering(certificates: &Certificates, tls: &str) -> (Weir, SocketAddr) {
    answering_with(certificates, tls, 1)
}

fn answering_with(certificates: &Certificates, tls: &str, workers: u32) -> (Weir, SocketAddr) {
    let config = format!(
        "workers = {workers}
        [listener.web]
        bind = '127.0.0.1:0'
        tls = {{ {tls} }}
        [[certificate]]
        chain = '{}'
        key = '{}'
        [[route]]
        respond.status = 200
        [admin]
        bind = '127.0.0.1:0'",
        certificates.cert.display(),
        certificates.key.display()
    );
    let weir = Weir::configured(&config, 1);
    let admin = weir.admin();
    (weir, admin)
}

pub(super) fn counted(admin: SocketAddr, name: &str) -> u64 {
    let answer = Client::connect(admin, None).ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let line = answer.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {}", answer.text())).parse().unwrap()
}

#[test]
fn machines_with_one_secret_accept_each_others_tickets() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        format!("ticket_secrets = '{}'", path.display())
    };
    let other = SECRET.replace("00", "ff");
    let fleet = file("fleet", format!("# The fleet's.\n{SECRET}\n"));
    let rotating = file("rotating", format!("{other}\n{SECRET}\n"));
    let stranger = file("stranger", other.clone());
    let (first, issued_at) = answering(&certificates, &fleet);
    for (tls, expected) in [(&fleet, true), (&rotating, true), (&stranger, false), (&String::new(), false)] {
        let (second, admin) = answering(&certificates, tls);
        let connector = connector(&certificates.ca, &[Version::Tls13]);
        assert!(!resumes(first.address(), &connector));
        assert_eq!(resumes(second.address(), &connector), expected, "{tls}");
        assert_eq!(counted(admin, "weir_tickets_redeemed_total"), u64::from(expected));
        let refused = counted(admin, "weir_tickets_refused_total{reason=\"unknown_key\"}");
        assert_eq!(refused, u64::from(!expected));
        assert_eq!(counted(admin, "weir_tickets_issued_total"), 1);
    }
    assert_eq!(counted(issued_at, "weir_tickets_issued_total"), 4);
}

#[test]
fn a_ticket_of_another_version_is_mismatched_and_nothing_else() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fleet");
    std::fs::write(&path, SECRET).unwrap();
    let secrets = format!("ticket_secrets = '{}'", path.display());
    let (old, _) = answering(&certificates, &format!("{secrets}, versions = '1.2'"));
    let (new, admin) = answering(&certificates, &format!("{secrets}, versions = '1.3'"));
    let connector = connector(&certificates.ca, &[Version::Tls12, Version::Tls13]);
    assert!(!resumes(old.address(), &connector) && resumes(old.address(), &connector));
    assert!(!resumes(new.address(), &connector));
    for reason in ["expired", "damaged", "unknown_key"] {
        assert_eq!(counted(admin, &format!("weir_tickets_refused_total{{reason=\"{reason}\"}}")), 0);
    }
}

#[test]
fn stored_sessions_are_bounded() {
    let certificates = Certificates::new();
    for (sessions, expected) in [(1, false), (100_000, true)] {
        let (weir, _) =
            answering(&certificates, &format!("tickets = 0, versions = '1.2', sessions = {sessions}"));
        let first = connector(&certificates.ca, &[Version::Tls12]);
        assert!(!resumes(weir.address(), &first));
        // The store has 64 shards, which fill at random.
        for _ in 0..1200 {
            let other = connector(&certificates.ca, &[Version::Tls12]);
            let session = other.connect(&"127.0.0.1".parse().unwrap());
            drop(Stream::connect(weir.address(), Some(session)).unwrap());
        }
        assert_eq!(resumes(weir.address(), &first), expected, "{sessions} sessions");
    }
}

#[test]
fn clients_are_told_how_long_a_ticket_lives() {
    let Some(openssl) = peer("openssl") else { return };
    let certificates = Certificates::new();
    let (weir, _) = answering(&certificates, "ticket_lifetime = '2h'");
    let mut client = Command::new(openssl);
    client.args(["s_client", "-tls1_2", "-connect", &weir.address().to_string()]);
    let output = client.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("TLS session ticket lifetime hint: 7200 (seconds)"), "{said}");
}

#[test]
fn when_a_certificate_expires_is_a_metric() {
    let certificates = Certificates::new();
    let (_weir, admin) = answering(&certificates, "");
    let file = certificates.cert.display();
    let at = counted(admin, &format!("weir_certificate_not_after_seconds{{file=\"{file}\"}}"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(at > now, "{at}");
}

#[test]
fn settings_of_tickets_that_make_no_sense_are_refused() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let secrets = folder.path().join("secrets");
    std::fs::write(&secrets, format!("{SECRET}\nabc\n")).unwrap();
    let secrets = secrets.display();
    for (tls, expected) in [
        ("ticket_lifetime = '30s'".to_owned(), "invalid value 30 s: expected 60 s to 84 h"),
        ("sessions = 0".to_owned(), "invalid value `0`: expected 1 to 10000000"),
        (
            format!("ticket_secrets = '{secrets}'"),
            "line 2: expected at least 64 hexadecimal digits, as `openssl rand -hex 32` prints them",
        ),
        ("ticket_secrets = '/no/such/file'".to_owned(), "cannot read /no/such/file"),
    ] {
        let file = folder.path().join("weir.toml");
        let config = format!(
            "[listener.web]\nbind = '127.0.0.1:0'\ntls = {{ {tls} }}\n[[certificate]]\nchain = '{}'\nkey = '{}'\n[[route]]\nrespond.status = 200\n",
            certificates.cert.display(),
            certificates.key.display()
        );
        std::fs::write(&file, config).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
        assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{}", ended.stderr);
        assert!(ended.stderr.contains("listener.web.tls"), "{}", ended.stderr);
        assert!(!ended.stderr.contains("abc"), "a secret in a message: {}", ended.stderr);
    }
}

/// Replaces a file as Kubernetes does for a mounted secret: by renaming over a symlink.
fn swap(link: &Path, content: &str) {
    let folder = link.parent().unwrap();
    let stored = folder.join(format!("{}", content.len()) + &content[..4.min(content.len())]);
    std::fs::write(&stored, content).unwrap();
    let next = folder.join("next");
    std::os::unix::fs::symlink(&stored, &next).unwrap();
    std::fs::rename(&next, link).unwrap();
}

#[test]
fn secrets_are_rotated_while_the_gateway_runs() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secrets");
    let (old, new) = (SECRET.to_owned(), SECRET.replace("00", "ff"));
    swap(&file, &old);
    let tls = format!("ticket_secrets = '{}'", file.display());
    // Two workers, so that a client's next connection may reach the other one.
    let (weir, admin) = answering_with(&certificates, &tls, 2);
    let metric =
        |name: &str| counted(admin, &format!("weir_ticket_secrets_{name}{{file=\"{}\"}}", file.display()));
    let client = || connector(&certificates.ca, &[Version::Tls13]);
    let [before, during, after] = [client(), client(), client()];
    for client in [&before, &during, &after] {
        assert!(!resumes(weir.address(), client));
    }
    assert!(resumes(weir.address(), &before));
    // For comparison: gateways with only one of the secrets.
    let knows = |secret: &str, name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, secret).unwrap();
        answering(&certificates, &format!("ticket_secrets = '{}'", path.display())).0
    };
    let (knows_old, knows_new) = (knows(&old, "knows-old"), knows(&new, "knows-new"));

    // The new secret issues tickets, and the gateway still accepts those of the old one.
    swap(&file, &format!("{new}\n{old}\n"));
    weir.wait_for_stderr(&["ticket secrets in use now: 2"]);
    assert_eq!((metric("reloads_total"), metric("reload_failures_total"), metric("stale")), (1, 0, 0));
    for _ in 0..4 {
        assert!(resumes(weir.address(), &during), "no session is lost");
    }
    assert!(resumes(knows_new.address(), &during), "tickets are issued under the new secret");

    // An unusable file leaves the secrets in place, and the gateway reports it once.
    for (content, said) in [(Some("not a secret"), "line 1: expected at least 64"), (None, "cannot read")] {
        let failures = metric("reload_failures_total");
        match content {
            Some(content) => swap(&file, content),
            None => std::fs::remove_file(&file).unwrap(),
        }
        poll_until(DEADLINE, "a failure", || metric("reload_failures_total") == failures + 1);
        weir.wait_for_stderr(&[said, "the ticket secrets in use stay"]);
        assert_eq!(metric("stale"), 1);
        assert!(resumes(weir.address(), &during) && resumes(weir.address(), &before), "{content:?}");
    }

    // The gateway loads a valid file again, and rejects tickets of secrets that it no longer lists.
    let forgotten = client();
    assert!(!resumes(knows_old.address(), &forgotten));
    swap(&file, &new);
    weir.wait_for_stderr(&["ticket secrets in use now: 1"]);
    assert_eq!((metric("reloads_total"), metric("reload_failures_total"), metric("stale")), (2, 2, 0));
    assert!(resumes(weir.address(), &during));
    assert!(!resumes(weir.address(), &after), "a ticket of the old secret");
    assert!(resumes(weir.address(), &after));
    assert!(!resumes(weir.address(), &forgotten));
    let stderr = weir.stop().stderr;
    assert_eq!(stderr.matches("the ticket secrets in use stay").count(), 2, "{stderr}");
    assert!(!stderr.contains(&old) && !stderr.contains(&new), "a secret in a message: {stderr}");
}

/// A program that runs until stopped, with an open stdin.
struct Started(Child);

impl Started {
    fn new(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn stop(&mut self) {
        // An error means that the process has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn early_data_is_rejected_and_the_client_works() {
    let Some(openssl) = peer("openssl") else { return };
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let [session, early, request] = ["session", "early", "request"].map(|name| folder.path().join(name));
    std::fs::write(&early, "GET /early HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    std::fs::write(&request, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
    // A session that allows early data, from a server that supports it; the gateway issues none.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut server = Command::new(&openssl);
    server.args(["s_server", "-tls1_3", "-early_data", "-accept", &port.to_string()]);
    server.arg("-cert").arg(&certificates.cert).arg("-key").arg(&certificates.key);
    let mut server = Started::new(&mut server);
    poll_until(DEADLINE, "s_server listens", || TcpStream::connect(port).is_ok());
    let mut fetch = Command::new(&openssl);
    fetch.args(["s_client", "-tls1_3", "-connect", &port.to_string(), "-sess_out"]).arg(&session);
    let mut fetch = Started::new(&mut fetch);
    let is_whole = || std::fs::read_to_string(&session).is_ok_and(|text| text.contains("-----END"));
    poll_until(DEADLINE, "a session", is_whole);
    fetch.stop();
    server.stop();
    let client = |at: SocketAddr, session: [&std::ffi::OsStr; 2], more: &[&std::ffi::OsStr]| {
        let mut client = Command::new(&openssl);
        client
            .args(["s_client", "-tls1_3", "-ign_eof", "-connect", &at.to_string()])
            .args(session)
            .args(more);
        let output = client.stdin(std::fs::File::open(&request).unwrap()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };

    let (weir, admin) = answering(&certificates, "");
    let early = ["-early_data".as_ref(), early.as_os_str()];
    let said = client(weir.address(), ["-sess_in".as_ref(), session.as_os_str()], &early);
    assert!(said.contains("Early data was rejected"), "{said}");
    assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 1, "{said}");
    assert_eq!(counted(admin, "weir_requests_total"), 1, "early data is no request");

    // The gateway's tickets do not allow early data, so a client does not offer it.
    client(weir.address(), ["-sess_out".as_ref(), session.as_os_str()], &[]);
    let said = client(weir.address(), ["-sess_in".as_ref(), session.as_os_str()], &early);
    assert!(said.contains("Reused, TLSv1.3") && said.contains("Early data was not sent"), "{said}");
    assert_eq!(said.matches("HTTP/1.1 200 OK").count(), 1, "{said}");
}
