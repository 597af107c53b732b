//! What the engine is told of TLS.

use clap::Args;
use std::path::PathBuf;
use weir_tls::{Group, Signature, Suite, Version};

/// What is said and believed in TLS. Empty lists offer all that are known.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "TLS")]
pub struct TlsOptions {
    /// TLS versions offered: 1.2, 1.3 or 1.2-1.3 [default: both]
    #[arg(long = "tls", value_name = "VERSION", value_parser = versions)]
    pub versions: Option<Versions>,
    /// Cipher suites offered, most preferred first, such as aes128-gcm-sha256 [default: all]
    #[arg(long = "suite", value_name = "LIST", value_delimiter = ',')]
    pub suites: Vec<Suite>,
    /// Groups offered, most preferred first, such as x25519,p256 [default: x25519, p256, p384]
    #[arg(long = "group", value_name = "LIST", value_delimiter = ',')]
    pub groups: Vec<Group>,
    /// Signature schemes offered, most preferred first, such as rsa-pss-sha256 [default: all]
    #[arg(long = "signature", value_name = "LIST", value_delimiter = ',')]
    pub signatures: Vec<Signature>,
    /// Application protocols offered: http/1.1, the only one that is spoken [default: none]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub alpn: Vec<String>,
    // In the ClientHello (RFC 6066 section 3), and in the certificate; that has the URL's host where none is sent.
    /// The server's name, instead of the URL's host; none sends none
    #[arg(long, value_name = "NAME|none")]
    pub sni: Option<String>,
    /// Resume TLS 1.2 sessions by their id alone.
    #[arg(skip)]
    pub ids_only: bool,
    /// A HelloRetryRequest does not make the run invalid
    #[arg(long)]
    pub allow_hello_retry: bool,
    /// Authorities to believe, PEM [default: the system's]
    #[arg(long = "cacert", value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Believe any certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// Certificate chain to present, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Where the secrets of all connections are written, for Wireshark
    #[arg(long, value_name = "FILE", env = "SSLKEYLOGFILE", hide_env_values = true)]
    pub key_log: Option<PathBuf>,
}

/// By another name than `Vec`, as clap takes that for a flag that comes several times.
type Versions = Vec<Version>;

/// Reads a version or a range of them.
fn versions(text: &str) -> Result<Versions, String> {
    let version = |text: &str| text.parse::<Version>().map_err(|error| error.to_string());
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let (least, most) = (version(least)?, version(most)?);
    let within: Versions =
        Version::ALL.into_iter().filter(|version| (least..=most).contains(version)).collect();
    match within[..] {
        [] => Err("the range has no version: write the lower one first, such as 1.2-1.3".to_string()),
        _ => Ok(within),
    }
}
