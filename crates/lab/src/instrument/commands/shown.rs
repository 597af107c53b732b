//! How results of commands are shown.

use super::{Commands, Found};
use crate::cell::Cell;
use crate::instrument::{RunOf, Shown};
use crate::plan::Plan;
use crate::summary::Summary;
use weir_report::markup::quote;
use weir_report::text::flow;

impl Shown for Commands {
    fn setting(_: &Summary) -> String {
        "Whole processes, one at a time: nothing on their standard input, a file for their output.".into()
    }

    fn describe(text: &mut String, _: &Plan, found: &Found) {
        for (name, line) in &found.lines {
            flow(text, &format!("command {name}: {line}"), 0, 4);
        }
    }

    fn reproduction(_: &Plan, _: &Cell, runs: &[&RunOf<Self>]) -> Option<String> {
        let ran = &runs.last()?.seen;
        let words: Vec<String> = ran.command.iter().map(|word| quote(word)).collect();
        Some(format!("cd {} && {}", quote(&ran.folder.display().to_string()), words.join(" ")))
    }
}
