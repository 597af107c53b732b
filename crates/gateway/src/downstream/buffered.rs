//! A request that is held until its body has come.

use weir_http1::{BodyDecoder, BodyError};

/// What has come of it.
#[derive(Debug)]
pub(crate) struct Buffered {
    /// The bytes of its head.
    pub head: Vec<u8>,
    /// Those of its body, with their framing.
    pub body: Vec<u8>,
    /// Finds the body's end.
    pub decoder: BodyDecoder,
    /// With so many bytes it is passed on, whether all have come or not.
    pub most: usize,
    /// Bytes that its body may have.
    pub max_body: u64,
    /// Bytes of its body, without their framing.
    pub passed: u64,
}

impl Buffered {
    /// Takes what belongs to the body at the beginning of `input`; returns its length. Errors: invalid framing.
    pub(crate) fn take(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        let mut taken = 0;
        while !self.is_due() {
            let step = self.decoder.decode(&input[taken..])?;
            self.passed += step.data.len() as u64;
            self.body.extend_from_slice(&input[taken..taken + step.consumed]);
            taken += step.consumed;
            if step.consumed == 0 {
                break;
            }
        }
        Ok(taken)
    }

    /// Whether it waits no longer.
    pub(crate) fn is_due(&self) -> bool {
        self.decoder.is_complete() || self.body.len() >= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http1::{Framing, Limits};

    #[test]
    fn a_body_is_due_when_it_is_complete_or_long_enough() {
        let input = b"3\r\nabc\r\n0\r\n\r\nGET";
        for (most, len, passed) in [(100, 13, 3), (1, 8, 3)] {
            let decoder = BodyDecoder::new(Framing::Chunked, &Limits::default());
            let mut buffered =
                Buffered { head: Vec::new(), body: Vec::new(), decoder, most, max_body: 9, passed: 0 };
            let mut taken = buffered.take(&input[..1]).unwrap();
            taken += buffered.take(&input[taken..]).unwrap();
            assert!(buffered.is_due());
            assert!(taken <= len && buffered.body == input[..taken] && buffered.passed <= passed);
            assert_eq!(buffered.decoder.is_complete(), most == 100);
        }
    }
}
