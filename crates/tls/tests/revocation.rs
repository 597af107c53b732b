//! Revocation lists for client certificates, and the facts that a server reports about them.

use weir_tls::issue::{Authority, Issued, KeyKind};
use weir_tls::{ClientAuth, Server, ServerSettings};

use crate::common::{Clock, Pair, Pki};

/// The time of these tests, in seconds since the epoch: 26 November 2026.
const NOW: u64 = 1_795_707_000;

#[test]
fn an_overdue_list_rejects_its_cas_certificates_unless_it_may_be_used() {
    let pki = Pki::new(KeyKind::EcdsaP256);
    let authorities = [0; 2].map(|_| Authority::new().unwrap());
    let issue = |authority: &Authority| authority.issue(&["client"], KeyKind::EcdsaP256).unwrap();
    let [revoked, spared] = [0; 2].map(|_| issue(&authorities[0]));
    let others = issue(&authorities[1]);
    let folder = tempfile::tempdir().unwrap();
    let [ca, crl] = ["ca.pem", "crl.pem"].map(|name| folder.path().join(name));
    std::fs::write(&ca, authorities[0].ca_pem().to_owned() + authorities[1].ca_pem()).unwrap();
    let (is_revoked, overdue) = (Some("certificate_revoked"), Some("certificate_list_expired"));
    for (years, expired_crls, [of_revoked, of_spared]) in [
        ((2020, 2049), false, [is_revoked, None]),
        ((2020, 2049), true, [is_revoked, None]),
        ((2020, 2021), false, [overdue, overdue]),
        ((2020, 2021), true, [is_revoked, None]),
    ] {
        let list = authorities[0].revocation_list(&[&revoked], years).unwrap();
        std::fs::write(&crl, format!("A list\n{list}")).unwrap();
        let auth = ClientAuth { crls: vec![crl.clone()], expired_crls, ..ClientAuth::required(&ca) };
        let server = Server::new(&ServerSettings {
            client_auth: Some(auth),
            time: Clock::new(NOW),
            ..pki.server_settings()
        });
        let server = server.unwrap();
        let reason = |client: &Issued| {
            let connector = pki.connector(|settings| settings.identity = Some(client.identity()));
            Pair::new(&connector, &server.core()).settle().1.map(|error| error.reason())
        };
        assert_eq!([&revoked, &spared].map(reason), [of_revoked, of_spared], "{years:?}, {expired_crls}");
        assert_eq!(reason(&others), None, "there is no list of its CA");

        let known = server.revocation();
        let [list] = &known.lists[..] else { panic!("{known:?}") };
        assert_eq!((&list.origin, list.line), (&crl.display().to_string(), 2));
        assert!(list.issuer.starts_with("CN=Weir test authority "), "{}", list.issuer);
        assert_eq!(list.is_expired_at(NOW as i64), years.1 == 2021);
        assert_eq!(known.unlisted.len(), 1, "{known:?}");
        assert_ne!(known.unlisted[0], list.issuer);
    }
    let without = Server::new(&ServerSettings {
        client_auth: Some(ClientAuth::required(&ca)),
        ..pki.server_settings()
    });
    assert_eq!(without.unwrap().revocation().unlisted, [""; 0], "none has a list");
}
