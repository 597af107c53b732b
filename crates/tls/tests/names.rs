//! The certificate that a server presents for a name, and the server's handling of client certificates.

use crate::common::{Pair, client_hello, handshake, only};
use weir_tls::issue::{Authority, Issued, KeyKind};
use weir_tls::{
    Acceptor, Certificate, Client, ClientAuth, ClientCertificate, ClientSettings, Connector, HandshakeKind,
    Identity, KeyName, PeerName, Roots, Server, ServerSettings, Signature, Suite, Version,
};

/// A CA, and the certificates that a server has from it.
struct Names {
    authority: Authority,
    issued: Vec<Issued>,
}

impl Names {
    fn new(certificates: &[(&[&str], KeyKind)]) -> Self {
        let authority = Authority::new().unwrap();
        let issue = |(names, kind): &(&[&str], KeyKind)| authority.issue(names, *kind).unwrap();
        let issued = certificates.iter().map(issue).collect();
        Self { authority, issued }
    }

    fn settings(&self) -> ServerSettings {
        let identities: Vec<Identity> = self.issued.iter().map(Issued::identity).collect();
        ServerSettings { identities, ..ServerSettings::new(self.issued[0].identity()) }
    }

    fn acceptor(&self) -> Acceptor {
        Server::new(&self.settings()).unwrap().core()
    }

    fn connector(&self, change: impl FnOnce(&mut ClientSettings)) -> Connector {
        let folder = tempfile::tempdir().unwrap();
        let ca = folder.path().join("ca.pem");
        std::fs::write(&ca, self.authority.ca_pem()).unwrap();
        let mut settings = ClientSettings { roots: Roots::File(ca), ..ClientSettings::default() };
        change(&mut settings);
        Client::new(&settings).unwrap().core()
    }
}

fn name(name: &str) -> PeerName {
    name.parse().unwrap()
}

#[test]
fn each_name_has_its_certificate() {
    let names = Names::new(&[
        (&["default.example"], KeyKind::EcdsaP256),
        (&["a.example", "b.example"], KeyKind::EcdsaP256),
        (&["*.d.example"], KeyKind::EcdsaP256),
        (&["*.c.example"], KeyKind::EcdsaP256),
    ]);
    let (acceptor, connector) = (names.acceptor(), names.connector(|_| {}));
    // The client verifies the name.
    for asked in ["default.example", "a.example", "B.example", "x.d.example", "x.c.example"] {
        Pair::to(&name(asked), &connector, &acceptor).exchange();
    }
    for asked in ["example", "x.y.c.example", "other.test"] {
        let (client, _) = Pair::to(&name(asked), &connector, &acceptor).settle();
        let error = client.unwrap().to_string();
        assert!(error.contains("default.example"), "the default certificate comes: {error}");
    }
    let strict = Server::new(&ServerSettings { strict_names: true, ..names.settings() }).unwrap().core();
    Pair::to(&name("a.example"), &connector, &strict).exchange();
    let (client, _) = Pair::to(&name("other.test"), &connector, &strict).settle();
    assert!(client.unwrap().reason().starts_with("alert_"));
}

/// A connection stores the number of its certificate, so that the gateway can detect a request for a host that only
/// another certificate covers.
#[test]
fn a_host_of_another_certificate_is_known() {
    let names = Names::new(&[
        (&["default.example"], KeyKind::EcdsaP256),
        (&["a.example", "*.d.example"], KeyKind::EcdsaP256),
        (&["*.example"], KeyKind::Rsa2048),
    ]);
    let acceptor = names.acceptor();
    assert!(acceptor.has_choice());
    let ecdsa = names.connector(|_| {});
    let rsa = names.connector(|settings| settings.signatures = vec![Signature::RsaPssSha256]);
    for (connector, asked, number) in [
        (&ecdsa, "default.example", Some(0)),
        (&ecdsa, "A.example.", Some(1)),
        (&ecdsa, "x.example", Some(2)),
        // The client cannot verify the exact match, so it gets the wildcard.
        (&rsa, "a.example", Some(2)),
        // The client sends no name.
        (&ecdsa, "127.0.0.1", None),
    ] {
        let mut pair = Pair::to(&name(asked), connector, &acceptor);
        pair.settle();
        assert_eq!(pair.server.named_certificate(), number, "{asked}");
    }
    for is_resumption in [false, true] {
        let mut pair = Pair::to(&name("a.example"), &ecdsa, &acceptor);
        assert_eq!(pair.exchange().kind.is_resumption(), is_resumption);
        assert_eq!(pair.server.named_certificate(), Some(1));
    }
    for (number, host, is_for_another) in [
        (1, "a.example", false),
        (1, "x.d.example", false),
        (1, "default.example", true),
        (1, "other.example", true),
        (2, "other.example", false),
        // The wildcard of certificate 2 covers `a.example`, too.
        (2, "a.example", false),
        (2, "x.d.example", true),
        // No certificate covers these hosts.
        (0, "x.y.d.example", false),
        (0, "other.test", false),
        (0, "", false),
    ] {
        assert_eq!(acceptor.is_for_another(number, host), is_for_another, "{number} {host}");
    }
    let one = Names::new(&[(&["default.example"], KeyKind::EcdsaP256)]);
    assert!(!one.acceptor().has_choice());
}

