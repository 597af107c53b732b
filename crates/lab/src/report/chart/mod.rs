//! Charts as inline SVG: pure functions of plain values. Colours, dashes and fonts are classes of `style.css`, so that
//! paper and dark screens get their own.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod labels;
pub(crate) mod palette;
pub(crate) mod percentiles;
pub(crate) mod plot;
pub(crate) mod svg;
