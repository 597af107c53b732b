//! Sending a request a second time.

/// The bytes of a request that could be sent again.
#[derive(Debug)]
pub(crate) enum Replay {
    /// It cannot: not to be done twice ([`Retry`]), or too long to keep, or sent again already.
    Impossible,
    /// All that was sent so far.
    Kept(Vec<u8>),
}

impl Replay {
    /// A longer request is not kept: idempotent ones have small bodies or none.
    pub(crate) const LONGEST: usize = 16 * 1024;

    /// Gives the bytes out; there is no third time.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        match std::mem::replace(self, Self::Impossible) {
            Self::Kept(bytes) => Some(bytes),
            Self::Impossible => None,
        }
    }
}

/// Bounds retries to a share of the requests, so that they cannot double the load of a server that fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    credit: u32,
    /// What a request earns: retries per hundred requests.
    percent: u32,
}

impl Budget {
    const PRICE: u32 = 100;
    /// For the moment at which a server closes all its idle connections.
    const MOST: u32 = 100 * Self::PRICE;

    /// A full budget of so many retries per hundred requests; with 0, there are none.
    pub(crate) fn new(percent: u32) -> Self {
        Self { credit: if percent == 0 { 0 } else { Self::MOST }, percent }
    }

    /// A request was passed on.
    pub(crate) fn earn(&mut self) {
        self.credit = (self.credit + self.percent).min(Self::MOST);
    }

    /// Whether one more retry is within the budget.
    pub(crate) fn spend(&mut self) -> bool {
        match self.credit.checked_sub(Self::PRICE) {
            Some(rest) => {
                self.credit = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_requests_may_be_sent_again() {
        let mut budget = Budget::new(10);
        let at_once = std::iter::repeat_with(|| budget.spend()).take_while(|granted| *granted).count();
        assert_eq!(at_once, 100);
        let granted = (0..1000).filter(|_| {
            budget.earn();
            budget.spend()
        });
        assert_eq!(granted.count(), 100);
        let mut none = Budget::new(0);
        none.earn();
        assert!(!none.spend());
    }

    #[test]
    fn the_bytes_are_given_out_once() {
        let mut replay = Replay::Kept(b"GET".to_vec());
        assert_eq!((replay.take(), replay.take()), (Some(b"GET".to_vec()), None));
    }
}
