//! TLS on the client side: certificates by name, and client certificates.

use super::{metric, named};
use crate::common::{Certificates, Client, Stream, Weir, peer};
use std::process::{Command, Stdio};
use weir_tls::issue::{Authority, Issued, KeyKind, Signer, Status};
use weir_tls::{
    Client as TlsClient, ClientSettings, Identity, Offer, PeerName, Roots, Session, Suite, Version,
};

/// A client's session for a name, with an optional certificate.
fn session(ca: &Certificates, name: &str, identity: Option<&Certificates>) -> Session {
    let settings = ClientSettings {
        roots: Roots::File(ca.ca.clone()),
        identity: identity.map(|own| Identity::files(&own.cert, &own.key)),
        ..ClientSettings::default()
    };
    TlsClient::new(&settings).unwrap().core().connect(&name.parse::<PeerName>().unwrap())
}

pub(super) fn certificate(of: &Certificates) -> String {
    format!("[[certificate]]\nchain = '{}'\nkey = '{}'\n", of.cert.display(), of.key.display())
}

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn a_client_gets_the_certificate_of_its_name() {
    let [a, b] = [&["a.example"][..], &["b.example", "*.b.example"]].map(Certificates::for_names);
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\ntls = {{}}\n[[route]]\nrespond.status = 200\n{}{}",
        certificate(&a),
        certificate(&b)
    );
    let weir = Weir::configured(&config, 1);
    for (ca, name) in [(&a, "a.example"), (&b, "b.example"), (&b, "x.b.example")] {
        // The session verifies the name and its CA.
        let mut client = Client::connect(weir.address(), Some(session(ca, name, None)));
        assert_eq!(client.ask(GET).status, 200);
    }
    let strict = Weir::configured(&config.replace("tls = {}", "tls.strict_names = true"), 1);
    let refused = Stream::connect(strict.address(), Some(session(&a, "c.example", None)));
    assert!(refused.is_err());
    strict.wait_for_stderr(&["client_tls"]);
}

#[test]
fn the_subject_of_a_clients_certificate_reaches_the_server_and_cannot_be_forged() {
    let [own, clients] = [&["a.example"][..], &["client.example"]].map(Certificates::for_names);
    let upstream = named("a");
    let config = format!(
        "workers = 1
        [listener.web]
        bind = '127.0.0.1:0'
        tls = {{ client_ca = '{}', client_certificates = 'optional' }}
        {}
        [service.app]
        servers = 'http://{}'
        [[route]]
        service = 'app'
        request_headers.set = {{ X-Fingerprint = '{{client_fingerprint}}', X-Subject = '{{client_subject}}', Client-Cert = '{{client_cert}}' }}
        [admin]
        bind = '127.0.0.1:0'",
        clients.ca.display(),
        certificate(&own),
        upstream.address
    );
    let request = "GET / HTTP/1.1\r\nHost: h\r\nX-Fingerprint: forged\r\nX-Subject: forged\r\n\r\n";
    let fingerprint = |weir: &Weir, identity| {
        let mut client = Client::connect(weir.address(), Some(session(&own, "a.example", identity)));
        let head = client.ask(request).text().to_owned();
        assert!(!head.contains("forged"), "{head}");
        let line = head.lines().find_map(|line| line.strip_prefix("X-Fingerprint:")).map(str::trim);
        line.unwrap_or_default().to_owned()
    };
    let weir = Weir::configured(&config, 1);
    assert_eq!(fingerprint(&weir, None), "");
    assert_eq!(fingerprint(&weir, Some(&clients)).len(), 64);
    let pem = std::fs::read_to_string(&clients.cert).unwrap();
    let leaf: String = pem.lines().skip(1).take_while(|line| !line.starts_with('-')).collect();
    let heads = upstream.requests();
    assert!(heads.last().unwrap().head.contains(&format!("Client-Cert: :{leaf}:\r\n")));
    drop(heads);
    let negotiated = "weir_tls_negotiated_total{with=\"client\",version=\"1.3\"";
    assert_eq!(metric(&weir, negotiated), 2);
    let required = Weir::configured(&config.replace("'optional'", "'required'"), 1);
    assert_eq!(fingerprint(&required, Some(&clients)).len(), 64);
    let mut client = Client::connect(required.address(), Some(session(&own, "a.example", None)));
    client.send(GET);
    required.wait_for_stderr(&["client_tls", "no certificate"]);
}

