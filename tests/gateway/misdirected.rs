//! 421 for a host whose own connections would get another certificate or be passed through.

use super::named;
use crate::common::{Certificates, Client, Upstream, Weir};
use weir_tls::{Client as TlsClient, ClientSettings, Roots};

/// The certificates of a gateway: the default one, one for two names, and one with a wildcard that does not cover
/// these.
struct Names {
    own: Certificates,
    pair: Certificates,
    wild: Certificates,
}

impl Names {
    fn new() -> Self {
        let [own, pair, wild] =
            [&["own.test"][..], &["a.test", "b.test"], &["*.c.test"]].map(Certificates::for_names);
        Self { own, pair, wild }
    }

    fn gateway(&self, listener: &str, upstream: &Upstream, rest: &str) -> Weir {
        let certificate = |of: &Certificates| {
            format!("[[certificate]]\nchain = '{}'\nkey = '{}'\n", of.cert.display(), of.key.display())
        };
        let all: String = [&self.own, &self.pair, &self.wild].map(certificate).concat();
        let config = format!(
            "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\ntls = {{}}\n{listener}\n{all}\
             [service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n{rest}",
            upstream.address
        );
        Weir::configured(&config, 1)
    }
}

/// A connection that sends this name as SNI, or none.
fn connect(weir: &Weir, ca: &Certificates, name: &str, sni: bool) -> Client {
    let settings = ClientSettings { roots: Roots::File(ca.ca.clone()), sni, ..ClientSettings::default() };
    let session = TlsClient::new(&settings).unwrap().core().connect(&name.parse().unwrap());
    Client::connect(weir.address(), Some(session))
}

fn status(client: &mut Client, host: &str) -> u16 {
    client.ask(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).status
}

/// The first listener presents two of the certificates, the second one only the third.
#[test]
fn each_listener_presents_its_own_certificates() {
    let (names, upstream) = (Names::new(), named("a"));
    let certificate = |name: &str, of: &Certificates| {
        format!(
            "[[certificate]]\nname = '{name}'\nchain = '{}'\nkey = '{}'\n",
            of.cert.display(),
            of.key.display()
        )
    };
    let all =
        [certificate("own", &names.own), certificate("pair", &names.pair), certificate("wild", &names.wild)];
    let config = format!(
        "workers = 1\n[listener.a]\nbind = '127.0.0.1:0'\ntls = {{}}\ncertificates = ['pair', 'own']\n\
         [listener.b]\nbind = '127.0.0.1:0'\ntls = {{}}\ncertificates = 'wild'\n{}\
         [service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n",
        all.concat(),
        upstream.address
    );
    let weir = Weir::configured(&config, 2);
    let connect = |listener: usize, ca: &Certificates, name: &str| {
        let settings = ClientSettings { roots: Roots::File(ca.ca.clone()), ..ClientSettings::default() };
        let session = TlsClient::new(&settings).unwrap().core().connect(&name.parse().unwrap());
        Client::connect(weir.address_of(listener), Some(session))
    };
    // The client verifies the name. If a listener has no certificate for a host, a separate connection would not help.
    let mut pair = connect(0, &names.pair, "a.test");
    assert_eq!([status(&mut pair, "a.test"), status(&mut pair, "x.c.test")], [200, 200]);
    assert_eq!(status(&mut pair, "own.test"), 421);
    assert_eq!(status(&mut connect(0, &names.own, "own.test"), "own.test"), 200);
    let mut wild = connect(1, &names.wild, "x.c.test");
    assert_eq!([status(&mut wild, "x.c.test"), status(&mut wild, "own.test")], [200, 200]);
}

#[test]
fn a_host_of_another_certificate_is_misdirected() {
    let (names, upstream) = (Names::new(), named("a"));
    let weir = names.gateway("", &upstream, "");
    let mut client = connect(&weir, &names.pair, "a.test", true);
    // The certificate covers the first hosts, and no certificate covers the last ones.
    for host in ["a.test", "b.test", "A.Test.:443", "c.test", "x.y.c.test", "none.test", "127.0.0.1", "[::1]"]
    {
        assert_eq!(status(&mut client, host), 200, "{host}");
    }
    let served = upstream.requests().len();
    for host in ["own.test", "x.c.test", "OWN.test.:443", "X.C.TEST"] {
        let mut client = connect(&weir, &names.pair, "a.test", true);
        let refused = client.ask(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(refused.status, 421, "{host}");
        assert!(refused.text().contains("misdirected_request"), "{}", refused.text());
        client.expect_end();
    }
    // The authority in the request target decides.
    let mut client = connect(&weir, &names.wild, "x.c.test", true);
    let refused = client.ask("GET http://b.test/ HTTP/1.1\r\nHost: x.c.test\r\n\r\n");
    assert_eq!(refused.status, 421);
    assert_eq!(upstream.requests().len(), served);
    weir.wait_for_stderr(&["misdirected_request", "host=\"own.test\""]);
}

/// A client without SNI, or with an unknown name, gets the default certificate.
#[test]
fn a_client_that_no_other_connection_would_help_is_served() {
    let (names, upstream) = (Names::new(), named("a"));
    let weir = names.gateway("", &upstream, "");
    let mut client = connect(&weir, &names.own, "own.test", false);
    for host in ["own.test", "b.test", "x.c.test"] {
        assert_eq!(status(&mut client, host), 200, "{host}");
    }
    let behind = names.gateway("trusted_proxies = '127.0.0.1'", &upstream, "");
    let mut client = connect(&behind, &names.pair, "a.test", true);
    assert_eq!(status(&mut client, "own.test"), 200);
}

/// The gateway's certificate also covers a name of `passthrough`.
#[test]
fn a_host_that_is_passed_through_is_misdirected() {
    let certificates = Certificates::for_names(&["*.site.test"]);
    let upstream = named("a");
    let config = format!(
        "workers = 1\n[listener.web]\nbind = '127.0.0.1:0'\ntls = {{}}\n\
         passthrough = [{{ name = ['db.site.test', '*.old.site.test'], service = 'app' }}]\n\
         [[certificate]]\nchain = '{}'\nkey = '{}'\n\
         [service.app]\nservers = 'http://{}'\n[[route]]\nservice = 'app'\n",
        certificates.cert.display(),
        certificates.key.display(),
        upstream.address
    );
    let weir = Weir::configured(&config, 1);
    let mut client = connect(&weir, &certificates, "www.site.test", true);
    for host in ["www.site.test", "other.site.test", "none.example"] {
        assert_eq!(status(&mut client, host), 200, "{host}");
    }
    for host in ["DB.site.test:443", "x.old.site.test"] {
        let mut client = connect(&weir, &certificates, "www.site.test", true);
        assert_eq!(status(&mut client, host), 421, "{host}");
    }
}
