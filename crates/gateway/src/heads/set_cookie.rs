//! The cookies that the gateway sets: one keeps a client with its server, one with its share of a split route.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookie<'a> {
    pub name: &'a [u8],
    /// The number that identifies the server.
    pub value: u64,
    /// Whether the client uses TLS, so that the cookie is `Secure`.
    pub secure: bool,
}

impl Cookie<'_> {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"Set-Cookie: ");
        out.extend_from_slice(self.name);
        out.extend_from_slice(format!("={:016x}; {}\r\n", self.value, attributes(self.secure)).as_bytes());
    }
}

/// The value of the `Set-Cookie` field that keeps a client with the share `value` of a split route. The cookie is not
/// secret: a client may choose its share.
pub(crate) fn of_share(cookie: &str, value: &str, secure: bool) -> String {
    format!("{cookie}={value}; {}", attributes(secure))
}

fn attributes(secure: bool) -> &'static str {
    match secure {
        true => "Path=/; HttpOnly; SameSite=Lax; Secure",
        false => "Path=/; HttpOnly; SameSite=Lax",
    }
}
