//! The certificates of listeners, from files or set at run time. Reloads and upgrades keep a certificate set at run
//! time while the chain and key in the files are unchanged; a restart loses it.

use super::snapshot::Snapshot;
use super::{Checked, Fault};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_tls::Certificate;

/// A certificate that listeners can present, with its source.
#[derive(Clone, Debug)]
pub(crate) struct ServedCertificate {
    pub name: Option<Arc<str>>,
    /// The configured file of the chain, even for a certificate set at run time.
    pub file: Arc<str>,
    pub certificate: Certificate,
    pub from: CertificateFrom,
}

impl ServedCertificate {
    /// Creates a certificate that was set at run time; for `replaces`, see [`CertificateFrom::Admin`].
    /// [`Checked::take_certificates`] adds the file's name.
    pub(crate) fn set_at_run_time(name: Arc<str>, certificate: Certificate, replaces: u64) -> Self {
        let from = CertificateFrom::Admin { replaces };
        Self { name: Some(name), file: "".into(), certificate, from }
    }

    /// The DNS names of the certificate, escaped: a client of the admin address may have put any characters there.
    pub(crate) fn names_in_words(&self) -> String {
        match &self.certificate.presented().names[..] {
            [] => "no DNS name".to_owned(),
            names => names.join(" ").escape_debug().to_string(),
        }
    }
}

/// The source of a certificate set at run time, in errors.
pub(crate) fn origin_at_run_time(name: &str) -> String {
    format!("certificate `{name}` set at run time")
}

/// The source of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertificateFrom {
    /// The files that the configuration names.
    File,
    /// The admin address. `replaces` is the fingerprint of the chain and key files that the certificate replaces.
    Admin { replaces: u64 },
}

/// The certificates set at run time, by name.
pub(crate) type SetCertificates = BTreeMap<Arc<str>, ServedCertificate>;

impl Snapshot {
    /// The index of the certificate with this name.
    pub(crate) fn certificate_named(&self, name: &str) -> Option<usize> {
        self.certificates.iter().position(|served| served.name.as_deref() == Some(name))
    }

    /// The certificates set at run time.
    pub(crate) fn set_certificates(&self) -> SetCertificates {
        let set = self.certificates.iter().filter(|served| served.from != CertificateFrom::File);
        set.filter_map(|served| Some((Arc::clone(served.name.as_ref()?), served.clone()))).collect()
    }

