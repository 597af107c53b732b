//! Valid and invalid OCSP responses of the private CA (RFC 6960 section 4.2.1), for tests.

use aws_lc_rs::digest;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, SigningKey as _};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{Authority, IssueError, Issued, KeyKind, refused, valid};

/// The certificate status in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The certificate is not revoked.
    Good,
    /// The certificate is revoked.
    Revoked,
    /// The responder does not know the certificate.
    Unknown,
}

/// The signer of a response.
#[derive(Clone, Copy, Debug)]
pub enum Signer<'a> {
    /// The certificate's issuer.
    Issuer,
    /// A responder with a certificate from the issuer.
    Responder {
        /// Whether the responder's certificate allows signing OCSP responses.
        is_for_ocsp: bool,
    },
    /// Another CA.
    Other(&'a Authority),
}

impl Authority {
    /// Issues an OCSP response (DER) for a certificate of this CA, valid between two times such as `20260102030405Z`.
    /// The CA must have ECDSA P-256 keys.
    pub fn ocsp_response(
        &self,
        about: &Issued,
        status: Status,
        (this_update, next_update): (&str, Option<&str>),
        signer: Signer<'_>,
    ) -> Result<Vec<u8>, IssueError> {
        let made = || {
            let own = if self.between.is_empty() { &self.root } else { &self.between };
            let own = CertificateDer::from_pem_slice(own.as_bytes());
            let own = own.map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
            let (_, own) =
                X509Certificate::from_der(&own).map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
            let hash =
                |bytes: &[u8]| der(4, &[digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref()]);
            let sha1 = der(0x30, &[&der(6, &[&[0x2b, 0x0e, 3, 2, 0x1a]])]);
            let key_hash = hash(&own.public_key().subject_public_key.data);
            let id =
                [sha1, hash(own.subject().as_raw()), key_hash.clone(), der(2, &[&about.serial()?])].concat();
            let status = match status {
                Status::Good => der(0x80, &[]),
                Status::Revoked => der(0xa1, &[&der(0x18, &[b"20200101000000Z"])]),
                Status::Unknown => der(0x82, &[]),
            };
            let time = |time: &str| der(0x18, &[time.as_bytes()]);
            let next = next_update.map(|next| der(0xa0, &[&time(next)])).unwrap_or_default();
            let single = der(0x30, &[&der(0x30, &[&id]), &status, &time(this_update), &next]);
            let data = der(0x30, &[&der(0xa2, &[&key_hash]), &time(this_update), &der(0x30, &[&single])]);
            let (signature, certificates) = self.sign(&data, signer)?;
            let algorithm = der(0x30, &[&der(6, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]])]);
            let basic = der(0x30, &[&data, &algorithm, &der(3, &[&[0], &signature]), &certificates]);
            let kind = der(6, &[&[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1]]);
            let bytes = der(0xa0, &[&der(0x30, &[&kind, &der(4, &[&basic])])]);
            Ok(der(0x30, &[&der(0x0a, &[&[0]]), &bytes]))
        };
        made().map_err(|error| refused(&["an OCSP response"], &error))
    }

    /// The signature, and the certificates that the response includes for verifying it.
    fn sign(&self, data: &[u8], signer: Signer<'_>) -> Result<(Vec<u8>, Vec<u8>), rcgen::Error> {
        let is_for_ocsp = match signer {
            Signer::Issuer => return Ok((self.issuer.key().sign(data)?, Vec::new())),
            Signer::Other(other) => return Ok((other.issuer.key().sign(data)?, Vec::new())),
            Signer::Responder { is_for_ocsp } => is_for_ocsp,
        };
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "responder");
        params.extended_key_usages = match is_for_ocsp {
            true => vec![ExtendedKeyUsagePurpose::OcspSigning],
            false => vec![ExtendedKeyUsagePurpose::ServerAuth],
        };
        valid(&mut params);
        let key: KeyPair = KeyKind::EcdsaP256.generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((key.sign(data)?, der(0xa0, &[&der(0x30, &[certificate.der()])])))
    }
}

/// Encodes a DER value.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let len = content.len().to_be_bytes();
    let len = match content.len() {
        0..0x80 => &len[7..],
        0x80..0x100 => &[&[0x81], &len[7..]].concat(),
        _ => &[&[0x82], &len[6..]].concat(),
    };
    [&[tag], len, &content].concat()
}
