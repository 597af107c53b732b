//! The certificate that a server presents, for every combination of names, kinds of keys, and verifiable
//! signatures.

use weir_tls::issue::{Authority, Issued, KeyKind};
use weir_tls::{
    Acceptor, Chain, Client, ClientSettings, Connector, Group, Identity, PeerName, Roots, Server,
    ServerSettings, Signature, Suite, Version,
};

use crate::common::Pair;

/// Kinds of keys, the cheapest to sign with first.
const KINDS: [KeyKind; 4] = [KeyKind::EcdsaP256, KeyKind::Ed25519, KeyKind::EcdsaP384, KeyKind::Rsa2048];

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

fn offers() -> [Offered; 12] {
    use Signature::{EcdsaP256Sha256 as P256, EcdsaP384Sha384 as P384, Ed25519, RsaPssSha256 as Pss};
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
    use KeyKind::{EcdsaP256, EcdsaP384, Ed25519 as Ed, Rsa2048};
    [
        offered("1.2, RSA suites", &v2, &rsa, &[], &[Rsa2048]),
        offered("1.2, ECDSA suites", &v2, &ecdsa, &[], &[EcdsaP256, EcdsaP384, Ed]),
        offered("1.2, ECDSA suites, Ed25519", &v2, &ecdsa, &[Ed25519], &[Ed]),
        offered("1.2, ECDSA suites, P-384", &v2, &ecdsa, &[P384], &[EcdsaP384]),
        offered(
            "1.2, all suites, P-256, RSA",
            &v2,
            &[&rsa[..], &ecdsa].concat(),
            &[P256, Pss],
            &[EcdsaP256, Rsa2048],
        ),
        offered("1.3, RSA", &v3, &modern, &[Pss], &[Rsa2048]),
        offered("1.3, P-256", &v3, &modern, &[P256], &[EcdsaP256]),
        offered("1.3, P-384", &v3, &modern, &[P384], &[EcdsaP384]),
        offered("1.3, Ed25519", &v3, &modern, &[Ed25519], &[Ed]),
        offered("1.3, P-384, RSA", &v3, &modern, &[P384, Pss], &[EcdsaP384, Rsa2048]),
        offered("both, RSA", &all, &[&modern[..], &rsa].concat(), &[Pss], &[Rsa2048]),
        offered("everything", &all, &[&modern[..], &rsa, &ecdsa].concat(), &[], &KINDS),
    ]
}

impl Offered {
    fn connector(&self) -> Connector {
        let settings = ClientSettings {
            roots: Roots::DangerouslyNone,
            versions: self.versions.clone(),
            suites: self.suites.clone(),
            signatures: self.signatures.clone(),
            ..ClientSettings::default()
        };
        Client::new(&settings).unwrap().core()
    }
}

/// A server without resumption, so that it presents a certificate in each handshake.
fn acceptor(identities: Vec<Identity>, strict_names: bool) -> Acceptor {
    let first = identities[0].clone();
    let settings =
        ServerSettings { identities, strict_names, resumption: false, ..ServerSettings::new(first) };
    Server::new(&settings).unwrap().core()
}

