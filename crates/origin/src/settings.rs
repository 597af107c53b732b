//! The origin's settings.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use tempfile::TempDir;
use weir_reactor::cores::Cores;
use weir_reactor::listener::BindError;
use weir_tls::issue::{IssueError, KeyKind, issue};
use weir_tls::{Group, Identity, ServerSettings, SettingsError, Suite, Version};
use weir_transport::Endpoint;

/// The origin's settings.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The addresses to listen on; port 0 takes a free port.
    pub listen: Vec<Endpoint>,
    /// Certificate chain and key, PEM; generated if missing.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Number of workers, at least 1; `None` is one per allowed core.
    pub workers: Option<usize>,
    /// The cores to pin the workers to, in order.
    pub cores: Option<Cores>,
    /// Tickets after each TLS 1.3 handshake; `None` is the default of [`weir_tls::ServerSettings`].
    pub tickets: Option<u32>,
    /// The TLS versions accepted; empty is the default of [`weir_tls::ServerSettings`].
    pub versions: Vec<Version>,
    /// The suites accepted; empty is the default of [`weir_tls::ServerSettings`].
    pub suites: Vec<Suite>,
    /// The groups accepted, most preferred first; empty is [`Group::CLASSICAL`].
    pub groups: Vec<Group>,
    /// The versions of HTTP accepted. The null server accepts HTTP/1.1 alone.
    pub http: HttpVersions,
    /// Run as the null server: respond to every read with the same body, of this many bytes, at most
    /// [`Settings::MOST_NULL`], without parsing. Only for measuring clients.
    pub null: Option<u64>,
}

/// Versions of HTTP. HTTP/1.1 includes HTTP/1.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersions {
    /// HTTP/2 where the client agrees to it, else HTTP/1.1.
    #[default]
    Both,
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 alone.
    Http2,
}

impl HttpVersions {
    /// The protocols of ALPN, most preferred first (RFC 7301). Clients may offer `http/1.0` alone.
    fn alpn(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::Both => &[H2, b"http/1.1", b"http/1.0"],
            Self::Http1 => &[b"http/1.1", b"http/1.0"],
            Self::Http2 => &[H2],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

impl FromStr for HttpVersions {
    type Err = String;

    /// A single version.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1.1" => Ok(Self::Http1),
            "2" => Ok(Self::Http2),
            _ => Err(format!("invalid version `{text}`: expected 1.1 or 2")),
        }
    }
}

/// The ALPN protocol of HTTP/2 (RFC 9113, section 3.2).
pub(crate) const H2: &[u8] = b"h2";

/// Why the origin failed.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// Nothing to listen on.
    #[error("no listener: give at least one, such as http://127.0.0.1:8080")]
    NoListener,
    /// A certificate without a TLS listener.
    #[error("a certificate was given, but no listener is https://")]
    UnusedCertificate,
    /// A null response that is too long.
    #[error("--null: invalid value `{0}`: expected 0 to {most} bytes", most = Settings::MOST_NULL)]
    NullTooLong(u64),
    /// A null server for HTTP/2.
    #[error("--null: responds to HTTP/1.1 alone; omit --http 2")]
    NullHttp2,
    /// No worker.
    #[error("--workers: invalid value `0`: expected at least 1")]
    NoWorkers,
    /// A core that is not allowed.
    #[error("--cores: {0}")]
    Cores(io::Error),
    /// A certificate, a key or a TLS setting.
    #[error(transparent)]
    Tls(#[from] SettingsError),
    /// A certificate could not be generated.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// A port.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A system error.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl OriginError {
    /// Whether the settings are at fault, not the system.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoListener
                | Self::UnusedCertificate
                | Self::NullTooLong(_)
                | Self::NullHttp2
                | Self::NoWorkers
                | Self::Cores(_)
                | Self::Tls(_)
        )
    }
}

impl Settings {
    /// Maximum body of the null server: each connection that does not read may buffer all of it.
    pub const MOST_NULL: u64 = 16 << 20;

    /// The versions of HTTP in effect.
    pub(crate) fn http(&self) -> HttpVersions {
        if self.null.is_some() { HttpVersions::Http1 } else { self.http }
    }

    /// What the TLS listeners present and accept.
    pub(crate) fn tls(&self, identity: Identity) -> ServerSettings {
        let mut tls = ServerSettings::new(identity);
        if let Some(tickets) = self.tickets {
            tls.tickets = tickets;
        }
        if !self.versions.is_empty() {
            tls.versions.clone_from(&self.versions);
        }
        if !self.suites.is_empty() {
            tls.suites.clone_from(&self.suites);
        }
        tls.alpn = self.http().alpn();
        // An instrument: results stay comparable with those of before post-quantum groups.
        tls.groups = if self.groups.is_empty() { Group::CLASSICAL.to_vec() } else { self.groups.clone() };
        tls
    }

    /// The identity to present, and the directory with its CA if generated.
    pub(crate) fn identity(&self) -> Result<(Identity, Option<TempDir>), OriginError> {
        if let Some((certificates, key)) = &self.identity {
            return Ok((Identity::files(certificates, key), None));
        }
        let mut names = vec!["localhost", "127.0.0.1", "::1"];
        let hosts = self.listen.iter().map(|endpoint| endpoint.host.as_str());
        names.extend(hosts.filter(|host| !matches!(*host, "0.0.0.0" | "::")));
        names.sort_unstable();
        names.dedup();
        let issued = issue(&names, KeyKind::EcdsaP256)?;
        let directory = tempfile::Builder::new().prefix("weir-origin-").tempdir()?;
        issued.write_to(directory.path())?;
        Ok((issued.identity(), Some(directory)))
    }
}
