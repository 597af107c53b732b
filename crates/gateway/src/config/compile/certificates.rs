//! Certificates: loaded once for all listeners, and again only if their files change or their OCSP response was
//! rejected. `Identity` in the crate `weir-tls` reads and checks the files.

use super::{Fault, Findings, check_name, key_of_file, listed};
use crate::config::document::{self, Config};
use crate::config::named_files::FilesOfCertificate;
use crate::config::served_certificates::{CertificateFrom, ServedCertificate};
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use weir_tls::{Certificate, Curves, Identity, SettingsError, SystemTime};

/// Certificates of an earlier configuration whose files are unchanged.
pub(crate) type KnownCertificates<'a> = HashMap<FilesOfCertificate<'a>, &'a Certificate>;

/// The certificates of a configuration, by index and by name.
pub(super) struct Certificates<'a> {
    /// The index of each named certificate in the configuration.
    names: BTreeMap<&'a str, usize>,
    /// The number of certificates in the configuration.
    count: usize,
    /// The certificates, in the order of the configuration; empty if no listener presents any; `None` if there is a
    /// fault.
    pub loaded: Option<Vec<Certificate>>,
}

impl<'a> Certificates<'a> {
    pub(super) fn compile(
        config: &'a Config,
        known: &KnownCertificates<'_>,
        findings: &mut Findings,
    ) -> Self {
        let loaded = loaded(config, known, findings);
        Self { names: names(config, findings), count: config.certificates.len(), loaded }
    }

    /// Returns the indexes of a listener's certificates, the default first. Fails if a name in the listener's list is
    /// unknown or a duplicate, or the list is empty.
    pub(super) fn of(&self, listener: &document::Listener, key: &str) -> Result<Vec<usize>, Fault> {
        let Some(written) = &listener.certificates else { return Ok((0..self.count).collect()) };
        if written.is_empty() {
            let why = "empty: expected at least one name, or no such key for all certificates";
            return Err(Fault::new(format!("{key}.certificates"), why));
        }
        let mut places = HashMap::with_capacity(written.len());
        let index = |(at, name): (usize, &String)| {
            let fault = |why| Fault::new(format!("{key}.certificates.{at}"), why);
            if let Some(first) = places.insert(name.clone(), at) {
                return Err(fault(format!(
                    "duplicate certificate `{name}`: it is certificates.{first} already"
                )));
            }
            self.names.get(name.as_str()).copied().ok_or_else(|| {
                let known = listed(self.names.keys());
                fault(format!("unknown certificate `{name}`: expected one of {known}"))
            })
        };
        written.iter().enumerate().map(index).collect()
    }

    /// All certificates in the form that the workers use; `None` if there is a fault.
    pub(super) fn served(&self, config: &Config) -> Option<Arc<[ServedCertificate]>> {
        let served = |(certificate, written): (&Certificate, &document::Certificate)| ServedCertificate {
            name: written.name.as_deref().map(Into::into),
            file: written.chain.display().to_string().into(),
            certificate: certificate.clone(),
            from: CertificateFrom::File,
        };
        self.loaded.as_ref().map(|loaded| loaded.iter().zip(&config.certificates).map(served).collect())
    }

    /// The certificates with these indexes; `None` if there is a fault.
    pub(super) fn at(&self, indexes: &[usize]) -> Option<Vec<Certificate>> {
        let loaded = self.loaded.as_ref()?;
        indexes.iter().map(|index| loaded.get(*index).cloned()).collect()
    }
}

/// The indexes of certificates by name. An invalid or duplicate name is a fault.
fn names<'a>(config: &'a Config, findings: &mut Findings) -> BTreeMap<&'a str, usize> {
    let mut names = BTreeMap::new();
    for (index, certificate) in config.certificates.iter().enumerate() {
        let Some(name) = certificate.name.as_deref() else { continue };
        let key = format!("certificate.{index}.name");
        findings.keep(check_name(&key, name));
        match names.entry(name) {
            Entry::Vacant(entry) => drop(entry.insert(index)),
            Entry::Occupied(entry) => {
                let first = entry.get();
                let why = format!(
                    "duplicate name `{name}`: expected a name that no other certificate has, and certificate.{first} has it"
                );
                findings.fault(Fault::new(key, why));
            }
        }
    }
    names
}

