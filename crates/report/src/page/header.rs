//! The header of the page: the question, and notices to read before any number.

use crate::markup::escape;
use crate::model::Report;

pub(crate) fn render(report: &Report) -> String {
    let Report { name, question, quick, labels, constants, .. } = report;
    let mut html = String::from("<header>");
    if let Some(quick) = quick {
        html.push_str(&format!("<p class=\"quick\">{}</p>\n", escape(quick)));
    }
    html.push_str(&format!(
        "<h1>{}</h1>\n<p class=\"about\">{}</p>\n<ul class=\"labels\">",
        escape(name),
        escape(question)
    ));
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

/// The author's interpretation.
pub(crate) fn analysis(report: &Report) -> String {
    if report.analysis.is_empty() {
        return String::new();
    }
    let paragraphs: String =
        report.analysis.iter().map(|text| format!("<p class=\"prose\">{}</p>\n", escape(text))).collect();
    format!("<h2>Analysis</h2>\n{paragraphs}")
}
