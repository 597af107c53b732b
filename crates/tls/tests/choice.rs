//! The certificate that a server presents, for every combination of names, kinds of keys, and verifiable
//! signatures.

use weir_tls::issue::{Authority, Issued, KeyKind};
use weir_tls::{
    Chain, Client, ClientSettings, Identity, PeerName, Roots, Server, ServerSettings, Signature, Suite,
    Version,
};

use crate::common::Pair;

const KINDS: [KeyKind; 3] = [KeyKind::EcdsaP256, KeyKind::Ed25519, KeyKind::Rsa2048];

/// The names of certificates. Each name has its own chain length, by which a test recognises the certificate.
const PLACES: [&str; 3] = ["a.example", "*.example", "default.test"];

/// A client's offer, and the kinds of keys that it can use.
struct Offered {
    name: &'static str,
    versions: Vec<Version>,
    suites: Vec<Suite>,
    signatures: Vec<Signature>,
    usable: &'static [KeyKind],
}

fn offers() -> [Offered; 9] {
    use Signature::{EcdsaP256Sha256 as Ecdsa, Ed25519, RsaPssSha256 as Pss};
    let of = |version: Version, name: &'static str| -> Vec<Suite> {
        Suite::ALL
            .into_iter()
            .filter(|suite| suite.version() == version && suite.iana_name().contains(name))
            .collect()
    };
    let [rsa, ecdsa, modern] =
        [of(Version::Tls12, "ECDHE_RSA"), of(Version::Tls12, "ECDHE_ECDSA"), of(Version::Tls13, "")];
    let (v2, v3) = (vec![Version::Tls12], vec![Version::Tls13]);
    let all = [v2.clone(), v3.clone()].concat();
    let offered =
        |name, versions: &Vec<Version>, suites: &[Suite], signatures: &[Signature], usable| Offered {
            name,
            versions: versions.clone(),
            suites: suites.to_vec(),
            signatures: signatures.to_vec(),
            usable,
        };
    use KeyKind::{EcdsaP256, Ed25519 as Ed, Rsa2048};
    [
        offered("1.2, RSA suites", &v2, &rsa, &[], &[Rsa2048]),
        offered("1.2, ECDSA suites", &v2, &ecdsa, &[], &[EcdsaP256, Ed]),
        offered("1.2, ECDSA suites, Ed25519", &v2, &ecdsa, &[Ed25519], &[Ed]),
        offered(
            "1.2, all suites, RSA",
            &v2,
            &[&rsa[..], &ecdsa].concat(),
            &[Ecdsa, Pss],
            &[EcdsaP256, Rsa2048],
        ),
        offered("1.3, RSA", &v3, &modern, &[Pss], &[Rsa2048]),
        offered("1.3, ECDSA", &v3, &modern, &[Ecdsa], &[EcdsaP256]),
        offered("1.3, Ed25519", &v3, &modern, &[Ed25519], &[Ed]),
        offered("both, RSA", &all, &[&modern[..], &rsa].concat(), &[Pss], &[Rsa2048]),
        offered("everything", &all, &[&modern[..], &rsa, &ecdsa].concat(), &[], &KINDS),
    ]
}

/// A certificate of each kind for each name.
fn issued() -> Vec<[Issued; 3]> {
    let root = Authority::new().unwrap();
    let between = root.intermediate().unwrap();
    let of = |place: usize| {
        KINDS.map(|kind| {
            let authority = if place == 0 { &root } else { &between };
            let mut issued = authority.issue(&[PLACES[place]], kind).unwrap();
            if place == 2 {
                issued.certificates += root.ca_pem();
            }
            issued
        })
    };
    (0..3).map(of).collect()
}

/// Regression test: an exact ECDSA certificate hid the wildcard RSA certificate from a client that supports
/// only RSA.
#[test]
fn a_client_gets_the_most_specific_certificate_that_it_can_use() {
    let issued = issued();
    let name: PeerName = "a.example".parse().unwrap();
    // No certificate or one kind of key for each name; the default always has one.
    for places in 0..4 * 4 * 3 {
        let kind_at = [places % 4, places / 4 % 4, 1 + places / 16].map(|kind: usize| kind.checked_sub(1));
        let identities: Vec<Identity> = [2, 0, 1]
            .into_iter()
            .filter_map(|place: usize| Some(issued[place][kind_at[place]?].identity()))
            .collect();
        // Clients that the default does not serve need only one kind of default.
        for strict_names in [false, true].into_iter().filter(|strict| !strict || places < 16) {
            // Disable resumption, so that each handshake has a certificate.
            let settings = ServerSettings {
                identities: identities.clone(),
                strict_names,
                resumption: false,
                ..ServerSettings::new(identities[0].clone())
            };
            let acceptor = Server::new(&settings).unwrap().core();
            for offered in offers() {
                let settings = ClientSettings {
                    roots: Roots::DangerouslyNone,
                    versions: offered.versions.clone(),
                    suites: offered.suites.clone(),
                    signatures: offered.signatures.clone(),
                    ..ClientSettings::default()
                };
                let connector = Client::new(&settings).unwrap().core();
                let mut pair = Pair::to(&name, &connector, &acceptor);
                let (_, failed) = pair.settle();
                let of = if strict_names { 0..2 } else { 0..3 };
                let expected = of
                    .clone()
                    .find(|place| kind_at[*place].is_some_and(|kind| offered.usable.contains(&KINDS[kind])));
                let came = pair.client.facts().and_then(|facts| facts.chain);
                let came = came.map(|Chain { certificates, .. }| usize::from(certificates) - 1);
                assert_eq!(
                    came, expected,
                    "{}: {kind_at:?}, strict: {strict_names}: {failed:?}",
                    offered.name
                );
                assert_eq!(failed.is_some(), expected.is_none());
            }
        }
    }
}
