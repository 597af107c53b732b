//! Limits on message heads and chunks: those of a listener or service, or else the general ones.

use super::{Fault, size};
use crate::config::document::{self, OwnLimits};
use weir_http1::Limits;

/// The limits of the listener or service at `key`: its own, or else the general ones.
pub(super) fn compile(general: &document::Limits, own: &OwnLimits, key: &str) -> Result<Limits, Fault> {
    let chosen = |name: &str, own: Option<u64>, general: u64, range| match own {
        Some(value) => size(format!("{key}.{name}"), value, range),
        None => size(format!("limits.{name}"), general, range),
    };
    let own_fields = own.fields.map(|fields| fields as u64);
    let head_bytes = chosen("head", own.head, general.head, document::Limits::HEAD)?;
    Ok(Limits {
        head_bytes,
        fields: chosen("fields", own_fields, general.fields as u64, document::Limits::FIELDS)?,
        line_bytes: match (own.line, general.line) {
            (None, None) => head_bytes,
            (own, general) => chosen("line", own, general.unwrap_or_default(), document::Limits::LINE)?,
        },
        extension_bytes: chosen(
            "chunk_extension",
            own.chunk_extension,
            general.chunk_extension,
            document::Limits::CHUNK_EXTENSION,
        )?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_as_in_general_and_a_line_as_long_as_a_head() {
        let general = document::Limits { head: 1000, fields: 10, chunk_extension: 5, ..Default::default() };
        let compiled = |own: &OwnLimits, line| {
            let limits =
                compile(&document::Limits { line, ..general.clone() }, own, "listener.a.limits").unwrap();
            (limits.head_bytes, limits.fields, limits.line_bytes, limits.extension_bytes)
        };
        let head = OwnLimits { head: Some(2000), ..Default::default() };
        let rest =
            OwnLimits { fields: Some(1), line: Some(300), chunk_extension: Some(0), ..Default::default() };
        assert_eq!(compiled(&OwnLimits::default(), None), (1000, 10, 1000, 5));
        assert_eq!(compiled(&head, None), (2000, 10, 2000, 5));
        assert_eq!(compiled(&head, Some(400)), (2000, 10, 400, 5));
        assert_eq!(compiled(&rest, Some(400)), (1000, 1, 300, 0));
    }

    #[test]
    fn a_fault_names_the_key_that_was_written() {
        let fault = |general: u64, own| {
            let general = document::Limits { head: general, ..Default::default() };
            compile(&general, &OwnLimits { head: own, ..Default::default() }, "service.a.limits")
                .unwrap_err()
                .key
        };
        assert_eq!(fault(1, None), "limits.head");
        assert_eq!(fault(1000, Some(1)), "service.a.limits.head");
    }
}
