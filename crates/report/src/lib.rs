//! Rendering plain values for people and programs. Independent of instruments, clocks and
//! hash order: equal values give equal bytes.
//!
//! [`page`] renders a [`model::Report`] as one self-contained HTML file, with [`chart`] for the charts; [`text`]
//! formats lines and columns for a terminal; [`export`] writes CSV, Markdown and JUnit XML.

pub mod chart;
pub mod export;
pub mod markup;
pub mod model;
pub mod page;
pub mod text;

#[cfg(test)]
mod testing;
