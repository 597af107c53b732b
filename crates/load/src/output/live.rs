//! The live view: what the last second was like, on a terminal or as a line now and then.

use crate::conductor::{Phase, Progress};
use crate::output::figures::{count, rate, time};
use crate::result::Second;
use console::Term;
use std::collections::VecDeque;
use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Shows a run on standard error while it lasts: on a terminal some lines that are redrawn in place, elsewhere (in a
/// file, the log of a build) one line every 10 seconds, so that a run that goes on can be told from one that hangs.
///
/// Nothing of it stays: [`View::clear`] takes the lines away, and so does dropping the view. The terminal is put into no
/// mode, and the cursor rests on a line of its own, so a process that is killed leaves nothing to repair.
#[derive(Debug)]
pub struct View {
    term: Term,
    /// Whether lines can be redrawn.
    in_place: bool,
    style: Style,
    history: History,
    /// The width of each line that stands on the terminal.
    drawn: Vec<usize>,
    /// When the last plain line was written, or the run began.
    told: Instant,
}

impl View {
    /// A view on standard error. Colours are left out when `NO_COLOR` is set, or the terminal has none.
    pub fn new() -> Self {
        let term = Term::stderr();
        Self {
            in_place: term.is_term() && env::var_os("TERM").is_none_or(|name| name != "dumb"),
            term,
            style: Style { colours: console::colors_enabled_stderr(), blocks: speaks_utf8() },
            history: History::default(),
            drawn: Vec::new(),
            told: Instant::now(),
        }
    }

    /// Shows how far the run is; meant to be called once per second. Whether it can be written is of no matter.
    pub fn show(&mut self, live: &Progress) {
        self.history.add(live);
        if self.in_place {
            let (rows, columns) = self.term.size();
            let lines = lines(live, &self.history, columns.into(), self.style);
            // What scrolls away could not be redrawn.
            let fitting = lines.len().min(usize::from(rows).saturating_sub(1));
            self.draw(&lines[..fitting], columns.into());
        } else if self.told.elapsed() >= PLAIN_EVERY {
            self.told = Instant::now();
            let _ = self.term.write_line(&plain(live));
        }
    }

    /// Takes the view away.
    pub fn clear(&mut self) {
        if !self.drawn.is_empty() {
            self.draw(&[], self.term.size().1.into());
        }
    }

    /// Writes the lines over those that stand there, at once so that nothing flickers.
    fn draw(&mut self, lines: &[Line], columns: usize) {
        let text = frame(&self.drawn, lines, columns);
        self.drawn = lines.iter().map(|line| line.width).collect();
        let _ = self.term.write_all(text.as_bytes()).and_then(|()| self.term.flush());
    }
}

impl Default for View {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.clear();
    }
}

/// How often a line is written where there is no terminal.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// The seconds that the history shows at most.
const HISTORY: usize = 60;

/// The columns of a figure with its name; so many stand beside each other as fit.
const CELL: usize = 24;

#[derive(Clone, Copy, Debug)]
struct Style {
    colours: bool,
    /// Block characters (U+2581 to U+2588) for the history.
    blocks: bool,
}

#[derive(Debug, Default)]
struct History {
    requests: VecDeque<u64>,
    /// Which second was added last: the same one can be told twice.
    at_s: Option<f64>,
}

impl History {
    fn add(&mut self, live: &Progress) {
        let Some(second) = live.last.as_ref().filter(|second| self.at_s != Some(second.at_s)) else { return };
        self.at_s = Some(second.at_s);
        if self.requests.len() == HISTORY {
            self.requests.pop_front();
        }
        self.requests.push_back(second.requests);
    }
}

/// A line with its escape codes, and how many columns it takes without.
#[derive(Debug)]
struct Line {
    text: String,
    width: usize,
}

/// The view's lines, none of them wider than `columns`.
fn lines(live: &Progress, history: &History, columns: usize, style: Style) -> Vec<Line> {
    let mut lines = vec![line(&[(heading(live), Tone::Plain)], columns, style)];
    if let Some(second) = &live.last {
        let cells = cells(second);
        for row in cells.chunks((columns / CELL).max(1)) {
            let parts: Vec<_> = row.iter().flat_map(Cell::parts).collect();
            lines.push(line(&parts, columns, style));
        }
        if style.blocks && history.requests.len() > 1 {
            lines.push(line(&sparkline(history, columns), columns, style));
        }
    }
    lines
}

