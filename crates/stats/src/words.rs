//! Human-readable counts, differences and remarks.

/// A count, in groups of three digits from 10 000.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count of things: `1 block`, `12 000 runs`.
pub fn plural(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A verdict's text and remarks.
pub fn with_remark(words: String, remark: Option<&str>) -> String {
    remark.map_or_else(|| words.clone(), |remark| format!("{words}; {remark}"))
}

/// By how much a ratio differs from 1, with as many digits as the margin has: `28 % lower`.
pub fn difference(ratio: f64, margin: f64) -> String {
    let word = if ratio < 1.0 { "lower" } else { "higher" };
    format!("{} {word}", percent((ratio - 1.0).abs(), margin))
}

/// A share in percent, with as many digits as the margin has: of 1.5 % as of 0.1 % one.
pub(crate) fn percent(share: f64, margin: f64) -> String {
    // To a millionth: 0.07 * 100 is not 7.
    let shown = ((margin * 1e6).round() / 1e4).to_string();
    let digits = shown.split_once('.').map_or(0, |(_, digits)| digits.len());
    format!("{:.digits$} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_and_one_of_a_thing_is_no_plural() {
        assert_eq!([0, 9999, 10_000, 1_234_567].map(count), ["0", "9999", "10 000", "1 234 567"]);
        assert_eq!([1, 2, 12_000].map(|n| plural(n, "core")), ["1 core", "2 cores", "12 000 cores"]);
    }
}
