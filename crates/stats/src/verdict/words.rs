//! Differences and remarks in words.

/// A verdict's words, and what is to be known beside them.
pub fn with_remark(words: String, remark: Option<&str>) -> String {
    remark.map_or_else(|| words.clone(), |remark| format!("{words}; {remark}"))
}

/// By how much a ratio differs from 1, with as many digits as the margin has: `28 % lower`.
pub fn difference(ratio: f64, margin: f64) -> String {
    let word = if ratio < 1.0 { "lower" } else { "higher" };
    format!("{} {word}", percent((ratio - 1.0).abs(), margin))
}

/// A share in percent, with as many digits as the margin has: of 1.5 % as of 0.1 % one.
pub(super) fn percent(share: f64, margin: f64) -> String {
    // To a millionth: 0.07 * 100 is not 7.
    let shown = ((margin * 1e6).round() / 1e4).to_string();
    let digits = shown.split_once('.').map_or(0, |(_, digits)| digits.len());
    format!("{:.digits$} %", share * 100.0)
}
