//! Prometheus' text format, version 0.0.4.

use std::fmt::{Display, Write as _};

/// Metric families and their samples, in order.
#[derive(Debug, Default)]
pub(crate) struct Exposition(String);

impl Exposition {
    /// Begins a family; its samples must follow.
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Appends a sample. Label values may be any text.
    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        let mut before = '{';
        for (label, value) in labels {
            let _ = write!(self.0, "{before}{label}=\"");
            for part in value.chars() {
                match part {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    part => self.0.push(part),
                }
            }
            self.0.push('"');
            before = ',';
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// Appends a histogram of durations: cumulative buckets, sum and count. `bounds`: the upper bounds of all `buckets`
    /// but the last, in microseconds.
    pub(super) fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        bounds: impl Iterator<Item = u64>,
        buckets: &[u64],
        sum_us: u64,
    ) {
        let [bucket, sum, count] = ["bucket", "sum", "count"].map(|part| format!("{name}_{part}"));
        let bounds = bounds.map(|bound| (bound as f64 / 1e6).to_string());
        let mut all = 0;
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(buckets) {
            all += count;
            self.sample(&bucket, &[labels, &[("le", bound.as_str())]].concat(), all);
        }
        self.sample(&sum, labels, sum_us as f64 / 1e6);
        self.sample(&count, labels, all);
    }

    pub(crate) fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        for (value, escaped) in [
            ("", ""),
            ("plain/ü", "plain/ü"),
            ("a\"b", "a\\\"b"),
            ("a\\b", "a\\\\b"),
            ("a\nb", "a\\nb"),
            ("\\n\n\"", "\\\\n\\n\\\""),
            ("a\r,}\tb", "a\r,}\tb"),
        ] {
            let mut text = Exposition::default();
            text.sample("n", &[("a", value), ("b", "c")], 1.5);
            text.sample("n", &[], 2);
            assert_eq!(text.finish(), format!("n{{a=\"{escaped}\",b=\"c\"}} 1.5\nn 2\n"));
        }
    }
}
