//! `tls` of a listener: the `ssl_*` directives for clients.

use super::time;
use crate::model::{Certificate, Document, Table};
use crate::note::Notes;
use crate::{tls, values};
use weir_syntax::nginx::{Directive, Scope};

/// The settings apart from certificates.
pub(super) fn settings(scope: &Scope<'_>, notes: &mut Notes) -> Table {
    let mut table = Table::default();
    versions_and_suites(scope, &mut table, notes);
    sessions(scope, &mut table, notes);
    client_certificates(scope, &mut table, notes);
    table
}

fn versions_and_suites(scope: &Scope<'_>, table: &mut Table, notes: &mut Notes) {
    let mut versions = Vec::new();
    if let Some(directive) = scope.find("ssl_protocols") {
        versions.extend(directive.args.iter().filter_map(|name| tls::version(name)));
        if directive.args.iter().any(|name| tls::version(name).is_none()) {
            notes.loss(
                &directive.at,
                directive.text(),
                "Weir accepts TLS 1.2 and 1.3; older clients are rejected",
            );
        }
    }
    let ciphers = scope.find("ssl_ciphers");
    let conf = scope.all("ssl_conf_command");
    let ciphersuites = conf.iter().find(|directive| directive.arg().eq_ignore_ascii_case("ciphersuites"));
    let offer = tls::Offer {
        versions,
        ciphers: ciphers.map_or("", Directive::arg),
        ciphersuites: ciphersuites.and_then(|directive| directive.args.get(1)).map_or("", String::as_str),
    };
    if let (Err(why), Some(directive)) = (offer.write(table), ciphers) {
        notes.loss(&directive.at, directive.text(), why);
    }
    if scope.arg("ssl_prefer_server_ciphers") == "off" {
        table.text("suite_order", "client");
    }
    for directive in conf {
        if !["ciphersuites", "options"].iter().any(|known| directive.arg().eq_ignore_ascii_case(known)) {
            notes.loss(&directive.at, directive.text(), "a command of OpenSSL; see [listener.NAME] tls");
        }
    }
    if let Some(directive) = scope.find("ssl_ecdh_curve").filter(|directive| directive.arg() != "auto") {
        let (groups, unknown) = tls::groups(directive.arg());
        if !unknown.is_empty() {
            notes.loss(&directive.at, directive.text(), format!("Weir has no group {}", unknown.join(", ")));
        }
        if !groups.is_empty() {
            table.texts("groups", groups);
        }
    }
}

fn sessions(scope: &Scope<'_>, table: &mut Table, notes: &mut Notes) {
    if scope.arg("ssl_session_tickets") == "off" {
        table.number("tickets", 0);
    }
    if let Some(ms) = scope.find("ssl_session_timeout").and_then(|directive| time(directive.arg())) {
        // Weir's range of ticket lifetimes, in milliseconds.
        let (least, most) = (60_000, 84 * 3_600_000);
        if let Some(text) = values::duration(ms.clamp(least, most)) {
            table.text("ticket_lifetime", text);
        }
    }
    let Some(directive) = scope.find("ssl_session_cache") else { return };
    let shared = directive.args.iter().find_map(|arg| arg.strip_prefix("shared:")?.rsplit_once(':'));
    match shared.and_then(|(_, size)| values::bytes(size)) {
        // According to nginx's manual, a megabyte holds about 4000 sessions.
        Some(bytes) => table.number("sessions", (bytes / 1024 * 4000 / 1024).clamp(1, 10_000_000)),
        None if matches!(directive.arg(), "off" | "none") => {
            notes.quiet("ssl_session_cache off");
        }
        None => {}
    }
}

fn client_certificates(scope: &Scope<'_>, table: &mut Table, notes: &mut Notes) {
    let Some(directive) = scope.find("ssl_verify_client").filter(|directive| directive.arg() != "off") else {
        return;
    };
    let ca = [scope.arg("ssl_client_certificate"), scope.arg("ssl_trusted_certificate")];
    let Some(ca) = ca.into_iter().find(|ca| !ca.is_empty()) else {
        let message = "the CAs of the clients are missing; set tls.client_ca";
        return notes.loss(&directive.at, directive.text(), message);
    };
    if directive.arg() == "optional_no_ca" {
        let message = "Weir verifies client certificates; this one asks for certificates of client_ca, and rejects others";
        notes.loss(&directive.at, directive.text(), message);
    }
    table.text("client_ca", ca);
    if directive.arg() != "on" {
        table.text("client_certificates", "optional");
    }
    if let Some(crl) = scope.find("ssl_crl") {
        table.text("client_crl", crl.arg());
    }
}

/// Adds a server's certificates, and returns their indexes.
pub(super) fn certificates(scope: &Scope<'_>, document: &mut Document, notes: &mut Notes) -> Vec<usize> {
    let (chains, keys) = (scope.all("ssl_certificate"), scope.all("ssl_certificate_key"));
    let mut own = Vec::new();
    let staple = scope.find("ssl_stapling_file").map(|directive| directive.arg().to_owned());
    for (chain, key) in chains.iter().zip(&keys) {
        let is_file = |text: &str| {
            !text.contains('$') && !["data:", "engine:", "store:"].iter().any(|no| text.starts_with(no))
        };
        if !is_file(chain.arg()) || !is_file(key.arg()) {
            let message = "the certificate is not in a file; write a [[certificate]] for each name";
            notes.loss(&chain.at, chain.text(), message);
            continue;
        }
        own.push(document.certificate(Certificate {
            name: None,
            chain: chain.arg().to_owned(),
            key: key.arg().to_owned(),
            ocsp: staple.clone(),
            from: chain.at.to_string(),
        }));
    }
    if chains.len() != keys.len()
        && let Some(chain) = chains.first()
    {
        notes.loss(&chain.at, chain.text(), "each certificate needs its ssl_certificate_key; set `key`");
    }
    own
}
