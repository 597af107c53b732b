//! The material of runs beside processes: the certificate, the echoed bodies, the values of templates.

use crate::base::error::LabError;
use crate::base::hash;
use crate::instrument::gateway::ports::Ports;
use crate::instrument::gateway::template::Values;
use crate::instrument::gateway::{CertificateKind, Suite, Tls, TlsVersion, echo};
use crate::net::{GATEWAY_ADDRESS, LOOPBACK_ADDRESS, ORIGIN_ADDRESS};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempDir};
use weir_tls::issue::{self, KeyKind};

/// The names in the certificate: a target may verify any.
const NAMES: [&str; 4] = ["localhost", LOOPBACK_ADDRESS, GATEWAY_ADDRESS, ORIGIN_ADDRESS];

/// `ca.pem`, `cert.pem`, `key.pem`, and the last two in one `identity.pem`, as some targets need them.
pub(crate) fn issue_certificate(tls: &Tls, directory: &Path) -> Result<(), LabError> {
    let kind = match tls.certificate {
        CertificateKind::EcdsaP256 => KeyKind::EcdsaP256,
        CertificateKind::Rsa2048 => KeyKind::Rsa2048,
    };
    fs::create_dir_all(directory).map_err(LabError::file(directory, "cannot be created"))?;
    let wrong = |error: issue::IssueError| LabError::Certificate(error.to_string());
    // The CA's key is of the same kind: a chain of two kinds costs a client more than either.
    let issued = issue::Authority::with_keys(kind).and_then(|ca| ca.issue(&NAMES, kind)).map_err(wrong)?;
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
    // Any suite of a disabled version will do.
    let (suite_13, suite_12) = match tls.suite.version() {
        TlsVersion::V1_3 if tls.certificate == CertificateKind::Rsa2048 => {
            (tls.suite, Suite::EcdheRsaAes128GcmSha256)
        }
        TlsVersion::V1_3 => (tls.suite, Suite::EcdheEcdsaAes128GcmSha256),
        TlsVersion::V1_2 => (Suite::Aes128GcmSha256, tls.suite),
    };
    Values::default()
        .with("weir", weir.display())
        .with("tickets", tls.tickets)
        .with("tls_version", tls.version)
        .with("suite", tls.suite)
        .with("ciphers_13", suite_13.openssl())
        .with("ciphers_12", suite_12.openssl())
        .with("group", tls.group)
        .with("group_openssl", tls.group.openssl())
}

/// Values of every name, to check the targets' descriptions and templates before anything runs.
pub(crate) fn sample_values(weir: &Path, tls: &Tls) -> Values {
    values(weir, tls)
        .with_size(64, 1000, &[0])
        .with_certificate(Path::new("0"))
        .with("dir", "0")
        .with("short_dir", "0")
        .with("listen_address", LOOPBACK_ADDRESS)
        .with("upstream_address", LOOPBACK_ADDRESS)
        .with_ports(&Ports::default(), 1)
}

/// An empty directory with a short path, for sockets: the path of one has at most 107 bytes (`unix(7)`), and that of a
/// run's directory may be longer. Removed with the value.
pub(crate) fn short_directory() -> Result<TempDir, LabError> {
    let made = tempfile::Builder::new().prefix("weir-").tempdir();
    made.map_err(|source| LabError::System { action: "creating a temporary directory", source })
}

/// The file with a JSON body of this many bytes, created on demand, and its SHA-256 in hexadecimal digits.
pub(super) fn echo_body(directory: &Path, bytes: u64) -> Result<(PathBuf, String), LabError> {
    let path = directory.join(format!("echo-{bytes}.json"));
    let body = echo::body(bytes);
    // The load engine of the other run of a duet may read the file at this moment, so it is replaced as a whole.
    let written = NamedTempFile::new_in(directory).and_then(|mut file| {
        file.write_all(body.as_bytes())?;
        file.persist(&path).map_err(|error| error.error)
    });
    written.map_err(LabError::file(&path, "cannot be written"))?;
    Ok((path, hash::bytes(body.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    /// Regression test: the second run of a duet emptied the file while the first one's load engine read it, and the
    /// latter sent requests without a body.
    #[test]
    fn a_body_is_never_seen_in_part() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, _) = echo_body(folder.path(), 100_000).expect("is written");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..300 {
                    echo_body(folder.path(), 100_000).expect("is written");
                }
            });
            for _ in 0..300 {
                assert_eq!(fs::read(&path).expect("is there").len(), 100_000);
            }
        });
    }

    /// Regression test: an ECDSA CA signed RSA certificates, so a client on RSA had two kinds of arithmetic to pay.
    #[test]
    fn a_ca_has_the_kind_of_key_of_its_certificate() {
        const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
        const EC: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01";
        for (certificate, has, lacks) in
            [(CertificateKind::Rsa2048, RSA, EC), (CertificateKind::EcdsaP256, EC, RSA)]
        {
            let folder = tempfile::tempdir().expect("a directory");
            issue_certificate(&Tls { certificate, ..Tls::default() }, folder.path()).expect("is issued");
            for name in ["ca.pem", "cert.pem"] {
                let pem = fs::read_to_string(folder.path().join(name)).expect("is there");
                let text: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
                let der = STANDARD.decode(text).expect("is base64");
                let is_in = |oid: &[u8]| der.windows(oid.len()).any(|bytes| bytes == oid);
                assert!(is_in(has) && !is_in(lacks), "{certificate} {name}");
            }
        }
    }
}
