//! Certificates by listener, so that a listener presents only the certificates that it presents in the source
//! configuration.

use crate::model::{Certificate, Document};
use crate::note::Notes;
use crate::values;
use std::path::Path;

/// Names the certificates and lists them for each TLS listener, unless all TLS listeners have all certificates in the
/// same order, which is the default.
pub(crate) fn by_listener(document: &mut Document, notes: &mut Notes) {
    let all: Vec<usize> = (0..document.certificates.len()).collect();
    let mut with_tls = document.listeners.iter().filter(|listener| listener.tls.is_some());
    if all.is_empty() || with_tls.all(|listener| listener.certificates == all) {
        return;
    }
    let mut names: Vec<String> = Vec::new();
    for certificate in &mut document.certificates {
        let name =
            values::unique(&name_of(&certificate.chain), |name| names.iter().any(|known| known == name));
        certificate.name = Some(name.clone());
        names.push(name);
    }
    for listener in document.listeners.iter_mut().filter(|listener| listener.tls.is_some()) {
        let mut own: Vec<_> =
            listener.certificates.iter().filter_map(|index| names.get(*index).cloned()).collect();
        if own.is_empty() {
            // Without a list, the listener would present all certificates of the document.
            let name = values::unique(&listener.name, |name| names.iter().any(|known| known == name));
            let file = format!("{name}.pem");
            notes.remark(format!(
                "listener {} has TLS and no certificate that could be translated: replace {file}, without which Weir does not start",
                listener.name
            ));
            document.certificates.push(Certificate {
                name: Some(name.clone()),
                chain: file.clone(),
                key: file,
                ocsp: None,
                from: format!("{}: replace these files", listener.from),
            });
            names.push(name.clone());
            own.push(name);
        }
        listener.settings.texts("certificates", own);
    }
}

/// Forms a certificate's name from the file's name or, if that is a usual name such as certbot's `fullchain`, from the
/// directory's.
fn name_of(chain: &str) -> String {
    const USUAL: [&str; 9] =
        ["bundle", "cert", "certificate", "chain", "fullchain", "haproxy", "server", "ssl", "tls"];
    let path = Path::new(chain);
    let text =
        |part: Option<&std::ffi::OsStr>| part.and_then(|part| part.to_str()).unwrap_or_default().to_owned();
    let (stem, directory) = (text(path.file_stem()), text(path.parent().and_then(Path::file_name)));
    let is_usual = USUAL.contains(&stem.to_ascii_lowercase().as_str()) && !directory.is_empty();
    match values::name(if is_usual { &directory } else { &stem }).as_str() {
        "service" => "certificate".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        for (chain, name) in [
            ("/etc/ssl/example.pem", "example"),
            ("/etc/letsencrypt/live/example.org/fullchain.pem", "example-org"),
            ("fullchain.pem", "fullchain"),
            ("/etc/haproxy/certs/a.example.org.pem", "a-example-org"),
            ("/", "certificate"),
            ("", "certificate"),
        ] {
            assert_eq!(name_of(chain), name, "{chain}");
        }
    }
}
