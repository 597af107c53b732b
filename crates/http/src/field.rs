//! Field lines, and the field names that the protocol or the gateway acts on.

use crate::Span;

/// The field names that the protocol or the gateway acts on; all others are [`FieldName::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldName {
    /// `Host` (RFC 9110, section 7.2)
    Host,
    /// `Content-Length` (RFC 9110, section 8.6)
    ContentLength,
    /// `Transfer-Encoding` (RFC 9112, section 6.1)
    TransferEncoding,
    /// `Connection` (RFC 9110, section 7.6.1)
    Connection,
    /// `Keep-Alive` (RFC 2068, section 19.7.1.1)
    KeepAlive,
    /// `Proxy-Connection` (RFC 9112, appendix C.2.2)
    ProxyConnection,
    /// `TE` (RFC 9110, section 10.1.4)
    Te,
    /// `Trailer` (RFC 9110, section 6.6.2)
    Trailer,
    /// `Upgrade` (RFC 9110, section 7.8)
    Upgrade,
    /// `Expect` (RFC 9110, section 10.1.1)
    Expect,
    /// `Via` (RFC 9110, section 7.6.3)
    Via,
    /// `Forwarded` (RFC 7239)
    Forwarded,
    /// `X-Forwarded-For`
    XForwardedFor,
    /// `X-Forwarded-Proto`
    XForwardedProto,
    /// `X-Forwarded-Host`
    XForwardedHost,
    /// `Date` (RFC 9110, section 6.6.1)
    Date,
    /// `Authorization` (RFC 9110, section 11.6.2)
    Authorization,
    /// `Proxy-Authorization` (RFC 9110, section 11.7.2)
    ProxyAuthorization,
    /// `WWW-Authenticate` (RFC 9110, section 11.6.1)
    WwwAuthenticate,
    /// `Proxy-Authenticate` (RFC 9110, section 11.7.1)
    ProxyAuthenticate,
    /// `Proxy-Authentication-Info` (RFC 9110, section 11.7.3)
    ProxyAuthenticationInfo,
    /// `Max-Forwards` (RFC 9110, section 7.6.2)
    MaxForwards,
    /// `Proxy`, which no specification defines: CGI turns it into `HTTP_PROXY` (RFC 3875, section 4.1.18),
    /// which programs take for their proxy setting.
    Proxy,
    /// Any other name.
    Other,
}

/// One field line of a head, as spans into the parsed buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name as written.
    pub name: Span,
    /// The value without surrounding white space.
    pub value: Span,
    /// The whole line, with its CRLF.
    pub line: Span,
    /// The known name, or [`FieldName::Other`].
    pub known: FieldName,
    /// Whether the field is for this connection only and must not be forwarded: [`FieldName::is_hop_by_hop`],
    /// or `Connection` names it (RFC 9110, section 7.6.1; `connection_options.rs` of `weir-http1`).
    pub hop_by_hop: bool,
    /// Whether the name contains an underscore. Servers that map names to variables (such as CGI) take
    /// `X_Forwarded_For` for `X-Forwarded-For`, so a gateway that sets `X-Forwarded-For` should drop `X_Forwarded_For`.
    pub underscore: bool,
    /// Whether no hop may index the field in a compression table (RFC 7541, section 6.2.3). Always false in HTTP/1.
    pub never_indexed: bool,
}

impl FieldName {
    /// Looks up a name, ignoring case.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let (is_same, known) = match (name.len(), name.first().map_or(0, |b| b | 0x20)) {
            (2, b't') => (is(name, b"te"), Self::Te),
            (3, b'v') => (is(name, b"via"), Self::Via),
            (4, b'h') => (is(name, b"host"), Self::Host),
            (4, b'd') => (is(name, b"date"), Self::Date),
            (5, b'p') => (is(name, b"proxy"), Self::Proxy),
            (6, b'e') => (is(name, b"expect"), Self::Expect),
            (7, b't') => (is(name, b"trailer"), Self::Trailer),
            (7, b'u') => (is(name, b"upgrade"), Self::Upgrade),
            (9, b'f') => (is(name, b"forwarded"), Self::Forwarded),
            (10, b'c') => (is(name, b"connection"), Self::Connection),
            (10, b'k') => (is(name, b"keep-alive"), Self::KeepAlive),
            (12, b'm') => (is(name, b"max-forwards"), Self::MaxForwards),
            (13, b'a') => (is(name, b"authorization"), Self::Authorization),
            (14, b'c') => (is(name, b"content-length"), Self::ContentLength),
            (15, b'x') => (is(name, b"x-forwarded-for"), Self::XForwardedFor),
            (16, b'p') => (is(name, b"proxy-connection"), Self::ProxyConnection),
            (16, b'w') => (is(name, b"www-authenticate"), Self::WwwAuthenticate),
            (16, b'x') => (is(name, b"x-forwarded-host"), Self::XForwardedHost),
            (17, b't') => (is(name, b"transfer-encoding"), Self::TransferEncoding),
            (17, b'x') => (is(name, b"x-forwarded-proto"), Self::XForwardedProto),
            (18, b'p') => (is(name, b"proxy-authenticate"), Self::ProxyAuthenticate),
            (19, b'p') => (is(name, b"proxy-authorization"), Self::ProxyAuthorization),
            (25, b'p') => (is(name, b"proxy-authentication-info"), Self::ProxyAuthenticationInfo),
            _ => return Self::Other,
        };
        if is_same { known } else { Self::Other }
    }

    /// Whether the field always concerns only one connection.
    ///
    /// RFC 9110, section 7.6.1 requires removing `Proxy-Connection`, `Keep-Alive`, `TE`, `Transfer-Encoding`
    /// and `Upgrade` even when `Connection` does not name them, and `Connection` itself. `Trailer` is
    /// included, too: a gateway that drops the trailer section must not announce one.
    #[inline]
    #[must_use]
    pub fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Self::Connection
                | Self::KeepAlive
                | Self::ProxyConnection
                | Self::Te
                | Self::Trailer
                | Self::TransferEncoding
                | Self::Upgrade
        )
    }

    /// Whether framing, routing or forwarding relies on this field, so that `Connection` must not name it.
    #[must_use]
    pub fn is_relied_on(self) -> bool {
        matches!(
            self,
            Self::Host
                | Self::ContentLength
                | Self::TransferEncoding
                | Self::Expect
                | Self::Via
                | Self::Forwarded
                | Self::XForwardedFor
                | Self::XForwardedProto
                | Self::XForwardedHost
        )
    }
}

/// Whether `name` is `known`, which is in lower case. Setting the case bit turns no other byte of a name into a letter
/// or a hyphen, and known names consist of only these. For a known length, compilers compare whole words.
#[inline]
fn is<const LENGTH: usize>(name: &[u8], known: &[u8; LENGTH]) -> bool {
    let Some(name) = name.as_array::<LENGTH>() else { return false };
    name.iter().zip(known).fold(0, |differing, (byte, known)| differing | ((byte | 0x20) ^ known)) == 0
}
