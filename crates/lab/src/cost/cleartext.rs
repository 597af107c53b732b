//! The cleartext service that the one over TLS is compared with.

use super::question::{CostError, Question};
use super::rounds;
use serde::Serialize;
use std::time::Duration;
use weir_load::result::LoadResult;
use weir_load::{LoadError, Options, Target};

/// The same service in cleartext.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleartext {
    /// Given with `--plain`.
    Given(#[serde(serialize_with = "shown")] Target),
    /// Found on port 80, where the service over TLS is on port 443.
    Found(#[serde(serialize_with = "shown")] Target),
    /// Unknown.
    None {
        /// Why.
        why: String,
    },
}

impl Cleartext {
    /// The given one; else port 80, if the service is on port 443 and a short trial there gets correct responses.
    /// Errors: an interrupted trial.
    pub(super) fn find(
        question: &Question,
        mut measure: impl FnMut(&Options) -> Result<LoadResult, LoadError>,
    ) -> Result<Self, CostError> {
        if let Some(plain) = &question.plain {
            let mut plain = plain.clone();
            if plain.path == "/" {
                plain.path.clone_from(&question.url.path);
            }
            return Ok(Self::Given(plain));
        }
        let mut target = question.url.clone();
        if target.endpoint.port != 443 {
            return Ok(Self::None { why: "the cleartext port is unknown".into() });
        }
        (target.endpoint.tls, target.endpoint.port) = (false, 80);
        let mut options = Options::new(target.clone());
        options.connections = 1;
        options.phases.warmup = Duration::ZERO;
        options.phases.window = TRIAL;
        options.timeout = PATIENCE;
        Ok(match rounds::whole(measure(&options)) {
            Ok(result) if result.validity == "valid" => Self::Found(target),
            Ok(result) => Self::None { why: format!("{target}: {}", rounds::reason(&result)) },
            Err(CostError::Load(error)) => Self::None { why: error.to_string() },
            Err(error) => return Err(error),
        })
    }

    /// Its URL.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::Given(target) | Self::Found(target) => Some(target),
            Self::None { .. } => None,
        }
    }
}

/// Long enough for a response or a redirect.
const TRIAL: Duration = Duration::from_millis(100);

/// Short, as a firewall may drop everything sent to port 80.
const PATIENCE: Duration = Duration::from_secs(2);

fn shown<S: serde::Serializer>(target: &Target, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(target)
}
