//! The key `tls.curves`: the implementation of curve arithmetic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The implementation of X25519 and of ECDSA P-256 signatures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Curves {
    /// AWS-LC's.
    #[default]
    AwsLc,
    /// Weir's own, with AVX-512 IFMA, which outsiders have not reviewed.
    Ifma,
    /// Weir's own X25519, and signatures by AWS-LC.
    IfmaX25519,
}

impl From<Curves> for weir_tls::Curves {
    fn from(curves: Curves) -> Self {
        match curves {
            Curves::AwsLc => Self::AwsLc,
            Curves::Ifma => Self::Ifma,
            Curves::IfmaX25519 => Self::IfmaX25519,
        }
    }
}
