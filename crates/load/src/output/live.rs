//! The live view: the last second, redrawn on a terminal or logged as a line now and then.

use crate::conductor::{Phase, Progress};
use crate::options::HttpVersion;
use crate::output::figures::{count, rate, time};
use crate::result::{Second, VersionSecond};
use console::Term;
use std::collections::VecDeque;
use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Shows the progress of a run on standard error: on a terminal as lines redrawn in place, elsewhere (a
/// file, a CI log) as one line every 10 seconds, so that a running engine is distinguishable from a hung one.
///
/// [`View::clear`] or dropping the view erases the lines. The terminal mode is unchanged
/// and the cursor rests on its own line, so a killed process leaves nothing to repair.
#[derive(Debug)]
pub struct View {
    term: Term,
    /// Whether lines can be redrawn.
    in_place: bool,
    style: Style,
    history: History,
    /// The width of each line on the terminal.
    drawn: Vec<usize>,
    /// When the last plain line was written, or the run started.
    reported: Instant,
}

impl View {
    /// A view on standard error. Without colours if `NO_COLOR` is set or the terminal has none.
    pub fn new() -> Self {
        let term = Term::stderr();
        Self {
            in_place: term.is_term() && env::var_os("TERM").is_none_or(|name| name != "dumb"),
            term,
            style: Style { colours: console::colors_enabled_stderr(), blocks: speaks_utf8() },
            history: History::default(),
            drawn: Vec::new(),
            reported: Instant::now(),
        }
    }

    /// Shows the progress; call it about once per second. Write errors are ignored.
    pub fn show(&mut self, live: &Progress) {
        self.history.add(live);
        if self.in_place {
            let (rows, columns) = self.term.size();
            let lines = lines(live, &self.history, columns.into(), self.style);
            // Lines that scroll off cannot be redrawn.
            let fitting = lines.len().min(usize::from(rows).saturating_sub(1));
            self.draw(&lines[..fitting], columns.into());
        } else if self.reported.elapsed() >= PLAIN_EVERY {
            self.reported = Instant::now();
            let _ = self.term.write_line(&plain(live));
        }
    }

    /// Erases the view.
    pub fn clear(&mut self) {
        if !self.drawn.is_empty() {
            self.draw(&[], self.term.size().1.into());
        }
    }

    /// Overwrites the lines in a single write, to avoid flicker.
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

/// Interval between lines without a terminal.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Maximum seconds of history.
const HISTORY: usize = 60;

/// Columns per cell; as many cells per line as fit.
const CELL: usize = 24;

/// Columns of a version's name, and of each of its four cells: a line of 78.
const VERSION: usize = 10;
const VERSION_CELL: usize = 17;

#[derive(Clone, Copy, Debug)]
struct Style {
    colours: bool,
    /// Block characters (U+2581 to U+2588) for the history.
    blocks: bool,
}

#[derive(Debug, Default)]
struct History {
    requests: VecDeque<u64>,
    /// The last second added: the same one may be reported twice.
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

/// A line with escape codes, and its width without them.
#[derive(Debug)]
struct Line {
    text: String,
    width: usize,
}

/// The view's lines, at most `columns` wide.
fn lines(live: &Progress, history: &History, columns: usize, style: Style) -> Vec<Line> {
    let mut lines = vec![line(&[(heading(live), Tone::Plain)], columns, style)];
    if let Some(second) = &live.last {
        let cells = cells(second, live.grpc);
        for row in cells.chunks((columns / CELL).max(1)) {
            let parts: Vec<_> = row.iter().flat_map(|cell| cell.parts(CELL)).collect();
            lines.push(line(&parts, columns, style));
        }
        for (version, second) in versions(second) {
            lines.push(line(&version_parts(version, second), columns, style));
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
        Phase::Drain => format!("waiting for the last responses, {answered} answered"),
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

/// The most volatile and important figures come first.
fn cells(second: &Second, grpc: bool) -> Vec<Cell> {
    let plain = |name, value| Cell { name, value, tone: Tone::Plain };
    let percentile = |us: Option<f64>| us.map_or("-".to_string(), time);
    let tone = if second.errors > 0 { Tone::Alarm } else { Tone::Plain };
    let mut cells = vec![
        plain("rate", rate(second.requests as f64)),
        plain("p50", percentile(second.p50_us)),
        plain("p99", percentile(second.p99_us)),
        Cell { name: "errors", value: rate(second.errors as f64), tone },
        plain("handshakes", rate(second.handshakes as f64)),
        plain("connections", count(second.connections)),
        plain("waiting", count(second.waiting)),
    ];
    if grpc {
        cells.push(plain("gRPC up", rate(second.messages_sent as f64)));
        cells.push(plain("gRPC down", rate(second.messages_received as f64)));
    }
    cells
}

/// The versions of a run with both.
fn versions(second: &Second) -> impl Iterator<Item = (HttpVersion, &VersionSecond)> {
    second.by_version.iter().flat_map(|versions| versions.as_ref().into_pairs())
}

fn version_cells(second: &VersionSecond) -> [Cell; 4] {
    let percentile = |us: Option<f64>| us.map_or("-".to_string(), time);
    let tone = if second.errors > 0 { Tone::Alarm } else { Tone::Plain };
    [
        Cell { name: "rate", value: rate(second.requests as f64), tone: Tone::Plain },
        Cell { name: "p50", value: percentile(second.p50_us), tone: Tone::Plain },
        Cell { name: "p99", value: percentile(second.p99_us), tone: Tone::Plain },
        Cell { name: "errors", value: rate(second.errors as f64), tone },
    ]
}

/// A line of its own, so that the versions are compared column by column.
fn version_parts(version: HttpVersion, second: &VersionSecond) -> Vec<(String, Tone)> {
    let name = format!("HTTP/{:<width$}", version.word(), width = VERSION - "HTTP/".len());
    let cells = version_cells(second);
    std::iter::once((name, Tone::Dim)).chain(cells.iter().flat_map(|cell| cell.parts(VERSION_CELL))).collect()
}

impl Cell {
    /// Name on the left, figure on the right, in a cell of fixed width so that nothing jumps.
    fn parts(&self, width: usize) -> [(String, Tone); 3] {
        let value_width = width - 2 - self.name.len();
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

/// Concatenates the parts and truncates the line.
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

/// The output that replaces the drawn lines (given by width) with new ones; the cursor starts and ends below them.
fn frame(drawn: &[usize], lines: &[Line], columns: usize) -> String {
    let mut text = String::new();
    // A terminal made narrower has wrapped its lines.
    let rows: usize = drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
    if rows > 0 {
        // Move up that many rows to the start of the line, then erase everything below.
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
        for Cell { name, value, .. } in cells(second, live.grpc) {
            let _ = write!(text, "; {name} {value}");
        }
        for (version, second) in versions(second) {
            let cells = version_cells(second).map(|Cell { name, value, .. }| format!("{name} {value}"));
            let _ = write!(text, "; HTTP/{}: {}", version.word(), cells.join(", "));
        }
    }
    text
}

/// Whether the locale is UTF-8 (POSIX: the first of these that is set and not empty decides).
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
