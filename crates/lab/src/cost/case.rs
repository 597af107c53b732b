//! The cases: the ways in which a client connects to the service.

use super::question::{Question, ROUNDS};
use serde::Serialize;
use std::fmt;
use std::time::Duration;
use weir_load::{Options, PerConnection, Phases, Target};
use weir_probe::Report;
use weir_tls::{Group, Roots};

/// A way in which a client connects to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Case {
    /// A connection for each request, in cleartext.
    NewCleartext,
    /// A connection for each request, with a full handshake.
    NewFull,
    /// A connection for each request, resuming a session.
    NewResumed,
    /// Keep-alive connections, in cleartext.
    KeptCleartext,
    /// Keep-alive connections, over TLS.
    KeptTls,
}

impl Case {
    /// All of them; those that are compared are adjacent, so that little time passes between them.
    pub const ALL: [Self; 5] =
        [Self::NewResumed, Self::NewFull, Self::NewCleartext, Self::KeptCleartext, Self::KeptTls];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewCleartext => "new-cleartext",
            Self::NewFull => "new-full",
            Self::NewResumed => "new-resumed",
            Self::KeptCleartext => "kept-cleartext",
            Self::KeptTls => "kept-tls",
        }
    }

    /// Whether connections are kept alive.
    pub fn keeps(self) -> bool {
        matches!(self, Self::KeptCleartext | Self::KeptTls)
    }

    /// The load of one round; `None` for a cleartext case without a cleartext server. If the server prefers
    /// X25519MLKEM768, that key share is sent first, as browsers do.
    pub(super) fn options(
        self,
        question: &Question,
        cleartext: Option<&Target>,
        probe: &Report,
    ) -> Option<Options> {
        let target = match self {
            Self::NewCleartext | Self::KeptCleartext => cleartext?,
            Self::NewFull | Self::NewResumed | Self::KeptTls => &question.url,
        };
        let mut options = Options::new(target.clone());
        options.connections = question.connections;
        let window = question.window / ROUNDS;
        options.phases = Phases { warmup: warmup(window), settle: Duration::ZERO, window };
        options.servers = question.servers.clone();
        if !self.keeps() {
            options.policy.per_connection = PerConnection::Requests { least: 1, most: 1 };
        }
        if self == Self::NewResumed {
            options.policy.resume = 100.0;
        }
        let preferred = probe.negotiated.as_ref().and_then(|seen| seen.group.as_deref());
        if preferred == Some(Group::X25519Mlkem768.name()) {
            options.tls.groups = vec![Group::X25519Mlkem768, Group::X25519, Group::P256, Group::P384];
        }
        // The extra round trip is part of what this server costs: a finding, not an error.
        options.tls.allow_hello_retry = true;
        match &question.roots {
            Roots::Native => {}
            Roots::File(file) => options.tls.ca = Some(file.clone()),
            Roots::DangerouslyNone => options.tls.insecure = true,
        }
        Some(options)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A quarter of the window, to evict from the caches what the previous load left.
fn warmup(window: Duration) -> Duration {
    (window / 4).min(Duration::from_secs(1))
}
