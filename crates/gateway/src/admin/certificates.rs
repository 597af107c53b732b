//! Certificates: their state, and changes at run time.

use super::{Admin, Response};
use crate::config::{CertificateFrom, ServedCertificate, Snapshot, certificate};
use crate::process::{Ask, CertificateChange, CertificateEdit};
use serde::Serialize;
use weir_http::{Method, visible};

/// The target of a request for `/certificates`, or below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertificateTarget<'a> {
    All,
    One(&'a str),
}

impl<'a> CertificateTarget<'a> {
    /// Parses a path; `None` if it is not about certificates. Names need no encoding.
    pub(super) fn of(path: &'a [u8]) -> Option<Self> {
        let below = std::str::from_utf8(path.strip_prefix(b"/certificates")?).ok()?;
        match below.strip_prefix('/') {
            None => below.is_empty().then_some(Self::All),
            Some(name) => (!name.is_empty() && !name.contains('/')).then_some(Self::One(name)),
        }
    }
}

impl Admin {
    /// Responds to a request about certificates. `body` is empty for requests whose body is not read.
    pub(super) fn certificates(
        &self,
        method: Method,
        target: CertificateTarget<'_>,
        query: Option<&[u8]>,
        body: &[u8],
    ) -> Response {
        if query.is_some() {
            return Response::text(400, "expected no `?`: the body has the certificate\n");
        }
        match (method, target) {
            (Method::Get | Method::Head, target) => self.shown_certificates(target),
            (Method::Put, CertificateTarget::One(name)) => match certificate(name, body) {
                Ok(certificate) => self.change_certificate(name, CertificateEdit::Replace(certificate)),
                Err(fault) => Response::text(400, format!("{}\n", visible(&fault.to_string()))),
            },
            (Method::Delete, CertificateTarget::One(name)) => {
                self.change_certificate(name, CertificateEdit::Reset)
            }
            (_, CertificateTarget::All) => Response::text(405, "expected GET or HEAD\n"),
            (_, CertificateTarget::One(_)) => Response::text(405, "expected GET, HEAD, PUT or DELETE\n"),
        }
    }

    /// The certificates set at run time, in words.
    pub(super) fn set_certificates_in_words(&self, words: &mut String) {
        for (at, (name, served)) in self.active.snapshot().set_certificates().iter().enumerate() {
            if at == 0 {
                words.push_str("\nCertificates set at run time\n");
            }
            words.push_str(&format!("  {name:<16} {}\n", served.names_in_words()));
        }
    }

    fn shown_certificates(&self, target: CertificateTarget<'_>) -> Response {
        let snapshot = self.active.snapshot();
        match target {
            CertificateTarget::All => {
                let certificates = snapshot.certificates.iter().map(Shown::of).collect();
                Response::json(200, &All { certificates })
            }
            CertificateTarget::One(name) => match snapshot.certificate_named(name) {
                Some(at) => Response::json(200, &snapshot.certificates.get(at).map(Shown::of)),
                None => unknown(name, &snapshot),
            },
        }
    }

    fn change_certificate(&self, name: &str, edit: CertificateEdit) -> Response {
        if self.active.snapshot().certificate_named(name).is_none() {
            return unknown(name, &self.active.snapshot());
        }
        let ask = |reply| Ask::Certificate(CertificateChange { name: name.to_owned(), edit, reply });
        match self.apply("certificates", ask) {
            Ok(()) => self.shown_certificates(CertificateTarget::One(name)),
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

/// A certificate in a response, without its chain and its key.
#[derive(Serialize)]
struct Shown<'a> {
    name: Option<&'a str>,
    /// The file of the chain, even if another one replaces it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_all_certificates_or_one() {
        for (path, target) in [
            ("/certificates", Some(CertificateTarget::All)),
            ("/certificates/web", Some(CertificateTarget::One("web"))),
            ("/certificates/", None),
            ("/certificates/web/", None),
            ("/certificatesx", None),
            ("/services", None),
        ] {
            assert_eq!(CertificateTarget::of(path.as_bytes()), target, "{path}");
        }
    }
}
