//! The header of the page: the question, and notices to read before any number.

use crate::markup::escape;
use crate::model::Report;

pub(crate) fn render(report: &Report) -> String {
    let Report { name, question, answer, quick, labels, constants, .. } = report;
    let mut html = String::from("<header>");
    if let Some(quick) = quick {
        html.push_str(&format!("<p class=\"quick\">{}</p>\n", escape(quick)));
    }
    html.push_str(&format!("<h1>{}</h1>\n<p class=\"about\">{}</p>\n", escape(name), escape(question)));
    for sentence in answer {
        html.push_str(&format!("<p class=\"answer\">{}</p>\n", escape(&unbroken(sentence))));
    }
    html.push_str("<ul class=\"labels\">");
    for (index, label) in labels.iter().enumerate() {
        let class = if index == 0 { " class=\"loud\"" } else { "" };
        html.push_str(&format!("<li{class}>{}</li>", escape(label)));
    }
    if !constants.is_empty() {
        html.push_str(&format!("<li>In every cell: {}.</li>", escape(constants)));
    }
    html.push_str("</ul></header>\n");
    html
}

/// A ratio and its interval stay on one line.
fn unbroken(sentence: &str) -> String {
    let mut is_inside = false;
    let keep = |c| {
        is_inside = (is_inside || c == '[') && c != ']';
        if is_inside && c == ' ' { '\u{a0}' } else { c }
    };
    sentence.replace(" [", "\u{a0}[").chars().map(keep).collect()
}

/// The author's interpretation.
pub(crate) fn analysis(report: &Report) -> String {
    if report.analysis.is_empty() {
        return String::new();
    }
    let paragraphs: String =
        report.analysis.iter().map(|text| format!("<p class=\"prose\">{}</p>\n", escape(text))).collect();
    format!("<h2>Analysis</h2>\n{paragraphs}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_not_broken() {
        let kept = unbroken("Weir spends 0.59 [0.56, 0.62] of it, 0.68 [0.6, 0.7] of that");
        assert_eq!(
            kept.split(' ').collect::<Vec<_>>(),
            [
                "Weir",
                "spends",
                "0.59\u{a0}[0.56,\u{a0}0.62]",
                "of",
                "it,",
                "0.68\u{a0}[0.6,\u{a0}0.7]",
                "of",
                "that"
            ]
        );
    }
}
