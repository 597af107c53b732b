//! Conditions on a result, such as `p99_us<5000`.

use crate::output::metric::{Metric, Reading};
use crate::result::LoadResult;
use crate::usage::time;
use std::str::FromStr;

/// A condition: a [`Metric`], one of `<`, `<=`, `>`, `>=` and `==`, and a number.
#[derive(Clone, Debug)]
pub struct Assertion {
    metric: Metric,
    /// One of [`OPERATORS`].
    sign: &'static str,
    holds: Holds,
    bound: f64,
    text: String,
}

/// A failed condition and the actual value.
#[derive(Clone, Debug, thiserror::Error)]
#[error("--assert {}: {} {is}", assertion.text, assertion.metric.name())]
pub struct Broken {
    assertion: Assertion,
    is: Reading,
}

/// Why a text is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssertionError {
    #[error("expected a metric, one of < <= > >= == and a number, such as p99_us<5000")]
    NoOperator,
    #[error("unknown metric `{0}`: expected one of {known}", known = names())]
    UnknownMetric(String),
    #[error("`{0}` is not a number")]
    NoNumber(String),
    #[error("invalid time `{0}`: expected microseconds or a time such as 5ms")]
    NoTime(String),
}

impl Assertion {
    /// Whether the result satisfies the condition. A metric without a value fails it.
    ///
    /// # Errors
    /// When it does not: the actual value.
    pub fn check(&self, result: &LoadResult) -> Result<(), Broken> {
        let is = self.metric.read(result);
        let holds = match &is {
            Reading::Exactly(value) => (self.holds)(value, &self.bound),
            // A lower bound satisfies only what everything above it satisfies.
            Reading::AtLeast { value, .. } => self.sign.starts_with('>') && (self.holds)(value, &self.bound),
            Reading::Nothing(_) => false,
        };
        if holds { Ok(()) } else { Err(Broken { assertion: self.clone(), is }) }
    }
}

/// All failed conditions.
pub fn check_all(assertions: &[Assertion], result: &LoadResult) -> Vec<Broken> {
    assertions.iter().filter_map(|assertion| assertion.check(result).err()).collect()
}

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Self, AssertionError> {
        let at = text.find(['<', '>', '=']).ok_or(AssertionError::NoOperator)?;
        let (name, rest) = text.split_at(at);
        let known = |(sign, holds)| Some((sign, holds, rest.strip_prefix(sign)?));
        let (sign, holds, number) =
            OPERATORS.into_iter().find_map(known).ok_or(AssertionError::NoOperator)?;
        let name = name.trim();
        let metric = Metric::of_name(name).ok_or_else(|| AssertionError::UnknownMetric(name.to_string()))?;
        let bound = bound(metric, number.trim())?;
        Ok(Self { metric, sign, holds, bound, text: text.trim().to_string() })
    }
}

type Holds = fn(&f64, &f64) -> bool;

/// The comparison operators, the longer ones first: `<` is a prefix of `<=`.
const OPERATORS: [(&str, Holds); 5] =
    [("<=", f64::le), (">=", f64::ge), ("==", f64::eq), ("<", f64::lt), (">", f64::gt)];

/// The bound: a number in the metric's unit, or for microseconds a time with a unit.
fn bound(metric: Metric, text: &str) -> Result<f64, AssertionError> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    if !metric.is_time() {
        return number.ok_or_else(|| AssertionError::NoNumber(text.to_string()));
    }
    let with_unit = || time(text).ok().map(|time| time.as_nanos() as f64 / 1e3);
    number.or_else(with_unit).ok_or_else(|| AssertionError::NoTime(text.to_string()))
}

fn names() -> String {
    Metric::ALL.map(Metric::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::sample;

    fn parse(text: &str) -> Assertion {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn broken(text: &str, result: &LoadResult) -> String {
        parse(text).check(result).map_or_else(|broken| broken.to_string(), |()| "holds".into())
    }

    #[test]
    fn every_operator_on_both_sides_of_the_value() {
        let mut result = sample();
        result.response.p99_us = Some(5000.0);
        for (holds, fails) in [
            ("p99_us<5000.001", "p99_us<5000"),
            ("p99_us<=5000", "p99_us<=4999.999"),
            ("p99_us>4999.999", "p99_us>5000"),
            ("p99_us>=5000", "p99_us>=5000.001"),
            ("p99_us==5000", "p99_us==5001"),
            (" p99_us <= 5ms ", "p99_us < 5ms"),
            ("p99_us<1s", "p99_us<4999us"),
        ] {
            assert_eq!(broken(holds, &result), "holds");
            assert_eq!(broken(fails, &result), format!("--assert {fails}: p99_us is 5000"));
        }
    }

    #[test]
    fn what_cannot_be_a_condition_says_what_can() {
        for (text, words) in [
            ("p99_us", "such as p99_us<5000"),
            ("p99_us=5000", "such as p99_us<5000"),
            ("p99_us=<5000", "such as p99_us<5000"),
            ("p98_us<5000", "unknown metric `p98_us`: expected one of requests, requests_per_second, "),
            ("<5000", "unknown metric ``"),
            ("p99_us<", "invalid time ``: expected microseconds or a time such as 5ms"),
            ("p99_us<<5", "invalid time `<5`"),
            ("p99_us<5 parsecs", "invalid time `5 parsecs`"),
            ("p99_us<nan", "invalid time `nan`"),
            ("errors<1ms", "`1ms` is not a number"),
            ("errors<inf", "`inf` is not a number"),
        ] {
            let error = text.parse::<Assertion>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_percentile_with_too_few_samples_fulfils_nothing() {
        for operator in ["<", "<=", ">", ">=", "=="] {
            let text = broken(&format!("p999_us{operator}0"), &sample());
            assert!(text.ends_with(": p999_us has no value: 50000 samples are too few"), "{text}");
        }
    }

    /// A timeout of 2 s was recorded as 2 s, so its p99 satisfied a bound of 3 s.
    #[test]
    fn a_lower_bound_is_never_below_anything() {
        let mut result = sample();
        (result.response.censored, result.response.censored_from_us) = (700, Some(2e6));
        result.response.p99_us = Some(2e6);
        for fails in ["p99_us<3s", "p99_us<=3s", "p99_us==2s", "p99_us>2s", "max_us<1h", "mean_us<1s"] {
            assert!(broken(fails, &result).contains(" is at least "), "{}", broken(fails, &result));
        }
        assert_eq!(
            broken("p99_us<3s", &result),
            "--assert p99_us<3s: p99_us is at least 2000000: 700 samples are censored"
        );
        for holds in ["p99_us>1s", "p99_us>=2s", "max_us>=2s", "p50_us<100us", "p90_us==80"] {
            assert_eq!(broken(holds, &result), "holds");
        }
    }

    #[test]
    fn all_failures_are_reported() {
        let assertions = ["errors==0", "p99_us<1ms", "valid==1", "requests_per_second>=30000"].map(parse);
        let lines: Vec<String> = check_all(&assertions, &sample()).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "--assert p99_us<1ms: p99_us is 1234.5",
                "--assert requests_per_second>=30000: requests_per_second is 25000"
            ]
        );
    }
}
