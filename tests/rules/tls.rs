//! Rules for TLS.

use super::{GET, OK};
use crate::common::sessions::{connector, resumes};
use crate::common::{Certificates, Client, DEADLINE, Peer, Stream, Upstream, Weir, poll_until};
use crate::gateway::metric;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Instant;

/// A gateway with generated responses on these listeners; each is given by its lines about TLS.
fn answering(certificate: (&Path, &Path), listeners: &[&str]) -> Weir {
    let tables = listeners
        .iter()
        .enumerate()
        .map(|(index, tls)| format!("[listener.l{index}]\nbind = '127.0.0.1:0'\ntls = {{ {tls} }}\n"));
    let config = format!(
        "workers = 2
        {}
        [[certificate]]
        chain = '{}'
        key = '{}'
        [[route]]
        respond.status = 200
        [admin]
        bind = '127.0.0.1:0'",
        tables.collect::<String>(),
        certificate.0.display(),
        certificate.1.display()
    );
    Weir::configured(&config, listeners.len())
}

#[test]
fn rule_18_a_session_is_not_resumed_under_another_policy() {
    let certificates = Certificates::new();
    let asks = format!("client_ca = '{}', client_certificates = 'optional'", certificates.ca.display());
    let weir = answering((&certificates.cert, &certificates.key), &["", "", &asks]);
    let connector = connector(&certificates.ca, &[]);
    assert!(!resumes(weir.address_of(0), &connector));
    assert!(resumes(weir.address_of(1), &connector), "the same identity and policy");
    assert!(!resumes(weir.address_of(2), &connector), "it asks for client certificates");
    assert!(!resumes(weir.address_of(0), &connector), "nor the other way round");
    assert!(metric(&weir, "weir_tickets_refused_total") >= 2);
}

#[test]
fn rule_19_machines_that_share_a_secret_accept_each_others_tickets_from_their_first_handshake() {
    let (certificates, files) = (Certificates::new(), tempfile::tempdir().unwrap());
    let file = files.path().join("secrets");
    let [old, new] = ["01", "23"].map(|digits| digits.repeat(32));
    let serving = |secrets: &str| {
        fs::write(&file, secrets).unwrap();
        let tls = format!("ticket_secrets = '{}'", file.display());
        answering((&certificates.cert, &certificates.key), &[&tls])
    };
    let connector = connector(&certificates.ca, &[]);
    let begun = serving(&old);
    assert!(!resumes(begun.address(), &connector));
    assert!(resumes(serving(&old).address(), &connector));
    // A rotation: first the new secret opens tickets everywhere, then it also issues them.
    assert!(resumes(serving(&format!("{old}\n{new}")).address(), &connector));
    assert!(resumes(serving(&format!("{new}\n{old}")).address(), &connector));
    assert!(resumes(serving(&new).address(), &connector));
    assert!(!resumes(serving(&old).address(), &connector), "a ticket under the new one");
}

#[test]
fn rule_20_a_certificate_is_replaced_only_by_a_good_one() {
    let (first, second, files) = (Certificates::new(), Certificates::new(), tempfile::tempdir().unwrap());
    let [chain, key] = ["chain.pem", "key.pem"].map(|name| files.path().join(name));
    fs::copy(&first.cert, &chain).unwrap();
    fs::copy(&first.key, &key).unwrap();
    let weir = answering((&chain, &key), &[""]);
    let reload = || weir.ask_admin("POST /reload").status;
    let presents =
        |certificates: &Certificates| Stream::connect(weir.address(), Some(certificates.session())).is_ok();
    for broken in ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        fs::write(&chain, broken).unwrap();
        assert_eq!(reload(), 409, "{broken:?}");
        assert!(presents(&first) && metric(&weir, "weir_configuration_stale") == 1);
    }
    // The key belongs to another certificate.
    fs::copy(&second.cert, &chain).unwrap();
    assert_eq!(reload(), 409);
    assert!(presents(&first) && !presents(&second));
    fs::copy(&second.key, &key).unwrap();
    assert_eq!(reload(), 200);
    assert!(presents(&second) && !presents(&first) && metric(&weir, "weir_configuration_stale") == 0);
    let answer = weir.ask_admin("GET /metrics");
    assert!(answer.text().contains("\nweir_certificate_not_after_seconds{file="), "{}", answer.text());
}

#[test]
fn rule_21_a_server_is_verified_and_nothing_of_it_counts_before() {
    let (trusted, other) = (Certificates::new(), Certificates::new());
    let wrong_name = Certificates::for_names(&["app.internal"]);
    let serving = |address: SocketAddr, ca: &Path| {
        Weir::configured(
            &format!(
                "workers = 1
                [listener.web]
                bind = '127.0.0.1:0'
                [service.app]
                servers = 'https://{address}'
                tls.ca = '{}'
                [[route]]
                service = 'app'",
                ca.display()
            ),
            1,
        )
    };
    for (presented, ca, status) in
        [(&trusted, &trusted.ca, 200), (&other, &trusted.ca, 502), (&wrong_name, &wrong_name.ca, 502)]
    {
        let upstream = Upstream::start(Some(presented.server().core()), |peer: &mut Peer| peer.serve(OK));
        let weir = serving(upstream.address, ca);
        let answer = Client::connect(weir.address(), None).ask(GET);
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(upstream.requests().len(), usize::from(status == 200));
        assert!(status == 200 || answer.text().contains("upstream_tls"), "{}", answer.text());
    }
    // A response in cleartext, before the handshake or instead of it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let weir = serving(listener.local_addr().unwrap(), &trusted.ca);
    let mut client = Client::connect(weir.address(), None);
    client.send(GET);
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged").unwrap();
    let answer = client.answer(weir_http::Method::Get);
    assert!(answer.status == 502 && answer.text().contains("upstream_tls"), "{}", answer.text());
    let mut seen = Vec::new();
    let _ = server.read_to_end(&mut seen);
    assert!(!seen.windows(4).any(|bytes| bytes == b"GET "), "no byte of the request came in cleartext");
}

#[test]
fn rule_22_a_client_hello_in_pieces_is_bounded() {
    let certificates = Certificates::new();
    let weir = answering((&certificates.cert, &certificates.key), &[""]);
    let before = weir.memory_kib("VmRSS");
    let mut client = TcpStream::connect(weir.address()).unwrap();
    client.set_write_timeout(Some(DEADLINE)).unwrap();
    // The message claims 16 MiB, and each record contains one byte of it.
    client.write_all(&[22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff]).unwrap();
    let record = [22, 3, 1, 0, 1, 0].repeat(1000);
    let end = Instant::now() + DEADLINE;
    while client.write_all(&record).is_ok() {
        assert!(Instant::now() < end, "it is never enough");
    }
    poll_until(DEADLINE, "its end", || metric(&weir, "weir_clients") == 0);
    assert!(metric(&weir, "weir_ended_early_total") >= 1);
    assert!(weir.memory_kib("VmRSS") < before + 8192);
    assert!(!resumes(weir.address(), &connector(&certificates.ca, &[])), "others are served");
}
