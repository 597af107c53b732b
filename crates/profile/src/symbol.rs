//! Function names as people write them.

use cpp_demangle::DemangleOptions;
use std::borrow::Cow;

/// The demangled name without hash, parameters and compiler suffixes.
pub(crate) fn plain(symbol: &str) -> String {
    let symbol = symbol.split(".llvm.").next().unwrap_or(symbol);
    // C++ first: Rust's older scheme is a C++ name with a hash at its end.
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        return format!("{rust:#}");
    }
    if symbol.starts_with("_Z")
        && let Ok(parsed) = cpp_demangle::Symbol::new(symbol)
        && let Ok(name) = parsed.demangle_with_options(&DemangleOptions::new().no_params().no_return_type())
    {
        return name;
    }
    without_parameters(&without_type_arguments(symbol))
}

/// Cuts the type arguments of an instance of a generic Go function: `iter.Pull[go.shape.bool].func1` is
/// `iter.Pull.func1`.
fn without_type_arguments(symbol: &str) -> Cow<'_, str> {
    match (symbol.find("[go.shape."), symbol.rfind(']')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", &symbol[..open], &symbol[close + 1..]).into()
        }
        _ => symbol.into(),
    }
}

/// The name without the prefix of a vendored library: `aws_lc_0_39_1_x25519_ge_add` is `x25519_ge_add`, and
/// `ring_core_0_17_14__p256_mul` is `p256_mul`.
pub(crate) fn unprefixed(symbol: &str) -> &str {
    let vendored = ["aws_lc_", "ring_core_"].into_iter().find_map(|prefix| symbol.strip_prefix(prefix));
    let versioned = vendored.filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let rest = versioned.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(symbol)
}

/// The class and method of a Java signature such as `void a.b.C.put(int)`; nothing else has dots and such an end.
fn java_method(symbol: &str) -> Option<&str> {
    let (head, _) = symbol.strip_suffix(')')?.split_once('(')?;
    let method = head.rsplit(' ').next()?;
    method.contains('.').then_some(method)
}

/// Cuts `(..)` off the end of a C++ signature. `(anonymous namespace)` is part of a name, and so is the receiver of a
/// Go method.
fn without_parameters(symbol: &str) -> String {
    let signature = symbol.strip_suffix(" const").unwrap_or(symbol);
    if !signature.contains("::") {
        return java_method(symbol).unwrap_or(symbol).to_owned();
    }
    if !signature.ends_with(')') {
        return symbol.to_owned();
    }
    let mut depth = 0;
    let open = signature.char_indices().rev().find(|(_, character)| {
        depth += match character {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        depth == 0
    });
    match open {
        Some((at, _)) if at > 0 => signature[..at].to_owned(),
        _ => symbol.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendored_libraries_have_prefixes() {
        for (symbol, name) in [
            ("aws_lc_0_39_1_x25519_ge_add", "x25519_ge_add"),
            ("ring_core_0_17_14__p256_mul", "p256_mul"),
            ("aws_lc_0_39_1_", "aws_lc_0_39_1_"),
            ("aws_lc_rs::aead::open", "aws_lc_rs::aead::open"),
            ("SSL_read", "SSL_read"),
        ] {
            assert_eq!(unprefixed(symbol), name);
        }
    }

    #[test]
    fn names_of_several_languages() {
        for (symbol, name) in [
            ("SSL_do_handshake", "SSL_do_handshake"),
            (
                "_ZN6rustls4conn14ConnectionCore11process_msg17h0123456789abcdefE",
                "rustls::conn::ConnectionCore::process_msg",
            ),
            (
                "_ZN2v88internal4Heap14CollectGarbageENS0_15AllocationSpaceE",
                "v8::internal::Heap::CollectGarbage",
            ),
            (
                "v8::internal::Heap::CollectGarbage(v8::internal::AllocationSpace)",
                "v8::internal::Heap::CollectGarbage",
            ),
            ("node::(anonymous namespace)::Run(int, (lambda)#1) const", "node::(anonymous namespace)::Run"),
            ("byte[] javax.crypto.Mac.doFinal(byte[], int)", "javax.crypto.Mac.doFinal"),
            ("sun.security.ssl.SessionId.<init>(boolean)", "sun.security.ssl.SessionId.<init>"),
            ("iter.Pull[go.shape.bool].func1", "iter.Pull.func1"),
            ("crypto/tls.(*Conn).Read", "crypto/tls.(*Conn).Read"),
            ("runtime.mallocgc", "runtime.mallocgc"),
            ("aes_gcm_enc_update_vaes_avx512", "aes_gcm_enc_update_vaes_avx512"),
            ("foo.llvm.1234", "foo"),
            ("()", "()"),
            ("", ""),
        ] {
            assert_eq!(plain(symbol), name, "{symbol}");
        }
    }
}
