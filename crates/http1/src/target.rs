//! The four forms of a request target.

use crate::RequestError;
use weir_http::{Authority, Method};

/// The form of a request target (RFC 9112, section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`
    #[default]
    Origin,
    /// `http://host/path?query` or `https://..`
    Absolute,
    /// `host:port`, with CONNECT only
    Authority,
    /// `*`, with OPTIONS only
    Asterisk,
}

/// A parsed request target; the ranges are offsets into the target.
pub(crate) struct Target {
    pub(crate) form: TargetForm,
    /// The range of the authority, if the target has one.
    pub(crate) authority: Option<(usize, usize)>,
    /// The offset at which path and query start.
    pub(crate) path: usize,
}

impl Target {
    /// Parses a non-empty `target`. Fails if its form is invalid, or not allowed for `method`.
    #[inline]
    pub(crate) fn read(method: Method, target: &[u8]) -> Result<Self, RequestError> {
        if method == Method::Connect {
            return match Authority::parse(target) {
                Some(Authority { port: Some(_), .. }) => Ok(Self {
                    form: TargetForm::Authority,
                    authority: Some((0, target.len())),
                    path: target.len(),
                }),
                _ => Err(RequestError::BadTargetForm),
            };
        }
        match target {
            [b'/', ..] => Ok(Self { form: TargetForm::Origin, authority: None, path: 0 }),
            b"*" if method == Method::Options => {
                Ok(Self { form: TargetForm::Asterisk, authority: None, path: 0 })
            }
            _ => Self::absolute(target),
        }
    }

    #[cold]
    fn absolute(target: &[u8]) -> Result<Self, RequestError> {
        let start = [&b"http://"[..], b"https://"]
            .into_iter()
            .find(|scheme| target.get(..scheme.len()).is_some_and(|found| found.eq_ignore_ascii_case(scheme)))
            .ok_or(RequestError::BadTargetForm)?
            .len();
        let length = target[start..].iter().position(|b| matches!(b, b'/' | b'?'));
        let end = length.map_or(target.len(), |length| start + length);
        Authority::parse(&target[start..end]).ok_or(RequestError::BadTargetForm)?;
        Ok(Self { form: TargetForm::Absolute, authority: Some((start, end)), path: end })
    }
}