fn heading(live: &Progress) -> String {
    let seconds = live.left.as_secs_f64().ceil();
    let answered = count(live.answered);
    match live.phase {
        Phase::Opening => "opening connections".to_string(),
        Phase::WarmUp => format!("warm-up, {seconds} s left, {answered} answered"),
        Phase::Settle => format!("settling, {seconds} s left, {answered} answered"),
        Phase::Window => format!("measuring, {seconds} s left, {answered} answered"),
        Phase::Drain => format!("waiting for the last answers, {answered} answered"),
    }
}

struct Cell {
    name: &'static str,
    value: String,
    tone: Tone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Plain,
    Dim,
    Alarm,
}

/// The figures that change the most, and matter the most, come first.
fn cells(second: &Second) -> [Cell; 7] {
    let plain = |name, value| Cell { name, value, tone: Tone::Plain };
    let percentile = |us: Option<f64>| us.map_or("-".to_string(), time);
    let tone = if second.errors > 0 { Tone::Alarm } else { Tone::Plain };
    [
        plain("rate", rate(second.requests as f64)),
        plain("p50", percentile(second.p50_us)),
        plain("p99", percentile(second.p99_us)),
        Cell { name: "errors", value: rate(second.errors as f64), tone },
        plain("handshakes", rate(second.handshakes as f64)),
        plain("connections", count(second.connections)),
        plain("waiting", count(second.waiting)),
    ]
}

impl Cell {
    /// The name to the left, the figure to the right of a cell of always the same width, so that nothing jumps.
    fn parts(&self) -> [(String, Tone); 3] {
        let value_width = CELL - 2 - self.name.len();
        [
            (self.name.to_string(), Tone::Dim),
            (format!("{:>value_width$}", self.value), self.tone),
            ("  ".to_string(), Tone::Plain),
        ]
    }
}

/// Bars from 1 to 8 eighths of the highest rate, the last second to the right.
fn sparkline(history: &History, columns: usize) -> [(String, Tone); 2] {
    let most = history.requests.iter().copied().max().unwrap_or(0);
    let legend = format!("  up to {}", rate(most as f64));
    let room = columns.saturating_sub(legend.len()).max(1);
    let shown = history.requests.iter().skip(history.requests.len().saturating_sub(room));
    let eighths = |requests: u64| (requests * 8).div_ceil(most.max(1)).max(1);
    let bars =
        shown.map(|&requests| ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"][eighths(requests) as usize - 1]);
    [(bars.collect(), Tone::Plain), (legend, Tone::Dim)]
}

/// Puts the parts behind each other, and cuts what does not fit.
fn line(parts: &[(String, Tone)], columns: usize, style: Style) -> Line {
    let mut line = Line { text: String::new(), width: 0 };
    for (text, tone) in parts {
        let text: String = text.chars().take(columns - line.width).collect();
        line.width += text.chars().count();
        line.text += &match (style.colours, tone) {
            (false, _) | (_, Tone::Plain) => text,
            (true, Tone::Dim) => format!("\x1b[2m{text}\x1b[0m"),
            (true, Tone::Alarm) => format!("\x1b[31m{text}\x1b[0m"),
        };
    }
    line
}

/// What replaces the lines that were drawn (their widths) by new ones; the cursor begins and ends below them.
fn frame(drawn: &[usize], lines: &[Line], columns: usize) -> String {
    let mut text = String::new();
    // A terminal that was made narrower has broken its lines.
    let rows: usize = drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
    if rows > 0 {
        // To the beginning of the line so many rows above; then everything below it is erased.
        let _ = write!(text, "\x1b[{rows}F\x1b[J");
    }
    for line in lines {
        text += &line.text;
        text.push('\n');
    }
    text
}

fn plain(live: &Progress) -> String {
    let mut text = heading(live);
    if let Some(second) = &live.last {
        for Cell { name, value, .. } in cells(second) {
            let _ = write!(text, "; {name} {value}");
        }
    }
    text
}

/// Whether the locale's characters are UTF-8 (POSIX: the first of these that is set and not empty decides).
fn speaks_utf8() -> bool {
    let set =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(env::var_os).find(|value| !value.is_empty());
    set.is_some_and(|value| {
        let value = value.to_string_lossy().to_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

#[cfg(test)]
mod tests;
