//! Folded stacks: a line per stack, outermost frame first, separated by `;`, with the number of samples at its end.
//!
//! Flame graph tools read them. A frame is `symbol [module]`; other tools omit the module.

use crate::error::ProfileError;
use crate::stacks::{Frame, Stack, Stacks};
use std::fs;
use std::path::Path;

impl Stacks {
    /// The samples as folded stacks, a line each, sorted.
    pub fn folded(&self) -> String {
        let mut lines: Vec<String> =
            self.counts().map(|(stack, samples)| self.line(stack, samples)).collect();
        lines.sort_unstable();
        lines.concat()
    }

    fn line(&self, stack: &Stack, samples: u64) -> String {
        let frames: Vec<String> =
            stack.iter().rev().map(|index| word(&self.frames()[*index as usize])).collect();
        format!("{} {samples}\n", frames.join(";"))
    }

    /// Parses folded stacks.
    ///
    /// # Errors
    /// The number of the first line that is none, and what is wrong with it.
    pub fn from_folded(text: &str) -> Result<Self, (usize, String)> {
        let mut stacks = Self::default();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let parsed =
                line.rsplit_once(' ').and_then(|(frames, samples)| Some((frames, samples.parse().ok()?)));
            let Some((frames, samples)) = parsed else {
                return Err((index + 1, "expected `frame;frame;frame SAMPLES`".into()));
            };
            stacks.add(frames.rsplit(';').map(frame), samples);
        }
        Ok(stacks)
    }
}

/// Loads a file of folded stacks.
pub(crate) fn read(file: &Path) -> Result<Stacks, ProfileError> {
    let wrong = |detail: String| ProfileError::File { file: file.into(), detail };
    let bytes = fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| wrong("expected a perf.data file or folded stacks, found other binary data".into()))?;
    Stacks::from_folded(&text).map_err(|(line, detail)| ProfileError::Line {
        file: file.into(),
        line,
        detail,
    })
}

/// Semicolons separate frames, and a Rust array type has one.
fn word(Frame { symbol, module }: &Frame) -> String {
    let symbol = symbol.replace(';', ",").replace(['\n', '\r'], " ");
    match module.as_str() {
        "" => symbol,
        module => {
            format!("{symbol} [{}]", module.trim_start_matches('[').trim_end_matches(']').replace(';', ","))
        }
    }
}

fn frame(word: &str) -> Frame {
    let split = word.strip_suffix(']').and_then(|rest| rest.rsplit_once(" ["));
    let (symbol, module) = split.unwrap_or((word, ""));
    // The kernel's modules are in brackets of their own, which a line has only once.
    let is_kernel = KERNEL.iter().any(|prefix| module.starts_with(prefix));
    let module = if is_kernel { format!("[{module}]") } else { module.to_owned() };
    Frame { symbol: symbol.to_owned(), module }
}

/// The names that perf puts in brackets.
const KERNEL: [&str; 4] = ["kernel.", "guest.kernel.", "vdso", "vsyscall"];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(symbol: &str, module: &str) -> Frame {
        Frame { symbol: symbol.into(), module: module.into() }
    }

    #[test]
    fn stacks_survive_a_round_trip() {
        let mut stacks = Stacks::default();
        let frames =
            || [frame("tcp_sendmsg", "[kernel.kallsyms]"), frame("__send", "libc.so.6"), frame("main", "")];
        stacks.add(frames(), 3);
        stacks.add([frame("main", "")], 1);
        stacks.add(frames(), 2);
        let text = stacks.folded();
        assert_eq!(text, "main 1\nmain;__send [libc.so.6];tcp_sendmsg [kernel.kallsyms] 5\n");
        let again = Stacks::from_folded(&text).expect("parses");
        assert_eq!((again.folded(), again.samples()), (text, 6));
    }

    #[test]
    fn a_line_without_a_count_is_named() {
        let wrong = Stacks::from_folded("# a comment\n\nmain 1\nmain;foo\n").expect_err("has no count");
        assert_eq!(wrong, (4, "expected `frame;frame;frame SAMPLES`".into()));
    }

    proptest! {
        #[test]
        fn any_text_is_stacks_or_an_error(text in any::<String>()) {
            if let Ok(stacks) = Stacks::from_folded(&text) {
                let again = Stacks::from_folded(&stacks.folded());
                prop_assert_eq!(again.map(|again| again.samples()), Ok(stacks.samples()));
            }
        }
    }
}
