//! The page: its shell, and its sections in reading order.

mod advice;
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
mod splits;
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
        splits::render,
        advice::render,
        latency::render,
        seconds::render,
        numbers::render,
        origins::invalid,
        origins::reproduce,
        origins::targets,
        origins::machine,
    ];
    let body: String = parts.iter().map(|part| part(report)).collect();
    shell(&report.name, &body)
}

/// A page of this body, which is HTML, in the style of reports.
pub fn shell(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"/><meta name=\"color-scheme\" content=\"light dark\"/>\
         <title>{title} - Weir</title><style>\n{STYLE}</style></head>\n<body><main>\n{body}</main></body></html>\n"
    )
}
