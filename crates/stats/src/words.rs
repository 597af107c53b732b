//! Numbers of things as people read them.

/// How many, in groups of three digits from 10 000 on.
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

/// How many of a thing, in words: `1 block`, `12 000 runs`.
pub fn plural(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(number), if number == 1 { "" } else { "s" })
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
