//! Limits on a field section: the size and the number of fields.

/// Limits on one field section. A section at a limit is accepted, a section beyond it is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of names and values, plus 32 for each field: the measure of SETTINGS_MAX_HEADER_LIST_SIZE (RFC 9113,
    /// section 6.5.2).
    pub head_bytes: usize,
    /// Number of fields, including pseudo-fields and each cookie crumb.
    pub fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // As in HTTP/1.1: 100 fields of 32 KiB in total. The pseudo-fields and the measure's overhead for each field
        // come on top.
        Self { head_bytes: 36 * 1024, fields: 104 }
    }
}

impl Limits {
    /// The size of all fields up to which the decoder continues a block that exceeds `head_bytes`, to keep its table in
    /// sync.
    pub(crate) fn decoded_bytes(&self) -> usize {
        self.head_bytes.saturating_mul(4)
    }
}
