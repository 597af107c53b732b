//! The seconds of a run as comma-separated values (RFC 4180, with line feeds alone).

use crate::result::{ByVersion, LoadResult, Second, VersionSecond};
use std::fmt::Write as _;

/// A header, and one row for each second of the window; a percentile with too few samples is empty, and so is a version's
/// figure in a run with one version. The columns are the fields of [`Second`], in order; new ones go last, for readers by
/// position.
pub fn seconds(result: &LoadResult) -> String {
    let mut out =
        "at_s,requests,errors,handshakes,connections,waiting,p50_us,p99_us,p95_us,goaways,resets,refused,\
                   messages_sent,messages_received,http1_requests,http1_errors,http1_p50_us,http1_p99_us,\
                   http2_requests,http2_errors,http2_p50_us,http2_p99_us\n"
            .to_string();
    for second in &result.seconds {
        let Second { at_s, requests, errors, handshakes, connections, waiting, .. } = second;
        let Second { p50_us, p99_us, p95_us, goaways, resets, refused, .. } = second;
        let Second { messages_sent, messages_received, .. } = second;
        let [p50_us, p99_us, p95_us] = [p50_us, p99_us, p95_us].map(|us| cell(*us));
        let versions = second.by_version.as_ref().map(ByVersion::as_ref);
        let http1 = version(versions.map(|versions| versions.http1));
        let http2 = version(versions.map(|versions| versions.http2));
        let _ = writeln!(
            out,
            "{at_s},{requests},{errors},{handshakes},{connections},{waiting},{p50_us},{p99_us},{p95_us},\
             {goaways},{resets},{refused},{messages_sent},{messages_received},{http1},{http2}"
        );
    }
    out
}

/// The four columns of a version.
fn version(second: Option<&VersionSecond>) -> String {
    let Some(VersionSecond { requests, errors, p50_us, p99_us }) = second else { return ",,,".to_string() };
    format!("{requests},{errors},{},{}", cell(*p50_us), cell(*p99_us))
}

fn cell(us: Option<f64>) -> String {
    us.map_or(String::new(), |us| us.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::sample;
    use serde_json::Value;
    use std::collections::BTreeSet;

    #[test]
    fn a_row_for_each_second() {
        let mut result = sample();
        let full = Second {
            at_s: 0.0,
            requests: 25_000,
            errors: 1,
            handshakes: 2,
            connections: 64,
            waiting: 3,
            p50_us: Some(61.5),
            p99_us: Some(1200.0),
            p95_us: Some(900.0),
            goaways: 4,
            resets: 5,
            refused: 6,
            messages_sent: 7,
            messages_received: 8,
            by_version: Some(ByVersion {
                http1: VersionSecond {
                    requests: 24_990,
                    errors: 0,
                    p50_us: Some(61.5),
                    p99_us: Some(1200.0),
                },
                http2: VersionSecond { requests: 10, errors: 1, p50_us: None, p99_us: None },
            }),
        };
        result.seconds = vec![full, Second { at_s: 1.0, requests: 19, ..Second::default() }];
        let expected = "\
at_s,requests,errors,handshakes,connections,waiting,p50_us,p99_us,p95_us,goaways,resets,refused,messages_sent,messages_received,\
http1_requests,http1_errors,http1_p50_us,http1_p99_us,http2_requests,http2_errors,http2_p50_us,http2_p99_us
0,25000,1,2,64,3,61.5,1200,900,4,5,6,7,8,24990,0,61.5,1200,10,1,,
1,19,0,0,0,0,,,,0,0,0,0,0,,,,,,,,
";
        assert_eq!(seconds(&result), expected);
    }

    #[test]
    fn the_columns_are_the_fields_of_the_json() {
        let text = seconds(&LoadResult::default());
        let second = Second { by_version: Some(ByVersion::default()), ..Second::default() };
        let mut json = serde_json::to_value(second).unwrap();
        let versions = json.as_object_mut().unwrap().remove("by_version").unwrap();
        let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let mut fields = names(&json);
        for version in names(&versions) {
            fields.extend(names(&versions[&version]).iter().map(|name| format!("{version}_{name}")));
        }
        let fields: BTreeSet<&str> = fields.iter().map(String::as_str).collect();
        assert_eq!(text.trim_end().split(',').collect::<BTreeSet<_>>(), fields);
        assert_eq!(text.lines().count(), 1, "no seconds, no rows");
    }
}
