//! Charts without users and load: TLS stacks in memory.

use super::parts::{AT_ONCE, grid, heading};
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
        rest => details(false, &format!("{} more", rest.len()), &pictures(rest)),
    };
    head + &pictures(first) + &more
}

fn pictures(all: &[Picture]) -> String {
    grid(all.iter().map(|picture| (format!("<b>{}</b>", escape(&picture.caption)), picture.svg.as_str())))
}
