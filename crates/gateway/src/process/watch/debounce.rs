//! Detects that a file has changed and is no longer being written.

/// Debounces the content of files: a change counts once two checks in a row find it.
#[derive(Debug)]
pub(crate) struct Debounce<T> {
    last: T,
    in_effect: T,
}

impl<T: Clone + PartialEq> Debounce<T> {
    pub(crate) fn new(found: T) -> Self {
        Self { last: found.clone(), in_effect: found }
    }

    pub(crate) fn last(&self) -> &T {
        &self.last
    }

    /// Records the content that a check found. Returns the content if it is a change that takes effect now.
    pub(crate) fn next(&mut self, found: T) -> Option<&T> {
        let is_stable = found == self.last;
        self.last = found;
        if !is_stable || self.last == self.in_effect {
            return None;
        }
        self.in_effect = self.last.clone();
        Some(&self.in_effect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_takes_effect_once_and_when_it_is_stable() {
        let (a, b, c, torn) = (Ok('a'), Ok('b'), Ok('c'), Err("torn"));
        let mut debounce = Debounce::new(a);
        assert_eq!(debounce.next(a), None);
        assert_eq!(debounce.next(torn), None, "it is being written, perhaps");
        assert_eq!(debounce.next(b), None);
        assert_eq!(debounce.next(b), Some(&b));
        assert_eq!(debounce.next(b), None);
        assert_eq!(debounce.next(torn), None);
        assert_eq!(debounce.next(torn), Some(&torn));
        assert_eq!(debounce.next(torn), None, "it is said once");
        assert_eq!(debounce.next(c), None);
        assert_eq!(debounce.next(torn), None);
        assert_eq!(debounce.next(torn), None, "the same fault, after a glimpse of something else");
        assert_eq!(debounce.next(b), None);
        assert_eq!(debounce.next(b), Some(&b), "the old ones count as a change after a fault");
    }
}
