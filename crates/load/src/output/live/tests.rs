//! The view at different widths.

use super::*;
use crate::result::ByVersion;

fn live() -> Progress {
    let second = Second {
        at_s: 1.0,
        requests: 25_031,
        errors: 0,
        handshakes: 12,
        connections: 64,
        waiting: 3,
        p50_us: Some(61.5),
        p99_us: Some(1234.5),
        p95_us: Some(900.0),
        ..Second::default()
    };
    Progress {
        phase: Phase::Window,
        left: Duration::from_millis(6200),
        last: Some(second),
        answered: 182_034,
        grpc: false,
    }
}

fn history(requests: impl IntoIterator<Item = u64>) -> History {
    let mut history = History::default();
    for (index, requests) in requests.into_iter().enumerate() {
        let second = Second { at_s: index as f64, requests, ..Second::default() };
        history.add(&Progress { last: Some(second), ..live() });
    }
    history
}

const CALM: Style = Style { colours: false, blocks: true };

fn text(live: &Progress, history: &History, columns: usize, style: Style) -> String {
    let mut text = String::new();
    for line in lines(live, history, columns, style) {
        assert!(line.width <= columns, "{line:?}");
        text += line.text.trim_end();
        text.push('\n');
    }
    text
}

#[test]
fn on_a_terminal_of_80_columns() {
    let history = history([0, 5_000, 12_500, 25_000, 40_000]);
    let expected = "\
measuring, 7 s left, 182 034 answered
rate          25 031/s  p50            61.5 us  p99            1.23 ms
errors             0/s  handshakes        12/s  connections         64
waiting              3
▁▁▃▅█  up to 40 000/s
";
    assert_eq!(text(&live(), &history, 80, CALM), expected);
}

#[test]
fn calls_show_their_messages() {
    let mut calls = Progress { grpc: true, ..live() };
    let second = calls.last.as_mut().unwrap();
    (second.messages_sent, second.messages_received) = (250_310, 1_002_400);
    let expected = "\
measuring, 7 s left, 182 034 answered
rate          25 031/s  p50            61.5 us  p99            1.23 ms
errors             0/s  handshakes        12/s  connections         64
waiting              3  gRPC up      250 310/s  gRPC down  1 002 400/s
";
    assert_eq!(text(&calls, &History::default(), 80, CALM), expected);
    assert!(plain(&calls).ends_with("; gRPC up 250 310/s; gRPC down 1 002 400/s"), "{}", plain(&calls));
}

#[test]
fn both_versions_have_a_line_each() {
    let mut both = live();
    both.last.as_mut().unwrap().by_version = Some(ByVersion {
        http1: VersionSecond { requests: 20_031, errors: 0, p50_us: Some(61.5), p99_us: Some(1234.5) },
        http2: VersionSecond { requests: 500, errors: 2, p50_us: Some(4200.0), p99_us: None },
    });
    let expected = "\
measuring, 7 s left, 182 034 answered
rate          25 031/s  p50            61.5 us  p99            1.23 ms
errors             0/s  handshakes        12/s  connections         64
waiting              3
HTTP/1.1  rate   20 031/s  p50     61.5 us  p99     1.23 ms  errors      0/s
HTTP/2    rate      500/s  p50     4.20 ms  p99           -  errors      2/s
";
    assert_eq!(text(&both, &History::default(), 80, CALM), expected);
    let ending = "; HTTP/1.1: rate 20 031/s, p50 61.5 us, p99 1.23 ms, errors 0/s; \
                  HTTP/2: rate 500/s, p50 4.20 ms, p99 -, errors 2/s";
    assert!(plain(&both).ends_with(ending), "{}", plain(&both));
    for columns in 0..200 {
        text(&both, &History::default(), columns, CALM);
    }
}

#[test]
fn a_narrow_terminal_has_more_lines_and_cuts_them() {
    let history = history(0..100);
    let expected = "\
measuring, 7 s left, 1
rate          25 031/s
p50            61.5 us
p99            1.23 ms
errors             0/s
handshakes        12/s
connections         64
waiting              3
██████████  up to 99/s
";
    assert_eq!(text(&live(), &history, 22, CALM), expected);
    for columns in 0..200 {
        text(&live(), &history, columns, CALM);
    }
}

#[test]
fn the_history_is_no_longer_than_a_minute_and_counts_a_second_once() {
    let mut history = history(0..100);
    assert_eq!(history.requests, (40..100).collect::<Vec<_>>());
    let again = Progress { last: Some(Second { at_s: 99.0, requests: 7, ..Second::default() }), ..live() };
    history.add(&again);
    history.add(&Progress { last: None, ..live() });
    assert_eq!(history.requests.back(), Some(&99));
}

#[test]
fn nothing_is_made_up_before_the_first_second() {
    let opening =
        Progress { phase: Phase::Opening, left: Duration::ZERO, last: None, answered: 0, grpc: false };
    assert_eq!(text(&opening, &History::default(), 80, CALM), "opening connections\n");
    let few = Progress { last: Some(Second { requests: 5, ..Second::default() }), ..live() };
    let shown = text(&few, &history([5]), 80, CALM);
    assert!(shown.contains("p50                  -  p99                  -\n"), "{shown}");
    assert_eq!(shown.lines().count(), 4, "one second is no history\n{shown}");
}

#[test]
fn without_blocks_there_is_no_history() {
    let style = Style { blocks: false, ..CALM };
    assert!(text(&live(), &history([1, 2]), 80, style).is_ascii());
}

#[test]
fn colours_are_for_names_and_for_errors_and_take_no_room() {
    let style = Style { colours: true, ..CALM };
    let plain = lines(&live(), &history([1, 2]), 80, CALM);
    let coloured = lines(&live(), &history([1, 2]), 80, style);
    assert_eq!(
        plain.iter().map(|line| line.width).collect::<Vec<_>>(),
        coloured.iter().map(|line| line.width).collect::<Vec<_>>()
    );
    assert!(plain.iter().all(|line| !line.text.contains('\x1b')));
    assert!(coloured[1].text.starts_with("\x1b[2mrate\x1b[0m          25 031/s"), "{coloured:?}");
    assert!(!coloured.iter().any(|line| line.text.contains("\x1b[31m")), "no errors, no alarm");
    let mut failing = live();
    failing.last.as_mut().unwrap().errors = 3;
    assert!(
        text(&failing, &history([1]), 80, style).contains("errors\x1b[0m\x1b[31m             3/s\x1b[0m")
    );
}

#[test]
fn a_frame_goes_up_by_as_many_rows_as_were_drawn() {
    let line = |text: &str| Line { text: text.to_string(), width: text.len() };
    assert_eq!(frame(&[], &[line("a"), line("b")], 80), "a\nb\n");
    assert_eq!(frame(&[70, 60], &[line("c")], 80), "\x1b[2F\x1b[Jc\n");
    assert_eq!(
        frame(&[70, 60, 0], &[line("c")], 30),
        "\x1b[6F\x1b[Jc\n",
        "each long line takes several rows now"
    );
    assert_eq!(frame(&[1], &[], 80), "\x1b[1F\x1b[J", "nothing is left");
}

#[test]
fn a_line_for_a_log() {
    assert_eq!(
        plain(&live()),
        "measuring, 7 s left, 182 034 answered; rate 25 031/s; p50 61.5 us; p99 1.23 ms; errors 0/s; \
         handshakes 12/s; connections 64; waiting 3"
    );
}