#[test]
fn what_cannot_be_served_is_refused_with_its_key() {
    let own = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let listener = "[listener.web]\nbind = '127.0.0.1:0'\n";
    for (lines, fault) in [
        ("tls.tickets = 9\n", "listener.web.tls.tickets: invalid value `9`: expected 0 to 8"),
        ("tls.versions = '1.1'\n", "listener.web.tls.versions: unknown TLS version \"1.1\""),
        ("tls.client_crl_expired = 'use'\n", "listener.web.tls.client_crl_expired: needs `client_crl`"),
        (
            "tls.client_crl_expired = 'ignore'\n",
            "listener.web.tls.client_crl_expired: unknown variant `ignore`",
        ),
        (
            "tls.client_crl = '/x'\n",
            "listener.web.tls: `client_certificates` and `client_crl` need `client_ca`",
        ),
        ("tls.client_ca = '/no/such'\n", "listener.web.tls.client_ca: cannot read /no/such"),
        (
            "tls.client_certificates = 'maybe'\n",
            "listener.web.tls.client_certificates: unknown variant `maybe`",
        ),
    ] {
        std::fs::write(&file, format!("{listener}{lines}{}", certificate(&own))).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
        assert!(ended.code == Some(2) && ended.stderr.contains(fault), "{lines}: {}", ended.stderr);
    }
    let twice = format!("{listener}tls = {{}}\n{}{}", certificate(&own), certificate(&own));
    std::fs::write(&file, twice).unwrap();
    let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
    assert!(ended.stderr.contains("with the same kind of key: expected one of them"), "{}", ended.stderr);
}

/// Regression test: of two revocation lists joined without a line break, the gateway skipped the second. `weir check`
/// and a reload reported success, and a client revoked in that list was accepted.
#[test]
fn a_client_in_the_second_list_of_a_file_is_revoked_or_the_file_is_refused() {
    let own = Certificates::new();
    let authorities = [0; 2].map(|_| Authority::new().unwrap());
    let clients =
        authorities.each_ref().map(|authority| authority.issue(&["c"], KeyKind::EcdsaP256).unwrap());
    let lists = [0, 1].map(|nth| authorities[nth].revocation_list(&[&clients[nth]], (2020, 2049)).unwrap());
    let spared = authorities[1].issue(&["c"], KeyKind::EcdsaP256).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [ca, crl] = ["ca.pem", "crl.pem"].map(|name| folder.path().join(name));
    std::fs::write(&ca, authorities[0].ca_pem().to_owned() + authorities[1].ca_pem()).unwrap();
    let lines = lists[0].lines().count();
    let joined = lists[0].trim_end().to_owned() + &lists[1];
    let config = format!(
        "[listener.web]
        bind = '127.0.0.1:0'
        tls = {{ client_ca = '{}', client_crl = ['{}'] }}
        [[route]]
        respond.status = 200
        [admin]
        bind = '127.0.0.1:0'
        {}",
        ca.display(),
        crl.display(),
        certificate(&own)
    );
    let file = folder.path().join("weir.toml");
    std::fs::write(&file, &config).unwrap();
    std::fs::write(&crl, &joined).unwrap();
    let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
    let fault = format!(
        "{}: not a certificate revocation list: line {lines}: more than one boundary of a block",
        crl.display()
    );
    assert!(ended.code == Some(2) && ended.stderr.contains(&fault), "{}", ended.stderr);
    std::fs::write(&crl, lists.concat()).unwrap();
    let weir = Weir::configured(&config, 1);
    let status = |client: &Issued| {
        // In TLS 1.2 a client completes its handshake only after the server has verified its certificate.
        let Offer { versions, suites, groups } =
            Offer { versions: vec![Version::Tls12], ..Offer::default() }.complete();
        let settings = ClientSettings {
            roots: Roots::File(own.ca.clone()),
            identity: Some(client.identity()),
            versions,
            suites,
            groups,
            ..ClientSettings::default()
        };
        let session = TlsClient::new(&settings).unwrap().core().connect(&"127.0.0.1".parse().unwrap());
        let stream = Stream::connect(weir.address(), Some(session)).ok()?;
        Some(Client { stream }.ask(GET).status)
    };
    assert_eq!([&clients[0], &clients[1], &spared].map(status), [None, None, Some(200)]);
    std::fs::write(&crl, &joined).unwrap();
    assert_eq!(weir.ask_admin("POST /reload").status, 409);
    assert_eq!([&clients[0], &clients[1], &spared].map(status), [None, None, Some(200)]);
}

