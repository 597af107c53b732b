//! TLS flags: what may be negotiated, and which CAs are trusted.

use clap::Args;
#[cfg(feature = "lab")]
use std::path::PathBuf;
#[cfg(feature = "lab")]
use weir_tls::Roots;
use weir_tls::{Group, Offer, Suite, Version};

/// TLS parameters of the gateway (both sides) and the test server.
#[derive(Args, Debug)]
pub(crate) struct Parameters {
    /// TLS version on both sides: 1.2 or 1.3; may be repeated [default: both]
    #[arg(long = "tls", value_name = "VERSION")]
    versions: Vec<Version>,
    /// Cipher suite on both sides; may be repeated, most preferred first [default: all]
    #[arg(long = "suite", value_name = "SUITE")]
    suites: Vec<Suite>,
    /// Key exchange group on both sides; may be repeated, most preferred first [default: x25519mlkem768 (not of the
    /// test server), x25519, p256, p384]
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<Group>,
}

impl Parameters {
    /// The flags given, and every compatible value for the others.
    pub(crate) fn offer(&self) -> Offer {
        let offer = Offer {
            versions: self.versions.clone(),
            suites: self.suites.clone(),
            groups: self.groups.clone(),
        };
        offer.complete()
    }

    /// As [`Parameters::offer`], but with post-quantum groups only if a flag names them, since the test server is for
    /// measurements (docs/decisions/0028-post-quantum-default.md).
    #[cfg(feature = "lab")]
    pub(crate) fn classical_offer(&self) -> Offer {
        let mut offer = self.offer();
        if self.groups.is_empty() {
            offer.groups.retain(|group| Group::CLASSICAL.contains(group));
        }
        offer
    }
}

/// The CAs that a client trusts: those in a file, the system's, or none at all, which accepts any certificate.
#[cfg(feature = "lab")]
pub(crate) fn roots(file: Option<PathBuf>, is_insecure: bool) -> Roots {
    match file {
        Some(file) => Roots::File(file),
        None if is_insecure => Roots::DangerouslyNone,
        None => Roots::Native,
    }
}
