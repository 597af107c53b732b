//! Invariants for any input. The fuzz targets call these functions, and so do the crate's tests, with the
//! committed corpus and with generated input.

use std::fmt::Debug;
use weir_preface::proxy::{Version, write};
use weir_preface::{Look, hello, proxy};

/// Checks a PROXY protocol header: the decision does not depend on how the bytes arrive, and writing a parsed header
/// and parsing the result yields the same header.
pub fn proxy(input: &[u8]) {
    let Some(header) = decided_once(input, proxy::read) else { return };
    assert!(header.len <= input.len().min(proxy::LONGEST));
    assert_eq!(proxy::read(&input[..header.len]), Ok(Look::Complete(header)));
    for version in [Version::V1, Version::V2] {
        let mut out = Vec::new();
        write(version, header.addresses, &mut out);
        let Ok(Look::Complete(again)) = proxy::read(&out) else { panic!("{}", out.escape_ascii()) };
        assert_eq!(again.len, out.len());
        let canonical = |header: proxy::Header| {
            let ends = header.addresses.map(|ends| [ends.source, ends.destination]);
            ends.map(|ends| ends.map(|end| (end.ip().to_canonical(), end.port())))
        };
        assert_eq!(canonical(again), canonical(header));
    }
}

/// Checks a ClientHello: the decision depends neither on how the bytes arrive nor on the bytes after the ClientHello.
pub fn hello(input: &[u8]) {
    let Some(hello) = decided_once(input, hello::read) else { return };
    let longer = [input, b"\x17\x03\x03"].concat();
    assert_eq!(hello::read(&longer), Ok(Look::Complete(hello.clone())));
    if let Some(name) = hello.server_name {
        assert!(!name.is_empty() && name.len() <= 255 && name == name.to_ascii_lowercase());
    }
}

/// Parses growing prefixes of `input`: once a prefix is complete or rejected, every longer one has the same
/// result.
fn decided_once<T: PartialEq + Debug, E: PartialEq + Debug>(
    input: &[u8],
    look: impl Fn(&[u8]) -> Result<Look<T>, E>,
) -> Option<T> {
    let outcome = look(input);
    let step = (input.len() / 256).max(1);
    for length in (0..input.len()).step_by(step) {
        match look(&input[..length]) {
            Ok(Look::Partial) => {}
            early => assert_eq!(early, outcome, "at {length}"),
        }
    }
    match outcome {
        Ok(Look::Complete(found)) => Some(found),
        Ok(Look::Partial) | Err(_) => None,
    }
}
