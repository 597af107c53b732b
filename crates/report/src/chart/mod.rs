//! Charts as inline SVG: pure functions of plain values. Colours, dashes and fonts are classes of `style.css`, so that
//! print and dark screens get their own.

pub mod axis;
pub mod bars;
pub mod palette;
pub mod percentiles;
pub mod plot;
pub mod stack;

mod svg;
