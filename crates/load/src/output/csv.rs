//! The seconds of a run as comma-separated values (RFC 4180, with line feeds alone).

use crate::result::{LoadResult, Second};
use std::fmt::Write as _;

/// A header, and one row for each second of the window; a percentile with too few samples is empty. The columns are
/// the fields of [`Second`], in order; new ones go last, for readers by position.
pub fn seconds(result: &LoadResult) -> String {
    let mut out =
        "at_s,requests,errors,handshakes,connections,waiting,p50_us,p99_us,p95_us,goaways,resets,refused,\
                   messages_sent,messages_received\n"
            .to_string();
    for second in &result.seconds {
        let Second { at_s, requests, errors, handshakes, connections, waiting, .. } = second;
        let Second { p50_us, p99_us, p95_us, goaways, resets, refused, .. } = second;
        let Second { messages_sent, messages_received, .. } = second;
        let [p50_us, p99_us, p95_us] =
            [p50_us, p99_us, p95_us].map(|us| us.map_or(String::new(), |us| us.to_string()));
        let _ = writeln!(
            out,
            "{at_s},{requests},{errors},{handshakes},{connections},{waiting},{p50_us},{p99_us},{p95_us},\
             {goaways},{resets},{refused},{messages_sent},{messages_received}"
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::sample;
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
        };
        result.seconds = vec![full, Second { at_s: 1.0, requests: 19, ..Second::default() }];
        let expected = "\
at_s,requests,errors,handshakes,connections,waiting,p50_us,p99_us,p95_us,goaways,resets,refused,messages_sent,messages_received
0,25000,1,2,64,3,61.5,1200,900,4,5,6,7,8
1,19,0,0,0,0,,,,0,0,0,0,0
";
        assert_eq!(seconds(&result), expected);
    }

    #[test]
    fn the_columns_are_the_fields_of_the_json() {
        let text = seconds(&LoadResult::default());
        let json = serde_json::to_value(Second::default()).unwrap();
        let fields: BTreeSet<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(text.trim_end().split(',').collect::<BTreeSet<_>>(), fields);
        assert_eq!(text.lines().count(), 1, "no seconds, no rows");
    }
}
