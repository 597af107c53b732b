//! A row of the table of metrics: a metric's name, kind, labels and form in JSON.

use super::values::Sample;
use serde_json::{Value, json};

/// The description of a metric for Prometheus, JSON and the documentation.
#[derive(Debug)]
pub struct Row {
    pub(super) kind: Kind,
    /// The name in Prometheus' text; empty for a [`Kind::Total`].
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// The labels of the counts, each with its values. The last label varies fastest.
    pub(super) labels: &'static [(&'static str, &'static [&'static str])],
    pub(super) json: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    /// Not a metric; only part of the totals at exit.
    Total,
}

/// The form of a metric in the JSON of `/status`, and its key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Json {
    /// The metric is not in the JSON.
    Hidden,
    Number(&'static str),
    /// A list of counts, in the order of the label's values.
    Numbers(&'static str),
    /// A list of pairs of the label's value and the count.
    Pairs(&'static str),
    /// A list of objects: the labels, and `count`.
    Objects(&'static str),
    /// A number in an object.
    Member(&'static str, &'static str),
    /// Numbers in an object, with the label's values as keys.
    Members(&'static str),
}

impl Row {
    /// The top-level key in the JSON of `/status`: of the metric, or of the object that contains it. `None` for a
    /// metric that `/status` omits.
    pub fn key(&self) -> Option<&'static str> {
        match self.json {
            Json::Hidden => None,
            Json::Number(key) | Json::Numbers(key) | Json::Pairs(key) | Json::Objects(key) => Some(key),
            Json::Member(object, _) | Json::Members(object) => Some(object),
        }
    }

    /// The values of the first label, in the order of an array's counts.
    pub fn values(&self) -> &'static [&'static str] {
        self.labels.first().map_or(&[], |(_, values)| values)
    }

    /// Adds the samples to the JSON of `/status`.
    pub(super) fn put(&self, samples: &[Sample<'_>], object: &mut Value) {
        match self.json {
            Json::Hidden => {}
            Json::Number(key) => object[key] = total(samples),
            Json::Numbers(key) => object[key] = samples.iter().map(|sample| sample.count).collect(),
            Json::Pairs(key) => {
                object[key] = samples.iter().map(|sample| json!([sample.label(), sample.count])).collect();
            }
            Json::Objects(key) => {
                let labelled = |sample: &Sample<'_>| {
                    let mut labelled: Value = sample.labels.iter().copied().collect();
                    labelled["count"] = sample.count.into();
                    labelled
                };
                object[key] = samples.iter().map(labelled).collect();
            }
            Json::Member(of, key) => object[of][key] = total(samples),
            Json::Members(of) => {
                for sample in samples {
                    object[of][sample.label()] = sample.count.into();
                }
            }
        }
    }
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Total => "total",
        }
    }
}

fn total(samples: &[Sample<'_>]) -> Value {
    samples.iter().map(|sample| sample.count).sum::<u64>().into()
}
