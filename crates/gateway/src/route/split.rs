//! Division of one route's requests among several services.

/// The shares of a route. Each share uses its own route in the snapshot, which no other request takes.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    /// The cookie that keeps a client on its share; `None`: each request is assigned to a share separately.
    pub cookie: Option<Box<[u8]>>,
    /// The shares, in the order of the configuration. The sum of their weights is positive, and fits into 32 bits.
    pub shares: Box<[Share]>,
}

#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// The value of the cookie; empty if the share has no cookie.
    pub name: Box<[u8]>,
    /// The weight, relative to the other shares; 0: no requests.
    pub weight: u32,
    pub route: usize,
    /// As `route`, but for clients without the cookie: responses on this route set the cookie.
    pub first: usize,
    /// As `first`, for clients that use TLS: the cookie is `Secure`.
    pub first_with_tls: usize,
}

impl Split {
    /// The index of the route for a request. The points of consecutive requests must be those of [`next_point`], so
    /// that the weights divide the requests. `cookie` is the value of the request's cookie, and `has_tls` whether its
    /// client uses TLS.
    pub(crate) fn choose(&self, point: u32, cookie: Option<&[u8]>, has_tls: bool) -> Option<usize> {
        let mut usable = self.shares.iter().filter(|share| share.weight > 0);
        if let Some(cookie) = cookie.filter(|cookie| !cookie.is_empty())
            && let Some(kept) = usable.clone().find(|share| *share.name == *cookie)
        {
            return Some(kept.route);
        }
        let total: u64 = usable.clone().map(|share| u64::from(share.weight)).sum();
        let mut at = (u64::from(point) * total) >> 32;
        let chosen = usable.find(|share| {
            let is_within = at < u64::from(share.weight);
            at = at.saturating_sub(share.weight.into());
            is_within
        });
        chosen.map(|share| if has_tls { share.first_with_tls } else { share.first })
    }
}

/// The point after `point`. Points are multiples of the golden ratio, which are evenly spread: a share of a hundredth
/// gets one point in every run of about a hundred, not just on average.
pub(crate) fn next_point(point: u32) -> u32 {
    point.wrapping_add(0x9e37_79b9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(weights: &[u32]) -> Split {
        let share = |(at, weight): (usize, &u32)| Share {
            name: format!("s{at}").into_bytes().into(),
            weight: *weight,
            route: 3 * at,
            first: 3 * at + 1,
            first_with_tls: 3 * at + 2,
        };
        Split { cookie: Some(b"c"[..].into()), shares: weights.iter().enumerate().map(share).collect() }
    }

    fn counts(split: &Split, requests: usize, mut point: u32) -> Vec<usize> {
        let mut counts = vec![0; split.shares.len()];
        for _ in 0..requests {
            point = next_point(point);
            counts[split.choose(point, None, false).unwrap() / 3] += 1;
        }
        counts
    }

    #[test]
    fn requests_are_divided_by_weight() {
        for (weights, requests, expected) in [
            (&[90, 10][..], 1000, &[900, 100][..]),
            (&[1], 10, &[10]),
            (&[0, 1, 0], 10, &[0, 10, 0]),
            (&[99, 1], 10_000, &[9900, 100]),
            (&[1_000_000, 1_000_000], 1000, &[500, 500]),
        ] {
            for (found, expected) in counts(&split(weights), requests, 7).iter().zip(expected) {
                assert!(found.abs_diff(*expected) <= 2, "{weights:?}: {found} {expected}");
            }
        }
    }

    #[test]
    fn a_cookie_keeps_a_client_on_a_share_with_a_weight() {
        let split = split(&[90, 10, 0]);
        for (cookie, routes) in [
            (Some("s1"), [3, 3]),
            (Some("s0"), [0, 0]),
            // A cookie that names a share with weight 0 or an unknown one, an empty cookie, and no cookie: the weights
            // decide, and the response sets the cookie.
            (Some("s2"), [1, 2]),
            (Some("x"), [1, 2]),
            (Some(""), [1, 2]),
            (None, [1, 2]),
        ] {
            let chosen = [false, true].map(|has_tls| split.choose(0, cookie.map(str::as_bytes), has_tls));
            assert_eq!(chosen, routes.map(Some), "{cookie:?}");
        }
    }

    proptest! {
        #[test]
        fn any_point_has_a_share_with_a_weight(
            weights in prop::collection::vec(0_u32..=1_000_000, 1..9),
            point: u32,
            has_tls: bool,
        ) {
            let chosen = split(&weights).choose(point, None, has_tls);
            match weights.iter().any(|weight| *weight > 0) {
                true => prop_assert!(weights[chosen.unwrap() / 3] > 0),
                false => prop_assert_eq!(chosen, None),
            }
        }
    }
}
