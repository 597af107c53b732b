//! `tls.curves`: Weir's own curve arithmetic towards clients and servers. Skipped, with a message, on processors
//! without AVX-512 IFMA.

mod masked;

use super::{metric, named};
use crate::common::sessions::{connector, resumes};
use crate::common::{Certificates, Client, Peer, Upstream, Weir, peer};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use weir_tls::{
    Client as TlsClient, ClientAuth, ClientSettings, Curves, Group, Identity, Offer, Roots, Server,
    ServerSettings, Version,
};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

fn is_missing() -> bool {
    let usable = Curves::Ifma.check();
    if let Err(error) = &usable {
        println!("skipped: {error}");
    }
    usable.is_err()
}

/// A gateway with these TLS keys and an admin address. It uses TLS to its server if `service` contains keys.
fn config(own: &Certificates, listener: &str, service: &str, upstream: &str) -> String {
    let service = if service.is_empty() { String::new() } else { format!("tls = {{ {service} }}") };
    format!(
        "workers = 2
        [listener.web]
        bind = '127.0.0.1:0'
        tls = {{ {listener} }}
        [[certificate]]
        name = 'web'
        chain = '{}'
        key = '{}'
        [service.app]
        servers = '{upstream}'
        {service}
        [[route]]
        service = 'app'
        [admin]
        bind = '127.0.0.1:0'",
        own.cert.display(),
        own.key.display()
    )
}

fn gateway(own: &Certificates, curves: &str, upstream: &Upstream) -> Weir {
    let upstream = format!("http://{}", upstream.address);
    Weir::configured(&config(own, &format!("curves = '{curves}'"), "", &upstream), 1)
}

#[test]
fn our_client_connects_in_both_versions_with_every_group_and_resumes() {
    if is_missing() {
        return;
    }
    let (own, upstream) = (Certificates::new(), named("a"));
    for curves in ["ifma", "ifma-x25519"] {
        let weir = gateway(&own, curves, &upstream);
        for version in Version::ALL {
            for group in Group::ALL.into_iter().filter(|group| group.fits(version)) {
                let Offer { versions, suites, groups } =
                    Offer { versions: vec![version], suites: Vec::new(), groups: vec![group] }.complete();
                let roots = Roots::File(own.ca.clone());
                let settings = ClientSettings { roots, versions, suites, groups, ..Default::default() };
                let connector = TlsClient::new(&settings).unwrap().core();
                assert!(!resumes(weir.address(), &connector), "{curves} {version} {group}");
                assert!(resumes(weir.address(), &connector), "{curves} {version} {group}");
                let (version, group) = (version.name(), group.name());
                let parts = [
                    "weir_tls_negotiated_total{with=\"client\"",
                    &format!("version=\"{version}\""),
                    &format!("group=\"{group}\""),
                ];
                let metrics = weir.ask_admin("GET /metrics");
                let is_negotiated =
                    metrics.text().lines().any(|line| parts.iter().all(|part| line.contains(part)));
                assert!(is_negotiated, "{parts:?}: {}", metrics.text());
            }
        }
    }
}