fn loaded(
    config: &Config,
    known: &KnownCertificates<'_>,
    findings: &mut Findings,
) -> Option<Vec<Certificate>> {
    if config.listeners.values().all(|listener| listener.tls.is_none()) {
        return Some(Vec::new());
    }
    let curves = curves(config);
    let written = config.certificates.iter().enumerate();
    let loaded: Vec<_> = written
        .map(|(index, written)| {
            let known = known.get(&written.files()).copied();
            findings.keep(load(written, known, curves, &format!("certificate.{index}")))
        })
        .collect();
    loaded.into_iter().collect()
}

/// The curves to prepare the keys for: [`Curves::Ifma`] if a listener signs with it and this process supports it, else
/// the default.
fn curves(config: &Config) -> Curves {
    let with_tls = config.listeners.values().filter_map(|listener| listener.tls.as_ref());
    let mut own = with_tls.map(|tls| Curves::from(tls.curves));
    own.find(|curves| *curves == Curves::Ifma && curves.check().is_ok()).unwrap_or_default()
}

fn load(
    written: &document::Certificate,
    known: Option<&Certificate>,
    curves: Curves,
    key: &str,
) -> Result<Certificate, Fault> {
    let document::Certificate { name: _, chain, key: private, ocsp } = written;
    let identity = Identity::files(chain, private).with_ocsp(ocsp.clone());
    let loaded = known_or_loaded(&identity, known);
    let prepared = loaded.and_then(|loaded| loaded.prepare(&identity, curves).map(|()| loaded));
    prepared.map_err(|error| {
        let error = error.to_string();
        let files = [("chain", Some(chain)), ("key", Some(private)), ("ocsp", ocsp.as_ref())];
        let files = files.map(|(name, file)| (format!("{key}.{name}"), file));
        Fault::new(key_of_file(files.into_iter(), &error).unwrap_or_else(|| key.to_owned()), error)
    })
}

fn known_or_loaded(identity: &Identity, known: Option<&Certificate>) -> Result<Certificate, SettingsError> {
    let is_rejected = |known: &&Certificate| {
        known.presented().ocsp.as_ref().is_some_and(|staple| staple.rejected.is_some())
    };
    if let Some(known) = known.filter(|known| !is_rejected(known)) {
        return Ok(known.clone());
    }
    let loaded = Certificate::load(identity, &SystemTime)?;
    // Even a known certificate is loaded again, since a rejected OCSP response may be valid by now.
    Ok(known.filter(|known| known.presented() == loaded.presented()).cloned().unwrap_or(loaded))
}

#[cfg(test)]
mod tests {
    use crate::config::document::Config;
    use crate::config::{Checked, Snapshot};
    use std::fs;
    use std::path::Path;
    use tempfile::{TempDir, tempdir};
    use weir_tls::Certificate;
    use weir_tls::issue::{Authority, KeyKind, Signer, Status};

    /// Issues a certificate for `NAME.example`, and writes it with its key to `NAME.pem`.
    fn issue(authority: &Authority, directory: &TempDir, name: &str) {
        let issued = authority.issue(&[&format!("{name}.example")], KeyKind::EcdsaP256).unwrap();
        let combined = issued.certificates + &issued.key;
        fs::write(directory.path().join(format!("{name}.pem")), combined).unwrap();
    }

    fn config(directory: &Path, names: &[&str]) -> Config {
        let certificate = |name: &&str| {
            let file = directory.join(format!("{name}.pem"));
            format!("[[certificate]]\nchain = '{0}'\nkey = '{0}'\n", file.display())
        };
        let listeners =
            "[listener.a]\nbind = '127.0.0.1:0'\ntls = {}\n[listener.b]\nbind = '127.0.0.1:0'\ntls = {}\n";
        let certificates: String = names.iter().map(certificate).collect();
        toml::from_str(&format!("{listeners}{certificates}")).unwrap()
    }

