//! Advice as text, at most 100 columns wide.

use crate::advice::Advice;
use crate::finding::{Evidence, Finding};
use weir_report::text::flow;

impl Advice {
    /// The division of CPU time, the findings with their evidence (or that no change is worthwhile), and the missing
    /// measurements.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let product = self.product.title().map(|title| format!(" ({title})")).unwrap_or_default();
        let subject = format!("{}{product}", self.subject);
        match &self.split {
            Some(split) => {
                flow(&mut text, &format!("{subject}: {}.", split.words), 0, 2);
                if let Some(mostly) = split.mostly() {
                    flow(&mut text, &mostly, 2, 4);
                }
                flow(&mut text, &sentence(&self.headline()), 0, 2);
            }
            None => flow(&mut text, &format!("{subject}: {}", self.headline()), 0, 2),
        }
        for (index, finding) in self.findings.iter().enumerate() {
            let words = format!("{}. {} {}", index + 1, sentence(&finding.saw), sentence(&finding.why));
            text.push('\n');
            flow(&mut text, &words, 0, 3);
            flow(&mut text, &format!("change: {}", finding.change), 3, 6);
            if let Some(gain) = self.gain(finding) {
                flow(&mut text, &format!("gain: {gain}"), 3, 6);
            }
            if let Some(gives_up) = &finding.gives_up {
                flow(&mut text, &format!("gives up: {gives_up}"), 3, 6);
            }
            flow(&mut text, &format!("seen: {}", seen(finding)), 3, 6);
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            flow(&mut text, &format!("note: {note}"), 0, 6);
        }
        text
    }

    fn headline(&self) -> String {
        let found = match self.findings.len() {
            0 => "nothing worth changing".to_owned(),
            1 => "1 finding".to_owned(),
            several => format!("{several} findings, those with the largest gain first"),
        };
        format!("{found}, by {} facts", self.facts.iter().count())
    }

    fn gain(&self, Finding { gain, also, .. }: &Finding) -> Option<String> {
        let percent = |share: f64| format!("{:.0}", share * 100.0);
        let cpu = gain.zip(self.profiled).map(|(gain, profiled)| {
            format!("{} to {} % of its CPU time {}", percent(gain.low), percent(gain.high), profiled.words())
        });
        let all: Vec<String> = also.iter().cloned().chain(cpu).collect();
        match all.is_empty() {
            true if self.profiled.is_none() => Some("unknown without a profile".to_owned()),
            true => None,
            false => Some(all.join("; ")),
        }
    }
}

fn seen(finding: &Finding) -> String {
    let one = |Evidence { fact, value, source }: &Evidence| format!("{fact} {value} ({source})");
    finding.evidence.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}