/// For each name, a certificate with each kind of key. The length of the chain is the name's position plus 1.
fn issued() -> Vec<[Issued; 4]> {
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
    // Each name has one kind of key or no certificate; only the default must have one.
    for places in 0..5 * 5 * 4 {
        let kind_at = [places % 5, places / 5 % 5, 1 + places / 25].map(|kind: usize| kind.checked_sub(1));
        let identities: Vec<Identity> = [2, 0, 1]
            .into_iter()
            .filter_map(|place: usize| Some(issued[place][kind_at[place]?].identity()))
            .collect();
        // With strict names the server never presents the default, so one kind of key for it is enough.
        for strict_names in [false, true].into_iter().filter(|strict| !strict || places < 25) {
            let acceptor = acceptor(identities.clone(), strict_names);
            for offered in offers() {
                let connector = offered.connector();
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

#[test]
fn of_several_kinds_of_keys_for_one_name_a_client_gets_the_cheapest_that_it_can_use() {
    let authority = Authority::new().unwrap();
    let name: PeerName = "a.example".parse().unwrap();
    for names in [["a.example"], ["*.example"]] {
        let issued = KINDS.map(|kind| authority.issue(&names, kind).unwrap());
        for present in 1_usize..1 << KINDS.len() {
            let is_present = |at: &usize| present & 1 << at != 0;
            // The order of the certificates must make no difference, so list the cheapest key last.
            let places = (0..KINDS.len()).rev().filter(is_present);
            let acceptor = acceptor(places.map(|at| issued[at].identity()).collect(), false);
            for offered in offers() {
                let mut pair = Pair::to(&name, &offered.connector(), &acceptor);
                let (_, failed) = pair.settle();
                let expected = (0..KINDS.len()).filter(is_present).map(|at| KINDS[at]);
                let expected = expected.into_iter().find(|kind: &KeyKind| offered.usable.contains(kind));
                let came = pair.client.facts().map(|facts| kind_of(facts.signature));
                assert_eq!(came, expected, "{}: {present:04b}: {failed:?}", offered.name);
            }
        }
    }
}

/// A TLS 1.2 client lists the curves of keys that it can verify among its groups (RFC 8422 section 5.1).
#[test]
fn in_tls_1_2_the_clients_groups_are_the_curves_that_it_can_verify() {
    let issued = issued();
    let name: PeerName = "a.example".parse().unwrap();
    let [exact, wildcard] = [&issued[0], &issued[1]];
    let of = |identities: &[&Issued]| acceptor(identities.iter().map(|of| of.identity()).collect(), false);
    let [_, _, p384, rsa] = exact;
    for (acceptor, version, groups, kind) in [
        (of(&[p384, rsa]), Version::Tls12, &[Group::P256][..], KeyKind::Rsa2048),
        (of(&[p384, rsa]), Version::Tls12, &[Group::P256, Group::P384], KeyKind::EcdsaP384),
        (of(&[p384, rsa]), Version::Tls13, &[Group::P256], KeyKind::EcdsaP384),
        (of(&[p384, &wildcard[3]]), Version::Tls12, &[Group::X25519], KeyKind::Rsa2048),
        (of(&[p384, &wildcard[0]]), Version::Tls12, &[Group::P256], KeyKind::EcdsaP256),
        // A certificate with an unlisted curve is still better than one for another name.
        (of(&[&issued[2][3], p384]), Version::Tls12, &[Group::P256], KeyKind::EcdsaP384),
    ] {
        let settings = ClientSettings {
            roots: Roots::DangerouslyNone,
            versions: vec![version],
            suites: Suite::ALL.into_iter().filter(|suite| suite.version() == version).collect(),
            groups: groups.to_vec(),
            ..ClientSettings::default()
        };
        let mut pair = Pair::to(&name, &Client::new(&settings).unwrap().core(), &acceptor);
        let failed = pair.settle();
        let signature = pair.client.facts().map(|facts| kind_of(facts.signature));
        assert_eq!(signature, Some(kind), "{version} {groups:?}: {failed:?}");
    }
}

/// The kind of the key that signed a handshake.
fn kind_of(signature: Option<Signature>) -> KeyKind {
    match signature {
        Some(Signature::EcdsaP256Sha256) => KeyKind::EcdsaP256,
        Some(Signature::EcdsaP384Sha384) => KeyKind::EcdsaP384,
        Some(Signature::Ed25519) => KeyKind::Ed25519,
        Some(Signature::RsaPssSha256 | Signature::RsaPssSha384 | Signature::RsaPssSha512) => KeyKind::Rsa2048,
        other => panic!("unexpected signature {other:?}"),
    }
}