    /// Returns the snapshot with these certificates in place of those with the same indexes, in all listeners that
    /// present them. Fails if a listener cannot present one of these certificates beside its others.
    pub(crate) fn with_certificates(
        &self,
        set: impl IntoIterator<Item = (usize, ServedCertificate)>,
    ) -> Result<Self, Fault> {
        let mut certificates = self.certificates.to_vec();
        let mut replaced = BTreeSet::new();
        for (at, served) in set {
            if let Some(place) = certificates.get_mut(at) {
                *place = served;
                replaced.insert(at);
            }
        }
        let mut next = Self { certificates: certificates.into(), ..self.clone() };
        // All addresses of a listener share one TLS state.
        let mut changed: BTreeMap<Arc<str>, weir_tls::Server> = BTreeMap::new();
        for listener in &mut next.listeners {
            let Some(server) = &mut listener.tls else { continue };
            if listener.certificates.iter().all(|index| !replaced.contains(index)) {
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
    /// Replaces certificates loaded from files with those in `set`. Skips certificates whose chain or key in the files
    /// has changed since they were set, and returns their names. Fails if a listener can no longer present a
    /// certificate in `set`.
    pub(crate) fn take_certificates(&mut self, set: &SetCertificates) -> Result<Vec<Arc<str>>, Fault> {
        let (mut taken, mut outdated) = (Vec::new(), Vec::new());
        for (name, served) in set {
            let Some(at) = self.snapshot.certificate_named(name) else { continue };
            if (CertificateFrom::Admin { replaces: self.fingerprint(at) }) != served.from {
                outdated.push(Arc::clone(name));
                continue;
            }
            let file = Arc::clone(&self.snapshot.certificates[at].file);
            taken.push((at, ServedCertificate { file, ..served.clone() }));
        }
        if taken.is_empty() {
            return Ok(outdated);
        }
        let indexes: BTreeSet<_> = taken.iter().map(|(at, _)| *at).collect();
        // Replace all in one step: if two certificates have exchanged names, a state with only one of them replaced
        // would be invalid.
        let next = self.snapshot.with_certificates(taken);
        let next = next.map_err(|fault| self.because_of_certificates(&indexes, fault))?;
        self.snapshot = Arc::new(next);
        Ok(outdated)
    }

    /// Adds to a listener's fault the requests that reset those of its certificates that were set at run time, listed
    /// in `indexes`.
    fn because_of_certificates(&self, indexes: &BTreeSet<usize>, fault: Fault) -> Fault {
        let Fault { key, message } = fault;
        let listeners = &self.snapshot.listeners;
        let listener = listeners.iter().find(|listener| key == format!("listener.{}.tls", listener.name));
        let own = listener.iter().flat_map(|listener| listener.certificates.iter());
        let own = own.filter(|index| indexes.contains(index)).filter_map(|index| {
            let name = self.snapshot.certificates.get(*index)?.name.as_deref()?;
            Some(format!("DELETE /certificates/{name}"))
        });
        let requests = own.collect::<Vec<_>>().join(" or ");
        let message = format!("{message}; return to a certificate of the file: {requests}");
        Fault { key, message }
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

        /// A certificate for this name, as set by the admin address.
        fn set(&self, name: &str, replaces: u64) -> ServedCertificate {
            let certificate = Certificate::load(&self.issue(name).identity(), &SystemTime).unwrap();
            ServedCertificate::set_at_run_time("a".into(), certificate, replaces)
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
        let now = before.with_certificates([(0, pki.set("c", 1))]).unwrap();
        assert_eq!(
            presented(&now),
            [vec!["b.example", "c.example"], vec!["b.example", "c.example"], vec!["b.example"]]
        );
        let core = |snapshot: &Snapshot, at: usize| snapshot.listeners[at].tls.as_ref().unwrap().core();
        assert!(core(&now, 0).is_of(now.listeners[1].tls.as_ref().unwrap()), "addresses share it");
        assert!(core(&now, 2).is_of(before.listeners[2].tls.as_ref().unwrap()), "others stay");
        let fault = before.with_certificates([(0, pki.set("b", 1))]).unwrap_err();
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
        // The reload reuses the certificate loaded from the file, not the one set at run time.
        assert!(
            third.snapshot.certificates[1]
                .certificate
                .is_clone_of(&second.snapshot.certificates[1].certificate)
        );
    }

    /// Regression test: two certificates set at run time had exchanged names. A reload replaced them one after the
    /// other, and failed depending on the order of their names.
    #[test]
    fn a_reload_keeps_certificates_that_have_exchanged_names() {
        let pki = Pki::new();
        let first = pki.checked(None);
        for [a, b] in [["b", "a"], ["c", "a"], ["b", "c"]] {
            let set = [("a", a, 0), ("b", b, 1)].map(|(name, names, at)| {
                let set =
                    ServedCertificate { name: Some(name.into()), ..pki.set(names, first.fingerprint(at)) };
                (name.into(), set)
            });
            let mut next = pki.checked(Some(&first));
            assert_eq!(next.take_certificates(&SetCertificates::from(set)), Ok(Vec::new()));
            let names = [b, a].map(|name| format!("{name}.example"));
            assert_eq!(presented(&next.snapshot)[0], names);
            assert_eq!(next.snapshot.certificates[0].file, first.snapshot.certificates[0].file);
        }
    }

    #[test]
    fn a_conflict_with_a_certificate_of_the_file_names_the_way_out() {
        let pki = Pki::new();
        let mut checked = pki.checked(None);
        let set = SetCertificates::from([("a".into(), pki.set("b", checked.fingerprint(0)))]);
        let fault = checked.take_certificates(&set).unwrap_err();
        assert_eq!(fault.key, "listener.one.tls");
        let expected = "expected one of them; return to a certificate of the file: DELETE /certificates/a";
        assert!(fault.message.ends_with(expected), "{fault}");
    }

    #[test]
    fn names_are_shown_without_characters_that_act_on_terminals() {
        let pki = Pki::new();
        let shown = |names: &[&str]| {
            let issued = pki.authority.issue(names, KeyKind::EcdsaP256).unwrap();
            let certificate = Certificate::load(&issued.identity(), &SystemTime).unwrap();
            ServedCertificate::set_at_run_time("a".into(), certificate, 0).names_in_words()
        };
        assert_eq!(shown(&["a.example", "*.b.example"]), "a.example *.b.example");
        assert_eq!(shown(&["192.0.2.1"]), "no DNS name");
        assert_eq!(shown(&["a\u{1b}[2J", "b\nweir: c"]), "a\\u{1b}[2j b\\nweir: c");
    }
}
