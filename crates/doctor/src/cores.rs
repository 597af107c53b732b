//! Lists of core numbers in the formats of `--cores` and the kernel.

/// More cores than any machine has.
const MOST: usize = 1 << 16;

/// Core numbers for `--cores`: `0,2,3`.
pub fn list(cores: &[usize]) -> String {
    cores.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// Parses the kernel's `0,2-3`.
pub(crate) fn parse(text: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST || cores.len() >= MOST {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_single_numbers_written() {
        assert_eq!(parse("0, 2-3,7\n"), Some(vec![0, 2, 3, 7]));
        assert_eq!(parse("0,2-3,7").map(|cores| list(&cores)).as_deref(), Some("0,2,3,7"));
        for nonsense in ["", "-1", "3-1", "1-", "x", "0-65536"] {
            assert_eq!(parse(nonsense), None, "{nonsense}");
        }
    }
}
