//! The certificates of listeners, and those that replace them at run time. Reloads keep those while the file's own chain and key are
//! the same; a restart or an upgrade loses them.

use super::snapshot::Snapshot;
use super::{Checked, Fault};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_tls::Certificate;

/// A certificate of listeners.
#[derive(Clone, Debug)]
pub(crate) struct ServedCertificate {
    pub name: Option<Arc<str>>,
    /// The file of the chain.
    pub file: Arc<str>,
    pub certificate: Certificate,
    pub from: CertificateFrom,
}

/// The source of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertificateFrom {
    /// The files of the configuration.
    File,
    /// The admin address. `replaces` is the fingerprint of the files.
    Admin { replaces: u64 },
}

/// The certificates set at run time, by name.
pub(crate) type SetCertificates = BTreeMap<Arc<str>, ServedCertificate>;

impl Snapshot {
    /// The index of a certificate.
    pub(crate) fn certificate_named(&self, name: &str) -> Option<usize> {
        self.certificates.iter().position(|served| served.name.as_deref() == Some(name))
    }

    /// The certificates set at run time.
    pub(crate) fn set_certificates(&self) -> SetCertificates {
        let set = self.certificates.iter().filter(|served| served.from != CertificateFrom::File);
        set.filter_map(|served| Some((Arc::clone(served.name.as_ref()?), served.clone()))).collect()
    }

    /// The snapshot with another certificate in place of the one with this index, in all listeners that present that. Errors: a
    /// listener cannot present it beside its others, and why.
    pub(crate) fn with_certificate(&self, at: usize, served: ServedCertificate) -> Result<Self, Fault> {
        let mut certificates = self.certificates.to_vec();
        if let Some(place) = certificates.get_mut(at) {
            *place = served;
        }
        let mut next = Self { certificates: certificates.into(), ..self.clone() };
        // The addresses of a listener share their TLS.
        let mut changed: BTreeMap<Arc<str>, weir_tls::Server> = BTreeMap::new();
        for listener in &mut next.listeners {
            let Some(server) = &mut listener.tls else { continue };
            if !listener.certificates.contains(&at) {
                continue;
            }
            if let Some(changed) = changed.get(&listener.name) {
                *server = changed.clone();
                continue;
            }
            let own = listener.certificates.iter().filter_map(|index| next.certificates.get(*index));
            let own = own.map(|served| served.certificate.clone()).collect();
            *server = server
                .presenting(own)
                .map_err(|error| Fault::new(format!("listener.{}.tls", listener.name), error))?;
            changed.insert(Arc::clone(&listener.name), server.clone());
        }
        Ok(next)
    }
}

impl Checked {
    /// Replaces the certificates of the files by those in `set`, if the file has the same chain and key as when they were set.
    /// Returns the names of those whose files have changed. Errors: a listener cannot present one any more.
    pub(crate) fn take_certificates(&mut self, set: &SetCertificates) -> Result<Vec<Arc<str>>, Fault> {
        let mut outdated = Vec::new();
        for (name, served) in set {
            let Some(at) = self.snapshot.certificate_named(name) else { continue };
            if (CertificateFrom::Admin { replaces: self.fingerprint(at) }) != served.from {
                outdated.push(Arc::clone(name));
                continue;
            }
            let served = ServedCertificate {
                file: Arc::clone(&self.snapshot.certificates[at].file),
                ..served.clone()
            };
            let next = self.snapshot.with_certificate(at, served).map_err(|Fault { key, message }| {
                let message = format!(
                    "certificate `{name}`, set at run time: {message}; return to the file's: DELETE /certificates/{name}"
                );
                Fault { key, message }
            })?;
            self.snapshot = Arc::new(next);
        }
        Ok(outdated)
    }

