//! A watch on rustls's verifier of certificates.

use std::time::Instant;

use rustls::{DigitallySignedStruct, Error};
use weir_engine::Side;
use weir_engine::notes::{self, Span};

use crate::told::code;

/// Verifies, and notes the time.
pub(crate) fn timed<T>(verify: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let start = Instant::now();
    let valid = verify()?;
    notes::span(Span::Verify, start);
    Ok(valid)
}

/// Verifies a signature, and notes the time and the signature's scheme.
pub(crate) fn signature<T>(
    signed: &DigitallySignedStruct,
    verify: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let valid = timed(verify)?;
    notes::signature(Side::Client, code(signed.scheme));
    Ok(valid)
}
