//! docs/gateway: the examples work.

use super::preface::announced;
use super::unix::exchange;
use crate::common::{Certificates, Client, Peer, Upstream, Weir};
use std::fs;
use std::path::Path;

const ROUTES: &str = include_str!("../../docs/gateway/routes.md");

/// The name of each page with a configuration, and the configuration, in the page's order.
fn examples() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateway");
    let mut pages: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    let mut examples = Vec::new();
    for page in pages {
        let name = page.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&page).unwrap();
        let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        examples.extend(blocks.map(|block| (name.to_owned(), block.to_owned())));
    }
    examples
}

/// A request (listener, host and target) and its response: the status, and its `Location` or body. Listeners are sorted
/// by name.
type Exchange = (usize, (&'static str, &'static str), u16, &'static str);

/// The page of each example, and the example's handling of requests.
const EXPECTED: [(&str, &[Exchange]); 12] = [
    // This client has no certificate.
    ("client-certificates.md", &[]),
    // The server speaks HTTP/1.1, but gRPC needs HTTP/2 clients.
    ("http.md", &[]),
    ("http.md", &[(0, ("h", "/"), 404, "404 Not Found\n")]),
    ("listeners.md", &[(0, ("h", "/"), 200, "ok")]),
    ("outbound.md", &[(0, ("example.org", "/"), 200, "ok")]),
    // The page contains its cases.
    ("routes.md", &[]),
    ("routes.md", &[(0, ("h", "/"), 200, "ok")]),
    (
        "services.md",
        &[
            (0, ("example.org", "/api/x"), 200, "ok"),
            (0, ("www.example.org", "/"), 200, "ok"),
            (0, ("example.org", "/robots.txt"), 200, "User-agent: *"),
            (0, ("www.example.org", "/robots.txt"), 200, "User-agent: *"),
            (0, ("other.example", "/"), 404, "404 Not Found\n"),
        ],
    ),
    (
        "tls.md",
        &[
            (0, ("example.org", "/api/x"), 308, "https://example.org/api/x"),
            (0, ("other.example:80", "/?q"), 308, "https://other.example/?q"),
            (
                0,
                ("example.org", "/.well-known/acme-challenge/x"),
                308,
                "https://example.org/.well-known/acme-challenge/x",
            ),
            (1, ("example.org", "/api/x"), 200, "ok"),
        ],
    ),
    ("tunnels.md", &[(0, ("example.org", "/"), 200, "ok"), (1, ("example.org", "/"), 200, "ok")]),
    // The server behind the tunnel happens to speak HTTP.
    ("tunnels.md", &[(0, ("example.org", "/"), 200, "ok"), (1, ("example.org", "/"), 200, "ok")]),
    (
        "tutorial.md",
        &[(0, ("localhost", "/x"), 308, "https://localhost/x"), (1, ("localhost", "/x"), 200, "ok")],
    ),
];

/// The table of worked cases: listener, host, path, and the route.
fn worked_cases() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    let rows = ROUTES.split("| listener | request | takes |").nth(1).unwrap().lines().skip(2);
    let cases = rows.map_while(|row| {
        let cells: Vec<_> = row.strip_prefix("| ")?.split(" | ").map(|cell| cell.trim_matches('`')).collect();
        let (host, path) = cells[1].split_at(cells[1].find('/')?);
        Some((cells[0], host, path, cells[2]))
    });
    let cases: Vec<_> = cases.collect();
    assert!(cases.len() >= 8, "{cases:?}");
    cases
}

