//! The properties of a request that `balance.rs` uses to choose its server: the hash key, the cookie, servers to avoid.

use super::hash_of;
use crate::config::Service;
use crate::config::document::{Balance, HashOn};
use crate::heads::lookup::{cookie, values};
use crate::keys::ServerId;
use std::net::IpAddr;
use weir_http1::RequestHead;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PickContext {
    /// The hash of the property that selects the server.
    pub key: u64,
    pub sticky: Option<u64>,
    /// The server of a failed attempt, chosen again only if no other is left.
    pub avoid: Option<ServerId>,
    /// Servers whose error response led to a retry, or that could not be reached for a TCP client. If there are any,
    /// the choice excludes them and all ejected servers, unless the service has only one server.
    pub asked: [Option<ServerId>; 2],
}

impl PickContext {
    /// The context of a connection without a parsed request: only the client's address is known.
    pub(crate) fn of_client(client: Option<IpAddr>) -> Self {
        Self { key: of_address(client), ..Self::default() }
    }

    /// The context of a request whose head was parsed from `buf`.
    pub(crate) fn of(service: &Service, head: &RequestHead, buf: &[u8], client: Option<IpAddr>) -> Self {
        let key = match service.balance {
            Balance::Hash => key(&service.hash, head, buf, client),
            Balance::RoundRobin | Balance::LeastInFlight | Balance::TwoChoices => 0,
        };
        let sticky = service.sticky.as_ref().and_then(|sticky| cookie(&sticky.name, head, buf));
        let sticky = sticky.and_then(|value| u64::from_str_radix(std::str::from_utf8(value).ok()?, 16).ok());
        Self { key, sticky, ..Self::default() }
    }
}

/// The key for [`Balance::Hash`]. The client's address replaces a missing field or cookie.
fn key(on: &HashOn, head: &RequestHead, buf: &[u8], client: Option<IpAddr>) -> u64 {
    let found = match on {
        HashOn::Client => None,
        HashOn::Header(name) => values(name.as_bytes(), head, buf).next(),
        HashOn::Cookie(name) => cookie(name.as_bytes(), head, buf),
    };
    found.map_or_else(|| of_address(client), hash_of)
}

fn of_address(client: Option<IpAddr>) -> u64 {
    match client.map(|client| client.to_canonical()) {
        Some(IpAddr::V4(client)) => hash_of(&client.octets()),
        Some(IpAddr::V6(client)) => hash_of(&client.octets()),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::{Limits, Parse};

    #[test]
    fn keys_come_from_client_fields_and_cookies() {
        let buf = b"GET / HTTP/1.1\r\nHost: h\r\nX-User: u\r\nCookie: a=1; id=2\r\ncookie: b=3\r\n\r\n";
        let mut head = RequestHead::new();
        assert_eq!(head.parse(buf, &Limits::default()), Ok(Parse::Complete(buf.len())));
        let client = |text: &str| Some(text.parse().unwrap());
        let of = |on: &str, at: &str| key(&on.parse().unwrap(), &head, buf, client(at));
        assert_eq!(of("header:x-user", "192.0.2.1"), of("header:x-user", "192.0.2.2"));
        assert_eq!(of("cookie:id", "192.0.2.1"), hash_of(b"2"));
        assert_eq!(of("cookie:none", "192.0.2.1"), of("client", "192.0.2.1"));
        assert_eq!(of("client", "::ffff:192.0.2.1"), of("client", "192.0.2.1"));
        assert_ne!(of("client", "192.0.2.2"), of("client", "192.0.2.1"));
    }
}
