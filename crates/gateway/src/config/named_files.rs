//! The files that a configuration names, compared by content: with symbolic links, time and inode do not reliably show
//! a change.

use super::document::{Certificate, Config, ListenerTls, ServiceTls};
use super::finding::Findings;
use super::source::{self, Document, Texts};
use crate::hash::hash_of;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The content of each file. Files of ticket secrets are not included, as they are watched separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files(BTreeMap<PathBuf, Content>);

/// The files that a configuration was read from, and the files that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnDisk {
    /// The configuration files themselves, if readable.
    own: Files,
    named: Files,
}

/// A hash of a file, so that no private key stays in memory; `None` if the file cannot be read.
type Content = Option<u64>;

impl Files {
    /// Reads all files that a configuration names.
    pub(crate) fn read(config: &Config) -> Self {
        let of_certificates = config.certificates.iter().flat_map(of_certificate);
        let of_listeners = config.listeners.values().filter_map(|listener| listener.tls.as_ref());
        let of_services = config.services.values().flat_map(|service| of_service(&service.tls));
        let paths = of_certificates
            .chain(of_listeners.flat_map(of_listener))
            .chain(of_services)
            .chain(config.error_pages.values().map(PathBuf::as_path));
        let mut files = BTreeMap::new();
        for path in paths {
            files.entry(path.to_owned()).or_insert_with(|| content(path));
        }
        Self(files)
    }

    /// Reads the same files again.
    fn again(&self) -> Self {
        Self(self.0.keys().map(|path| (path.clone(), content(path))).collect())
    }

    /// A fingerprint of the contents of a certificate's chain and key. Every process and version must compute the same
    /// fingerprint, since an upgrade passes it to another version.
    pub(crate) fn fingerprint(&self, certificate: &Certificate) -> u64 {
        let content = |path: &PathBuf| self.0.get(path).copied().flatten().unwrap_or_default().to_be_bytes();
        hash_of(&[content(&certificate.chain), content(&certificate.key)].concat())
    }

    /// Whether all of these files have the same content in `self` and `other`.
    pub(crate) fn are_same<'a>(&self, other: &Self, mut paths: impl Iterator<Item = &'a Path>) -> bool {
        paths.all(|path| self.0.get(path) == other.0.get(path))
    }
}

impl OnDisk {
    pub(crate) fn new(own: Option<&Texts>, named: Files) -> Self {
        let own = own.into_iter().flat_map(Texts::iter);
        let own = own.map(|(path, text)| (path.to_owned(), Some(hash_of(text.as_bytes()))));
        Self { own: Files(own.collect()), named }
    }

    /// Reads a configuration file, valid or not, the files that it includes, and, as far as it can be parsed, the files
    /// that it names. `self` is an earlier state: if the texts are unchanged, they name the same files and need no
    /// parsing.
    pub(crate) fn again(&self, path: &Path) -> Self {
        let mut findings = Findings::default();
        let texts = Texts::read(path, &mut findings);
        let now = Self::new(Some(&texts), Files::default());
        if now.own == self.own {
            return Self { named: self.named.again(), ..now };
        }
        let document = Document::of(&texts, &mut findings);
        let config = document.and_then(|document| source::config(&document, &mut findings));
        let named = config.map(|(config, _)| Files::read(&config)).unwrap_or_default();
        Self { named, ..now }
    }
}

/// The files of a certificate: chain, key and OCSP response.
pub(crate) type FilesOfCertificate<'a> = [Option<&'a Path>; 3];

impl Certificate {
    pub(crate) fn files(&self) -> FilesOfCertificate<'_> {
        let Self { name: _, chain, key, ocsp } = self;
        [Some(chain), Some(key), ocsp.as_ref()].map(|file| file.map(PathBuf::as_path))
    }
}

/// The chain, key and OCSP response files of a certificate.
pub(super) fn of_certificate(certificate: &Certificate) -> impl Iterator<Item = &Path> {
    certificate.files().into_iter().flatten()
}

/// The CA and revocation list files in a listener's TLS settings.
pub(super) fn of_listener(tls: &ListenerTls) -> impl Iterator<Item = &Path> {
    tls.client_ca.iter().chain(&tls.client_crl).map(PathBuf::as_path)
}

/// The CA, certificate and key files in a service's TLS settings.
pub(super) fn of_service(tls: &ServiceTls) -> impl Iterator<Item = &Path> {
    [&tls.ca, &tls.certificate, &tls.key].into_iter().flatten().map(PathBuf::as_path)
}

fn content(path: &Path) -> Content {
    fs::read(path).ok().map(|bytes| hash_of(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::tempdir;

    /// The fingerprint of a chain with the content `a` and a key with the content `b`.
    const FINGERPRINT: u64 = 0x9b8d_d74b_33d1_5137;

    /// Regression test: the fingerprint depended on the standard library's hash, but an upgrade compares it with
    /// another version's.
    #[test]
    fn the_fingerprint_of_a_certificate_does_not_change() {
        let folder = tempdir().unwrap();
        let [chain, key] = ["chain", "key"].map(|name| folder.path().join(name));
        let fingerprint = |contents: [&str; 2]| {
            for (path, content) in [&chain, &key].into_iter().zip(contents) {
                fs::write(path, content).unwrap();
            }
            let certificates =
                format!("[[certificate]]\nchain = '{}'\nkey = '{}'\n", chain.display(), key.display());
            let config: Config = toml::from_str(&certificates).unwrap();
            Files::read(&config).fingerprint(&config.certificates[0])
        };
        assert_eq!(fingerprint(["a", "b"]), FINGERPRINT);
        assert_ne!(fingerprint(["b", "a"]), FINGERPRINT);
        assert_ne!(fingerprint(["a", "c"]), FINGERPRINT);
    }

    #[test]
    fn a_file_is_known_by_what_is_in_it() {
        let folder = tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let [config, page] = ["weir.toml", "page"].map(path);
        fs::write(&page, "a").unwrap();
        fs::write(&config, format!("error_pages = {{ 404 = '{}' }}", page.display())).unwrap();
        let unknown = OnDisk::new(None, Files::default());
        let before = unknown.again(&config);
        let is_same = || {
            assert_eq!(unknown.again(&config), before.again(&config));
            before.again(&config) == before
        };
        assert!(before.named.0.contains_key(&page));
        fs::write(&page, "a").unwrap();
        assert!(is_same());
        fs::write(&page, "b").unwrap();
        assert!(!is_same());
        fs::remove_file(&page).unwrap();
        assert!(!is_same());
        fs::write(&page, "a").unwrap();
        assert!(is_same());
        fs::write(&config, format!("error_pages = {{ 404 = '{0}', 410 = '{0}2' }}", page.display())).unwrap();
        assert!(!is_same());
        fs::write(&config, "not = [").unwrap();
        assert!(!is_same());
    }
}
