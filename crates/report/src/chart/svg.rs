//! SVG drawing with the few shapes that the charts need.

use crate::markup::escape;
use std::fmt::{Display, Write};

/// An SVG drawing.
#[derive(Clone, Debug)]
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// The anchor of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub(crate) fn rect(&mut self, [x, y, width, height]: [f64; 4], class: &str) {
        let [x, y, width, height] = [x, y, width, height].map(short);
        let _ =
            write!(self.body, r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" class="{class}"/>"#);
    }

    pub(crate) fn line(&mut self, points: [f64; 4], class: &str) {
        let [x1, y1, x2, y2] = points.map(short);
        let _ = write!(self.body, r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{class}"/>"#);
    }

    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], class: &str) {
        let points: Vec<String> =
            points.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
        let _ = write!(self.body, r#"<polyline points="{}" class="{class}"/>"#, points.join(" "));
    }

    pub(crate) fn path(&mut self, commands: &str, class: &str) {
        let _ = write!(self.body, r#"<path d="{commands}" class="{class}"/>"#);
    }

    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: impl Display) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let (x, y, text) = (short(x), short(y), escape(&text.to_string()));
        let _ = write!(self.body, r#"<text x="{x}" y="{y}"{anchor} class="{class}">{text}</text>"#);
    }

    /// The drawing as an element, with a title for screen readers.
    pub(crate) fn finish(self, title: &str) -> String {
        let Self { width, height, body } = self;
        let (width, height, title) = (short(width), short(height), escape(title));
        format!(r#"<svg viewBox="0 0 {width} {height}" role="img"><title>{title}</title>{body}</svg>"#)
    }
}

/// A coordinate to a tenth; NaN would break the drawing and becomes 0.
pub(crate) fn short(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A text truncated to this many characters with an ellipsis.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_is_escaped() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(1.0, 1.0, Anchor::Start, "t", "<script>\"&'");
        let drawn = svg.finish("a < b");
        assert!(
            drawn.contains("&lt;script&gt;&quot;&amp;&#39;") && drawn.contains("<title>a &lt; b</title>")
        );
        assert!(!drawn.contains("<script>"));
    }

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        assert_eq!([1.0, 1.25, f64::NAN, f64::INFINITY].map(short), ["1", "1.2", "0", "0"]);
        assert_eq!((cut("abcdef", 4), cut("abcd", 4)), ("abc\u{2026}".into(), "abcd".into()));
    }
}
