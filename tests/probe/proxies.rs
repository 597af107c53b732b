//! nginx and HAProxy: resumption by kind and worker.

use super::report::{advises, list, not_tried, offered, resumed, sorted, suites, version_of};
use super::servers::{Files, nginx};
use crate::common::peer;
use std::fs;
use std::process::Command;

#[test]
fn nginx_with_a_shared_cache_and_no_tickets() {
    let settings = "ssl_session_tickets off; ssl_session_cache shared:S:1m; ssl_protocols TLSv1.2; \
                    ssl_ecdh_curve secp384r1:prime256v1; ssl_prefer_server_ciphers on; \
                    ssl_ciphers ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256;";
    let Some((_nginx, report)) = nginx(2, settings, &["--tries", "10"]) else { return };
    assert_eq!(offered(&report), ["1.2"]);
    let expected = ["ecdhe-ecdsa-aes256-gcm-sha384", "ecdhe-ecdsa-aes128-gcm-sha256"];
    assert_eq!(suites(&report, "1.2"), expected);
    assert_eq!(version_of(&report, "1.2")["suite_preference"], "server");
    assert_eq!(sorted(&version_of(&report, "1.2")["groups"]), ["p256", "p384"]);
    assert_eq!(resumed(&report, "resume-1.2-id"), (10, 10));
    assert_eq!(not_tried(&report, "resume-1.2-ticket"), "no ticket");
}

/// Two workers with separate caches: about half of the returning clients resume, whatever they offer.
#[test]
fn nginx_whose_workers_share_nothing() {
    let settings = "ssl_session_tickets off; ssl_session_cache builtin:1000; ssl_protocols TLSv1.2 TLSv1.3;";
    let Some((_nginx, report)) = nginx(2, settings, &["--tries", "60"]) else { return };
    assert_eq!(offered(&report), ["1.3", "1.2"]);
    for kind in ["resume-1.2-id", "resume-1.3-psk"] {
        let (resumed, tries) = resumed(&report, kind);
        assert!(tries == 60 && 0 < resumed && resumed < 60, "{kind} {resumed} of {tries}");
        assert!(
            advises(&report, &format!("{kind} {resumed} of 60: workers or hosts do not share")),
            "{}",
            report["advice"]
        );
    }
}

/// nginx issues session IDs that it does not resume.
#[test]
fn nginx_without_a_cache() {
    let settings = "ssl_session_tickets off; ssl_session_cache none; ssl_protocols TLSv1.2 TLSv1.3;";
    let Some((_nginx, report)) = nginx(1, settings, &["--tries", "3"]) else { return };
    let given = report["session_12"]["id_bytes"].as_u64().unwrap() > 0;
    assert_eq!(resumed(&report, "resume-1.2-id"), (0, if given { 3 } else { 0 }));
    assert_eq!(resumed(&report, "resume-1.3-psk").0, 0);
}

#[test]
fn haproxy_of_tls_1_3_alone() {
    let Some(program) = peer("haproxy") else { return };
    let bind = "ssl-min-ver TLSv1.3 curves P-256 alpn h2 ciphersuites TLS_CHACHA20_POLY1305_SHA256";
    let configured = |server: &Files, port: u16| {
        let pem = server.folder.path().join("both.pem");
        let both = ["cert.pem", "key.pem"].map(|name| fs::read(server.folder.path().join(name)).unwrap());
        fs::write(&pem, both.concat()).unwrap();
        let text = format!(
            "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n\
             frontend f\n bind 127.0.0.1:{port} ssl crt {} {bind}\n http-request return status 200\n",
            pem.display()
        );
        fs::write(server.folder.path().join("haproxy.cfg"), text).unwrap();
        let mut command = Command::new(&program);
        command.arg("-db").arg("-f").arg(server.folder.path().join("haproxy.cfg"));
        command
    };
    let server = Files::on_a_free_port(configured);
    let report = server.report(&["--tries", "3"]);
    assert_eq!(offered(&report), ["1.3"]);
    assert_eq!(suites(&report, "1.3"), ["chacha20-poly1305-sha256"]);
    assert_eq!(list(&version_of(&report, "1.3")["groups"]), ["p256"]);
    assert_eq!(report["alpn"]["h2"], "h2");
    assert_eq!(resumed(&report, "resume-1.3-psk"), (3, 3));
    assert!(advises(&report, "a first key share for p256 avoids it"));
}