#[test]
fn a_key_log_comes_with_a_warning() {
    let own = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let config = format!(
        "[listener.web]\nbind = '127.0.0.1:0'\ntls.key_log = '{}'\n[[route]]\nrespond.status = 200\n{}",
        keys.display(),
        certificate(&own)
    );
    let weir = Weir::configured(&config, 1);
    assert_eq!(Client::connect(weir.address(), Some(own.session())).ask(GET).status, 200);
    assert!(std::fs::read_to_string(keys).unwrap().contains("CLIENT_TRAFFIC_SECRET_0"));
    weir.wait_for_stderr(&["warning: listener.web.tls.key_log: the secrets of all sessions"]);
}

/// The gateway staples a response that clients would accept. It starts without an unacceptable one, with a warning. A
/// file that is not an OCSP response prevents the start.
#[test]
fn a_good_ocsp_response_is_stapled_and_another_is_warned_of() {
    let Some(openssl) = peer("openssl") else { return };
    let authority = Authority::new().unwrap().intermediate().unwrap();
    let own = authority.issue(&["127.0.0.1"], KeyKind::EcdsaP256).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = own.write_to(folder.path()).unwrap();
    let response = folder.path().join("ocsp.der");
    let config = format!(
        "[listener.web]
        bind = '127.0.0.1:0'
        tls = {{}}
        [[route]]
        respond.status = 200
        [admin]
        bind = '127.0.0.1:0'
        [[certificate]]
        chain = '{}'
        key = '{}'
        ocsp = '{}'\n",
        files.certificates.display(),
        files.key.display(),
        response.display()
    );
    let file = folder.path().join("weir.toml");
    std::fs::write(&file, &config).unwrap();
    let check = || Weir::run(&["check", "--config", file.to_str().unwrap()]);
    for (bytes, fault) in [
        (&b"-----BEGIN"[..], "not a good OCSP response: expected DER"),
        (b"\x30\x03\x0a\x01\x06", "the responder refused, with status 6"),
        (b"\x30\x05\x0a\x01\x00\xa0\x00", "expected DER"),
    ] {
        std::fs::write(&response, bytes).unwrap();
        let ended = check();
        assert!(ended.code == Some(2) && ended.stderr.contains(fault), "{}", ended.stderr);
    }
    let long = ("20200101000000Z", Some("20491231000000Z"));
    for (status, valid, why) in [
        (Status::Good, long, None),
        (Status::Good, ("20200101000000Z", Some("20200108000000Z")), Some("it expired on Wed, 08 Jan 2020")),
        (Status::Good, ("20480101000000Z", Some("20490101000000Z")), Some("it is valid only from")),
        (Status::Good, ("20200101000000Z", None), Some("it does not say when the next one is due")),
        (Status::Revoked, long, Some("it says that the certificate is revoked")),
        (Status::Unknown, long, Some("its responder does not know the certificate")),
    ] {
        let der = authority.ocsp_response(&own, status, valid, Signer::Issuer).unwrap();
        std::fs::write(&response, der).unwrap();
        let ended = check();
        let warning = format!("{}: the OCSP response is not stapled: ", response.display());
        let expected = why.map_or(warning.clone(), |why| warning.clone() + why);
        let said = ended.stdout + &ended.stderr;
        assert!(ended.code == Some(0) && said.contains(&expected) == why.is_some(), "{expected}: {said}");
        let weir = Weir::configured(&config, 1);
        if why.is_some() {
            weir.wait_for_stderr(&["warning", "certificate.0.ocsp", "the OCSP response is not stapled: "]);
        }
        let is_stapled = u64::from(why.is_none());
        assert_eq!(metric(&weir, "weir_ocsp_stapled"), is_stapled, "{why:?}");
        let mut client = Command::new(&openssl);
        client.args(["s_client", "-status", "-connect", &weir.address().to_string()]);
        let said = client.stdin(Stdio::null()).output().unwrap().stdout;
        let said = String::from_utf8_lossy(&said);
        let expected = if why.is_none() { "OCSP Response Status: successful" } else { "no response sent" };
        assert!(said.contains(expected), "{why:?}: {said}");
    }
}

