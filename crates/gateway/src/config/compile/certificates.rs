//! Certificates: loaded once for all listeners, and again only if their files have changed.

use super::{Fault, Findings, key_of_file};
use crate::config::document::{self, Config};
use crate::config::files::FilesOfCertificate;
use std::collections::HashMap;
use weir_tls::{Certificate, Identity, SystemTime};

/// Certificates of an earlier configuration whose files have the same contents now.
pub(crate) type KnownCertificates<'a> = HashMap<FilesOfCertificate<'a>, &'a Certificate>;

/// The certificates in the order of the document; none if no listener presents them. Returns `None` if there is a fault.
pub(super) fn compile(
    config: &Config,
    known: &KnownCertificates<'_>,
    findings: &mut Findings,
) -> Option<Vec<Certificate>> {
    if config.listeners.values().all(|listener| listener.tls.is_none()) {
        return Some(Vec::new());
    }
    let written = config.certificates.iter().enumerate();
    let loaded: Vec<_> = written
        .map(|(index, written)| {
            let known = known.get(&written.files()).copied();
            findings.keep(load(written, known, &format!("certificate.{index}")))
        })
        .collect();
    loaded.into_iter().collect()
}

fn load(
    written: &document::Certificate,
    known: Option<&Certificate>,
    key: &str,
) -> Result<Certificate, Fault> {
    let is_rejected = |known: &&Certificate| {
        known.presented().ocsp.as_ref().is_some_and(|staple| staple.rejected.is_some())
    };
    if let Some(known) = known.filter(|known| !is_rejected(known)) {
        return Ok(known.clone());
    }
    let document::Certificate { chain, key: private, ocsp } = written;
    let identity = Identity::files(chain, private).with_ocsp(ocsp.clone());
    match Certificate::load(&identity, &SystemTime) {
        // A response that was rejected may be valid by now.
        Ok(loaded) => {
            Ok(known.filter(|known| known.presented() == loaded.presented()).cloned().unwrap_or(loaded))
        }
        Err(error) => {
            let error = error.to_string();
            let files = [("chain", Some(chain)), ("key", Some(private)), ("ocsp", ocsp.as_ref())];
            let files = files.map(|(name, file)| (format!("{key}.{name}"), file));
            Err(Fault::new(key_of_file(files.into_iter(), &error).unwrap_or_else(|| key.to_owned()), error))
        }
    }
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

    /// Issues a certificate for `NAME.example` to `NAME.pem`, which also has its key.
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
        for (at, own) in first.snapshot.certificates.iter().enumerate() {
            assert!([0, 1].iter().all(|index| of_listener(&first.snapshot, *index)[at].is_clone_of(own)));
        }
        let are_clones = |now: &Checked, at: usize, before: &Checked, was: usize| {
            now.snapshot.certificates[at].is_clone_of(&before.snapshot.certificates[was])
        };
        // In another place of the document.
        let mut second = check(&["three", "two", "one"], Some(&first));
        assert!(are_clones(&second, 1, &first, 1) && are_clones(&second, 2, &first, 0));
        issue(&authority, &directory, "two");
        let mut third = check(&["three", "two", "one"], Some(&second));
        assert!(!are_clones(&third, 1, &second, 1));
        assert!(are_clones(&third, 0, &second, 0) && are_clones(&third, 2, &second, 2));

        // TLS with its sessions is inherited if the certificates are the same.
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

    #[test]
    fn a_fault_of_a_file_is_reported_once() {
        let (authority, directory) = (Authority::new().unwrap(), tempdir().unwrap());
        issue(&authority, &directory, "one");
        fs::write(directory.path().join("two.pem"), "no certificate").unwrap();
        let findings = Checked::new(config(directory.path(), &["one", "two"])).unwrap_err();
        let faults: Vec<_> = findings.faults().map(|fault| fault.key.as_str()).collect();
        assert_eq!(faults, ["certificate.1.chain"]);
    }

    /// Its response is judged again, as it may be valid later, but that alone does not change the certificate.
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
        let certificate = &first.snapshot.certificates[0];
        assert!(certificate.presented().ocsp.as_ref().unwrap().rejected.is_some());
        let second = Checked::after(config, Some(&first)).unwrap();
        assert!(second.snapshot.certificates[0].is_clone_of(certificate));
    }
}