#[test]
fn a_dot_at_the_end_of_a_name_changes_nothing() {
    let names = Names::new(&[
        (&["default.example"], KeyKind::EcdsaP256),
        (&["a.example", "*.b.example"], KeyKind::EcdsaP256),
    ]);
    let strict = Server::new(&ServerSettings { strict_names: true, ..names.settings() }).unwrap().core();
    for (asked, is_known) in [
        ("a.example.", true),
        ("A.EXAMPLE.", true),
        ("x.b.example.", true),
        ("other.test.", false),
        (".b.example.", false),
        ("a.example..", false),
    ] {
        // Weir's client omits the dot, so ask for another name of the same length and replace it in the
        // ClientHello.
        let stand_in = "y".repeat(asked.len());
        let mut session = names.connector(|_| {}).connect(&name(&stand_in));
        let mut hello = client_hello(&mut session);
        let at = hello.windows(asked.len()).position(|part| part == stand_in.as_bytes()).unwrap();
        hello[at..at + asked.len()].copy_from_slice(asked.as_bytes());
        let answered = strict.accept().receive(&mut hello, &mut Vec::new(), &mut Vec::new());
        assert_eq!(answered.is_ok(), is_known, "{asked}: {answered:?}");
    }
}

#[test]
fn of_two_keys_for_one_name_the_cheaper_one_signs_if_the_client_allows() {
    let names = Names::new(&[(&["a.example"], KeyKind::Rsa2048), (&["a.example"], KeyKind::EcdsaP256)]);
    let acceptor = names.acceptor();
    let signature = |change: &dyn Fn(&mut ClientSettings)| {
        let connector = names.connector(change);
        Pair::to(&name("a.example"), &connector, &acceptor).exchange().signature
    };
    assert_eq!(signature(&|_| {}), Some(Signature::EcdsaP256Sha256));
    assert_eq!(signature(&only(Version::Tls12)), Some(Signature::EcdsaP256Sha256));
    // In TLS 1.2 the suites decide which certificate fits.
    let rsa = signature(&|settings| {
        settings.versions = vec![Version::Tls12];
        settings.suites.retain(|suite| suite.iana_name().contains("ECDHE_RSA"));
    });
    assert!(
        matches!(rsa, Some(Signature::RsaPssSha256 | Signature::RsaPssSha384 | Signature::RsaPssSha512)),
        "{rsa:?}"
    );
    // In TLS 1.3 the signature schemes decide which certificate fits.
    let rsa = signature(&|settings| {
        settings.versions = vec![Version::Tls13];
        settings.suites.retain(|suite: &Suite| suite.version() == Version::Tls13);
        settings.signatures = vec![Signature::RsaPssSha256];
    });
    assert_eq!(rsa, Some(Signature::RsaPssSha256));
}

#[test]
fn two_certificates_with_one_kind_of_key_for_one_name_are_refused() {
    let names = Names::new(&[
        (&["a.example"], KeyKind::EcdsaP256),
        (&["b.example", "A.example"], KeyKind::EcdsaP256),
    ]);
    let error = Server::new(&names.settings()).unwrap_err().to_string();
    assert!(error.contains("are both for a.example, with the same kind of key"), "{error}");
}

#[test]
fn certificates_are_described() {
    let names = Names::new(&[
        (&["a.example", "*.B.example"], KeyKind::EcdsaP384),
        (&["c.example"], KeyKind::Rsa2048),
    ]);
    let server = Server::new(&names.settings()).unwrap();
    let presented: Vec<_> = server.certificates().iter().map(Certificate::presented).collect();
    assert_eq!(presented[0].names, ["a.example", "*.b.example"]);
    assert_eq!((presented[0].key, presented[1].key), (KeyName::Ecdsa(384), KeyName::Rsa(2048)));
    assert!(presented.iter().all(|presented| presented.not_before < presented.not_after));
}

#[test]
fn a_client_may_present_a_certificate_and_keeps_it_when_it_resumes() {
    let names = Names::new(&[(&["a.example"], KeyKind::EcdsaP256)]);
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("clients.pem");
    std::fs::write(&roots, names.authority.ca_pem()).unwrap();
    let auth = ClientAuth { required: false, ..ClientAuth::required(roots) };
    let acceptor =
        Server::new(&ServerSettings { client_auth: Some(auth), ..names.settings() }).unwrap().core();
    let mut pair = Pair::to(&name("a.example"), &names.connector(|_| {}), &acceptor);
    pair.exchange();
    assert_eq!(pair.server.client_chain(), None);
    let client = names.authority.issue(&["client.example"], KeyKind::EcdsaP256).unwrap();
    let connector = names.connector(|settings| settings.identity = Some(client.identity()));
    let mut seen = Vec::new();
    for kind in [HandshakeKind::Full, HandshakeKind::Resume13Psk] {
        let mut pair = Pair::to(&name("a.example"), &connector, &acceptor);
        assert_eq!(pair.exchange().kind, kind);
        let leaf = &pair.server.client_chain().expect("there is one")[0];
        seen.push(ClientCertificate::read(leaf).unwrap());
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0].fingerprint.len(), 64);
    let stranger = Authority::new().unwrap().issue(&["x"], KeyKind::EcdsaP256).unwrap();
    let connector = names.connector(|settings| settings.identity = Some(stranger.identity()));
    let (_, server) = Pair::to(&name("a.example"), &connector, &acceptor).settle();
    assert_eq!(server.unwrap().reason(), "certificate_unknown_issuer");
}

#[test]
fn a_servers_secrets_can_be_logged() {
    let names = Names::new(&[(&["localhost"], KeyKind::EcdsaP256)]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let settings = ServerSettings { key_log: Some(file.clone()), ..names.settings() };
    handshake(&names.connector(|_| {}), &Server::new(&settings).unwrap().core());
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("CLIENT_TRAFFIC_SECRET_0 "), "{text}");
}
