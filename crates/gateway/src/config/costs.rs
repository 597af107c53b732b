//! The measured costs of TLS settings: `costs.csv`, which `cargo bench -p weir-tls --bench costs` makes.

/// The figures and their origin.
#[derive(Debug)]
pub(super) struct Costs {
    /// The processor of the measurement.
    pub cpu: &'static str,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    side: &'static str,
    version: &'static str,
    kind: &'static str,
    aspect: &'static str,
    value: &'static str,
    us: f64,
}

/// The side of a connection, and the version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Of {
    /// `server` or `client`.
    pub side: &'static str,
    /// `1.2` or `1.3`.
    pub version: &'static str,
}

/// The parts of a connection's cost, in the order of the columns.
pub(super) const KINDS: [&str; 3] = ["full", "resumed", "body"];

/// The CPU time of a choice, absolute and relative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    /// The time in microseconds.
    pub us: f64,
    /// The time relative to the cheapest choice.
    pub ratio: f64,
}

impl Costs {
    /// The built-in table.
    pub(super) fn read() -> Self {
        let text = include_str!("costs.csv");
        let cpu = text.lines().find_map(|line| Some(line.split_once("cpu: ")?.1)).unwrap_or("an unknown CPU");
        Self { cpu, rows: text.lines().filter_map(Row::of).collect() }
    }

    /// The cost of a choice, relative to the cheapest choice of this aspect.
    pub(super) fn of(&self, of: Of, kind: &str, aspect: &str, value: &str) -> Option<Cost> {
        let of_aspect = || {
            let is_it = move |row: &&Row| {
                (row.side, row.version, row.kind, row.aspect) == (of.side, of.version, kind, aspect)
            };
            self.rows.iter().filter(is_it)
        };
        let us = of_aspect().find(|row| row.value == value)?.us;
        let least = of_aspect().map(|row| row.us).fold(us, f64::min);
        Some(Cost { us, ratio: us / least })
    }

    /// The measured values of an aspect.
    pub(super) fn values(&self, of: Of, kind: &str, aspect: &str) -> impl Iterator<Item = &'static str> {
        let is_it = move |row: &&Row| {
            (row.side, row.version, row.kind, row.aspect) == (of.side, of.version, kind, aspect)
        };
        self.rows.iter().filter(is_it).map(|row| row.value)
    }
}

impl Row {
    /// Parses a row; `None` for the heading and comments.
    fn of(line: &'static str) -> Option<Self> {
        let mut fields = line.split(',');
        let [side, version, kind, aspect, value, _instructions, us] =
            [(); 7].map(|()| fields.next().unwrap_or_default());
        Some(Self { side, version, kind, aspect, value, us: us.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_figure() {
        let lines = include_str!("costs.csv").lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(Costs::read().rows.len(), lines - 1, "all but the heading");
        assert!(Costs::read().rows.iter().all(|row| row.us > 0.0));
        assert!(Costs::read().cpu.len() < 100);
    }

    #[test]
    fn the_cheapest_choice_is_one() {
        let costs = Costs::read();
        let of = Of { side: "server", version: "1.3" };
        let ratios: Vec<_> = costs
            .values(of, "full", "group")
            .map(|group| costs.of(of, "full", "group", group).unwrap().ratio)
            .collect();
        assert_eq!(ratios.len(), 4);
        assert!(ratios.iter().all(|ratio| *ratio >= 1.0) && ratios.contains(&1.0), "{ratios:?}");
        assert_eq!(costs.of(of, "full", "group", "p521"), None);
    }
}
