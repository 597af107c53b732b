//! What runs are made of beside processes: the certificate, the bodies that are echoed, the values of templates.

use crate::error::LabError;
use crate::hash;
use crate::instrument::gateway::target::Scale;
use crate::instrument::gateway::template::Values;
use crate::instrument::gateway::{CertificateKind, Tls, echo};
use crate::net::{GATEWAY_ADDRESS, LOOPBACK_ADDRESS, ORIGIN_ADDRESS};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use weir_tls::issue::{self, KeyKind};

/// The names that the certificate is for: a target may verify any.
const NAMES: [&str; 4] = ["localhost", LOOPBACK_ADDRESS, GATEWAY_ADDRESS, ORIGIN_ADDRESS];

/// `ca.pem`, `cert.pem`, `key.pem`, and the last two in one `identity.pem`, as some targets want them.
pub(crate) fn issue_certificate(tls: &Tls, directory: &Path) -> Result<(), LabError> {
    let kind = match tls.certificate {
        CertificateKind::EcdsaP256 => KeyKind::EcdsaP256,
    };
    let wrong = |error: issue::IssueError| LabError::Certificate(error.to_string());
    let issued = issue::issue(&NAMES, kind).map_err(wrong)?;
    issued.write_to(directory).map_err(wrong)?;
    let path = directory.join("identity.pem");
    let options = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let both = format!("{}{}", issued.certificates, issued.key);
    options
        .and_then(|mut file| file.write_all(both.as_bytes()))
        .map_err(LabError::file(path, "cannot be written"))
}

/// The values that do not depend on the run.
pub(super) fn values(weir: &Path, tls: &Tls) -> Values {
    Values::default()
        .with("weir", weir.display())
        .with("tickets", tls.tickets)
        .with("tls_version", tls.version.name())
        .with("suite", tls.suite.name())
        .with("ciphers_13", tls.suite.openssl_13())
        .with("ciphers_12", tls.suite.openssl_12())
        .with("group", tls.group.name())
        .with("group_openssl", tls.group.openssl())
}

/// Values of every name, for reading the targets' descriptions and templates before anything runs.
pub(crate) fn sample_values(weir: &Path, tls: &Tls) -> Values {
    let names = ["dir", "listen_port", "upstream_port", "cert", "key", "identity", "ca"];
    let scale = Scale { connections: 64, bytes: 1000, cores: &[0] };
    let values = scale
        .values(values(weir, tls))
        .with("listen_address", LOOPBACK_ADDRESS)
        .with("upstream_address", LOOPBACK_ADDRESS);
    names.into_iter().fold(values, |values, name| values.with(name, "0"))
}

/// The file with a JSON body of so many bytes, made where it is not there yet, and its SHA-256 in hexadecimal digits.
pub(super) fn echo_body(directory: &Path, bytes: u64) -> Result<(PathBuf, String), LabError> {
    let path = directory.join(format!("echo-{bytes}.json"));
    let body = echo::body(bytes);
    fs::write(&path, &body).map_err(LabError::file(&path, "cannot be written"))?;
    Ok((path, hash::bytes(body.as_bytes())))
}
