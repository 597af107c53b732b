//! How large a run is, in the values that templates need: they cannot reckon.

use crate::instrument::gateway::template::Values;
use crate::placement::list;

/// Connections beyond those of the run: ready checks, and those that are closing while others open.
const SPARE: u64 = 256;

/// The least buffer for a body: a head of some kind stands before it.
const LEAST_BUFFER: u64 = 16 * 1024;

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale<'a> {
    /// Connections of clients at once.
    pub(crate) connections: u32,
    /// Bytes of an answer's body, and of the request's that is echoed.
    pub(crate) bytes: u64,
    /// The target's cores.
    pub(crate) cores: &'a [usize],
}

impl Scale<'_> {
    /// Adds what it comes to.
    pub(crate) fn values(self, values: Values) -> Values {
        let max_clients = u64::from(self.connections) + SPARE;
        values
            .with("connections", self.connections)
            .with("max_clients", max_clients)
            .with("max_sockets", 2 * max_clients)
            .with("body_buffer", self.body_buffer())
            .with("workers", self.cores.len())
            .with("cores", list(self.cores))
            .with("core_words", list(self.cores).replace(',', " "))
            .with("core_mask", self.core_mask())
    }

    /// Room for a body as it stands on the wire, where each chunk of it has a line of its own.
    fn body_buffer(self) -> u64 {
        self.bytes.saturating_add(self.bytes / 8).max(LEAST_BUFFER)
    }

    /// A digit for each core, of which the last is core 0's: `1` for those that are the target's.
    fn core_mask(self) -> String {
        let last = self.cores.iter().copied().max().unwrap_or(0);
        (0..=last).rev().map(|core| if self.cores.contains(&core) { '1' } else { '0' }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(connections: u32, bytes: u64, cores: &[usize]) -> String {
        let values = Scale { connections, bytes, cores }.values(Values::default());
        let template = "{{connections}} {{max_clients}} {{max_sockets}} {{body_buffer}} {{workers}} {{cores}} {{core_words}} {{core_mask}}";
        values.render("t", template).expect("renders")
    }

    #[test]
    fn a_run_is_told_in_the_targets_words() {
        assert_eq!(rendered(64, 1000, &[0]), "64 320 640 16384 1 0 0 1");
        assert_eq!(rendered(50_000, 100_000, &[2, 0, 5]), "50000 50256 100512 112500 3 2,0,5 2 0 5 100101");
    }
}
