//! Faults of an upstream.

use super::refused::{GET, OK, refusal};
use crate::common::{self, Case, Certificates, Client, MODES, Weir, peer};
use std::net::TcpListener;
use std::process::Command;
use weir_http::Method;

/// (an upstream's response before it closes, the reported reason)
const ANSWERS: [(&str, &str); 14] = [
    ("", "upstream_closed"),
    ("HTTP/1.1 200", "upstream_truncated"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", "upstream_truncated"),
    ("HTTP/1.1 100 Continue\r\n\r\n", "upstream_closed"),
    ("garbage\r\n\r\n", "bad_response"),
    ("\x16\x03\x01\x02\x00\x01", "bad_response"),
    ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", "bad_response"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "bad_response"),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello", "bad_response"),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "bad_response"),
    ("HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "bad_response"),
    ("HTTP/1.1 099 Low\r\n\r\n", "bad_response"),
    ("HTTP/2.0 200 OK\r\n\r\n", "bad_response"),
    // In one segment with the head, so the client has not received anything yet.
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "bad_response_body"),
];

#[test]
fn faults_of_an_upstream_are_502() {
    for mode in MODES {
        let case = Case::new(mode, &[], |peer| {
            if let Some(request) = peer.request() {
                let number: usize = request.head.split([' ', '/']).nth(2).unwrap().parse().unwrap();
                peer.answer(ANSWERS[number].0);
            }
        });
        for (number, (answer, reason)) in ANSWERS.into_iter().enumerate() {
            let mut client = case.client();
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: h\r\n\r\n"));
            let mut got = client.answer(Method::Get);
            if got.status == 100 {
                got = client.answer(Method::Get);
            }
            assert_eq!((got.status, got.says_close()), (502, false), "{mode:?} {answer:?}");
            assert!(got.text().contains(reason), "{mode:?} {answer:?}: {}", got.text());
            case.weir.wait_for_stderr(&["weir: 502", reason, &format!("request=\"GET /{number}\"")]);
        }
        case.stop();
    }
}

#[test]
fn an_absent_upstream_is_502() {
    for mode in MODES {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let certificates = Certificates::new();
        let weir = common::serve(mode, &certificates, free, &[]);
        let session = mode.client_tls.then(|| certificates.session());
        let mut client = Client::connect(weir.address(), session);
        client.send(GET);
        let (status, body) = refusal(&mut client, "not there");
        assert!(status == 502 && body.contains("upstream_connect"), "{mode:?}: {body}");
        weir.wait_for_stderr(&["502 upstream_connect", "refused"]);
        assert_eq!(weir.stop().code, Some(0), "{mode:?}");
    }
}

#[test]
fn an_untrusted_upstream_is_502_and_gets_no_request() {
    for mode in MODES.into_iter().filter(|mode| mode.upstream_tls) {
        let stranger = Certificates::new();
        let elsewhere = Certificates::for_names(&["elsewhere.example"]);
        for (presents, trusts, flags, detail) in [
            (&stranger, &elsewhere, &[][..], "not trusted"),
            (&elsewhere, &elsewhere, &[][..], "not trusted"),
            (&stranger, &stranger, &["--upstream-name", "elsewhere.example"][..], "not trusted"),
        ] {
            let upstream = common::Upstream::start(Some(presents.server().core()), |peer| peer.serve(OK));
            let mut flags = flags.to_vec();
            flags.extend(["--upstream-ca", trusts.ca.to_str().unwrap()]);
            let client_side = Certificates::new();
            let weir = common::serve(mode, &client_side, upstream.address, &flags);
            let session = mode.client_tls.then(|| client_side.session());
            let mut client = Client::connect(weir.address(), session);
            client.send(GET);
            let (status, body) = refusal(&mut client, "not trusted");
            assert!(status == 502 && body.contains("upstream_tls"), "{mode:?}: {body}");
            weir.wait_for_stderr(&["502 upstream_tls", detail]);
            assert_eq!(upstream.received_bytes(), 0, "{mode:?}");
            assert_eq!(weir.stop().code, Some(0), "{mode:?}");
        }
        // The verified name may differ from the address.
        let upstream = common::Upstream::start(Some(elsewhere.server().core()), |peer| peer.serve(OK));
        let flags = ["--upstream-name", "elsewhere.example", "--upstream-ca", elsewhere.ca.to_str().unwrap()];
        let client_side = Certificates::new();
        let weir = common::serve(mode, &client_side, upstream.address, &flags);
        let session = mode.client_tls.then(|| client_side.session());
        assert_eq!(Client::connect(weir.address(), session).ask(GET).text(), "ok", "{mode:?}");
    }
}

/// Regression test: the log had the library's debug text, `CaUsedAsEndEntity`.
#[test]
fn a_self_signed_certificate_that_is_a_ca_is_refused_with_a_command_that_makes_another() {
    let Some(openssl) = peer("openssl") else { return };
    let folder = tempfile::tempdir().unwrap();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name).display().to_string());
    let ec = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ];
    let own = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", &key, "-out", &cert];
    for (further, status) in [(&[][..], 502), (&["-addext", "basicConstraints=critical,CA:FALSE"][..], 200)] {
        let mut command = Command::new(&openssl);
        let made = command.args(["req", "-x509"]).args(ec).args(own).args(further).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let origin =
            Weir::start(&["origin", "--listen", "https://127.0.0.1:0", "--cert", &cert, "--key", &key]);
        let mode = MODES.into_iter().find(|mode| mode.upstream_tls && !mode.client_tls).unwrap();
        let weir = common::serve(mode, &Certificates::new(), origin.address(), &["--upstream-ca", &cert]);
        assert_eq!(Client::connect(weir.address(), None).ask(GET).status, status);
        if status == 502 {
            weir.wait_for_stderr(&["marked as a CA", "-addext basicConstraints=critical,CA:FALSE"]);
        }
    }
}

#[test]
fn an_upstream_that_speaks_the_other_protocol_is_502() {
    for mode in MODES {
        let certificates = Certificates::new();
        let other = common::Mode { upstream_tls: !mode.upstream_tls, ..mode };
        let acceptor = other.upstream_tls.then(|| certificates.server().core());
        let upstream = common::Upstream::start(acceptor, |peer| {
            let _ = peer.answer("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            peer.read_to_end();
        });
        let weir = common::serve(mode, &certificates, upstream.address, &[]);
        let session = mode.client_tls.then(|| certificates.session());
        let mut client = Client::connect(weir.address(), session);
        client.send(GET);
        assert_eq!(refusal(&mut client, "other protocol").0, 502, "{mode:?}");
        // A ClientHello may have arrived, but no bytes of the request unless it is in cleartext.
        let received = upstream.received(0);
        assert!(!mode.upstream_tls || !received.windows(4).any(|four| four == b"HTTP"), "{mode:?}");
        assert_eq!(weir.stop().code, Some(0), "{mode:?}");
    }
}
