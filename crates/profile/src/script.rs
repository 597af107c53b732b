//! The output of `perf script`: a line per sample, and a line per frame below it.

use crate::stacks::{Frame, Stacks, UNRESOLVED};
use crate::symbol;

/// The fields that [`parse`] expects, for `perf script -F`.
pub(crate) const FIELDS: &str = "comm,tid,time,event,ip,sym,dso";

/// Parses samples.
pub(crate) fn parse(text: &str) -> Stacks {
    let mut stacks = Stacks::default();
    for sample in samples(text) {
        stacks.add(sample.into_iter().filter_map(frame), 1);
    }
    stacks
}

/// Groups of lines between empty ones, without the first, which is the sample's own.
fn samples(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        lines.by_ref().find(|line| !line.trim().is_empty())?;
        Some(lines.by_ref().take_while(|line| !line.trim().is_empty()).collect())
    })
}

/// `  ffffffff81a symbol name (module)`; symbols and modules may have spaces and parentheses.
fn frame(line: &str) -> Option<Frame> {
    let (_address, rest) = line.trim().split_once(' ')?;
    let rest = rest.replace(" (deleted))", ")");
    let (symbol, module) = rest.strip_suffix(')')?.rsplit_once('(')?;
    let module = module.rsplit('/').next().unwrap_or(module);
    let module = if module == UNRESOLVED { "" } else { module };
    // A semicolon separates frames in folded stacks, and a Rust array type has one.
    Some(Frame { symbol: symbol::plain(symbol.trim()).replace(';', ","), module: module.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
nginx 4711 [000] 12.345678: cpu-clock:ppp:
\tffffffff8110 tcp_sendmsg_locked ([kernel.kallsyms])
\t7f0000001000 __send (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t55000000aaaa ngx_unix_send (/tmp/nginx (deleted))

V8 Worker Thr 4712 [001] 12.345700: cpu-clock:ppp:
\t7f00000000aa v8::(anonymous namespace)::Visit(int, char const*) (/usr/bin/node)
\t7f00000000ab [unknown] ([unknown])
\t7f00000000ac LazyCompile:*handle /srv/a b.js:1 (/tmp/perf-4711.map)

nginx 4711 12.9: cpu-clock:

";

    #[test]
    fn samples_are_read_with_names_that_have_spaces_and_parentheses() {
        let stacks = parse(OUTPUT);
        assert_eq!(stacks.samples(), 3);
        let folded = stacks.folded();
        let mut lines: Vec<&str> = folded.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "LazyCompile:*handle /srv/a b.js:1 [perf-4711.map];[unknown];v8::(anonymous namespace)::Visit [node] 1",
                "[unknown] 1",
                "ngx_unix_send [nginx];__send [libc.so.6];tcp_sendmsg_locked [kernel.kallsyms] 1",
            ]
        );
    }

    #[test]
    fn nothing_is_no_samples() {
        assert_eq!(parse("\n\n").samples(), 0);
    }
}
