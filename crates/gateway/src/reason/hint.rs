//! Settings that prevent a rejection.

use super::Reason;
use weir_http1::{BodyError, HeadError, RequestError, ResponseError};

impl Reason {
    /// The setting that would have prevented this end, as text; `None` if there is no such setting.
    pub(crate) fn hint(&self) -> Option<String> {
        let set = match self {
            Self::BadRequest(_, Some(rule)) => {
                return Some(format!("a listener can accept it: accept = ['{}']", rule.name()));
            }
            Self::BadResponse(_, Some(rule)) => {
                return Some(format!("a service can accept it: accept = ['{}']", rule.name()));
            }
            Self::BadRequest(RequestError::RequestLineTooLong, None)
            | Self::BadResponse(ResponseError::StatusLineTooLong, None) => LINE,
            Self::BadRequest(RequestError::Head(error), None)
            | Self::BadResponse(ResponseError::Head(error), None) => match error {
                HeadError::HeadTooLong => "limits.head sets how long a head may be",
                HeadError::TooManyFields => "limits.fields sets how many fields a head may have",
                HeadError::FieldLineTooLong => LINE,
                _ => return None,
            },
            Self::BadRequestBody(error) | Self::BadResponseBody(error) => match error {
                BodyError::ChunkExtensionTooLong => {
                    "limits.chunk_extension sets how long the extensions of a chunk may be"
                }
                BodyError::TrailerTooLarge => {
                    "limits.head, limits.line and limits.fields set how large trailers may be"
                }
                _ => return None,
            },
            Self::UnderscoreInName => "underscores_in_headers of the listener can drop or pass such fields",
            Self::Misdirected => {
                "the client's server name selected another certificate; trusted_proxies of the listener exempts a proxy"
            }
            Self::BodyTooLarge => "limits.body and the max_body of a route set how large a body may be",
            Self::AmbiguousPath => {
                "servers may read the path as that of another route; a route can accept it: ambiguous_paths = 'pass'"
            }
            Self::TooManyInterims => {
                "limits.interim_responses and limits.interim_bytes set how many there may be"
            }
            _ => return None,
        };
        Some(set.to_owned())
    }
}

const LINE: &str = "limits.line and limits.head set how long a line may be";
