//! The limit on interim responses (1xx): without it, a server could send any number before the final response.

use crate::config::InterimLimits;

/// The number and size of an exchange's interim responses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interims {
    responses: usize,
    bytes: usize,
}

impl Interims {
    /// Counts an interim response with a head of `bytes`; returns whether it is within the limits.
    pub(crate) fn take(&mut self, bytes: usize, limits: InterimLimits) -> bool {
        self.responses += 1;
        self.bytes += bytes;
        self.responses <= limits.responses && self.bytes <= limits.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_may_be_reached_and_not_exceeded() {
        for (responses, bytes, heads, all_fit) in [
            (2, 100, &[50, 50][..], true),
            (2, 100, &[50, 51], false),
            (2, 100, &[20, 20, 20], false),
            (0, 100, &[20], false),
            (0, 100, &[], true),
            (8, 100, &[101], false),
        ] {
            let mut interims = Interims::default();
            let fit = heads.iter().all(|head| interims.take(*head, InterimLimits { responses, bytes }));
            assert_eq!(fit, all_fit, "{responses} {bytes} {heads:?}");
        }
    }
}
