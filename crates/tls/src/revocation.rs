//! Facts about the revocation lists for client certificates (RFC 5280 section 5).

use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_parser::prelude::{CertificateRevocationList, FromDer as _, X509Certificate};

use crate::distinguished_name;
use crate::pem::{File, Item};

/// A revocation list in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationList {
    /// The file that contains the list.
    pub origin: String,
    /// The line at which the list begins.
    pub line: usize,
    /// The CA's name (RFC 4514).
    pub issuer: String,
    /// The time of issue, in seconds since the epoch.
    pub this_update: i64,
    /// The time when the next list is due, in seconds since the epoch; `None` if the list has no such time.
    pub next_update: Option<i64>,
}

/// The revocation lists of a server, and the CAs without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocation {
    /// The lists, in the order of the settings.
    pub lists: Vec<RevocationList>,
    /// The client CAs (RFC 4514) without a list; empty if there are no lists.
    pub unlisted: Vec<String>,
}

impl RevocationList {
    /// Whether the next list is overdue at `now`, in seconds since the epoch.
    pub fn is_expired_at(&self, now: i64) -> bool {
        self.next_update.is_some_and(|at| at < now)
    }
}

impl Revocation {
    /// Adds a valid list from a file.
    pub(crate) fn add(&mut self, file: &File, list: &Item<CertificateRevocationListDer<'_>>) {
        let Ok((_, read)) = CertificateRevocationList::from_der(&list.der) else { return };
        self.lists.push(RevocationList {
            origin: file.origin.clone(),
            line: list.line,
            issuer: distinguished_name::text(read.issuer()),
            this_update: read.last_update().timestamp(),
            next_update: read.next_update().map(|time| time.timestamp()),
        });
    }

    /// Records the CAs without a list.
    pub(crate) fn compare(&mut self, authorities: &[CertificateDer<'_>]) {
        if self.lists.is_empty() {
            return;
        }
        for authority in authorities {
            let Ok((_, read)) = X509Certificate::from_der(authority) else { continue };
            let name = distinguished_name::text(read.subject());
            let is_listed = self.lists.iter().any(|list| list.issuer == name);
            if !is_listed && !self.unlisted.contains(&name) {
                self.unlisted.push(name);
            }
        }
    }
}
