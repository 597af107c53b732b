//! `report.html`: one self-contained file, readable offline and on paper.

mod bars;
mod html;
mod latency;
mod svg;

pub(crate) use html::render;