    /// The fingerprint of the files of the certificate with this index.
    pub(crate) fn fingerprint(&self, at: usize) -> u64 {
        self.config.certificates.get(at).map_or(0, |written| self.files.fingerprint(written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::document::Config;
    use std::fs;
    use tempfile::{TempDir, tempdir};
    use weir_tls::SystemTime;
    use weir_tls::issue::{Authority, Issued, KeyKind};

    struct Pki {
        authority: Authority,
        directory: TempDir,
    }

    impl Pki {
        fn new() -> Self {
            let pki = Self { authority: Authority::new().unwrap(), directory: tempdir().unwrap() };
            for name in ["a", "b"] {
                pki.write(name);
            }
            pki
        }

        fn issue(&self, name: &str) -> Issued {
            self.authority.issue(&[&format!("{name}.example")], KeyKind::EcdsaP256).unwrap()
        }

        /// Writes a new certificate and its key to a file.
        fn write(&self, name: &str) {
            let issued = self.issue(name);
            fs::write(self.path(name), issued.certificates + &issued.key).unwrap();
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.directory.path().join(format!("{name}.pem"))
        }

        fn checked(&self, previous: Option<&Checked>) -> Checked {
            let certificate = |name| {
                let path = self.path(name);
                format!("[[certificate]]\nname = '{name}'\nchain = '{0}'\nkey = '{0}'\n", path.display())
            };
            let listeners = "[listener.one]\nbind = ['127.0.0.1:0', '127.0.0.2:0']\ncertificates = ['b', 'a']\ntls = {}\n\
                             [listener.two]\nbind = '127.0.0.3:0'\ncertificates = 'b'\ntls = {}\n";
            let text = format!("{listeners}{}{}", certificate("a"), certificate("b"));
            let config: Config = toml::from_str(&text).unwrap();
            Checked::after(config, previous).unwrap()
        }

        /// A certificate for this name, as the admin address sets it.
        fn set(&self, name: &str, replaces: u64) -> ServedCertificate {
            let certificate = Certificate::load(&self.issue(name).identity(), &SystemTime).unwrap();
            let from = CertificateFrom::Admin { replaces };
            ServedCertificate { name: Some("a".into()), file: "".into(), certificate, from }
        }
    }

    /// The first name of each certificate that each listener presents.
    fn presented(snapshot: &Snapshot) -> Vec<Vec<&str>> {
        let servers = snapshot.listeners.iter().filter_map(|listener| listener.tls.as_ref());
        servers.map(|server| server.certificates().iter().map(first_name).collect()).collect()
    }

    fn first_name(certificate: &Certificate) -> &str {
        &certificate.presented().names[0]
    }

    #[test]
    fn a_certificate_is_replaced_in_the_listeners_that_present_it() {
        let pki = Pki::new();
        let before = pki.checked(None).snapshot;
        assert_eq!(
            presented(&before),
            [vec!["b.example", "a.example"], vec!["b.example", "a.example"], vec!["b.example"]]
        );
        let now = before.with_certificate(0, pki.set("c", 1)).unwrap();
        assert_eq!(
            presented(&now),
            [vec!["b.example", "c.example"], vec!["b.example", "c.example"], vec!["b.example"]]
        );
        let core = |snapshot: &Snapshot, at: usize| snapshot.listeners[at].tls.as_ref().unwrap().core();
        assert!(core(&now, 0).is_of(now.listeners[1].tls.as_ref().unwrap()), "addresses share it");
        assert!(core(&now, 2).is_of(before.listeners[2].tls.as_ref().unwrap()), "others stay");
        let fault = before.with_certificate(0, pki.set("b", 1)).unwrap_err();
        assert!(
            fault.key == "listener.one.tls" && fault.message.contains("are both for b.example"),
            "{fault}"
        );
    }

    #[test]
    fn a_reload_keeps_it_while_the_files_of_its_own_are_the_same() {
        let pki = Pki::new();
        let first = pki.checked(None);
        let set = SetCertificates::from([("a".into(), pki.set("c", first.fingerprint(0)))]);
        pki.write("b");
        let mut second = pki.checked(Some(&first));
        assert_eq!(second.take_certificates(&set), Ok(Vec::new()));
        assert_eq!(second.snapshot.set_certificates().len(), 1);
        assert_eq!(presented(&second.snapshot)[0], ["b.example", "c.example"]);
        pki.write("a");
        let mut third = pki.checked(Some(&second));
        assert_eq!(third.take_certificates(&second.snapshot.set_certificates()), Ok(vec!["a".into()]));
        assert!(third.snapshot.set_certificates().is_empty());
        assert_eq!(presented(&third.snapshot)[0], ["b.example", "a.example"]);
        // The file's own certificate is known, not the one that replaced it.
        assert!(
            third.snapshot.certificates[1]
                .certificate
                .is_clone_of(&second.snapshot.certificates[1].certificate)
        );
    }
}