#[test]
fn the_examples_serve_requests() {
    let certificates = Certificates::for_names(&["127.0.0.1", "app.internal"]);
    let answer = |peer: &mut Peer| {
        peer.serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    };
    let cleartext = Upstream::start(None, answer);
    let tls = Upstream::start(Some(certificates.server().core()), answer);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let path = |path: &std::path::Path| path.display().to_string();
    // The server on the examples' socket.
    let _app = Weir::configured(
        &format!(
            "[listener.app]\nbind = 'unix:{}/app.sock'\n[service.a]\nservers = 'http://{}'\n[[route]]\nservice = 'a'",
            path(folder.path()),
            cleartext.address
        ),
        1,
    );
    let examples = examples();
    assert_eq!(examples.len(), EXPECTED.len());
    for ((page, example), (expected_page, expected)) in examples.into_iter().zip(EXPECTED) {
        assert_eq!(page, expected_page);
        let config = example
            .replace("0.0.0.0:80", "127.0.0.1:0")
            .replace("0.0.0.0:443", "127.0.0.1:0")
            .replace("127.0.0.1:8080", "127.0.0.1:0")
            .replace("127.0.0.1:8081", "127.0.0.1:0")
            .replace("127.0.0.1:8443", "127.0.0.1:0")
            .replace("127.0.0.1:9901", "127.0.0.1:0")
            .replace("10.0.0.0/8", "127.0.0.0/8")
            .replace("/run/", &format!("{}/", path(folder.path())))
            .replace("127.0.0.1:3000", &cleartext.address.to_string())
            .replace("127.0.0.1:3443", &tls.address.to_string())
            .replace("/etc/weir/fullchain.pem", &path(&certificates.cert))
            .replace("/etc/weir/privkey.pem", &path(&certificates.key))
            .replace("/etc/weir/clients.pem", &path(&certificates.cert))
            .replace("/etc/weir/internal-ca.pem", &path(&certificates.ca))
            .replace("/var/log/weir/access.log", &path(&log));
        let binds = ["bind = \"127.0.0.1:0\"", "bind = \"unix:"].map(|bind| config.matches(bind).count());
        let listeners = binds.iter().sum::<usize>() - config.matches("[admin]").count();
        let weir = Weir::configured(&config, listeners);
        let asked = |listener: usize, (host, target): (&str, &str)| {
            let url = &weir.urls[listener];
            let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            if let Some(path) = url.strip_prefix("unix:") {
                let answer = exchange(path.as_ref(), &request);
                return (answer[9..12].parse().unwrap(), answer.rsplit("\r\n").next().unwrap().to_owned());
            }
            let session =
                (url.starts_with("https") || url.starts_with("tls")).then(|| certificates.session());
            let mut client = match config.contains("proxy_protocol = \"127.0.0.0/8\"") && session.is_none() {
                true => announced(weir.address_of(listener), b"PROXY UNKNOWN\r\n", None),
                false => Client::connect(weir.address_of(listener), session),
            };
            let answer = client.ask(request);
            let text = answer.fields("location").first().copied().unwrap_or(answer.text());
            (answer.status, text.to_owned())
        };
        for (listener, request, status, text) in expected {
            assert_eq!(asked(*listener, *request), (*status, (*text).to_owned()), "{request:?} of {example}");
        }
        if example.contains("[listener.internal]") {
            for (listener, host, path, route) in worked_cases() {
                let listener = usize::from(listener == "public");
                let (status, text) = asked(listener, (host, path));
                let taken = if status == 404 { "-" } else { &text };
                assert_eq!(taken, route, "{listener} {host}{path}");
            }
        }
        weir.stop();
    }
    assert!(fs::read_to_string(log).unwrap().contains("\"service\":\"api\""));
}

/// Neither the examples nor the packaged configurations cause warnings.
#[test]
fn the_examples_have_no_warnings() {
    let certificates = Certificates::for_names(&["example.org", "app.internal"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weir.toml");
    let path = |path: &std::path::Path| path.display().to_string();
    let deployed = include_str!("../../deploy/weir.toml").to_owned();
    for example in examples().into_iter().map(|(_, example)| example).chain([deployed]) {
        let config = [
            ("/etc/weir/fullchain.pem", &certificates.cert),
            ("/etc/weir/privkey.pem", &certificates.key),
            ("/etc/weir/clients.pem", &certificates.ca),
            ("/etc/weir/internal-ca.pem", &certificates.ca),
        ]
        .into_iter()
        .fold(example.clone(), |config, (name, file)| config.replace(name, &path(file)));
        fs::write(&file, config).unwrap();
        let ended = Weir::run(&["check", "--deny-warnings", "--config", file.to_str().unwrap()]);
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{example}");
    }
}

/// One document lists exactly the gateway's metrics, and the operators' document names only these.
#[test]
fn the_metrics_are_those_that_operators_are_told_of() {
    let list = include_str!("../../docs/gateway/monitoring.md");
    let alerts = include_str!("../../docs/OPERATING.md");
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::new();
    let secrets = folder.path().join("secrets");
    fs::write(&secrets, "01".repeat(32)).unwrap();
    let config = format!(
        "[listener.web]\nbind = '127.0.0.1:0'\ntls.ticket_secrets = '{}'\n[[certificate]]\nchain = '{}'\nkey = '{}'\n\
         [[route]]\nrespond.status = 200\n[admin]\nbind = '127.0.0.1:0'",
        secrets.display(),
        certificates.cert.display(),
        certificates.key.display()
    );
    let weir = Weir::configured(&config, 1);
    let answer = weir.ask_admin("GET /metrics");
    let families: Vec<_> =
        answer.text().lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(families.len() > 30, "{families:?}");
    let names = |text: &'static str| {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.filter(|word| word.starts_with("weir_") || word.starts_with("process_"))
    };
    for family in &families {
        assert!(names(list).any(|name| name == *family), "{family} is not in docs/gateway/monitoring.md");
    }
    let helps = answer.text().lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
    for (name, help) in helps {
        let is_its_row =
            |row: &str| row.starts_with(&format!("| `{name}` |")) && row.ends_with(&format!("| {help} |"));
        assert!(
            list.lines().any(is_its_row),
            "docs/gateway/monitoring.md does not have the help of {name}: {help}"
        );
    }
    for (path, document) in [("docs/gateway/monitoring.md", list), ("docs/OPERATING.md", alerts)] {
        for name in names(document) {
            assert!(families.contains(&name), "{path}: there is no {name}");
        }
    }
}
