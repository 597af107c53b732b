//! The retry budget of a service.

/// Limits retries to a share of the requests, so that they cannot double the load of a failing server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    credit: u32,
    /// The credit that each request earns. A retry takes [`Self::PRICE`], 100, so this is also the number of retries
    /// per hundred requests.
    percent: u32,
}

impl Budget {
    const PRICE: u32 = 100;
    /// The maximum credit: 100 retries, since a server may close all its idle connections at the same time.
    const MOST: u32 = 100 * Self::PRICE;

    /// A full budget that allows `percent` retries per hundred requests; 0 allows no retries.
    pub(crate) fn new(percent: u32) -> Self {
        Self { credit: if percent == 0 { 0 } else { Self::MOST }, percent }
    }

    pub(crate) fn earn(&mut self) {
        self.credit = (self.credit + self.percent).min(Self::MOST);
    }

    /// Spends one retry; returns `false` if the budget is used up.
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
}
