//! TLS options.

use clap::Args;
use std::path::PathBuf;
use weir_tls::{Group, Signature, Suite, Version};

/// TLS parameters. Empty lists offer everything supported.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "TLS")]
pub struct TlsOptions {
    /// TLS versions to offer: 1.2, 1.3 or 1.2-1.3 [default: both]
    #[arg(long = "tls", value_name = "VERSION", value_parser = versions)]
    pub versions: Option<Versions>,
    /// Cipher suites to offer, most preferred first, such as aes128-gcm-sha256 [default: all]
    #[arg(long = "suite", value_name = "LIST", value_delimiter = ',')]
    pub suites: Vec<Suite>,
    /// Key exchange groups to offer, most preferred first, such as x25519,p256 [default: x25519, p256, p384]
    #[arg(long = "group", value_name = "LIST", value_delimiter = ',')]
    pub groups: Vec<Group>,
    /// Signature schemes to offer, most preferred first, such as rsa-pss-sha256 [default: all]
    #[arg(long = "signature", value_name = "LIST", value_delimiter = ',')]
    pub signatures: Vec<Signature>,
    /// ALPN protocols to offer; only that of --http is supported [default: none, with --http 2 h2]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub alpn: Vec<String>,
    // Sent as SNI (RFC 6066 section 3) and verified; with `none` the URL's host is verified.
    /// Server name to send and verify instead of the URL's host; none sends no SNI
    #[arg(long, value_name = "NAME|none")]
    pub sni: Option<String>,
    /// Resume TLS 1.2 sessions by ID only.
    #[arg(skip)]
    pub ids_only: bool,
    /// Accept a HelloRetryRequest in a valid run
    #[arg(long)]
    pub allow_hello_retry: bool,
    /// Trusted CAs (PEM) [default: the system's]
    #[arg(long = "cacert", value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Skip certificate verification
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Client certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Write TLS secrets to this file, for Wireshark
    #[arg(long, value_name = "FILE", env = "SSLKEYLOGFILE", hide_env_values = true)]
    pub key_log: Option<PathBuf>,
}

/// An alias, as clap takes a `Vec` for a repeatable flag.
type Versions = Vec<Version>;

/// Parses a version or a range.
fn versions(text: &str) -> Result<Versions, String> {
    let version = |text: &str| text.parse::<Version>().map_err(|error| error.to_string());
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let (least, most) = (version(least)?, version(most)?);
    let within: Versions =
        Version::ALL.into_iter().filter(|version| (least..=most).contains(version)).collect();
    match within[..] {
        [] => Err("empty range: expected the lower version first, such as 1.2-1.3".to_string()),
        _ => Ok(within),
    }
}
