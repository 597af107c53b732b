//! Static files of nginx and nghttpd.

use super::{Case, SIZES, pattern_251};
use crate::common::{Certificates, pattern, peer};
use crate::http2::behind::Behind;
use crate::http2::clients::{Curl, run};
use crate::servers::Server;
use std::fs;

/// Few streams, padding, small windows, no table, and responses of unknown length with trailers.
const NARROW: [&str; 7] = [
    "--max-concurrent-streams=4",
    "--padding=200",
    "--window-bits=14",
    "--connection-window-bits=14",
    "--header-table-size=0",
    "--no-content-length",
    "--trailer=x-sum: 5",
];

fn files() -> Vec<(String, Vec<u8>)> {
    SIZES.map(|size| (size.to_string(), pattern_251(size))).into()
}

/// The server in cleartext and over TLS.
fn each(
    name: &str,
    start: impl Fn(&Certificates, Option<&Certificates>) -> Option<Server>,
    check: impl Fn(&Case),
) {
    for tls in [false, true] {
        let Some(behind) = Behind::start(tls, &start) else { return };
        let Some(curl) = Curl::new(&behind.certificates) else { return };
        let case = Case { name: format!("{name}, TLS: {tls}"), behind, curl };
        check(&case);
        case.behind.stop();
    }
}

fn downloads(case: &Case) {
    for version in case.versions() {
        for size in SIZES {
            let (body, status) = case.get(version, &format!("/{size}"), &[]);
            assert_eq!((body.len(), status), (size, 200), "{} {version:?}", case.name);
            assert!(body == pattern_251(size), "{} {version:?} {size}", case.name);
        }
        assert_eq!(case.get(version, "/missing", &[]).1, 404, "{} {version:?}", case.name);
    }
}

/// More requests than a connection or its streams may carry.
fn load(case: &Case) {
    let Some(h2load) = peer("h2load") else { return };
    for (size, count) in [(1, "1000"), (70_000, "200")] {
        let url = case.behind.url(&format!("/{size}"));
        let args = ["-n", count, "-c", "4", "-m", "20", "-w16", "-W16", &url];
        let report = String::from_utf8(run(&h2load, &args).stdout).unwrap();
        let expected = format!("{count} succeeded, 0 failed, 0 errored, 0 timeout");
        let stderr = case.behind.weir.stderr();
        assert!(report.contains(&expected), "{}: {report}\n{stderr}", case.name);
        assert!(report.contains(&format!("{count} 2xx")), "{}: {report}\n{stderr}", case.name);
    }
}

#[test]
fn nginx() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let start = |tls: &Certificates, _: Option<&Certificates>| Server::nginx_http2(tls, &files());
    each("nginx", start, |case| {
        downloads(case);
        for version in case.versions() {
            let expected = format!("HTTP/2.0 {}", case.behind.weir.address().ip());
            assert_eq!(case.text(version, "/request", &[]), (expected, 200), "{}", case.name);
            let (part, status) = case.get(version, "/70000", &["--range", "10-19"]);
            assert_eq!((part, status), (pattern_251(20)[10..].to_vec(), 206), "{}", case.name);
            let none = ["--range", "70000-"];
            assert_eq!(case.get(version, "/70000", &none).1, 416, "{}", case.name);
            assert_eq!(case.text(version, "/204", &[]), (String::new(), 204), "{}", case.name);
            for size in SIZES {
                fs::write(&file, pattern(size)).unwrap();
                let name = format!("{}-{size}", version.0);
                let args = ["--upload-file", file.to_str().unwrap()];
                let (_, status) = case.get(version, &format!("/upload/{name}"), &args);
                assert!(matches!(status, 201 | 204), "{} {version:?} {size}: {status}", case.name);
                let uploaded = case.behind.server.uploaded(&name);
                assert!(uploaded == pattern(size), "{} {version:?} {size}", case.name);
            }
        }
    });
}

#[test]
fn nginx_under_load() {
    let start = |tls: &Certificates, _: Option<&Certificates>| Server::nginx_http2(tls, &files());
    each("nginx", start, load);
}

#[test]
fn nghttpd() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    for flags in [&["--echo-upload"][..], &[&["--echo-upload"], &NARROW[..]].concat()] {
        let start = |_: &Certificates, tls: Option<&Certificates>| Server::nghttpd(tls, &files(), flags);
        each("nghttpd", start, |case| {
            downloads(case);
            for version in case.versions() {
                for size in SIZES {
                    let sent = pattern(size);
                    fs::write(&file, &sent).unwrap();
                    let args = ["--request", "POST", "--upload-file", file.to_str().unwrap()];
                    let (body, status) = case.get(version, "/1", &args);
                    assert_eq!((body.len(), status), (size, 200), "{} {version:?}", case.name);
                    assert!(body == sent, "{} {version:?} {size}", case.name);
                }
            }
        });
    }
}

#[test]
fn nghttpd_under_load() {
    for flags in [&[][..], &NARROW] {
        let start = |_: &Certificates, tls: Option<&Certificates>| Server::nghttpd(tls, &files(), flags);
        each("nghttpd", start, load);
    }
}
