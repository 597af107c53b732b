//! Connections that browsers share between hosts with different certificates.

use super::fields::Field;
use super::{Client, listening};
use crate::common::{Certificates, Stream};
use weir_tls::{Client as TlsClient, ClientSettings, Roots};

fn get(host: &str) -> [Field<'_>; 4] {
    [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", host.as_bytes()), (b":path", b"/")]
}

/// A stream for a host with another certificate gets 421, and the connection keeps serving its other streams.
#[test]
fn a_stream_is_misdirected_alone() {
    let [own, other] = [&["own.test", "also.test"][..], &["other.test"]].map(Certificates::for_names);
    let certificate = |of: &Certificates| {
        format!("[[certificate]]\nchain = '{}'\nkey = '{}'\n", of.cert.display(), of.key.display())
    };
    let upstream = super::upstream();
    let weir =
        listening("[listener.web.tls]", &upstream, "", &[certificate(&own), certificate(&other)].concat());
    let settings = ClientSettings {
        roots: Roots::File(own.ca.clone()),
        alpn: vec![b"h2".to_vec()],
        ..ClientSettings::default()
    };
    let session = TlsClient::new(&settings).unwrap().core().connect(&"own.test".parse().unwrap());
    let mut client = Client::begun(Stream::connect(weir.address(), Some(session)).unwrap());
    let cases = [
        ("own.test", 200),
        ("other.test", 421),
        ("also.test", 200),
        ("OTHER.test:443", 421),
        ("none.test", 200),
    ];
    for (stream, (host, status)) in (1..).step_by(2).zip(cases) {
        let received = client.headers(stream, &get(host), true).response(stream);
        assert_eq!(received.status(), status, "{host}");
        assert_eq!(received.text().contains("misdirected_request"), status == 421, "{host}");
    }
    assert_eq!((upstream.requests().len(), client.go_aways.len()), (3, 0));
}
