//! Histograms of the response times of services and named routes, by class of status.

use super::counters::CLASSES;
use super::exposition::Exposition;
use super::histogram::BOUNDS;
use std::collections::BTreeMap;
use std::time::Duration;

/// A response, measured once for all histograms that count it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// The index of the status's class in [`CLASSES`].
    pub(super) class: usize,
    /// The index of the duration's bucket in the histogram of all requests; the number of [`BOUNDS`] for the last
    /// bucket.
    pub(super) bucket: usize,
    pub(super) micros: u64,
}

impl Measured {
    /// The response to a request that took this long; `status` is 0 without a response.
    #[inline]
    pub(super) fn new(status: u16, took: Duration) -> Self {
        let micros = took.as_secs() * 1_000_000 + u64::from(took.subsec_micros());
        // Each bound is twice the previous one.
        let doublings = (micros / BOUNDS[0]).checked_ilog2().map_or(0, |log| log as usize + 1);
        let class = usize::from(status / 100).min(CLASSES.len() - 1);
        Self { class, bucket: doublings.min(BOUNDS.len()), micros }
    }
}

/// Response times by class of status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Latency([OfClass; CLASSES.len()]);

/// The response times of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OfClass {
    /// Counts up to every second bound of [`BOUNDS`]; the last bucket counts longer times.
    buckets: [u64; BOUNDS.len().div_ceil(2) + 1],
    sum_us: u64,
}

/// Response times by the name of the service or the route.
pub(crate) type LatencyByName = BTreeMap<String, Latency>;

impl Latency {
    #[inline]
    pub(crate) fn record(&mut self, Measured { class, bucket, micros }: Measured) {
        let of_class = &mut self.0[class];
        of_class.buckets[bucket.div_ceil(2)] += 1;
        of_class.sum_us += micros;
    }

    /// The number of responses of all classes.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().flat_map(|of_class| of_class.buckets).sum()
    }

    /// Adds the counts of another worker.
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            for (mine, theirs) in mine.buckets.iter_mut().zip(theirs.buckets) {
                *mine += theirs;
            }
            mine.sum_us += theirs.sum_us;
        }
    }
}

/// Adds the counts of another worker.
pub(super) fn add(mine: &mut LatencyByName, theirs: &LatencyByName) {
    for (name, theirs) in theirs {
        match mine.get_mut(name) {
            Some(mine) => mine.add(theirs),
            None => drop(mine.insert(name.clone(), theirs.clone())),
        }
    }
}

/// Appends the histograms of services and of routes.
pub(super) fn metrics(services: &LatencyByName, routes: &LatencyByName, text: &mut Exposition) {
    let help = "From a request's head to the end of its response, by service and class of status.";
    family("weir_service_response_seconds", help, "service", services, text);
    let help = "From a request's head to the end of its response, by named route and class of status.";
    family("weir_route_response_seconds", help, "route", routes, text);
}

/// Appends a family, without classes that had no response.
fn family(name: &str, help: &str, label: &str, all: &LatencyByName, text: &mut Exposition) {
    text.family(name, "histogram", help);
    for (of, Latency(classes)) in all {
        for (class, OfClass { buckets, sum_us }) in CLASSES.iter().zip(classes) {
            if buckets.iter().any(|count| *count > 0) {
                let labels = [(label, of.as_str()), ("class", *class)];
                text.histogram(name, &labels, BOUNDS.into_iter().step_by(2), buckets, *sum_us);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The metrics text of one service with these responses, each a status and a time in microseconds.
    fn text_of(responses: &[(u16, u64)]) -> String {
        let mut latency = Latency::default();
        for (status, micros) in responses {
            latency.record(Measured::new(*status, Duration::from_micros(*micros)));
        }
        let services = LatencyByName::from([("app".to_owned(), latency)]);
        let mut text = Exposition::default();
        metrics(&services, &LatencyByName::new(), &mut text);
        text.finish()
    }

    #[test]
    fn each_time_is_in_the_first_bucket_whose_bound_is_above_it() {
        for (micros, bound) in [
            (0, "0.0005"),
            (499, "0.0005"),
            (500, "0.002"),
            (1_999, "0.002"),
            (2_000, "0.008"),
            (511_999, "0.512"),
            (2_047_999, "2.048"),
            (8_191_999, "8.192"),
            (8_192_000, "+Inf"),
            (100_000_000, "+Inf"),
        ] {
            let text = text_of(&[(200, micros)]);
            let mut buckets = text.lines().filter(|line| line.contains("_bucket"));
            let first = buckets.find(|line| line.ends_with(" 1")).unwrap();
            assert!(first.contains(&format!("le=\"{bound}\"")), "{micros} us: {first}");
        }
    }

    #[test]
    fn only_classes_with_responses_have_series() {
        let text = text_of(&[(200, 1000), (404, 500_000), (204, 3000)]);
        let labels = |class| format!("{{service=\"app\",class=\"{class}\"}}");
        for (class, sum, count) in [("2xx", "0.004", 2), ("4xx", "0.5", 1)] {
            let labels = labels(class);
            assert!(text.contains(&format!("weir_service_response_seconds_sum{labels} {sum}\n")), "{text}");
            assert!(
                text.contains(&format!("weir_service_response_seconds_count{labels} {count}\n")),
                "{text}"
            );
        }
        // Two classes with nine buckets, a sum and a count each.
        assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), 2 * 11);
    }
}
