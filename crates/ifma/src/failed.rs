//! The error of a self-test.

use core::fmt;

/// A self-test computed a wrong result: this processor, or this build, must not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed(pub(crate) &'static str);

impl Failed {
    /// The function that failed, such as `X25519`.
    pub fn function(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "self-test of {}: wrong result", self.0)
    }
}

impl core::error::Error for Failed {}
