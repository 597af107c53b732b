//! Whether a run is valid.

use crate::check::ErrorClass;
use crate::options::{Options, PerConnection};
use crate::output::figures::plural;
use crate::result::{ByVersion, LoadResult, Negotiated, Pacer, VersionFigures};

/// `valid`, or `invalid: ` and the reasons. `lost` lists servers whose CPU is unknown.
pub(crate) fn of(result: &LoadResult, options: &Options, lost: &[String]) -> String {
    let mut reasons = Vec::new();
    if exceeds_budget(result, options.error_budget) {
        let errors: Vec<String> =
            result.errors.iter().map(|(class, count)| format!("{count} {class}")).collect();
        let allowed = match options.error_budget {
            0.0 => String::new(),
            percent => format!("; budget {percent} % without a response"),
        };
        reasons.push(format!("errors ({}{allowed})", errors.join(", ")));
    }
    if result.requests == 0 {
        reasons.push("no correct response within the window".to_string());
    }
    reasons.extend(result.by_version.iter().flat_map(each_version));
    reasons.extend(result.pacer.iter().flat_map(|pacer| pacing(pacer, result)));
    reasons.extend(negotiation(result, options).map(|reason| format!("negotiated ({reason})")));
    reasons.extend(lost.iter().cloned());
    if reasons.is_empty() { "valid".to_string() } else { format!("invalid: {}", reasons.join("; ")) }
}

/// Whether a run exceeds its error budget: the percentage of completed requests that may have
/// failed without a response. It covers neither wrong responses nor missing connections ([`ErrorClass::is_budgeted`]).
pub fn exceeds_budget(result: &LoadResult, percent: f64) -> bool {
    let covered = |class: &str| ErrorClass::of_name(class).is_some_and(ErrorClass::is_budgeted);
    let errors: u64 = result.errors.values().sum();
    let allowed = percent / 100.0 * (result.requests + errors) as f64;
    // 7 of 1000 are within 0.7 %, which is not a binary fraction.
    let rounding = 1e-9 * allowed;
    errors as f64 > allowed + rounding
        || result.errors.iter().any(|(class, count)| *count > 0 && !covered(class))
}

/// A run with both versions is about both, and each connection speaks its own.
fn each_version(figures: &ByVersion<VersionFigures>) -> Vec<String> {
    let mut reasons = Vec::new();
    for (version, figures) in figures.as_ref().into_pairs() {
        let word = version.word();
        if figures.requests == 0 {
            reasons.push(format!("no correct response by HTTP/{word} within the window"));
        }
        for (name, count) in figures.alpn.iter().filter(|(name, _)| *name != version.alpn()) {
            let handshakes = plural(*count, "handshake");
            reasons.push(format!("negotiated ({handshakes} for HTTP/{word} with ALPN `{name}`)"));
        }
    }
    reasons
}

fn pacing(pacer: &Pacer, result: &LoadResult) -> Vec<String> {
    if pacer.planned == 0 {
        return vec![
            "pacer (no arrival was planned within the window, which is too short for the rate)".into(),
        ];
    }
    let mut reasons = Vec::new();
    let allowed = Pacer::lag_bound_us(result.response.p50_us);
    if pacer.achieved_ratio < Pacer::LEAST_ACHIEVED {
        let (percent, unsent) = (pacer.achieved_ratio * 100.0, result.unsent.count);
        reasons.push(format!("pacer (sent {percent:.1} % of the planned arrivals; {unsent} unsent)"));
    }
    if pacer.lag_p99_us > allowed {
        reasons.push(format!("pacer (lag p99 {:.0} us, allowed {allowed:.0} us)", pacer.lag_p99_us));
    }
    reasons
}

