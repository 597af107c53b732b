//! Timing rustls's certificate verifier.

use rustls::{DigitallySignedStruct, Error};
use weir_engine::Side;
use weir_engine::notes::{self, Span};

use crate::negotiated::code;

/// Verifies a signature, and notes its time and scheme.
pub(crate) fn signature<T>(
    signed: &DigitallySignedStruct,
    verify: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let valid = notes::span(Span::Verify, verify)?;
    notes::signature(Side::Client, code(signed.scheme));
    Ok(valid)
}
