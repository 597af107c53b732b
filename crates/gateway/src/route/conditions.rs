//! The conditions of a route besides host and path: method, fields, client address and listener of a request.

use crate::heads::imitations::reads_as;
use crate::network::Network;
use std::net::IpAddr;
use weir_http1::RequestHead;

/// The conditions of a route besides host and path; an empty list matches all requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub methods: Vec<Box<[u8]>>,
    pub headers: Vec<WantedField>,
    pub clients: Vec<Network>,
    pub listeners: Vec<Box<str>>,
}

/// A field that a request must have.
#[derive(Clone, Debug)]
pub(crate) struct WantedField {
    pub name: Box<[u8]>,
    /// `None`: any value matches.
    pub value: Option<Box<[u8]>>,
    /// Whether field names that servers may read as `name` match, too.
    pub in_any_spelling: bool,
}

impl Conditions {
    /// Whether there are no conditions, so that all requests match.
    pub(crate) fn are_none(&self) -> bool {
        let Self { methods, headers, clients, listeners } = self;
        methods.is_empty() && headers.is_empty() && clients.is_empty() && listeners.is_empty()
    }

    /// Whether a request fulfils the conditions. Its head was parsed from `buf`. `client` is `None` on a Unix socket.
    #[inline]
    pub(crate) fn are_met(
        &self,
        head: &RequestHead,
        buf: &[u8],
        client: Option<IpAddr>,
        listener: &str,
    ) -> bool {
        let Self { methods, headers, clients, listeners } = self;
        let has = |WantedField { name, value, in_any_spelling }: &WantedField| {
            let mut named = head.fields.iter().filter(|field| match in_any_spelling {
                true => reads_as(field.name.of(buf), name),
                false => field.name.of(buf).eq_ignore_ascii_case(name),
            });
            named.any(|field| value.as_ref().is_none_or(|value| field.value.of(buf) == &**value))
        };
        let method = head.method_span.of(buf);
        (methods.is_empty() || methods.iter().any(|known| &**known == method))
            && headers.iter().all(has)
            && (clients.is_empty() || Network::any_contains(clients, client))
            && (listeners.is_empty() || listeners.iter().any(|known| &**known == listener))
    }
}
