//! A weighted mix of requests.

use crate::options::{Options, RequestOptions};
use crate::target::WEIGHTS;
use crate::usage::Usage;

/// All requests of a run and their order.
#[derive(Debug)]
pub(crate) struct Mix<R> {
    requests: Vec<R>,
    /// One cycle: each request as often as its weight. Empty for a single request.
    turn: Vec<u32>,
}

/// The longest cycle, in requests: 16 MB.
const LONGEST_TURN: u64 = 4_000_000;

impl<R> Mix<R> {
    /// Builds all requests with `build`. The cycle length is the sum of the weights over their greatest common divisor.
    pub(crate) fn new(
        options: &Options,
        build: impl Fn(&RequestOptions, &Options) -> Result<R, Usage>,
    ) -> Result<Self, Usage> {
        let asked = &options.requests;
        if asked.is_empty() {
            return Err(Usage::new("URL", "", "at least one request"));
        }
        if let Some(request) = asked.iter().find(|request| !WEIGHTS.contains(&request.weight)) {
            return Err(Usage::new("--weights", &request.weight.to_string(), "1 to 1000000"));
        }
        let weights: Vec<u32> = asked.iter().map(|request| request.weight).collect();
        let turn = if let [_] = *weights { Vec::new() } else { turn(weights)? };
        let requests = asked.iter().map(|asked| build(asked, options)).collect::<Result<_, _>>()?;
        Ok(Self { requests, turn })
    }

    /// The request at position `n`. From any position, a whole cycle has each request as often as its weight.
    #[inline]
    pub(crate) fn nth(&self, n: u64) -> &R {
        let which = match self.turn.len() as u64 {
            0 => 0,
            length => self.turn[(n % length) as usize] as usize,
        };
        &self.requests[which]
    }
}

/// The k-th occurrence of a request of weight w is at (k + 1/2) / w of the cycle: each is spread evenly,
/// and any part of a cycle has nearly the shares of the whole.
fn turn(mut weights: Vec<u32>) -> Result<Vec<u32>, Usage> {
    let common = weights.iter().copied().fold(0, greatest_common_divisor).max(1);
    weights.iter_mut().for_each(|weight| *weight /= common);
    let length: u64 = weights.iter().copied().map(u64::from).sum();
    if length > LONGEST_TURN {
        let expected =
            format!("weights whose sum over their greatest common divisor is at most {LONGEST_TURN}");
        return Err(Usage::new("weights", &format!("a sum of {length}"), &expected));
    }
    let mut places = Vec::with_capacity(length as usize);
    for (which, weight) in (0..).zip(&weights) {
        let weight = u64::from(*weight);
        // Below 2^21 + 1 shifted by 41: within 64 bits.
        places.extend((0..weight).map(|k| (((2 * k + 1) << 41) / (2 * weight), which)));
    }
    places.sort_unstable();
    Ok(places.into_iter().map(|(_, which)| which).collect())
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;

    fn mix(weights: &[u32]) -> Result<Mix<Request>, Usage> {
        let mut options = Options::new("http://a/".parse().unwrap());
        let request = |(n, weight): (usize, &u32)| RequestOptions {
            weight: *weight,
            ..RequestOptions::new(format!("/{n}"))
        };
        options.requests = weights.iter().enumerate().map(request).collect();
        Mix::new(&options, Request::new)
    }

    /// The index of the request at position `n`.
    fn which(mix: &Mix<Request>, n: u64) -> usize {
        let line = std::str::from_utf8(mix.nth(n).bytes(false)).unwrap();
        line.split(['/', ' ']).nth(2).unwrap().parse().unwrap()
    }

    #[test]
    fn shares_are_exact_from_any_place_on() {
        for weights in [&[1][..], &[3, 1], &[1, 1, 1], &[5, 2, 1, 7], &[30, 10], &[1000, 1, 999]] {
            let mix = mix(weights).unwrap();
            let sum: u32 = weights.iter().sum();
            for start in [0, 1, 12_345, u64::MAX / 2] {
                let mut seen = vec![0; weights.len()];
                (start..start + u64::from(sum)).for_each(|n| seen[which(&mix, n)] += 1);
                assert_eq!(seen, weights, "from {start}");
            }
        }
    }

    #[test]
    fn the_order_is_smooth() {
        let order = |weights: &[u32]| -> Vec<usize> {
            let mix = mix(weights).unwrap();
            (0..u64::from(weights.iter().sum::<u32>())).map(|n| which(&mix, n)).collect()
        };
        assert_eq!(order(&[3, 1]), [0, 0, 1, 0]);
        assert_eq!(order(&[1, 1, 1]), [0, 1, 2]);
        // After each step, every request is within one of its share.
        let weights = [5, 2, 1, 7];
        let mut seen = [0; 4];
        for (step, which) in (1..).zip(order(&weights)) {
            seen[which] += 1;
            for (count, weight) in seen.iter().zip(weights) {
                let share = f64::from(step) * f64::from(weight) / 15.0;
                assert!((f64::from(*count) - share).abs() <= 1.0, "step {step}: {seen:?}");
            }
        }
    }

    #[test]
    fn a_turn_is_as_short_as_it_can_be_and_bounded() {
        assert_eq!(mix(&[1_000_000, 500_000]).unwrap().turn, [0, 1, 0]);
        assert!(mix(&[1_000_000]).unwrap().turn.is_empty());
        assert_eq!(mix(&[1_000_000, 999_999]).unwrap().turn.len(), 1_999_999);
        for (weights, message) in [
            (&[][..], "URL"),
            (&[1, 0], "--weights: invalid value `0`"),
            (&[1_000_001], "--weights: invalid value `1000001`"),
            (&[1_000_000, 1_000_000, 1_000_000, 999_999, 1_000_000], "a sum of 4999999"),
        ] {
            let error = mix(weights).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
