//! The SETTINGS that the gateway sends, and the limits and budgets of a connection.

use weir_http1::Limits;
use weir_http2::{Config, Settings};

/// The configuration of client connections to a listener with these limits. `priorities`: whether streams send in the
/// order of their priorities.
pub(crate) fn client_config(limits: &Limits, priorities: bool) -> Config {
    let mut config = Config { priorities, ..config(limits) };
    config.settings.enable_connect_protocol = true;
    config
}

/// The configuration of connections to a service's servers, with the service's limits and at most `streams` requests at
/// a time.
pub(super) fn server_config(limits: &Limits, streams: u32) -> Config {
    let mut config = config(limits);
    config.settings.max_concurrent_streams = Some(streams);
    // Servers may stream events of one byte each, and one bad resource must not end the other streams.
    config.budgets.empty_data = 100_000;
    config.budgets.provoked_resets = 100_000;
    config
}

/// The part of both configurations that follows from the limits on heads.
fn config(limits: &Limits) -> Config {
    // HTTP/2 counts 32 extra bytes for each field, and the pseudo-fields.
    let fields = limits.fields.saturating_add(4);
    let head_bytes = limits.head_bytes.saturating_add(fields.saturating_mul(32));
    let usual = Config::default();
    let settings = Settings { max_header_list_size: u32::try_from(head_bytes).ok(), ..usual.settings };
    let heads = weir_http2::Limits { head_bytes, fields };
    // The decoder continues beyond the limit, up to this size, so that a client with too large a head gets 431.
    let block_bytes = limits.head_bytes.saturating_mul(4);
    Config { settings, limits: heads, block_bytes, ..usual }
}
