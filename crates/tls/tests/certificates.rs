//! Loaded certificates: shared between servers, many of them, and replaced.

use crate::common::{Pair, only};
use weir_tls::issue::{Authority, Issued, KeyKind};
use weir_tls::{
    Certificate, Client, ClientSettings, Connector, HandshakeKind, PeerName, Roots, Server, ServerSettings,
    SystemTime, Version,
};

fn certificate(issued: &Issued) -> Certificate {
    Certificate::load(&issued.identity(), &SystemTime).unwrap()
}

fn name(name: &str) -> PeerName {
    name.parse().unwrap()
}

/// A client that trusts this CA, and has no sessions yet.
fn connector(authority: &Authority, change: impl FnOnce(&mut ClientSettings)) -> Connector {
    let directory = tempfile::tempdir().unwrap();
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, authority.ca_pem()).unwrap();
    let mut settings = ClientSettings { roots: Roots::File(ca), ..ClientSettings::default() };
    change(&mut settings);
    Client::new(&settings).unwrap().core()
}

fn server(issued: &Issued, certificates: Vec<Certificate>) -> Server {
    Server::with_certificates(&ServerSettings::new(issued.identity()), certificates).unwrap()
}

#[test]
fn each_of_many_names_has_its_certificate_and_servers_share_them() {
    let authority = Authority::new().unwrap();
    let issue = |at: usize| {
        authority
            .issue(&[&format!("h{at}.example"), &format!("*.h{at}.example")], KeyKind::EcdsaP256)
            .unwrap()
    };
    let issued: Vec<_> = (0..200).map(issue).collect();
    let certificates: Vec<_> = issued.iter().map(certificate).collect();
    let all = server(&issued[0], certificates.clone());
    let some = server(&issued[0], certificates[..20].to_vec());
    for (ours, theirs) in all.certificates().iter().zip(some.certificates()) {
        assert!(ours.is_clone_of(theirs));
    }
    let connector = connector(&authority, |_| {});
    let (all, some) = (all.core(), some.core());
    // The client verifies the name, so the handshake fails with any other certificate.
    for at in 0..issued.len() {
        for asked in [format!("h{at}.example"), format!("x.h{at}.example")] {
            assert_eq!(Pair::to(&name(&asked), &connector, &all).settle(), (None, None), "{asked}");
        }
    }
    Pair::to(&name("x.h19.example"), &connector, &some).exchange();
    let (client, _) = Pair::to(&name("h20.example"), &connector, &some).settle();
    assert!(client.unwrap().to_string().contains("h0.example"), "the default certificate comes");
}

#[test]
fn a_server_with_other_certificates_keeps_tickets_and_no_stored_sessions() {
    let authority = Authority::new().unwrap();
    let [first, other, renewed, gone] = [&["a.example"], &["b.example"], &["a.example"], &["c.example"]]
        .map(|names| authority.issue(names, KeyKind::EcdsaP256).unwrap());
    let before = server(&first, vec![certificate(&other), certificate(&first), certificate(&gone)]);
    let after = before.presenting(vec![certificate(&other), certificate(&renewed)]).unwrap();
    let connector = connector(&authority, |_| {});
    for asked in ["a.example", "c.example"] {
        assert_eq!(Pair::to(&name(asked), &connector, &before.core()).exchange().kind, HandshakeKind::Full);
    }
    let kind = Pair::to(&name("a.example"), &connector, &after.core()).exchange().kind;
    assert_eq!(kind, HandshakeKind::Resume13Psk);
    let (client, _) = Pair::to(&name("c.example"), &connector, &after.core()).settle();
    assert!(client.is_some(), "the ticket of a name without certificate is void");
    assert!(!before.core().is_of(&after) && after.core().is_of(&after));

    let settings = ServerSettings { tickets: 0, ..ServerSettings::new(first.identity()) };
    let before = Server::with_certificates(&settings, vec![certificate(&first)]).unwrap();
    let after = before.presenting(vec![certificate(&renewed)]).unwrap();
    let connector = self::connector(&authority, only(Version::Tls12));
    for (server, kind) in
        [(&before, HandshakeKind::Full), (&before, HandshakeKind::Resume12Id), (&after, HandshakeKind::Full)]
    {
        assert_eq!(Pair::to(&name("a.example"), &connector, &server.core()).exchange().kind, kind);
    }
}

#[test]
fn a_server_takes_no_certificates_that_contradict_each_other() {
    let issued = Authority::new().unwrap().issue(&["a.example"], KeyKind::EcdsaP256).unwrap();
    let server = server(&issued, vec![certificate(&issued)]);
    let twice = vec![certificate(&issued), certificate(&issued)];
    let error = server.presenting(twice).unwrap_err().to_string();
    assert!(error.contains("are both for a.example, with the same kind of key"), "{error}");
    let error = server.presenting(Vec::new()).unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
}

/// Another process can load a certificate from its bytes, serve it, and pass the same bytes on.
#[test]
fn a_portable_certificate_serves_from_its_bytes() {
    let authority = Authority::new().unwrap();
    for kind in [KeyKind::EcdsaP256, KeyKind::EcdsaP384, KeyKind::Ed25519, KeyKind::Rsa2048] {
        let issued = authority.issue(&["a.example"], kind).unwrap();
        assert!(certificate(&issued).to_bytes().is_none(), "its key is not kept");
        let first = Certificate::load_portable(&issued.identity(), "one".to_owned()).unwrap();
        let bytes = first.to_bytes().unwrap();
        let second = Certificate::of_bytes(&bytes, "two".to_owned()).unwrap();
        assert_eq!(second.to_bytes().unwrap(), bytes);
        assert!(second.has_chain_of(&first) && second.has_chain_of(&certificate(&issued)));
        assert_eq!((&*first.presented().origin, &*second.presented().origin), ("one", "two"));
        let core = server(&issued, vec![second]).core();
        Pair::to(&name("a.example"), &connector(&authority, |_| {}), &core).exchange();
    }
    let [one, other] = [(); 2].map(|()| authority.issue(&["a.example"], KeyKind::EcdsaP256).unwrap());
    assert!(!certificate(&one).has_chain_of(&certificate(&other)));
}
