//! Charts of what has no users and no load: TLS stacks in memory.

use super::parts::{AT_ONCE, heading};
use crate::markup::{details, escape};
use crate::model::{Figures, Picture, Report};

pub(crate) fn render(report: &Report) -> String {
    report.figures.iter().filter(|figures| !figures.pictures.is_empty()).map(one).collect()
}

fn one(figures: &Figures) -> String {
    let head = heading(&escape(&figures.title), &escape(&figures.note));
    let (first, rest) = figures.pictures.split_at(figures.pictures.len().min(AT_ONCE));
    let more = match rest {
        [] => String::new(),
        rest => details(false, &format!("{} more", rest.len()), &grid(rest)),
    };
    head + &grid(first) + &more
}

fn grid(pictures: &[Picture]) -> String {
    let figure = |picture: &Picture| {
        format!(
            "<figure><figcaption><b>{}</b></figcaption>{}</figure>\n",
            escape(&picture.caption),
            picture.svg
        )
    };
    format!("<div class=\"panels\">\n{}</div>\n", pictures.iter().map(figure).collect::<String>())
}