/// The first difference between requested and negotiated parameters.
fn negotiation(result: &LoadResult, options: &Options) -> Option<String> {
    let (handshakes, asked) = (&result.handshakes, &result.asked);
    if handshakes.hello_retry > 0 && !options.tls.allow_hello_retry {
        return Some(plural(handshakes.hello_retry, "HelloRetryRequest"));
    }
    if handshakes.had_nothing > 0 {
        let reason = format!("{} had no session to resume", plural(handshakes.had_nothing, "connection"));
        // BoringSSL and AWS-LC do.
        let hint = match options.policy.per_connection {
            PerConnection::Handshake => {
                ": a server may send its tickets with the first response (--new-connection)"
            }
            _ => "",
        };
        return Some(reason + hint);
    }
    if handshakes.declined > 0 {
        return Some(format!("the server declined {}", plural(handshakes.declined, "resumption")));
    }
    let resumed: u64 = handshakes.resumed.values().sum();
    if resumed != handshakes.offered {
        let resumed = plural(resumed, "resumption");
        return Some(format!("{resumed} of {} offered", handshakes.offered));
    }
    let outside = |value: Option<&str>, list: &[String]| {
        value.is_some_and(|value| !list.is_empty() && !list.iter().any(|known| known == value))
    };
    for seen in &handshakes.negotiated {
        let Negotiated { version, suite, group, signature, kind, alpn, .. } = seen;
        let none_of_the_protocols = !asked.alpn.is_empty() && alpn.is_none();
        let by_ticket = options.tls.ids_only && kind == "resume-1.2-ticket";
        if outside(Some(version), &asked.tls_versions)
            || outside(Some(suite), &asked.suites)
            || outside(group.as_deref(), &asked.groups)
            || outside(signature.as_deref(), &asked.signatures)
            || outside(alpn.as_deref(), &asked.alpn)
            || none_of_the_protocols
            || by_ticket
        {
            return Some(format!(
                "{} with `{seen}`, which was not asked for",
                plural(seen.count, "handshake")
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::sample;

    fn judged(change: impl FnOnce(&mut LoadResult, &mut Options)) -> String {
        let mut options = Options::new("https://127.0.0.1:8443/".parse().unwrap());
        let mut result = sample();
        change(&mut result, &mut options);
        of(&result, &options, &[])
    }

    #[test]
    fn each_reason_is_named() {
        assert_eq!(judged(|_, _| {}), "valid");
        let errors = [("reset".to_string(), 2), ("status".to_string(), 1)];
        assert_eq!(judged(|r, _| r.errors = errors.into()), "invalid: errors (2 reset, 1 status)");
        assert!(judged(|r, _| r.requests = 0).contains("no correct response"));
        let budgeted = judged(|r, o| {
            (r.requests, o.error_budget) = (999, 0.05);
            r.errors = [("reset".to_string(), 1)].into();
        });
        assert_eq!(budgeted, "invalid: errors (1 reset; budget 0.05 % without a response)");
        let options = Options::new("http://127.0.0.1/".parse().unwrap());
        assert!(of(&sample(), &options, &["process 7 ended".into()]).contains("process 7 ended"));
    }

    #[test]
    fn each_version_of_both_responds_and_speaks_its_own() {
        let with = |change: fn(&mut ByVersion<VersionFigures>)| {
            judged(|result, _| {
                let figures = |alpn: &str| VersionFigures {
                    requests: 9,
                    alpn: [(alpn.to_string(), 4)].into(),
                    ..VersionFigures::default()
                };
                let mut both = ByVersion { http1: figures("http/1.1"), http2: figures("h2") };
                change(&mut both);
                result.by_version = Some(both);
            })
        };
        assert_eq!(with(|_| {}), "valid");
        let silent = with(|both| both.http2.requests = 0);
        assert_eq!(silent, "invalid: no correct response by HTTP/2 within the window");
        let other = with(|both| both.http1.alpn = [("http/1.1".into(), 3), ("none".into(), 1)].into());
        assert_eq!(other, "invalid: negotiated (1 handshake for HTTP/1.1 with ALPN `none`)");
        let swapped = with(|both| std::mem::swap(&mut both.http1.alpn, &mut both.http2.alpn));
        assert_eq!(
            swapped,
            "invalid: negotiated (4 handshakes for HTTP/1.1 with ALPN `h2`); negotiated (4 handshakes for HTTP/2 with \
             ALPN `http/1.1`)"
        );
        assert_eq!(with(|both| both.http1.alpn.clear()), "valid", "cleartext has no ALPN");
    }

    #[test]
    fn a_budget_covers_a_share_of_requests_without_an_answer_alone() {
        for (errors, requests, percent, exceeds) in [
            (&[][..], 1000, 0.0, false),
            (&[("timeout", 1)], 999_999, 0.0, true),
            (&[("timeout", 7)], 993, 0.7, false),
            (&[("timeout", 3), ("reset", 4)], 993, 0.7, false),
            (&[("timeout", 8)], 992, 0.7, true),
            (&[("timeout", 7)], 992, 0.7, true),
            (&[("timeout", 5), ("connect", 5)], 0, 100.0, false),
            (&[("status", 1)], 999_999, 50.0, true),
            (&[("length", 1)], 999_999, 50.0, true),
            (&[("digest", 1)], 999_999, 50.0, true),
            (&[("malformed", 1)], 999_999, 50.0, true),
            (&[("missing_connections", 1)], 999_999, 50.0, true),
            (&[("no such class", 1)], 999_999, 50.0, true),
            (&[("status", 0), ("reset", 1)], 999_999, 50.0, false),
        ] {
            let errors = errors.iter().map(|(class, count)| ((*class).to_string(), *count)).collect();
            let result = LoadResult { requests, errors, ..LoadResult::default() };
            assert_eq!(exceeds_budget(&result, percent), exceeds, "{:?} {percent} %", result.errors);
        }
    }

    #[test]
    fn what_was_negotiated_is_what_was_asked_for() {
        type Change = fn(&mut LoadResult, &mut Options);
        let table: [(Change, &str); 12] = [
            (|r, _| r.handshakes.hello_retry = 3, "3 HelloRetryRequests"),
            (|r, _| r.handshakes.had_nothing = 2, "2 connections had no session to resume"),
            (
                |r, o| {
                    r.handshakes.had_nothing = 2;
                    o.policy.per_connection = PerConnection::Handshake;
                },
                "2 connections had no session to resume: a server may send its tickets with",
            ),
            (|r, _| r.handshakes.declined = 5, "the server declined 5 resumptions"),
            (
                |r, _| r.handshakes.resumed = [("resume-1.3-psk".to_string(), 4)].into(),
                "4 resumptions of 0 offered",
            ),
            (|r, _| r.asked.tls_versions = vec!["1.2".into()], "64 handshakes with `1.3 aes128"),
            (|r, _| r.asked.suites = vec!["aes256-gcm-sha384".into()], "64 handshakes with"),
            (|r, _| r.asked.groups = vec!["p256".into()], "64 handshakes with"),
            (|r, _| r.asked.signatures = vec!["ed25519".into()], "64 handshakes with"),
            (|r, _| r.asked.alpn = vec!["http/1.1".into()], "64 handshakes with"),
            (|r, _| r.handshakes.negotiated[0].alpn = Some("h2".into()), ""),
            (
                |r, o| {
                    o.tls.ids_only = true;
                    r.handshakes.negotiated[0].kind = "resume-1.2-ticket".into();
                },
                "64 handshakes with",
            ),
        ];
        for (number, (change, reason)) in table.into_iter().enumerate() {
            let text = judged(change);
            match reason {
                "" => assert_eq!(text, "valid", "row {number}: no protocol was required"),
                _ => assert!(text.contains(&format!("negotiated ({reason}")), "row {number}: {text}"),
            }
        }
        let allowed = judged(|r, o| {
            r.handshakes.hello_retry = 3;
            o.tls.allow_hello_retry = true;
        });
        assert_eq!(allowed, "valid");
    }

    #[test]
    fn an_open_loop_must_keep_its_schedule() {
        let with = |achieved_ratio, lag_p99_us, p50_us| {
            judged(|result, _| {
                result.response.p50_us = Some(p50_us);
                let pacer =
                    Pacer { planned: 1000, sent: 990, achieved_ratio, lag_p99_us, lag_max_us: 5000.0 };
                result.pacer = Some(pacer);
            })
        };
        assert_eq!(with(0.99, 1000.0, 100.0), "valid");
        assert!(with(0.9899, 0.0, 100.0).starts_with("invalid: pacer (sent 99.0 %"));
        assert!(with(1.0, 1001.0, 100.0).starts_with("invalid: pacer (lag p99 1001 us, allowed 1000 us)"));
        assert_eq!(with(1.0, 1001.0, 30_000.0), "valid", "5 % of the median");
        let nothing = judged(|result, _| {
            let pacer = Pacer { planned: 0, sent: 0, achieved_ratio: 0.0, lag_p99_us: 0.0, lag_max_us: 0.0 };
            result.pacer = Some(pacer);
        });
        assert!(nothing.starts_with("invalid: pacer (no arrival was planned"), "{nothing}");
    }
}
