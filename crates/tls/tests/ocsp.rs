//! The OCSP responses that a server staples, and the times at which it staples them.

use weir_tls::issue::{Authority, Issued, KeyKind, Signer, Status};
use weir_tls::{Acceptor, Certificate, Identity, Server, ServerSettings};

use crate::common::{Clock, Pair, Pki};

/// A time in 2026, at which most responses are valid.
const NOW: u64 = 1_795_707_000;
const YEAR: (&str, Option<&str>) = ("20260601000000Z", Some("20270601000000Z"));

/// A server's certificate, its CA, and another CA.
struct Case {
    between: Authority,
    other: Authority,
    own: Issued,
    others: Issued,
    directory: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        let root = Authority::new().unwrap();
        let between = root.intermediate().unwrap();
        let [own, others] = [0; 2].map(|_| between.issue(&["localhost"], KeyKind::EcdsaP256).unwrap());
        Self {
            between,
            other: Authority::new().unwrap(),
            own,
            others,
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn response(&self, status: Status, valid: (&str, Option<&str>), signer: Signer<'_>) -> Vec<u8> {
        self.between.ocsp_response(&self.own, status, valid, signer).unwrap()
    }

    fn server(&self, response: &[u8], clock: &std::sync::Arc<Clock>) -> Result<Server, String> {
        let files = self.own.write_to(self.directory.path()).unwrap();
        let path = self.directory.path().join("ocsp.der");
        std::fs::write(&path, response).unwrap();
        let identity = Identity::files(files.certificates, files.key).with_ocsp(Some(path));
        let settings = ServerSettings { time: clock.clone(), ..ServerSettings::new(identity) };
        Server::new(&settings).map_err(|error| error.to_string())
    }
}

/// Whether the server staples `response`. In TLS 1.2 it sends the response in cleartext.
fn is_stapled(acceptor: &Acceptor, response: &[u8]) -> bool {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let connector = pki.connector(|settings| {
        settings.roots = weir_tls::Roots::DangerouslyNone;
        settings.versions = vec![weir_tls::Version::Tls12];
        settings.suites.retain(|suite| suite.version() == weir_tls::Version::Tls12);
    });
    let mut pair = Pair::new(&connector, acceptor);
    pair.client.receive(&mut [], &mut Vec::new(), &mut pair.to_server).unwrap();
    pair.server.receive(&mut pair.to_server, &mut Vec::new(), &mut pair.to_client).unwrap();
    pair.to_client.windows(response.len()).any(|part| part == response)
}

/// Regression test: the server stapled any content of the file, even a response that revoked the certificate.
#[test]
fn only_a_response_that_a_client_would_accept_is_stapled() {
    let case = Case::new();
    let clock = Clock::new(NOW);
    let about_another =
        || case.between.ocsp_response(&case.others, Status::Good, YEAR, Signer::Issuer).unwrap();
    let of_another = || case.other.ocsp_response(&case.own, Status::Good, YEAR, Signer::Issuer).unwrap();
    let forged = || {
        let mut response = case.response(Status::Good, YEAR, Signer::Issuer);
        *response.last_mut().unwrap() ^= 1;
        response
    };
    let good = |valid, signer| case.response(Status::Good, valid, signer);
    let not_signed = "it is not signed by the certificate's issuer, nor by a responder of it";
    for (what, response, rejected, stapled) in [
        ("good", good(YEAR, Signer::Issuer), None, true),
        ("of a responder", good(YEAR, Signer::Responder { is_for_ocsp: true }), None, true),
        ("of another kind", good(YEAR, Signer::Responder { is_for_ocsp: false }), Some(not_signed), false),
        ("signed by another", good(YEAR, Signer::Other(&case.other)), Some(not_signed), false),
        ("forged", forged(), Some(not_signed), false),
        ("of another CA", of_another(), Some("it is about another certificate"), false),
        ("about another", about_another(), Some("it is about another certificate"), false),
        (
            "revoked",
            case.response(Status::Revoked, YEAR, Signer::Issuer),
            Some("it says that the certificate is revoked"),
            false,
        ),
        (
            "unknown",
            case.response(Status::Unknown, YEAR, Signer::Issuer),
            Some("its responder does not know the certificate"),
            false,
        ),
        ("expired", good(("20200101000000Z", Some("20200108000000Z")), Signer::Issuer), None, false),
        ("of the future", good(("20300101000000Z", Some("20300108000000Z")), Signer::Issuer), None, false),
        ("for no time", good(("20200101000000Z", None), Signer::Issuer), None, false),
    ] {
        let server = case.server(&response, &clock).unwrap();
        let staple = server.certificates()[0].presented().ocsp.as_ref().unwrap();
        assert_eq!(staple.rejected.as_deref(), rejected, "{what}");
        assert_eq!(staple.is_stapled_at(NOW as i64), stapled, "{what}");
        assert_eq!(is_stapled(&server.core(), &response), stapled, "{what}");
    }
    let response = good(YEAR, Signer::Issuer);
    for len in 0..response.len() {
        let error = case.server(&response[..len], &clock).unwrap_err();
        assert!(error.contains("ocsp.der: not a good OCSP response: expected DER"), "{len}: {error}");
    }
    let error = case.server(&[0x30, 3, 10, 1, 6], &clock).unwrap_err();
    assert!(error.contains("the responder refused, with status 6"), "{error}");
}

#[test]
fn a_response_is_stapled_while_it_is_valid() {
    let case = Case::new();
    let clock = Clock::new(NOW);
    let response = case.response(Status::Good, YEAR, Signer::Issuer);
    let acceptor = case.server(&response, &clock).unwrap().core();
    let (this_update, next_update) = (1_780_272_000, 1_811_808_000);
    assert!(is_stapled(&acceptor, &response));
    clock.advance(next_update - NOW);
    assert!(is_stapled(&acceptor, &response), "its last second");
    clock.advance(1);
    assert!(!is_stapled(&acceptor, &response));
    clock.retreat(next_update + 1 - this_update);
    assert!(is_stapled(&acceptor, &response), "its first second");
    clock.retreat(1);
    assert!(!is_stapled(&acceptor, &response));
}

#[test]
fn without_its_issuer_a_response_is_not_stapled() {
    let authority = Authority::new().unwrap();
    let own = authority.issue(&["localhost"], KeyKind::EcdsaP256).unwrap();
    let response = authority.ocsp_response(&own, Status::Good, YEAR, Signer::Issuer).unwrap();
    let case = Case { own, ..Case::new() };
    let server = case.server(&response, &Clock::new(NOW)).unwrap();
    let rejected = server.certificates()[0].presented().ocsp.as_ref().unwrap().rejected.clone();
    let expected = "it cannot be verified without its certificate's issuer in `chain`";
    assert_eq!(rejected.as_deref(), Some(expected));
    // A chain may include a root, and here the root is needed as the issuer.
    let own = Issued { certificates: case.own.certificates.clone() + authority.ca_pem(), ..case.own.clone() };
    let server = Case { own, ..Case::new() }.server(&response, &Clock::new(NOW)).unwrap();
    assert_eq!(server.certificates()[0].presented().ocsp.as_ref().unwrap().rejected, None);
}

/// An OCSP response belongs to one loaded certificate. A certificate that replaces it has no response, even if it has
/// the same chain.
#[test]
fn a_certificate_that_replaces_another_one_does_not_get_its_response() {
    let case = Case::new();
    let response = case.response(Status::Good, YEAR, Signer::Issuer);
    let server = case.server(&response, &Clock::new(NOW)).unwrap();
    assert!(is_stapled(&server.core(), &response));
    for issued in [&case.others, &case.own] {
        let set = Certificate::load_portable(&issued.identity(), "given".to_owned()).unwrap();
        let taken = Certificate::of_bytes(&set.to_bytes().unwrap(), "given".to_owned()).unwrap();
        for certificate in [set, taken] {
            assert!(certificate.presented().ocsp.is_none());
            assert!(!is_stapled(&server.presenting(vec![certificate]).unwrap().core(), &response));
        }
    }
    let given_back = server.presenting(server.certificates().to_vec()).unwrap();
    assert!(is_stapled(&given_back.core(), &response));
}
