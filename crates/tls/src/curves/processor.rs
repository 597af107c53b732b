//! The processors on which weir-ifma is faster than AWS-LC.

use std::fs;

use weir_ifma::Ifma;

use super::Unusable;

/// Processors on which AWS-LC takes less CPU time, by a prefix of their name (`model name` in `/proc/cpuinfo`). The
/// list is empty: the only measurements are from AMD Zen 5.
const SLOWER: [&str; 0] = [];

/// Returns the permit to use weir-ifma. Fails if this processor lacks instructions, or AWS-LC is faster on it.
pub(super) fn usable() -> Result<Ifma, Unusable> {
    let ifma = Ifma::detect().map_err(|missing| Unusable::Missing(missing.feature()))?;
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    match slower(&SLOWER, &cpuinfo) {
        Some(name) => Err(Unusable::Slower(name.to_owned())),
        None => Ok(ifma),
    }
}

/// The processor's name, if a prefix in the table matches it.
fn slower<'a>(table: &[&str], cpuinfo: &'a str) -> Option<&'a str> {
    let name = cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim_end() == "model name").then(|| value.trim())
    })?;
    table.iter().any(|slower| name.starts_with(slower)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_excluded_by_the_beginning_of_its_name() {
        let cpuinfo =
            "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 126\nmodel name\t: A CPU i7 @ 1 GHz\n";
        assert_eq!(slower(&["B CPU", "A CPU i7"], cpuinfo), Some("A CPU i7 @ 1 GHz"));
        assert_eq!(slower(&["CPU"], cpuinfo), None);
        assert_eq!(slower(&[], cpuinfo), None);
        assert_eq!(slower(&["A"], ""), None);
    }
}
