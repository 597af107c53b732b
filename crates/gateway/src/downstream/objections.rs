//! Checks of a request's head that few connections need.

use super::Client;
use crate::config::document::Underscores;
use crate::reason::Reason;
use crate::route::{LONGEST_HOST, host_of};
use weir_http1::RequestHead;
use weir_reactor::Socket;

impl<S: Socket> Client<S> {
    /// Records the certificate of a finished handshake, if requests on this connection may be misdirected: the client
    /// sent a server name, and another name would have selected another certificate or a service of `passthrough`.
    /// Trusted proxies are exempt, as they may send requests for all hosts on one connection.
    pub(crate) fn note_certificate(&mut self) {
        let Some(acceptor) = &self.frontend.tls else { return };
        let depends_on_name = acceptor.has_choice() || !self.frontend.passthrough.is_empty();
        if depends_on_name && !self.is_trusted {
            self.named_certificate = self.transport.named_certificate();
            self.may_object |= self.named_certificate.is_some();
        }
    }

    /// The reason to reject a request whose head was parsed from `buf`. `None` unless [`Client::may_object`].
    #[cold]
    pub(crate) fn objection(&self, head: &RequestHead, buf: &[u8]) -> Option<Reason> {
        if self.frontend.underscores == Underscores::Reject
            && head.fields.iter().any(|field| field.underscore)
        {
            return Some(Reason::UnderscoreInName);
        }
        let host = head.host.map_or(&b""[..], |host| host.of(buf));
        self.is_misdirected(host).then_some(Reason::Misdirected)
    }

    /// Whether this host, as the client's server name, would have selected another service or certificate for the
    /// connection (RFC 9110 section 7.4).
    fn is_misdirected(&self, authority: &[u8]) -> bool {
        let (Some(certificate), Some(acceptor)) = (self.named_certificate, &self.frontend.tls) else {
            return false;
        };
        let mut buffer = [0; LONGEST_HOST];
        let host = host_of(authority, &mut buffer);
        let is_for_another = |host| acceptor.is_for_another(certificate, host);
        self.frontend.passthrough.find(host).is_some() || std::str::from_utf8(host).is_ok_and(is_for_another)
    }
}