#[test]
fn openssl_and_curl_connect_and_resume() {
    if is_missing() {
        return;
    }
    let (Some(openssl), Some(curl)) = (peer("openssl"), peer("curl")) else { return };
    let (own, upstream) = (Certificates::new(), named("a"));
    let weir = gateway(&own, "ifma", &upstream);
    let folder = tempfile::tempdir().unwrap();
    let request = folder.path().join("request");
    fs::write(&request, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    for flags in [
        &["-tls1_3", "-groups", "X25519"][..],
        &["-tls1_3", "-groups", "P-256"],
        &["-tls1_2"],
        &["-tls1_2", "-no_ticket"],
    ] {
        let session = folder.path().join("session");
        let _ = fs::remove_file(&session);
        for kind in ["New, TLSv1", "Reused, TLSv1"] {
            let mut client = Command::new(&openssl);
            client.args(["s_client", "-ign_eof", "-verify_return_error", "-connect"]);
            client.arg(weir.address().to_string()).args(flags).arg("-CAfile").arg(&own.ca);
            client.arg("-sess_out").arg(&session);
            if session.exists() {
                client.arg("-sess_in").arg(&session);
            }
            let output = client.stdin(fs::File::open(&request).unwrap()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(
                said.contains(kind) && said.contains("HTTP/1.1 200 OK"),
                "{flags:?}: no {kind} in {said}"
            );
        }
    }
    for version in ["1.2", "1.3"] {
        let mut client = Command::new(&curl);
        client.args(["-sS", "--fail", &format!("--tlsv{version}"), "--tls-max", version]).arg("--cacert");
        let url = format!("https://{}/", weir.address());
        let output = client.arg(&own.ca).args([&url, &url]).output().unwrap();
        assert!(output.status.success(), "{version}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).matches("a\nGET / HTTP/1.1").count(), 2);
    }
}

/// The server verifies the gateway's signature in full handshakes.
#[test]
fn a_server_with_tls_gets_a_client_certificate_and_resumptions() {
    if is_missing() {
        return;
    }
    let (own, gateways) = (Certificates::new(), Certificates::new());
    for version in Version::ALL {
        for group in Group::ALL.into_iter().filter(|group| group.fits(version)) {
            let Offer { versions, suites, groups } =
                Offer { versions: vec![version], suites: Vec::new(), groups: vec![group] }.complete();
            let settings = ServerSettings {
                client_auth: Some(ClientAuth::required(gateways.ca.clone())),
                versions,
                suites,
                groups,
                ..ServerSettings::new(Identity::files(&own.cert, &own.key))
            };
            // Each connection carries one request.
            let upstream =
                Upstream::start(Some(Server::new(&settings).unwrap().core()), |peer: &mut Peer| {
                    peer.request();
                    peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
                });
            let service = format!(
                "ca = '{}', certificate = '{}', key = '{}', versions = '{version}', curves = 'ifma'",
                own.ca.display(),
                gateways.cert.display(),
                gateways.key.display()
            );
            let url = format!("https://{}", upstream.address);
            let weir = Weir::configured(&config(&own, "", &service, &url), 1);
            for _ in 0..4 {
                let mut client = Client::connect(weir.address(), Some(own.session()));
                assert_eq!(client.ask(GET).status, 200, "{version} {group}: {}", weir.stderr());
            }
            let all = metric(&weir, "weir_upstream_handshakes_total");
            let full = metric(&weir, "weir_upstream_handshakes_total{kind=\"full\"}");
            // Each of the two workers stores its own sessions.
            assert!(all == 4 && (1..=2).contains(&full), "{version} {group}: {full} of {all}");
        }
    }
}

#[test]
fn openssl_as_a_server_is_reached() {
    if is_missing() {
        return;
    }
    let Some(openssl) = peer("openssl") else { return };
    let own = Certificates::new();
    for flags in [&["-tls1_3", "-groups", "X25519"][..], &["-tls1_2", "-groups", "X25519:P-256"]] {
        let server = OpensslServer::start(&openssl, &own, flags);
        let service = format!("ca = '{}', curves = 'ifma'", own.ca.display());
        let url = format!("https://127.0.0.1:{}", server.port);
        let weir = Weir::configured(&config(&own, "curves = 'ifma'", &service, &url), 1);
        for _ in 0..3 {
            let mut client = Client::connect(weir.address(), Some(own.session()));
            let answer = client.ask(GET);
            assert_eq!(answer.status, 200, "{flags:?}: {}", weir.stderr());
        }
    }
}

/// `s_server` on a free port, killed on drop.
struct OpensslServer {
    child: Child,
    port: u16,
}

impl OpensslServer {
    fn start(openssl: &Path, own: &Certificates, flags: &[&str]) -> Self {
        let mut command = Command::new(openssl);
        command.args(["s_server", "-accept", "127.0.0.1:0", "-www", "-cert"]).arg(&own.cert).arg("-key");
        command.arg(&own.key).args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port =
            lines.find_map(|line| line.unwrap().strip_prefix("ACCEPT 127.0.0.1:")?.parse().ok()).unwrap();
        // The server would block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }
}

impl Drop for OpensslServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The keys of unchanged files must also be prepared for the new curves.
#[test]
fn a_reload_changes_the_curves_and_a_certificate_set_at_run_time_has_them() {
    if is_missing() {
        return;
    }
    let (own, set, upstream) = (Certificates::new(), Certificates::new(), named("a"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let write = |curves: &str| {
        let url = format!("http://{}", upstream.address);
        fs::write(&file, config(&own, &format!("curves = '{curves}'"), "", &url)).unwrap();
    };
    write("aws-lc");
    let weir = Weir::of_file(&file, 1);
    let first = connector(&own.ca, &[]);
    assert!(!resumes(weir.address(), &first));
    for curves in ["ifma", "ifma-x25519", "ifma", "aws-lc", "ifma"] {
        write(curves);
        assert_eq!(weir.ask_admin("POST /reload").status, 200, "{curves}: {}", weir.stderr());
        assert!(resumes(weir.address(), &first), "{curves}: tickets stay valid");
        assert!(!resumes(weir.address(), &connector(&own.ca, &[])), "{curves}");
    }
    let read = |path| fs::read_to_string(path).unwrap();
    let body = json!({ "chain": read(&set.cert), "key": read(&set.key) }).to_string();
    let put = format!(
        "PUT /certificates/web HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(Client::connect(weir.admin(), None).ask(put).status, 200);
    assert!(!resumes(weir.address(), &connector(&set.ca, &[])));
    assert_eq!(weir.ask_admin("DELETE /certificates/web").status, 200);
    assert!(!resumes(weir.address(), &connector(&own.ca, &[])));
}

#[test]
fn an_explanation_has_the_savings_and_the_missing_review() {
    if is_missing() {
        return;
    }
    let own = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let explained = |curves: &str| {
        fs::write(&file, config(&own, &format!("curves = '{curves}'"), "", "http://127.0.0.1:1")).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap(), "--explain"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ended.stdout);
        ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (exchange, signature) = ("an X25519 key exchange takes 0.", "an ECDSA P-256 signature 0.");
    for (curves, saved) in
        [("aws-lc", [false, false]), ("ifma", [true, true]), ("ifma-x25519", [true, false])]
    {
        let text = explained(curves);
        assert!(text.contains(&format!("curves {curves}")), "{text}");
        assert_eq!([exchange, signature].map(|part| text.contains(part)), saved, "{curves}: {text}");
        assert_eq!(text.contains("outsiders have not reviewed"), saved[0], "{curves}: {text}");
    }
}

#[test]
fn unknown_curves_and_curves_without_effect_are_refused() {
    let own = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    for (listener, fault) in [
        ("curves = 'avx512'", "listener.web.tls.curves: unknown variant `avx512`, expected one of `aws-lc`"),
        (
            "curves = 'ifma-x25519', groups = ['p256', 'p384']",
            "listener.web.tls.curves: no effect beside `groups` without X25519",
        ),
    ] {
        fs::write(&file, config(&own, listener, "", "http://127.0.0.1:1")).unwrap();
        let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
        assert!(ended.code == Some(2) && ended.stderr.contains(fault), "{listener}: {}", ended.stderr);
    }
    let service = "insecure = true, curves = 'ifma', groups = 'p384'";
    fs::write(&file, config(&own, "", service, "https://127.0.0.1:1")).unwrap();
    let ended = Weir::run(&["check", "--config", file.to_str().unwrap()]);
    let fault = "service.app.tls.curves: no effect beside `groups` without X25519";
    assert!(ended.code == Some(2) && ended.stderr.contains(fault), "{}", ended.stderr);
}
