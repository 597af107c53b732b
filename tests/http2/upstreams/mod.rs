//! HTTP/2 servers after the gateway, with HTTP/1.1 and HTTP/2 clients.

mod ends;
mod files;
mod hyper;
mod many;

use super::behind::Behind;
use super::clients::Curl;
use crate::common::{Certificates, pattern};
use crate::servers::Server;
use std::fs;

type Start = fn(&Certificates, Option<&Certificates>) -> Option<Server>;

/// Servers with the same paths.
const PROGRAMS: [(&str, Start); 3] = [
    ("Go", |_, tls| Server::go_http2(tls)),
    ("Node", |_, tls| Server::node_http2(tls)),
    ("hyper", |_, tls| Some(Server::hyper(tls))),
];

/// Empty, one byte, more than a window, and far more than all buffers in between.
const SIZES: [usize; 4] = [0, 1, 70_000, 5_000_000];

/// A server behind the gateway, and curl.
struct Case {
    name: String,
    behind: Behind,
    curl: Curl,
}

impl Case {
    /// Each program in cleartext and over TLS.
    fn each(check: impl Fn(&Self)) {
        for (name, start) in PROGRAMS {
            for tls in [false, true] {
                let Some(behind) = Behind::start(tls, start) else { continue };
                let Some(curl) = Curl::new(&behind.certificates) else { return };
                let case = Self { name: format!("{name}, TLS: {tls}"), behind, curl };
                check(&case);
                let ended = case.behind.weir.stop();
                assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            }
        }
    }

    /// curl's flags for each version of HTTP.
    fn versions(&self) -> [(&'static str, &'static str); 2] {
        [("1.1", "--http1.1"), ("2", self.behind.curl_http2())]
    }

    /// The body and the status of a request.
    fn get(&self, (version, flag): (&str, &str), path: &str, args: &[&str]) -> (Vec<u8>, u16) {
        let url = self.behind.url(path);
        let (body, end) = self.curl.get(&[&[flag][..], args, &[&url]].concat());
        let (spoken, status) = end.split_once(' ').unwrap();
        assert_eq!(spoken, version, "{} {path}", self.name);
        (body, status.parse().unwrap())
    }

    fn text(&self, version: (&str, &str), path: &str, args: &[&str]) -> (String, u16) {
        let (body, status) = self.get(version, path, args);
        (String::from_utf8(body).unwrap(), status)
    }
}

#[test]
fn downloads_and_uploads() {
    let folder = tempfile::tempdir().unwrap();
    let [file, heads] = ["file", "heads"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    Case::each(|case| {
        for version in case.versions() {
            for size in SIZES {
                let what = format!("{}, {version:?}, {size}", case.name);
                for path in ["bytes", "chunked"] {
                    let (body, status) = case.get(version, &format!("/{path}/{size}"), &[]);
                    assert_eq!((body.len(), status), (size, 200), "{what} {path}");
                    assert!(body == pattern_251(size), "{what} {path}");
                }
                let sent = pattern(size);
                fs::write(&file, &sent).unwrap();
                // The trailer reaches clients that accept it; HTTP/2 clients always do.
                let trailer = format!("x-sum: {size}\r\n");
                let accepts =
                    ["--dump-header", &heads, "--header", "TE: trailers", "--header", "Connection: TE"];
                let accepts = if version.0 == "2" { &accepts[..2] } else { &accepts };
                for unknown in [&[][..], &["--header", "Transfer-Encoding: chunked"]] {
                    if size == 0 && version.0 == "1.1" && !unknown.is_empty() {
                        // curl 7.88 never sends the last chunk of an empty file.
                        continue;
                    }
                    let args = [accepts, unknown, &["--request", "POST", "--upload-file", &file]].concat();
                    let (body, status) = case.get(version, "/echo", &args);
                    assert_eq!((body.len(), status), (size, 200), "{what} {unknown:?}");
                    assert!(body == sent, "{what} {unknown:?}");
                    let heads = fs::read_to_string(&heads).unwrap().to_lowercase();
                    assert!(heads.contains(&trailer), "{what} {unknown:?}: {heads}");
                }
            }
        }
    });
}

#[test]
fn heads() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("heads").to_str().unwrap().to_owned();
    Case::each(|case| {
        let (name, authority) = (&case.name, case.behind.weir.address());
        for version in case.versions() {
            // HTTP/2 cookies may arrive in several fields.
            let args =
                ["--header", "Cookie: a=1; b=2", "--header", "TE: trailers", "--header", "Connection: TE"];
            let args = if version.0 == "2" { &args[..4] } else { &args };
            let expected = format!("HTTP/2.0 {authority} te=trailers cookie=a=1; b=2");
            assert_eq!(case.text(version, "/request", args), (expected, 200), "{name} {version:?}");
            let args = ["--header", "Host: example.com:81"];
            let expected = "HTTP/2.0 example.com:81 te= cookie=";
            assert_eq!(case.text(version, "/request", &args), (expected.into(), 200), "{name} {version:?}");

            let args = ["--head", "--dump-header", &dump];
            assert_eq!(case.get(version, "/bytes/1000", &args).1, 200, "{name} {version:?}");
            let head = fs::read_to_string(&dump).unwrap().to_lowercase();
            assert!(head.contains("content-length: 1000\r\n"), "{name} {version:?}: {head}");
            for status in [204, 304] {
                assert_eq!(case.text(version, &format!("/{status}"), &[]), (String::new(), status), "{name}");
            }

            // A field larger than one HTTP/2 frame.
            let large = format!("X-Large: {}", "y".repeat(20_000));
            let args = ["--header", &large, "--dump-header", &dump];
            assert_eq!(
                case.text(version, "/fields/20000", &args),
                ("20000".into(), 200),
                "{name} {version:?}"
            );
            let head = fs::read_to_string(&dump).unwrap();
            assert!(head.contains(&"x".repeat(20_000)), "{name} {version:?}: {} bytes", head.len());

            // hyper sends no interim responses in HTTP/2.
            if name.starts_with("hyper") {
                continue;
            }
            let got = case.text(version, "/hints", &["--dump-header", &dump]);
            assert_eq!(got, ("hinted".into(), 200), "{name} {version:?}");
            let head = fs::read_to_string(&dump).unwrap().to_lowercase();
            let (first, _) = head.split_once("\r\n\r\n").unwrap();
            assert!(
                first.contains(" 103") && first.contains("link: </style.css>"),
                "{name} {version:?}: {head}"
            );

            let args = ["--header", "Expect: 100-continue", "--expect100-timeout", "20", "--data", "body"];
            let args = [&args[..], &["--dump-header", &dump]].concat();
            assert_eq!(case.text(version, "/echo", &args), ("body".into(), 200), "{name} {version:?}");
        }
    });
}

/// The peers' response body.
fn pattern_251(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}
