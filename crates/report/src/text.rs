//! Terminal output in lines and columns, at most [`WIDTH`] wide.

use std::fmt::Write;

/// Maximum line width, in characters.
pub const WIDTH: usize = 100;

/// Shown for a missing value.
pub const NONE: &str = "-";

/// `40 to 97 %`, or `92 %`, of shares from 0 to 1.
pub fn percent_range(share: [f64; 2]) -> String {
    let [low, high] = share.map(|share| format!("{:.0}", 100.0 * share));
    if low == high { format!("{low} %") } else { format!("{low} to {high} %") }
}

/// Wraps a line at spaces with a hanging indent.
pub fn wrap(text: &mut String, line: &str) {
    let indent = line.len() - line.trim_start().len();
    flow(text, line, indent, indent + 4);
}

/// Appends words as wrapped lines, the first with its own indent. A name with dots that does not fit on a line, such as a
/// cell's, is broken after a dot; any other word, such as a path, gets a line to itself.
pub fn flow(text: &mut String, words: &str, first: usize, further: usize) {
    let mut width = first;
    let room = WIDTH.saturating_sub(further.max(first));
    let words = words.split_whitespace().flat_map(|word| pieces(word, room));
    for (index, word) in words.enumerate() {
        let length = word.chars().count();
        if index == 0 {
            text.push_str(&" ".repeat(first));
        } else if width + 1 + length > WIDTH {
            let _ = write!(text, "\n{}", " ".repeat(further));
            width = further;
        } else {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += length;
    }
    text.push('\n');
}

/// A word, or the pieces of a name with dots that has more than `room` characters.
fn pieces(word: &str, room: usize) -> Vec<&str> {
    let (mut rest, mut pieces) = (word, Vec::new());
    while rest.chars().count() > room && !rest.contains('/') {
        let end = rest.char_indices().nth(room).map_or(rest.len(), |(at, _)| at);
        let Some(dot) = rest[..end].rfind('.') else { break };
        let (piece, more) = rest.split_at(dot + 1);
        pieces.push(piece);
        rest = more;
    }
    pieces.push(rest);
    pieces
}

/// Aligns columns: the first and the last two left, numbers right. Truncates a name that would make the
/// table too wide.
pub fn columns<const N: usize>(text: &mut String, lines: &[[String; N]]) {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let mut widths: [usize; N] = std::array::from_fn(width);
    let others: usize = widths[1..].iter().sum();
    // One space between columns.
    widths[0] = widths[0].min(WIDTH.saturating_sub(others + N - 1));
    for line in lines {
        let mut row = format!("{:<width$}", cut(&line[0], widths[0]), width = widths[0]);
        for (column, cell) in line.iter().enumerate().skip(1) {
            let width = widths[column];
            row.push_str(&match column + 2 < N {
                true => format!(" {cell:>width$}"),
                false => format!(" {cell:<width$}"),
            });
        }
        let _ = writeln!(text, "{}", row.trim_end());
    }
}

/// The first `width` characters.
pub fn cut(text: &str, width: usize) -> &str {
    text.char_indices().nth(width).map_or(text, |(end, _)| &text[..end])
}

/// A number with this many decimals.
pub fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NONE.into(), |value| format!("{value:.digits$}"))
}

/// Three digits or more, whatever the unit.
pub fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Microseconds as milliseconds, with three digits.
pub fn milliseconds(us: Option<f64>) -> String {
    let digits = |ms: f64| match ms {
        short if short < 1.0 => 3,
        short if short < 10.0 => 2,
        middle if middle < 100.0 => 1,
        _ => 0,
    };
    number(us.map(|us| us / 1000.0), us.map_or(0, |us| digits(us / 1000.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_is_one_number_is_written_as_one() {
        assert_eq!([[0.4, 0.974], [0.9216, 0.9243]].map(percent_range), ["40 to 97 %", "92 %"]);
    }

    #[test]
    fn lines_break_at_spaces_and_what_follows_is_indented() {
        let word = "a".repeat(48);
        let mut text = String::new();
        wrap(&mut text, &format!("  {word} {word} {word}"));
        assert_eq!(text, format!("  {word} {word}\n      {word}\n"));
        let (mut text, long) = (String::new(), "b".repeat(WIDTH));
        flow(&mut text, &format!("x {long} y"), 0, 2);
        assert_eq!(text, format!("x\n  {long}\n  y\n"), "a word that does not fit has a line to itself");
        // Regression test: a cell's name made a line of `weir studies` longer than a terminal.
        let name = ["part."; 30].concat();
        let (mut text, path) = (String::new(), name.replace('.', "/"));
        flow(&mut text, &format!("{name} {path}"), 0, 4);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, [&name[..95], &format!("    {}", &name[95..]), &format!("    {path}")]);
    }

    #[test]
    fn numbers_stand_to_the_right_and_a_long_name_is_cut() {
        let line = |cells: [&str; 4]| cells.map(str::to_owned);
        let mut text = String::new();
        let lines = [line(["name", "n", "limit", "ratio"]), line(["a", "100", "load", "-"])];
        columns(&mut text, &lines);
        assert_eq!(text, "name   n limit ratio\na    100 load  -\n");
        let (mut text, name) = (String::new(), "n".repeat(2 * WIDTH));
        columns(&mut text, &[line([&name, "1", "load", "0.93"])]);
        assert_eq!((text.trim_end().len(), text.ends_with(" 1 load 0.93\n")), (WIDTH, true));
    }

    #[test]
    fn figures_have_three_digits_whatever_their_size() {
        assert_eq!([0.5, 12.34, 123.4].map(short), ["0.500", "12.3", "123"]);
        let times = [Some(500.0), Some(1234.0), Some(12_340.0), Some(123_400.0), None];
        assert_eq!(times.map(milliseconds), ["0.500", "1.23", "12.3", "123", "-"]);
        assert_eq!(cut("\u{b5}\u{b5}\u{b5}", 2), "\u{b5}\u{b5}");
    }
}
