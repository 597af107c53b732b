//! Spoofed fields: names that servers may mistake for the names of the gateway's own fields, in every spelling that
//! servers treat as equal.
//!
//! CGI turns names into variables, with `_` for `-` (RFC 3875 section 4.1.18), and so do WSGI, Rack, PSGI and FastCGI.
//! Some servers replace every character that a variable cannot have; PHP also replaces `.`. The gateway therefore
//! compares names after replacing all these characters by the same one (folding).

use weir_http::FieldName;

/// Whether servers may mistake a client's field of this name for one of the gateway's own fields. Trusted proxies in
/// front (`is_trusted`) may send such fields, but only in the usual spelling, since they may forward other spellings
/// from their clients.
#[inline]
pub(crate) fn is_imitation(name: &[u8], is_trusted: bool) -> bool {
    // Most names are not similar to any of these fields.
    let known = like(name);
    !known.is_empty() && is_among(name, known) && !(is_trusted && is_usual(name))
}

/// Whether servers that turn names into variables mistake this name for that of a field that the protocol or the
/// gateway acts on.
#[cold]
pub(super) fn is_known_when_folded(name: &[u8]) -> bool {
    let folded: Vec<u8> = name.iter().map(|byte| folded(*byte)).collect();
    FieldName::of(&folded) != FieldName::Other
}

/// Whether both names are the same to a server that turns them into variables.
pub(crate) fn reads_as(name: &[u8], other: &[u8]) -> bool {
    name.len() == other.len() && name.iter().zip(other).all(|(byte, other)| folded(*byte) == folded(*other))
}

/// The folded names that a name with this first and third byte may match. An entry with a trailing hyphen matches every
/// name that begins with it.
#[inline]
fn like(name: &[u8]) -> &'static [&'static [u8]] {
    let [first, _, third, ..] = name else { return &[] };
    match [first | 0x20, third | 0x20] {
        // This covers `-For`, `-Proto`, `-Host`, `-Port`, `-Server`, `-Prefix`, `-Ssl`, `-User`, `-Client-Cert` and
        // future names.
        [b'x', b'f'] => &[b"x-forwarded-"],
        [b'x', b'r'] => &[b"x-real-ip", b"x-rewrite-url"],
        // This field contains the path before a rewrite, as `X-Rewrite-URL` does. Some servers route by it.
        [b'x', b'o'] => &[b"x-original-url"],
        // These fields contain client certificates, by RFC 9440 and as other proxies send them.
        [b'c', b'i'] => &[b"client-cert", b"client-cert-chain"],
        [b'x', b'c'] => &[b"x-client-cert"],
        [b'x', b'a'] => &[b"x-arr-clientcert", b"x-amzn-mtls-"],
        [b'x', b's'] => &[b"x-ssl-client-"],
        [b's', b'l'] => &[b"ssl-client-"],
        _ => &[],
    }
}

#[inline(never)]
fn is_among(name: &[u8], known: &[&[u8]]) -> bool {
    known.iter().any(|known| match (known, name.get(..known.len())) {
        ([.., b'-'], Some(start)) => reads_as(start, known),
        _ => reads_as(name, known),
    })
}

/// Whether a name consists of letters, digits and hyphens.
fn is_usual(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

#[inline]
fn folded(byte: u8) -> u8 {
    if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;
    use weir_http::is_token;

    /// The characters that a name may contain besides letters and digits (RFC 9110 section 5.6.2).
    const SEPARATORS: &[u8] = b"!#$%&'*+-.^_`|~";

    /// The variable for a name on a server that replaces all characters except letters and digits.
    fn variable(name: &[u8]) -> Vec<u8> {
        let folded = name.iter().map(|byte| if byte.is_ascii_alphanumeric() { *byte } else { b'_' });
        folded.map(|byte| byte.to_ascii_uppercase()).collect()
    }

    #[test]
    fn what_is_told_apart() {
        for (name, imitates) in [
            ("X-Forwarded-For", true),
            ("x-forwarded-port", true),
            ("X-FORWARDED-TLS-CLIENT-CERT", true),
            ("X.Forwarded.For", true),
            ("X!Forwarded~Prefix", true),
            ("X-Real.IP", true),
            ("x_original_url", true),
            ("X-Rewrite-URL", true),
            ("Client.Cert", true),
            ("client-cert-chain", true),
            ("SSL.Client.Verify", true),
            ("X-SSL-Client-S-DN", true),
            ("X-Amzn-Mtls-Clientcert-Leaf", true),
            ("X-Forwarded", false),
            ("XForwarded-For", false),
            ("X-Real-IPs", false),
            ("X-Request-Id", false),
            ("Client-Certainty", false),
            ("SSL-Clients", false),
            ("Cookie", false),
            ("X", false),
            ("", false),
        ] {
            assert_eq!(is_imitation(name.as_bytes(), false), imitates, "{name}");
        }
    }

    #[test]
    fn a_trusted_proxy_writes_the_usual_spelling() {
        assert!(!is_imitation(b"X-Real-IP", true) && !is_imitation(b"x-forwarded-port", true));
        assert!(is_imitation(b"X.Real.IP", true) && is_imitation(b"X-Forwarded.Port", true));
    }

    /// All names that [`like`] can return.
    fn names() -> Vec<&'static [u8]> {
        let letters = || b'a'..=b'z';
        let pairs = letters().flat_map(|first| letters().map(move |third| [first, b'-', third]));
        pairs.flat_map(|start| like(&start).iter().copied()).collect()
    }

    #[test]
    fn all_names_are_found_by_their_letters() {
        assert_eq!(names().len(), 11);
        for name in names() {
            let whole = [name, if name.ends_with(b"-") { &b"any"[..] } else { b"" }].concat();
            assert!(is_imitation(&whole, false), "{}", name.escape_ascii());
            assert_eq!(name.iter().map(|byte| folded(*byte)).collect::<Vec<_>>(), name, "not folded");
        }
    }

    proptest! {
        /// A known name is dropped in every spelling that becomes the same variable.
        #[test]
        fn every_spelling_is_dropped(
            known in select(names()),
            rest in "[a-z0-9-]{1,8}",
            upper in proptest::collection::vec(any::<bool>(), 64),
            separators in proptest::collection::vec(select(SEPARATORS), 64),
        ) {
            let usual = [known, if known.ends_with(b"-") { rest.as_bytes() } else { b"" }].concat();
            prop_assert!(is_imitation(&usual, false));
            let spelled: Vec<u8> = usual.iter().zip(upper.iter().zip(&separators)).map(|(byte, (upper, separator))| match byte {
                b'-' => *separator,
                byte if *upper => byte.to_ascii_uppercase(),
                byte => *byte,
            }).collect();
            prop_assert!(is_token(&spelled));
            prop_assert_eq!(variable(&spelled), variable(&usual));
            prop_assert!(is_imitation(&spelled, false), "{}", spelled.escape_ascii());
        }

        #[test]
        fn names_of_one_variable_fare_alike(name in "[xXsScC][-._a-zA-Z!]{0,20}", other in proptest::collection::vec(select(SEPARATORS), 32)) {
            let other: Vec<u8> = name.bytes().zip(other).map(|(byte, other)| {
                if byte.is_ascii_alphanumeric() { byte.to_ascii_uppercase() } else { other }
            }).collect();
            prop_assert!(reads_as(name.as_bytes(), &other));
            prop_assert_eq!(is_imitation(name.as_bytes(), false), is_imitation(&other, false));
        }
    }
}