#[test]
fn an_overdue_revocation_list_and_a_ca_without_one_are_warned_of() {
    let own = Certificates::new();
    let authorities = [0; 2].map(|_| Authority::new().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let [ca, crl, file] = ["ca.pem", "crl.pem", "weir.toml"].map(|name| folder.path().join(name));
    std::fs::write(&ca, authorities[0].ca_pem().to_owned() + authorities[1].ca_pem()).unwrap();
    let config = format!(
        "[listener.web]
        bind = '127.0.0.1:0'
        [listener.web.tls]
        client_ca = '{}'
        client_crl = ['{}']
        [[route]]
        respond.status = 200
        [admin]
        bind = '127.0.0.1:0'
        {}",
        ca.display(),
        crl.display(),
        certificate(&own)
    );
    std::fs::write(&file, &config).unwrap();
    let [first, second] = authorities.each_ref();
    let list = |authority: &Authority, years| authority.revocation_list(&[], years).unwrap();
    for (lists, warnings) in [
        (list(first, (2020, 2049)) + &list(second, (2020, 2049)), &[][..]),
        (list(first, (2020, 2049)), &["no revocation list of CN=Weir test authority "]),
        (
            list(first, (2020, 2021)) + &list(second, (2020, 2049)),
            &[
                "line 1: the revocation list of CN=Weir test authority ",
                "is expired: the next one was due on Fri, 01 Jan 2021",
            ],
        ),
        (list(first, (2048, 2049)) + &list(second, (2020, 2049)), &["is from the future"]),
    ] {
        std::fs::write(&crl, lists).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
        let said = ended.stdout + &ended.stderr;
        assert_eq!(ended.code, Some(0), "{said}");
        assert_eq!(said.matches("listener.web.tls.client_crl: ").count(), warnings.len().min(1), "{said}");
        assert!(warnings.iter().all(|warning| said.contains(warning)), "{warnings:?}: {said}");
    }
    std::fs::write(&crl, list(first, (2020, 2021)) + &list(second, (2020, 2049))).unwrap();
    let weir = Weir::configured(&config, 1);
    weir.wait_for_stderr(&["warning", "listener.web.tls.client_crl", "is expired"]);
    let due = |line| {
        metric(
            &weir,
            &format!(
                "weir_revocation_list_next_update_seconds{{file=\"{}\",line=\"{line}\"}}",
                crl.display()
            ),
        )
    };
    assert_eq!(due(1), 1_609_459_200);
    let lines = list(first, (2020, 2021)).lines().count();
    assert_eq!(due(lines + 1), 2_493_072_000);
    assert_eq!(weir.ask_admin("POST /reload").status, 200);
}

#[test]
fn the_gateways_order_of_suites_decides_unless_the_clients_is_to() {
    let own = Certificates::new();
    let negotiated = |tls: &str, offered: [Suite; 2]| {
        let config = format!(
            "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\ntls = {{ {tls} }}\n[[route]]\nrespond.status = 200\n{}",
            certificate(&own)
        );
        let weir = Weir::configured(&config, 1);
        let Offer { versions, suites, groups } =
            Offer { suites: offered.to_vec(), ..Offer::default() }.complete();
        let roots = Roots::File(own.ca.clone());
        let settings = ClientSettings { roots, versions, suites, groups, ..ClientSettings::default() };
        let session = TlsClient::new(&settings).unwrap().core().connect(&"127.0.0.1".parse().unwrap());
        let mut client = Client::connect(weir.address(), Some(session));
        assert_eq!(client.ask(GET).status, 200);
        client.stream.session().unwrap().facts().unwrap().suite
    };
    use Suite::{Aes128GcmSha256 as Aes128, Chacha20Poly1305Sha256 as Chacha};
    assert_eq!(negotiated("", [Chacha, Aes128]), Aes128);
    assert_eq!(
        negotiated("suites = ['chacha20-poly1305-sha256', 'aes128-gcm-sha256']", [Aes128, Chacha]),
        Chacha
    );
    assert_eq!(negotiated("suite_order = 'client'", [Chacha, Aes128]), Chacha);
    assert_eq!(negotiated("suite_order = 'client'", [Aes128, Chacha]), Aes128);
}
