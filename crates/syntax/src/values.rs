//! Times and sizes, as both programs write them.

/// Parses a time such as `90`, `1m`, `1h 30m` or `500ms`, in milliseconds; a plain number counts units of `plain_ms`.
pub fn time(text: &str, plain_ms: u64) -> Option<u64> {
    let (mut total, mut rest) = (0_u64, text.trim());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let unit_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..unit_end] {
            "" => plain_ms,
            // Less than a millisecond counts as one.
            "us" => return Some((number / 1000).max(1)),
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 7 * 86_400_000,
            "M" => 30 * 86_400_000,
            "y" => 365 * 86_400_000,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = rest[unit_end..].trim_start();
    }
    Some(total)
}

/// Parses a size such as `8k`, `10m` or `1g`, in bytes.
pub fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let unit = match &text[end..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit).filter(|bytes| *bytes < 1 << 60)
}
