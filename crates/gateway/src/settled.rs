//! Tells a file that has changed from one that is being written.

/// What was found in files, and what was followed. What counts is what is found twice in a row.
#[derive(Debug)]
pub(crate) struct Settled<T> {
    last: T,
    followed: T,
}

impl<T: Clone + PartialEq> Settled<T> {
    /// Begins with what was followed already.
    pub(crate) fn new(found: T) -> Self {
        Self { last: found.clone(), followed: found }
    }

    /// What to follow now, once.
    pub(crate) fn next(&mut self, found: T) -> Option<&T> {
        let is_settled = found == self.last;
        self.last = found;
        if !is_settled || self.last == self.followed {
            return None;
        }
        self.followed = self.last.clone();
        Some(&self.followed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_followed_once_and_when_it_has_settled() {
        let (a, b, c, torn) = (Ok('a'), Ok('b'), Ok('c'), Err("torn"));
        let mut settled = Settled::new(a);
        assert_eq!(settled.next(a), None);
        assert_eq!(settled.next(torn), None, "it is being written, perhaps");
        assert_eq!(settled.next(b), None);
        assert_eq!(settled.next(b), Some(&b));
        assert_eq!(settled.next(b), None);
        assert_eq!(settled.next(torn), None);
        assert_eq!(settled.next(torn), Some(&torn));
        assert_eq!(settled.next(torn), None, "it is said once");
        assert_eq!(settled.next(c), None);
        assert_eq!(settled.next(torn), None);
        assert_eq!(settled.next(torn), None, "the same fault, after a glimpse of something else");
        assert_eq!(settled.next(b), None);
        assert_eq!(settled.next(b), Some(&b), "the old ones count as a change after a fault");
    }
}
