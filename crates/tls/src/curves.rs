//! The implementation of curve arithmetic: AWS-LC's, or weir-ifma's if a setting selects it.

mod ecdsa;
mod exchange;
mod processor;

pub(crate) use ecdsa::signing_key;
pub(crate) use exchange::{x25519, x25519_mlkem768};

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use weir_ifma::{Ifma, p256, x25519 as ladder};

use crate::UnknownName;
use crate::setting_names::find;

/// The implementation of X25519 and of signatures by ECDSA P-256. AWS-LC does all other cryptography, and
/// verifies all signatures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Curves {
    /// AWS-LC's implementations.
    #[default]
    AwsLc,
    /// weir-ifma's implementations, for processors with AVX-512 IFMA.
    Ifma,
    /// weir-ifma's X25519, with signatures by AWS-LC.
    IfmaX25519,
}

/// Curves that this process cannot use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value `{curves}`: {why}: expected `aws-lc`")]
pub struct CurvesError {
    /// The rejected setting.
    pub curves: Curves,
    /// The reason for the rejection.
    pub why: Unusable,
}

/// The reason why this process cannot use weir-ifma.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The processor lacks this feature, or the system does not save its registers.
    #[error("this processor lacks {0}")]
    Missing(&'static str),
    /// AWS-LC is faster on this processor, given by its name.
    #[error("AWS-LC is faster on this processor, {0}")]
    Slower(String),
    /// The self-test of this function found a wrong result: a fault of the processor or of the program.
    #[error("the self-test of {0} failed on this processor")]
    Failed(&'static str),
}

impl Curves {
    /// All implementations, the default first.
    pub const ALL: [Self; 3] = [Self::AwsLc, Self::Ifma, Self::IfmaX25519];

    /// The name in settings and reports: `aws-lc`, `ifma`, `ifma-x25519`.
    pub fn name(self) -> &'static str {
        match self {
            Self::AwsLc => "aws-lc",
            Self::Ifma => "ifma",
            Self::IfmaX25519 => "ifma-x25519",
        }
    }

    /// Checks that this process can use these curves. The first check of key exchange, and that of signatures, each run
    /// a self-test. Fails if the processor lacks instructions or is slower with them, or the self-test failed.
    pub fn check(self) -> Result<(), CurvesError> {
        self.exchange()?;
        self.signatures()?;
        Ok(())
    }

    /// Whether weir-ifma signs.
    pub(crate) fn has_own_signatures(self) -> bool {
        self == Self::Ifma
    }

    /// The permit for weir-ifma's X25519; `None` for AWS-LC's. Errors: as for [`Curves::check`].
    pub(crate) fn exchange(self) -> Result<Option<Ifma>, CurvesError> {
        match self {
            Self::AwsLc => Ok(None),
            Self::Ifma | Self::IfmaX25519 => self.permitted(&X25519),
        }
    }

    /// The permit for weir-ifma's signatures; `None` for AWS-LC's. Errors: as for [`Curves::check`].
    pub(crate) fn signatures(self) -> Result<Option<Ifma>, CurvesError> {
        match self.has_own_signatures() {
            false => Ok(None),
            true => self.permitted(&P256),
        }
    }

    fn permitted(self, half: &Half) -> Result<Option<Ifma>, CurvesError> {
        let permit = LazyLock::force(half).clone();
        permit.map(Some).map_err(|why| CurvesError { curves: self, why })
    }
}

/// The permit to use weir-ifma for key exchange or for signatures in this process.
type Half = LazyLock<Result<Ifma, Unusable>>;

static X25519: Half = LazyLock::new(|| tested("X25519", |ifma| ladder::self_test(ifma).is_ok()));
static P256: Half = LazyLock::new(|| tested("ECDSA P-256", |ifma| p256::self_test(ifma).is_ok()));

fn tested(half: &'static str, is_right: impl Fn(Ifma) -> bool) -> Result<Ifma, Unusable> {
    let ifma = processor::usable()?;
    is_right(ifma).then_some(ifma).ok_or(Unusable::Failed(half))
}

impl FromStr for Curves {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        find("curves", name, &Self::ALL, |curves| name == curves.name())
    }
}

impl fmt::Display for Curves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checked_parameters::Parameters;
    use crate::issue::{KeyKind, issue};
    use crate::{Certificate, Group, Suite, SystemTime, Version};

    #[test]
    fn a_half_with_a_wrong_result_is_not_permitted() {
        if Ifma::detect().is_err() {
            println!("skipped: this processor lacks AVX-512 IFMA");
            return;
        }
        assert_eq!(tested("X25519", |_| false).err(), Some(Unusable::Failed("X25519")));
        assert!(tested("X25519", |_| true).is_ok());
    }

    /// A handshake does not show which implementation it used, so compare the groups themselves.
    #[test]
    fn settings_select_the_implementation() {
        if Curves::Ifma.check().is_err() {
            println!("skipped: this processor lacks AVX-512 IFMA");
            return;
        }
        let issued = issue(&["localhost"], KeyKind::EcdsaP256).unwrap();
        let certificate = Certificate::load(&issued.identity(), &SystemTime).unwrap();
        certificate.prepare(&issued.identity(), Curves::Ifma).unwrap();
        for (curves, exchanges, signs) in
            [(Curves::AwsLc, false, false), (Curves::Ifma, true, true), (Curves::IfmaX25519, true, false)]
        {
            let parameters = Parameters::new(&Version::ALL, &Suite::ALL, &Group::DEFAULT, curves).unwrap();
            let groups = parameters.provider.kx_groups.iter().map(|group| format!("{group:?}"));
            assert_eq!(groups.filter(|group| group.contains("Ifma(")).count(), 2 * usize::from(exchanges));
            let certified = certificate.certified(curves, &SystemTime);
            assert_eq!(format!("{:?}", certified.key).contains("OfIfma"), signs, "{curves}");
        }
    }

    #[test]
    fn the_default_needs_no_processor() {
        assert_eq!(Curves::default().check(), Ok(()));
        assert!(matches!((Curves::AwsLc.exchange(), Curves::AwsLc.signatures()), (Ok(None), Ok(None))));
        assert!(matches!(Curves::IfmaX25519.signatures(), Ok(None)));
    }

    #[test]
    fn an_error_names_the_value_and_the_alternative() {
        for (why, text) in [
            (Unusable::Missing("AVX-512 IFMA"), "this processor lacks AVX-512 IFMA"),
            (Unusable::Slower("A CPU".to_owned()), "AWS-LC is faster on this processor, A CPU"),
            (Unusable::Failed("X25519"), "the self-test of X25519 failed on this processor"),
        ] {
            let error = CurvesError { curves: Curves::Ifma, why };
            assert_eq!(error.to_string(), format!("invalid value `ifma`: {text}: expected `aws-lc`"));
        }
    }

    #[test]
    fn names_are_parsed_as_they_are_written() {
        for curves in Curves::ALL {
            assert_eq!(curves.to_string().parse(), Ok(curves));
        }
        let error = "avx512".parse::<Curves>().unwrap_err().to_string();
        assert_eq!(error, "unknown curves \"avx512\": expected aws-lc, ifma, ifma-x25519");
    }
}
