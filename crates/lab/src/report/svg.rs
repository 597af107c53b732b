//! Drawing, in the few shapes that our charts need.

use std::fmt::{Display, Write};

/// A drawing in the making.
#[derive(Clone, Debug)]
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Where a text's point is.
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

    pub(crate) fn rect(&mut self, [x, y, width, height]: [f64; 4], fill: &str, opacity: f64) {
        let _ = write!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2" fill="{fill}" fill-opacity="{opacity}"/>"#
        );
    }

    pub(crate) fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], class: &str) {
        let _ = write!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" class="{class}"/>"#
        );
    }

    pub(crate) fn path(&mut self, points: &[(f64, f64)], stroke: &str, dashed: bool) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = if dashed { r#" stroke-dasharray="5 4""# } else { "" };
        let _ = write!(
            self.body,
            r#"<polyline points="{}" fill="none" stroke="{stroke}" stroke-width="2" stroke-linejoin="round"{dash}/>"#,
            points.join(" ")
        );
    }

    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: impl Display) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(&text.to_string());
        let _ = write!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="{class}">{text}</text>"#
        );
    }

    /// The drawing as an element, with a title for those who hear it.
    pub(crate) fn finish(self, title: &str) -> String {
        let Self { width, height, body } = self;
        format!(
            r#"<svg viewBox="0 0 {width:.0} {height:.0}" role="img" xmlns="http://www.w3.org/2000/svg"><title>{}</title>{body}</svg>"#,
            escape(title)
        )
    }
}

/// Text as HTML and XML take it, in elements and in quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Round steps of an axis from zero: 1, 2 or 5 times a power of ten, about `count` of them up to `end`.
pub(crate) fn steps(end: f64, count: f64) -> Vec<f64> {
    let rough = (end / count).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    (0..=(end / step).floor() as u32).map(|index| f64::from(index) * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_stay_below_the_end() {
        assert_eq!(steps(43.0, 5.0), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(steps(9.0, 5.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(steps(0.9, 4.0), [0.0, 0.5]);
    }

    #[test]
    fn markup_in_text_is_escaped() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text(1.0, 1.0, Anchor::Start, "t", "<script>\"&'");
        let drawn = svg.finish("a < b");
        assert!(
            drawn.contains("&lt;script&gt;&quot;&amp;&#39;") && drawn.contains("<title>a &lt; b</title>"),
            "{drawn}"
        );
        assert!(!drawn.contains("<script>"));
    }
}