    /// The certificates of the listener with this index.
    fn of_listener(snapshot: &Snapshot, index: usize) -> &[Certificate] {
        snapshot.listeners[index].tls.as_ref().unwrap().certificates()
    }

    #[test]
    fn listeners_share_certificates_and_only_changed_files_are_loaded_again() {
        let (authority, directory) = (Authority::new().unwrap(), tempdir().unwrap());
        for name in ["one", "two", "three"] {
            issue(&authority, &directory, name);
        }
        let check = |names: &[&str], previous: Option<&Checked>| {
            Checked::after(config(directory.path(), names), previous).unwrap()
        };
        let first = check(&["one", "two"], None);
        for (at, own) in first.snapshot.certificates.iter().map(|served| &served.certificate).enumerate() {
            assert!([0, 1].iter().all(|index| of_listener(&first.snapshot, *index)[at].is_clone_of(own)));
        }
        let are_clones = |now: &Checked, at: usize, before: &Checked, was: usize| {
            now.snapshot.certificates[at]
                .certificate
                .is_clone_of(&before.snapshot.certificates[was].certificate)
        };
        // The same certificates in another order.
        let mut second = check(&["three", "two", "one"], Some(&first));
        assert!(are_clones(&second, 1, &first, 1) && are_clones(&second, 2, &first, 0));
        issue(&authority, &directory, "two");
        let mut third = check(&["three", "two", "one"], Some(&second));
        assert!(!are_clones(&third, 1, &second, 1));
        assert!(are_clones(&third, 0, &second, 0) && are_clones(&third, 2, &second, 2));

        // The listener inherits TLS with its sessions if the certificates are the same.
        let core = |checked: &Checked| checked.snapshot.listeners[0].tls.as_ref().unwrap().core();
        let is_of = |now: &Checked, before: &Checked| {
            core(now).is_of(before.snapshot.listeners[0].tls.as_ref().unwrap())
        };
        second.inherit_state(&first, &first.snapshot);
        assert!(!is_of(&second, &first));
        third.inherit_state(&second, &second.snapshot);
        assert!(!is_of(&third, &second));
        let mut fourth = check(&["three", "two", "one"], Some(&third));
        fourth.inherit_state(&third, &third.snapshot);
        assert!(is_of(&fourth, &third));
    }

    /// A configuration of two named certificates, and one without a name.
    fn named(directory: &TempDir, one: &str, two: &str, listeners: &str) -> Result<Checked, Vec<String>> {
        let mut config = config(directory.path(), &["one", "two", "three"]);
        config.listeners = toml::from_str::<Config>(listeners).unwrap().listeners;
        config.certificates[0].name = Some(one.to_owned());
        config.certificates[1].name = Some(two.to_owned());
        Checked::new(config).map_err(|found| {
            found.faults().map(|fault| format!("{}: {}", fault.key, fault.message)).collect()
        })
    }

    #[test]
    fn a_listener_has_the_certificates_that_it_names_or_all() {
        let (authority, directory) = (Authority::new().unwrap(), tempdir().unwrap());
        for name in ["one", "two", "three"] {
            issue(&authority, &directory, name);
        }
        let listeners = "[listener.a]\nbind = '127.0.0.1:0'\ntls = {}\ncertificates = ['two', 'one']\n\
                         [listener.b]\nbind = '127.0.0.1:0'\ntls = {}\n\
                         [listener.c]\nbind = '127.0.0.1:0'\ntls = {}\ncertificates = 'one'\n";
        let checked = named(&directory, "one", "two", listeners).unwrap();
        let names = |index| -> Vec<_> {
            let own = of_listener(&checked.snapshot, index).iter();
            own.map(|certificate| certificate.presented().names[0].as_str()).collect()
        };
        assert_eq!(names(0), ["two.example", "one.example"]);
        assert_eq!(names(1), ["one.example", "two.example", "three.example"]);
        assert_eq!(names(2), ["one.example"]);
        assert_eq!(checked.warnings().count(), 0);
        let (others, _) = listeners.split_once("[listener.b]").unwrap();
        let checked = named(&directory, "one", "two", others).unwrap();
        let warned: Vec<_> = checked.warnings().map(|warning| warning.key.as_str()).collect();
        assert_eq!(warned, ["certificate.2"], "no listener presents it");
    }

