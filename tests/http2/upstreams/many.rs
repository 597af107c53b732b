//! Many concurrent streams to servers that allow 20 per connection.

use super::PROGRAMS;
use crate::common::{go_program, peer};
use crate::http2::behind::Behind;
use crate::http2::clients::run;
use std::path::PathBuf;

#[test]
fn h2load() {
    let Some(h2load) = peer("h2load") else { return };
    for (name, start) in PROGRAMS {
        for tls in [false, true] {
            let Some(behind) = Behind::start(tls, start) else { continue };
            for (size, count) in [(100, "1000"), (100_000, "200")] {
                for version in [&["-m", "50", "-w16", "-W16"][..], &["--h1"]] {
                    let url = behind.url(&format!("/bytes/{size}"));
                    let args = [&["-n", count, "-c", "4"], version, &[&url]].concat();
                    let report = String::from_utf8(run(&h2load, &args).stdout).unwrap();
                    let expected = format!("{count} succeeded, 0 failed, 0 errored, 0 timeout");
                    let stderr = behind.weir.stderr();
                    assert!(report.contains(&expected), "{name} {args:?}: {report}\n{stderr}");
                    assert!(report.contains(&format!("{count} 2xx")), "{name} {args:?}: {report}\n{stderr}");
                }
            }
            behind.stop();
        }
    }
}

#[test]
fn nghttp() {
    let Some(nghttp) = peer("nghttp") else { return };
    for (name, start) in PROGRAMS {
        for tls in [false, true] {
            let Some(behind) = Behind::start(tls, start) else { continue };
            let urls = [1, 1000, 100_000, 1_000_000].map(|size| behind.url(&format!("/bytes/{size}")));
            let args = [&["--null-out", "--stat", "--multiply=20"], &urls.each_ref().map(String::as_str)[..]];
            let said = run(&nghttp, &args.concat()).stdout;
            let said = String::from_utf8_lossy(&said);
            let ended = said.lines().filter(|line| line.contains(" 200 ")).count();
            assert_eq!(ended, 80, "{name}: {said}");
            behind.stop();
        }
    }
}

/// Uploads of known and unknown length that the server echoes, with trailers.
#[test]
fn go() {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/http2/client.go");
    let Some(client) = go_program("http2-client-of-http2", &source, &[]) else { return };
    for (name, start) in PROGRAMS {
        let Some(behind) = Behind::start(true, start) else { continue };
        // The first request brings the server's limit: a body of more than 16 KiB would be lost if its stream were
        // refused.
        for count in ["1", "150"] {
            let args = [&behind.url(""), behind.certificates.ca.to_str().unwrap(), count];
            assert_eq!(String::from_utf8_lossy(&run(&client, &args).stdout), "ok\n", "{name}");
        }
        behind.stop();
    }
}
