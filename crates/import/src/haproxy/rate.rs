//! Rate limits: a stick table that counts requests per client, and a rule that denies requests above a rate.

use super::Config;
use super::acl::{Condition, Literal};
use crate::model::Rate;
use crate::values;
use weir_syntax::haproxy::Section;

/// The rate limit in a rule's condition, and the remaining conditions. `None`: no limit that routes can express.
pub(super) fn limit(
    asked: &Condition,
    section: &Section,
    config: &Config<'_>,
) -> Option<(Rate, Vec<Literal>)> {
    let [list] = &asked[..] else { return None };
    let at = list.iter().position(|literal| !literal.is_negated && fetched(literal).is_some())?;
    let requests = fetched(list.get(at)?)?;
    let per_ms = window(section, config)?;
    let rest = list.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, literal)| literal.clone());
    let fits = (1..=1_000_000).contains(&requests) && (1..=3_600_000).contains(&per_ms);
    fits.then(|| (Rate { requests, per_ms }, rest.collect()))
}

/// The threshold in `sc_http_req_rate(0) gt 100`, `sc0_http_req_rate gt 100` or `src_http_req_rate gt 100`.
fn fetched(literal: &Literal) -> Option<u64> {
    let asks = literal.asks.split(' ').skip_while(|word| !word.contains("http_req_rate"));
    let words: Vec<_> = asks.collect();
    let [fetch, comparison, number] = words[..] else { return None };
    let counter = fetch.replace(|c: char| c.is_ascii_digit(), "");
    let is_rate = ["sc_http_req_rate()", "sc_http_req_rate", "src_http_req_rate"].contains(&counter.as_str());
    let number = number.parse::<u64>().ok().filter(|_| is_rate)?;
    match comparison {
        "gt" => Some(number),
        "ge" => number.checked_sub(1),
        _ => None,
    }
}

/// The period of the section's stick table, if it counts requests per client address.
fn window(section: &Section, config: &Config<'_>) -> Option<u64> {
    let tracks = config
        .all(section)
        .filter(|line| line.word(0) == "http-request" && line.word(1).starts_with("track-sc"));
    let tracks: Vec<_> = tracks.collect();
    let [track] = tracks[..] else { return None };
    let home = match &track.words[2..] {
        [key, ..] if key != "src" => return None,
        [_, table, name, ..] if table == "table" => config.section("backend", name)?,
        _ => section,
    };
    let table = config.find(home, &["stick-table"])?;
    let is_of_addresses = table.words.windows(2).any(|pair| pair[0] == "type" && pair[1].starts_with("ip"));
    let stored = table.words.iter().flat_map(|word| word.split(','));
    // The table stores a rate over a period, such as `http_req_rate(10s)`.
    let stored = stored.filter_map(|word| word.strip_prefix("http_req_rate(")?.strip_suffix(')'));
    let per_ms = stored.filter_map(|time| values::time(time, 1)).next();
    per_ms.filter(|_| is_of_addresses)
}