    #[test]
    fn faults_of_names() {
        let (authority, directory) = (Authority::new().unwrap(), tempdir().unwrap());
        for name in ["one", "two", "three"] {
            issue(&authority, &directory, name);
        }
        for (one, two, certificates, tls, expected) in [
            (
                "a",
                "a",
                "'a'",
                "tls = {}",
                "certificate.1.name: duplicate name `a`: expected a name that no other certificate has, and certificate.0 has it",
            ),
            (
                "a b",
                "b",
                "'b'",
                "tls = {}",
                "certificate.0.name: invalid name `a b`: expected 1 to 64 letters",
            ),
            (
                "a",
                "b",
                "['b', 'c']",
                "tls = {}",
                "listener.web.certificates.1: unknown certificate `c`: expected one of `a`, `b`",
            ),
            (
                "a",
                "b",
                "['b', 'b']",
                "tls = {}",
                "listener.web.certificates.1: duplicate certificate `b`: it is certificates.0 already",
            ),
            ("a", "b", "[]", "tls = {}", "listener.web.certificates: empty: expected at least one name"),
            ("a", "b", "'b'", "", "listener.web.certificates: no effect without `tls`"),
        ] {
            let listener =
                format!("[listener.web]\nbind = '127.0.0.1:0'\ncertificates = {certificates}\n{tls}\n");
            let faults = named(&directory, one, two, &listener).unwrap_err();
            assert!(faults.len() == 1 && faults[0].starts_with(expected), "{expected}: {faults:?}");
        }
    }

    #[test]
    fn a_fault_of_a_file_is_reported_once() {
        let (authority, directory) = (Authority::new().unwrap(), tempdir().unwrap());
        issue(&authority, &directory, "one");
        fs::write(directory.path().join("two.pem"), "no certificate").unwrap();
        let findings = Checked::new(config(directory.path(), &["one", "two"])).unwrap_err();
        let faults: Vec<_> = findings.faults().map(|fault| fault.key.as_str()).collect();
        assert_eq!(faults, ["certificate.1.chain"]);
    }

    /// A reload checks the OCSP response again, since it may be valid later, but that alone does not change the
    /// certificate.
    #[test]
    fn a_certificate_with_a_rejected_response_stays_the_same() {
        let (authority, directory) = (Authority::new().unwrap(), tempdir().unwrap());
        let issued = authority.issue(&["one.example"], KeyKind::EcdsaP256).unwrap();
        let validity = ("20260101000000Z", Some("20491231000000Z"));
        // The chain lacks the issuer, so the response cannot be verified.
        let response = authority.ocsp_response(&issued, Status::Good, validity, Signer::Issuer).unwrap();
        fs::write(directory.path().join("one.pem"), issued.certificates.clone() + &issued.key).unwrap();
        let ocsp = directory.path().join("one.ocsp");
        fs::write(&ocsp, response).unwrap();
        let mut config = config(directory.path(), &["one"]);
        config.certificates[0].ocsp = Some(ocsp);
        let first = Checked::new(config.clone()).unwrap();
        let certificate = &first.snapshot.certificates[0].certificate;
        assert!(certificate.presented().ocsp.as_ref().unwrap().rejected.is_some());
        let second = Checked::after(config, Some(&first)).unwrap();
        assert!(second.snapshot.certificates[0].certificate.is_clone_of(certificate));
    }
}
