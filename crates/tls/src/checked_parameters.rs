//! Checks of the negotiable parameters, before any connection.

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{SignatureScheme, SupportedProtocolVersion};

use crate::setting_names::joined;
use crate::unbuffered::{RECORD_HEADER, RECORD_PLAINTEXT};
use crate::{Curves, Group, OfferError, SettingsError, Signature, Suite, Version, key_schedule};

/// The configured versions, suites and groups, checked against each other.
pub(crate) struct Parameters {
    pub(crate) provider: CryptoProvider,
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
}

impl Parameters {
    pub(crate) fn new(
        versions: &[Version],
        suites: &[Suite],
        groups: &[Group],
        curves: Curves,
    ) -> Result<Self, SettingsError> {
        for (what, empty) in
            [("versions", versions.is_empty()), ("suites", suites.is_empty()), ("groups", groups.is_empty())]
        {
            if empty {
                return Err(OfferError::Empty { what }.into());
            }
        }
        if let Some(&suite) = suites.iter().find(|suite| !versions.contains(&suite.version())) {
            return Err(OfferError::SuiteFitsNoVersion { suite, enabled: joined(versions) }.into());
        }
        for &version in versions {
            let fitting = |suite: &Suite| suite.version() == version;
            if !suites.iter().any(fitting) {
                let allowed = joined(Suite::ALL.iter().filter(|suite| fitting(suite)));
                return Err(OfferError::VersionHasNone { version, what: "suites", allowed }.into());
            }
            if !groups.iter().any(|group| group.fits(version)) {
                let allowed = joined(Group::ALL.iter().filter(|group| group.fits(version)));
                return Err(OfferError::VersionHasNone { version, what: "groups", allowed }.into());
            }
        }
        let ifma = curves.exchange()?;
        let provider = CryptoProvider {
            cipher_suites: suites.iter().map(|suite| key_schedule::extracting_once(suite.rustls())).collect(),
            kx_groups: groups.iter().map(|group| group.rustls(ifma)).collect(),
            ..aws_lc_rs::default_provider()
        };
        Ok(Self { provider, versions: versions.iter().map(|version| version.rustls()).collect() })
    }
}

/// The schemes that a client with these suites offers: the configured `signatures`, or all `supported` ones if none are
/// configured.
pub(crate) fn offered(
    signatures: &[Signature],
    suites: &[Suite],
    supported: Vec<SignatureScheme>,
) -> Result<Vec<SignatureScheme>, SettingsError> {
    if signatures.is_empty() {
        return Ok(supported);
    }
    let verifiable = |signature: &&Signature| supported.contains(&signature.rustls());
    if let Some(&signature) = signatures.iter().find(|signature| !verifiable(signature)) {
        let allowed = joined(Signature::ALL.iter().filter(verifiable));
        return Err(OfferError::SignatureNotSupported { signature, allowed }.into());
    }
    for version in Version::ALL {
        let of_version = suites.iter().filter(|suite| suite.version() == version);
        let fitting = |signature: &&Signature| of_version.clone().any(|&suite| signature.fits(suite));
        if of_version.clone().next().is_some() && !signatures.iter().any(|signature| fitting(&signature)) {
            let allowed = joined(Signature::ALL.iter().filter(fitting));
            return Err(OfferError::VersionHasNoSignature { version, allowed }.into());
        }
    }
    Ok(signatures.iter().map(|signature| signature.rustls()).collect())
}

/// Checks the names of application protocols: each must have 1 to 255 bytes (RFC 7301 3.1).
pub(crate) fn checked_alpn(protocols: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, SettingsError> {
    match protocols.iter().find(|name| !(1..=255).contains(&name.len())) {
        Some(name) => Err(OfferError::BadAlpn { name: name.escape_ascii().to_string() }.into()),
        None => Ok(protocols.to_vec()),
    }
}

/// The record size including the header, as rustls counts it. Fails if `bytes` of application data are too few or too
/// many.
pub(crate) fn record_size(bytes: usize) -> Result<usize, SettingsError> {
    match (512..=RECORD_PLAINTEXT).contains(&bytes) {
        true => Ok(bytes + RECORD_HEADER),
        false => Err(OfferError::RecordSize { bytes }.into()),
    }
}

pub(crate) fn refused(error: rustls::Error) -> SettingsError {
    SettingsError::Refused(error.to_string())
}
