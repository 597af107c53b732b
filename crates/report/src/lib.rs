//! From plain values to what a person or a program reads. Nothing here knows an instrument, and nothing reads a clock or
//! depends on the order of a hash: equal values give equal bytes.
//!
//! [`page`] renders a [`model::Report`] as one self-contained HTML file, with [`chart`] for what is drawn; [`text`] sets
//! lines and columns on a terminal; [`export`] writes CSV, Markdown and JUnit's XML.

pub mod chart;
pub mod export;
pub mod markup;
pub mod model;
pub mod page;
pub mod text;

#[cfg(test)]
mod testing;
