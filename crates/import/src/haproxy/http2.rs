//! Translates `proto` and `alpn` of servers to `http2` of a service.

use super::backend::Params;
use crate::model::Service;
use crate::note::Notes;
use weir_syntax::At;

/// The HTTP versions that a server line enables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    Http1,
    Http2,
    /// Both versions by ALPN, and whether HTTP/2 comes first.
    Both {
        http2_first: bool,
    },
}

impl Offer {
    pub(super) fn of(params: &Params) -> Self {
        match params.get("proto").map(String::as_str) {
            Some("h2") => return Self::Http2,
            Some(_) => return Self::Http1,
            None => {}
        }
        let alpn = params.get("alpn").filter(|_| params.contains_key("ssl"));
        let mut names = alpn.map_or("", String::as_str).split(',').map(str::trim);
        match (names.next(), names.next()) {
            (Some("h2"), None) => Self::Http2,
            (Some("h2"), Some(_)) => Self::Both { http2_first: true },
            (Some(_), Some("h2")) => Self::Both { http2_first: false },
            _ => Self::Http1,
        }
    }

    pub(super) fn is_http2(self) -> bool {
        matches!(self, Self::Http2 | Self::Both { http2_first: true })
    }
}

/// Enables `http2` for a service if its first `server` line prefers HTTP/2, unless the service sends a PROXY protocol
/// header. Returns whether it did.
pub(super) fn set(first: &Params, at: &At, service: &mut Service, notes: &mut Notes) -> bool {
    let offer = Offer::of(first);
    if offer.is_http2() && service.settings.get("proxy_protocol").is_some() {
        let message = "Weir sends no PROXY protocol before HTTP/2, whose connections have many clients; this is HTTP/1.1";
        notes.loss(at, format!("HTTP/2 to {}", service.name), message);
        return false;
    }
    if let Offer::Both { http2_first } = offer {
        let (chosen, instead) = if http2_first { ("2", "remove") } else { ("1.1", "set") };
        notes.remark(format!(
            "service {}: HAProxy offers HTTP/2 and HTTP/1.1 to its servers, and Weir one of them, HTTP/{chosen}; {instead} \
             http2 for the other",
            service.name
        ));
    }
    if offer.is_http2() {
        service.settings.flag("http2", true);
    }
    offer.is_http2()
}
