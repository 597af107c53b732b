//! Which way a quantity is better.

/// Which way a quantity is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is.
    More,
    /// Less is.
    Less,
    /// It says how something was used, not how good it is.
    Neither,
}

impl Better {
    /// Whether such a ratio, new over old, is a change for the worse.
    pub fn is_worse(self, ratio: f64) -> bool {
        match self {
            Self::More => ratio < 1.0,
            Self::Less => ratio > 1.0,
            Self::Neither => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worse_is_the_other_way() {
        let worse = |better: Better| [0.9, 1.0, 1.1].map(|ratio| better.is_worse(ratio));
        assert_eq!(worse(Better::More), [true, false, false]);
        assert_eq!(worse(Better::Less), [false, false, true]);
        assert_eq!(worse(Better::Neither), [false; 3]);
    }
}
