//! Tickets and stored sessions of clients: who accepts whose, for how long, and what is counted.

use crate::common::{Certificates, Client, Stream, Weir, peer};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use weir_tls::{Client as TlsClient, ClientSettings, Connector, Offer, Roots, Version};

const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// A gateway that answers itself, with these lines about TLS, and its admin address.
fn answering(certificates: &Certificates, tls: &str) -> (Weir, SocketAddr) {
    let config = format!(
        "workers = 1
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
    let stdout = weir.stdout();
    let admin = stdout.lines().find_map(|line| line.strip_prefix("admin on http://")).unwrap();
    let admin = admin.parse().unwrap();
    (weir, admin)
}

fn connector(certificates: &Certificates, versions: &[Version]) -> Connector {
    let Offer { versions, suites, groups } =
        Offer { versions: versions.to_vec(), ..Offer::default() }.complete();
    let roots = Roots::File(certificates.ca.clone());
    let settings = ClientSettings { roots, versions, suites, groups, ..ClientSettings::default() };
    TlsClient::new(&settings).unwrap().core()
}

/// A request on a new connection; whether its session was resumed.
fn resumes(weir: &Weir, connector: &Connector) -> bool {
    let session = connector.connect(&"127.0.0.1".parse().unwrap());
    let mut client = Client { stream: Stream::connect(weir.address(), Some(session)).unwrap() };
    // With the answer come the tickets.
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    client.stream.session().and_then(|session| session.facts()).unwrap().kind.name() != "full"
}

fn counted(admin: SocketAddr, name: &str) -> u64 {
    let answer = Client::connect(admin, None).ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
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
        let connector = connector(&certificates, &[Version::Tls13]);
        assert!(!resumes(&first, &connector));
        assert_eq!(resumes(&second, &connector), expected, "{tls}");
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
    let connector = connector(&certificates, &[Version::Tls12, Version::Tls13]);
    assert!(!resumes(&old, &connector) && resumes(&old, &connector));
    assert!(!resumes(&new, &connector));
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
        let first = connector(&certificates, &[Version::Tls12]);
        assert!(!resumes(&weir, &first));
        // There are 64 parts, which fill at random.
        for _ in 0..1200 {
            let other = connector(&certificates, &[Version::Tls12]);
            let session = other.connect(&"127.0.0.1".parse().unwrap());
            drop(Stream::connect(weir.address(), Some(session)).unwrap());
        }
        assert_eq!(resumes(&weir, &first), expected, "{sessions} sessions");
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
