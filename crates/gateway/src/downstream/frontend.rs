//! One worker's view of a listener.

use crate::config::document::{HalfClose, ProxyField, Underscores};
use crate::config::{Listener, ListenerId, Network, Passthrough, Role};
use crate::h2;
use crate::keys::ServiceId;
use crate::limits::{ClientKey, ConnectionLimiter, Permit};
use crate::plan::Plan;
use crate::reason::Reason;
use std::cell::OnceCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use weir_http1::{Limits, Rules};
use weir_tls::Acceptor;

/// A listener, with this worker's services and TLS state.
#[derive(Debug)]
pub(crate) struct Frontend {
    pub id: ListenerId,
    pub name: Arc<str>,
    pub role: Role,
    /// Networks of trusted proxies.
    pub trusted: Arc<[Network]>,
    /// The field in which the trusted proxies report the client's address.
    pub proxy_field: ProxyField,
    /// Networks of the proxies that start each connection with a PROXY protocol header.
    pub announced_by: Arc<[Network]>,
    /// Networks of admitted clients; empty: all.
    pub allow: Arc<[Network]>,
    /// Networks of denied clients, even where `allow` admits them.
    pub deny: Arc<[Network]>,
    /// The treatment of requests whose client closes its sending side before the response.
    pub half_close: HalfClose,
    /// The treatment of fields with an underscore in their names.
    pub underscores: Underscores,
    pub http2: bool,
    /// The settings and limits that all HTTP/2 connections of the listener share.
    pub http2_config: Arc<weir_http2::Config>,
    /// The rules whose violations the gateway repairs in requests.
    pub accept: Rules,
    pub limits: Limits,
    /// The server names whose connections the gateway forwards undecrypted.
    pub passthrough: Arc<Passthrough>,
    /// The configuration's services, to which `passthrough` refers by index; empty without passthrough.
    pub services: Vec<ServiceId>,
    /// The service of all connections, if they carry a protocol other than HTTP.
    pub tcp: Option<TcpTo>,
    pub tls: Option<Acceptor>,
    /// The last plan before a reload that removed the listener, or changed the clients that it admits. Existing
    /// connections keep this plan, since newer routes may assume conditions that these connections did not have to
    /// meet.
    pub last_plan: OnceCell<Rc<Plan>>,
}

/// The service that receives a listener's connections as raw bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpTo {
    pub service: ServiceId,
    pub idle: Duration,
}

/// Input before HTTP and its TLS handshake, or before a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preface {
    Proxy,
    /// A ClientHello, whose server name may select a service.
    Hello,
    /// The TLS handshake, before a tunnel.
    Tls,
}

impl Frontend {
    /// A listener of a configuration with these services. Shares the TLS acceptor of `before` if the TLS settings are
    /// unchanged.
    pub(crate) fn new(listener: &Listener, services: &[ServiceId], before: Option<&Self>) -> Self {
        let acceptor = |server: &weir_tls::Server| {
            let before = before.and_then(|before| before.tls.as_ref());
            before.filter(|acceptor| acceptor.is_of(server)).cloned().unwrap_or_else(|| server.core())
        };
        let tcp = listener
            .tcp
            .and_then(|tcp| Some(TcpTo { service: services.get(tcp.service).copied()?, idle: tcp.idle }));
        let services = if listener.passthrough.is_empty() { Vec::new() } else { services.to_vec() };
        Self {
            id: listener.id,
            name: Arc::clone(&listener.name),
            role: listener.role,
            trusted: Arc::clone(&listener.trusted),
            proxy_field: listener.proxy_field,
            announced_by: Arc::clone(&listener.announced_by),
            allow: Arc::clone(&listener.allow),
            deny: Arc::clone(&listener.deny),
            half_close: listener.half_close,
            underscores: listener.underscores,
            http2: listener.http2,
            http2_config: h2::client_config(&listener.limits, listener.http2_priorities).into(),
            accept: listener.accept,
            limits: listener.limits,
            passthrough: Arc::clone(&listener.passthrough),
            services,
            tcp,
            tls: listener.tls.as_ref().map(acceptor),
            last_plan: OnceCell::new(),
        }
    }

    /// The plan for the listener's connections: [`Self::last_plan`] if it is set, else `current`, the worker's plan.
    #[inline]
    pub(crate) fn plan<'a>(&'a self, current: &'a Rc<Plan>) -> &'a Rc<Plan> {
        self.last_plan.get().unwrap_or(current)
    }

    /// Whether `listener` has the same name and protocol, admits the same clients, trusts the same proxies, and
    /// authenticates clients alike. If not, a reload drains the present clients.
    pub(crate) fn admits_as(&self, listener: &Listener) -> bool {
        let is_same_tls = match (&self.tls, &listener.tls) {
            (None, None) => true,
            (Some(acceptor), Some(server)) => acceptor.has_client_policy_of(server),
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same_tls
            && self.name == listener.name
            && self.role == listener.role
            && self.tcp.is_some() == listener.tcp.is_some()
            && self.trusted == listener.trusted
            && self.proxy_field == listener.proxy_field
            && self.announced_by == listener.announced_by
            && self.allow == listener.allow
            && self.deny == listener.deny
    }

    /// Whether a trusted proxy has this address; `None` is a peer on a Unix socket.
    #[inline]
    pub(crate) fn trusts(&self, address: Option<IpAddr>) -> bool {
        Network::any_contains(&self.trusted, address)
    }

    /// The first preface of the listener's connections, if they begin with a preface.
    #[inline]
    pub(crate) fn preface(&self) -> Option<Preface> {
        match (self.announced_by.is_empty(), self.passthrough.is_empty()) {
            (false, _) => Some(Preface::Proxy),
            (true, false) => Some(Preface::Hello),
            (true, true) => (self.tcp.is_some() && self.tls.is_some()).then_some(Preface::Tls),
        }
    }

    pub(crate) fn is_announced(&self) -> bool {
        !self.announced_by.is_empty()
    }

    /// Whether the gateway accepts a PROXY protocol header from this address.
    pub(crate) fn accepts_header_from(&self, address: Option<IpAddr>) -> bool {
        Network::any_contains(&self.announced_by, address)
    }

    /// Admits a client, unless `allow` or `deny` excludes it, or it has `most` connections already. Returns its permit,
    /// if connections per client are limited.
    pub(crate) fn admit(
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
