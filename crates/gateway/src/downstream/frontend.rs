//! A listener, as one worker knows it.

use crate::config::document::{HalfClose, ProxyField, Underscores};
use crate::config::{Listener, Network, Passthrough, Role};
use crate::keys::ServiceId;
use crate::limits::{ClientKey, ConnectionLimiter, Permit};
use crate::reason::Reason;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_http1::{Limits, Rules};
use weir_tls::Acceptor;

/// A listener, as one worker knows it.
#[derive(Debug)]
pub(crate) struct Frontend {
    pub name: Arc<str>,
    pub role: Role,
    /// Networks of proxies in front.
    pub trusted: Arc<[Network]>,
    /// Where those say who the client is.
    pub proxy_field: ProxyField,
    /// Networks of those in front who begin each connection with a PROXY protocol header.
    pub announced_by: Arc<[Network]>,
    /// Networks of clients that are let in; empty: all.
    pub allow: Arc<[Network]>,
    /// Networks of those among them that are turned away.
    pub deny: Arc<[Network]>,
    /// What becomes of requests whose client closes its sending side while it waits.
    pub half_close: HalfClose,
    /// What becomes of fields whose names have an underscore.
    pub underscores: Underscores,
    /// Rules that its requests need not keep.
    pub accept: Rules,
    /// Of its requests.
    pub limits: Limits,
    /// Connections that are passed on without being decrypted.
    pub passthrough: Arc<Passthrough>,
    /// The services that `passthrough` numbers, which are those of its configuration; empty if it needs none.
    pub services: Vec<ServiceId>,
    pub tls: Option<Acceptor>,
}

/// What is looked at before the first byte of HTTP, or of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preface {
    /// A PROXY protocol header.
    Proxy,
    /// A ClientHello.
    Hello,
}

impl Frontend {
    /// A listener of a configuration with these services. What TLS needs is taken from `before`, if it is the same.
    pub(crate) fn new(listener: &Listener, services: &[ServiceId], before: Option<&Self>) -> Self {
        let acceptor = |server: &weir_tls::Server| {
            let before = before.and_then(|before| before.tls.as_ref());
            before.filter(|acceptor| acceptor.is_of(server)).cloned().unwrap_or_else(|| server.core())
        };
        let services = if listener.passthrough.is_empty() { Vec::new() } else { services.to_vec() };
        Self {
            name: Arc::clone(&listener.name),
            role: listener.role,
            trusted: Arc::clone(&listener.trusted),
            proxy_field: listener.proxy_field,
            announced_by: Arc::clone(&listener.announced_by),
            allow: Arc::clone(&listener.allow),
            deny: Arc::clone(&listener.deny),
            half_close: listener.half_close,
            underscores: listener.underscores,
            accept: listener.accept,
            limits: listener.limits,
            passthrough: Arc::clone(&listener.passthrough),
            services,
            tls: listener.tls.as_ref().map(acceptor),
        }
    }

    /// Whether this address is that of a proxy in front. On a Unix socket there is none.
    #[inline]
    pub(crate) fn trusts(&self, address: Option<IpAddr>) -> bool {
        Network::any_contains(&self.trusted, address)
    }

    /// What its connections begin with.
    #[inline]
    pub(crate) fn preface(&self) -> Option<Preface> {
        match (self.announced_by.is_empty(), self.passthrough.is_empty()) {
            (false, _) => Some(Preface::Proxy),
            (true, false) => Some(Preface::Hello),
            (true, true) => None,
        }
    }

    /// Whether connections begin with the address of the client, which another one than the peer may be.
    pub(crate) fn is_announced(&self) -> bool {
        !self.announced_by.is_empty()
    }

    /// Whether a connection from this address may say whose it is.
    pub(crate) fn hears(&self, address: Option<IpAddr>) -> bool {
        Network::any_contains(&self.announced_by, address)
    }

    /// Lets a client in, or not; `most`: how many connections each one may have. Its place among them, if they are counted.
    pub(crate) fn let_in(
        &self,
        client: Option<SocketAddr>,
        limiter: &Arc<ConnectionLimiter>,
        most: Option<u32>,
    ) -> Result<Option<Permit>, Reason> {
        let address = client.map(|client| client.ip());
        let is_meant = self.allow.is_empty() || Network::any_contains(&self.allow, address);
        if !is_meant || Network::any_contains(&self.deny, address) {
            return Err(Reason::ClientDenied);
        }
        let Some(most) = most else { return Ok(None) };
        limiter.admit(ClientKey::of(address), most).map(Some).ok_or(Reason::TooManyConnections)
    }
}
