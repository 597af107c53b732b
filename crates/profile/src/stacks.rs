//! Sampled stacks, equal ones counted once.

use std::collections::BTreeMap;

/// A function on a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// Its demangled name without parameters; [`UNRESOLVED`] if there is no symbol.
    pub symbol: String,
    /// The file name of its module, such as `libcrypto.so.3` or `[kernel.kallsyms]`; may be empty.
    pub module: String,
}

/// The symbol of a frame without one, as in `perf script`.
pub const UNRESOLVED: &str = "[unknown]";

/// How the names of functions begin that nothing calls: starts of programs, threads and goroutines.
const STARTS: [&str; 9] = [
    "_start",
    "_dl_start",
    "__libc_start",
    "main",
    "__clone",
    "clone3",
    "start_thread",
    "runtime.",
    "ret_from_fork",
];

/// A stack, innermost frame first, as indices into [`Stacks::frames`].
pub type Stack = Vec<u32>;

/// Samples of a process: its distinct stacks, with the number of samples of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stacks {
    frames: Vec<Frame>,
    known: BTreeMap<Frame, u32>,
    counts: BTreeMap<Stack, u64>,
}

impl Stacks {
    /// Adds samples of a stack, innermost frame first. A stack without frames becomes one unresolved frame.
    pub fn add(&mut self, frames: impl IntoIterator<Item = Frame>, samples: u64) {
        let mut stack: Stack = frames.into_iter().map(|frame| self.index(frame)).collect();
        if stack.is_empty() {
            stack.push(self.index(Frame { symbol: UNRESOLVED.into(), module: String::new() }));
        }
        *self.counts.entry(stack).or_default() += samples;
    }

    /// The stacks with such a frame, from the outermost one inwards, and those that could not be unwound to the start of
    /// their thread: some assembly has no unwind tables, and its time would be lost.
    #[must_use]
    pub fn within(&self, is_root: impl Fn(&Frame) -> bool) -> Self {
        let roots: Vec<bool> = self.frames.iter().map(is_root).collect();
        let mut within = Self::default();
        for (stack, samples) in self.counts() {
            let root = stack.iter().rposition(|index| roots[*index as usize]);
            let kept = match root {
                Some(root) => &stack[..=root],
                None if self.is_cut(stack) => stack,
                None => continue,
            };
            within.add(kept.iter().map(|index| self.frames[*index as usize].clone()), samples);
        }
        within
    }

    fn is_cut(&self, stack: &Stack) -> bool {
        let outermost = stack.last().map(|index| self.frames[*index as usize].symbol.as_str());
        outermost.is_some_and(|symbol| !STARTS.iter().any(|start| symbol.starts_with(start)))
    }

    /// The distinct frames.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The distinct stacks, with the number of samples of each.
    pub fn counts(&self) -> impl Iterator<Item = (&Stack, u64)> {
        self.counts.iter().map(|(stack, samples)| (stack, *samples))
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.counts.values().sum()
    }

    fn index(&mut self, frame: Frame) -> u32 {
        if let Some(index) = self.known.get(&frame) {
            return *index;
        }
        let index = self.frames.len() as u32;
        self.frames.push(frame.clone());
        self.known.insert(frame, index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_within_a_function_are_cut_at_its_outermost_frame() {
        let stacks =
            Stacks::from_folded("main;run;f;run;g 2\nmain;start 3\nrun 1\nmont_mul 4\n").expect("parses");
        let within = stacks.within(|frame| frame.symbol == "run");
        assert_eq!(within.folded(), "mont_mul 4\nrun 1\nrun;f;run;g 2\n");
    }
}
