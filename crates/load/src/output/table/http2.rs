//! The rows of HTTP/2.

use super::{MOST_NEGOTIATED, Page};
use crate::output::figures::{count, digits, size};
use crate::result::{Http2Figures, PeerSettings};
use std::collections::BTreeMap;

impl Page {
    pub(super) fn http2(&mut self, figures: &Http2Figures) {
        let (write, read) = (digits(figures.requests_per_write), digits(figures.responses_per_read));
        let heads = size(figures.header_bytes_per_response);
        self.row(
            "HTTP/2",
            &format!("{write} requests per write, {read} responses per read, {heads} of heads per response"),
        );
        if figures.refused > 0 || !figures.resets.is_empty() || !figures.goaways.is_empty() {
            let (refused, retried) = (count(figures.refused), count(figures.retried));
            let (resets, goaways) = (by_code(&figures.resets), by_code(&figures.goaways));
            let text =
                format!("{refused} refused, {retried} retried; RST_STREAM: {resets}; GOAWAY: {goaways}");
            self.row("streams", &text);
        }
        let (listed, rest) = figures.settings.split_at(figures.settings.len().min(MOST_NEGOTIATED));
        for (index, settings) in listed.iter().enumerate() {
            self.row(if index == 0 { "settings" } else { "" }, &peer_settings(settings));
        }
        if !rest.is_empty() {
            let others: u64 = rest.iter().map(|settings| settings.count).sum();
            self.row("", &format!("{} x other settings", count(others)));
        }
    }
}

fn by_code(codes: &BTreeMap<String, u64>) -> String {
    let codes: Vec<String> =
        codes.iter().map(|(code, number)| format!("{} {code}", count(*number))).collect();
    if codes.is_empty() { "none".to_string() } else { codes.join(", ") }
}

fn peer_settings(settings: &PeerSettings) -> String {
    let limit = |limit: Option<u32>| limit.map_or("unlimited".to_string(), |limit| count(limit.into()));
    format!(
        "{} x streams {}, window {}, frame {}, table {}, head {}",
        count(settings.count),
        limit(settings.max_concurrent_streams),
        count(settings.initial_window_size.into()),
        count(settings.max_frame_size.into()),
        count(settings.header_table_size.into()),
        limit(settings.max_header_list_size),
    )
}
