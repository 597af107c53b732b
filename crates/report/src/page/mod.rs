//! The page: its shell, and its sections in reading order.

mod claims;
mod costs;
mod figures;
mod header;
mod latency;
mod limits;
mod numbers;
mod origins;
mod parts;
mod seconds;
mod throughput;
mod verdicts;

#[cfg(test)]
mod tests;

use crate::markup::escape;
use crate::model::Report;

const STYLE: &str = include_str!("style.css");

/// The whole file. Self-contained, without scripts.
pub fn render(report: &Report) -> String {
    let parts = [
        header::render,
        verdicts::render,
        claims::render,
        header::analysis,
        figures::render,
        throughput::render,
        limits::render,
        costs::render,
        latency::render,
        seconds::render,
        numbers::render,
        origins::invalid,
        origins::reproduce,
        origins::targets,
        origins::machine,
    ];
    let body: String = parts.iter().map(|part| part(report)).collect();
    let name = escape(&report.name);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"/><meta name=\"color-scheme\" content=\"light dark\"/>\
         <title>{name} - Weir</title><style>\n{STYLE}</style></head>\n<body><main>\n{body}</main></body></html>\n"
    )
}
