//! Changes of certificates at run time. The reload thread makes them, so that no reload overtakes a change.

use super::endpoints::Refusal;
use super::reload::Reloader;
use super::reports::confirm;
use crate::config::{CertificateFrom, ServedCertificate, why_invalid};
use crate::observe::journal::Journal;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, UNIX_EPOCH};
use weir_http::visible;
use weir_tls::Certificate;

/// A change of a certificate, and the sender for its outcome.
pub(crate) struct CertificateChange {
    pub name: String,
    pub edit: CertificateEdit,
    pub reply: Sender<Result<(), Refusal>>,
}

pub(crate) enum CertificateEdit {
    Replace(Certificate),
    /// Restores the certificate in the configured files.
    Reset,
}

impl Reloader {
    /// Changes a certificate in all listeners that present it, and sends the change to the workers. Errors: the reason
    /// why nothing has changed.
    pub(super) fn change_certificate(&mut self, name: &str, edit: CertificateEdit) -> Result<(), Refusal> {
        // If a new process took over, the change would be lost.
        self.upgrades.lasts().map_err(Refusal::Conflict)?;
        let active = self.active.snapshot();
        let unknown = || Refusal::Unknown(format!("unknown certificate `{name}`"));
        let at = active.certificate_named(name).ok_or_else(unknown)?;
        let (of_file, before) =
            self.checked.certificates().get(at).zip(active.certificates.get(at)).ok_or_else(unknown)?;
        let served = match edit {
            CertificateEdit::Replace(certificate) => {
                let from = CertificateFrom::Admin { replaces: self.checked.fingerprint(at) };
                ServedCertificate { certificate, from, ..of_file.clone() }
            }
            CertificateEdit::Reset if before.from == CertificateFrom::File => return Ok(()),
            CertificateEdit::Reset => of_file.clone(),
        };
        // Controllers often send the same certificate again, which must not discard stored sessions.
        if served.from == before.from && served.certificate.has_chain_of(&before.certificate) {
            return Ok(());
        }
        let (names, until) = (served.names_in_words(), date(served.certificate.presented().not_after));
        let warning = match served.from {
            CertificateFrom::File => None,
            CertificateFrom::Admin { .. } => why_invalid(&served.certificate),
        };
        let from = match served.from {
            CertificateFrom::File => "the file",
            CertificateFrom::Admin { .. } => "the admin address",
        };
        let line = format!("weir: {name}: certificate of {from}: until {until}, for {names}");
        let next = active.with_certificates([(at, served)]);
        let next = next.map_err(|fault| Refusal::Invalid(visible(&fault.to_string()).into_owned()))?;
        self.active.change(|current| {
            // Only this thread changes listeners, but a server's address or state may have changed meanwhile.
            let mut changed = current.clone();
            changed.certificates = Arc::clone(&next.certificates);
            changed.listeners.clone_from(&next.listeners);
            Some(changed)
        });
        self.status.change_certificates(&self.active.snapshot());
        self.journal.line(line);
        if let Some((why, next)) = warning {
            self.journal.warn(format_args!("weir: warning: {why}; {next}"));
        }
        confirm(&self.workers);
        Ok(())
    }
}

/// Reports the certificates whose files replace those set at run time.
pub(super) fn report_renewed(names: Vec<Arc<str>>, journal: &Journal) {
    for name in names {
        journal.line(format_args!(
            "weir: {name}: the file has another certificate now, which replaces the one set at run time"
        ));
    }
}

fn date(seconds: i64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds.clamp(0, LAST) as u64))
}

/// The last second of the year 9999: the format supports only four-digit years.
const LAST: i64 = 253_402_300_799;
