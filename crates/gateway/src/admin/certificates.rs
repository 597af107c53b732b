//! Certificates: their state, and changes at run time.

use super::{Admin, Response};
use crate::config::{CertificateFrom, ServedCertificate, Snapshot, certificate};
use crate::process::{Ask, CertificateChange, CertificateEdit};
use serde::Serialize;
use weir_http::visible;

impl Admin {
    pub(super) fn show_certificates(&self) -> Response {
        let snapshot = self.active.snapshot();
        let certificates = snapshot.certificates.iter().map(Shown::of).collect();
        Response::json(200, &All { certificates })
    }

    pub(super) fn show_certificate(&self, name: &str) -> Response {
        let snapshot = self.active.snapshot();
        match snapshot.certificate_named(name) {
            Some(at) => Response::json(200, &snapshot.certificates.get(at).map(Shown::of)),
            None => unknown(name, &snapshot),
        }
    }

    /// Replaces a certificate with the chain and key in a JSON object.
    pub(super) fn replace_certificate(&self, name: &str, body: &[u8]) -> Response {
        match certificate(name, body) {
            Ok(certificate) => self.change_certificate(name, CertificateEdit::Replace(certificate)),
            Err(fault) => Response::text(400, format!("{}\n", visible(&fault.to_string()))),
        }
    }

    /// Replaces a certificate set at run time with the one in the configured files.
    pub(super) fn reset_certificate(&self, name: &str) -> Response {
        self.change_certificate(name, CertificateEdit::Reset)
    }

    /// Appends a list of the certificates set at run time.
    pub(super) fn set_certificates_in_words(&self, words: &mut String) {
        for (at, (name, served)) in self.active.snapshot().set_certificates().iter().enumerate() {
            if at == 0 {
                words.push_str("\nCertificates set at run time\n");
            }
            words.push_str(&format!("  {name:<16} {}\n", served.names_in_words()));
        }
    }

    fn change_certificate(&self, name: &str, edit: CertificateEdit) -> Response {
        if self.active.snapshot().certificate_named(name).is_none() {
            return unknown(name, &self.active.snapshot());
        }
        let ask = |reply| Ask::Certificate(CertificateChange { name: name.to_owned(), edit, reply });
        match self.apply("certificates", ask) {
            Ok(()) => self.show_certificate(name),
            Err(refused) => refused,
        }
    }
}

fn unknown(name: &str, snapshot: &Snapshot) -> Response {
    let names = snapshot.certificates.iter().filter_map(|served| served.name.as_deref());
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let known = match &names[..] {
        [] => "no listener presents a certificate with a name".to_owned(),
        names => format!("expected one of {}", names.join(", ")),
    };
    Response::text(404, format!("unknown certificate `{name}`: {known}\n"))
}

#[derive(Serialize)]
struct All<'a> {
    certificates: Vec<Shown<'a>>,
}

/// A certificate in a response, without chain and key.
#[derive(Serialize)]
struct Shown<'a> {
    name: Option<&'a str>,
    /// The configured file of the chain, even if the certificate was set at run time.
    file: &'a str,
    from: &'static str,
    names: &'a [String],
    key: String,
    not_before: i64,
    not_after: i64,
}

impl<'a> Shown<'a> {
    fn of(served: &'a ServedCertificate) -> Self {
        let presented = served.certificate.presented();
        Self {
            name: served.name.as_deref(),
            file: &served.file,
            from: match served.from {
                CertificateFrom::File => "file",
                CertificateFrom::Admin { .. } => "admin",
            },
            names: &presented.names,
            key: presented.key.to_string(),
            not_before: presented.not_before,
            not_after: presented.not_after,
        }
    }
}
