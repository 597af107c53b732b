//! Flame graphs: interactive SVG, coloured by function name, the same for the same samples.

use crate::error::ProfileError;
use crate::stacks::Stacks;
use inferno::{differential, flamegraph};
use std::io;

/// Frames narrower than this are left out, in percent of the width.
const NARROWEST: f64 = 0.1;

/// A flame graph.
///
/// # Errors
/// The library rejects the stacks.
pub fn graph(title: &str, stacks: &Stacks) -> Result<String, ProfileError> {
    draw(title, None, &stacks.folded())
}

/// The flame graph of `after`, red where it has a larger share of samples than `before` and blue where smaller.
///
/// # Errors
/// The library rejects the stacks.
pub fn difference(title: &str, before: &Stacks, after: &Stacks) -> Result<String, ProfileError> {
    let mut lines = Vec::new();
    let options = differential::Options { normalize: true, ..differential::Options::default() };
    differential::from_readers(options, before.folded().as_bytes(), after.folded().as_bytes(), &mut lines)
        .map_err(|error| failed(&error))?;
    let explained = "width: after; red: more than before, blue: less";
    draw(title, Some(explained), &String::from_utf8_lossy(&lines))
}

fn draw(title: &str, subtitle: Option<&str>, folded: &str) -> Result<String, ProfileError> {
    let mut options = flamegraph::Options::default();
    options.title = title.to_owned();
    options.subtitle = subtitle.map(str::to_owned);
    options.min_width = NARROWEST;
    options.deterministic = true;
    options.image_width = None;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, folded.lines(), &mut svg).map_err(|error| failed(&error))?;
    Ok(String::from_utf8_lossy(&svg).into_owned())
}

fn failed(error: &io::Error) -> ProfileError {
    ProfileError::Flame(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(folded: &str) -> Stacks {
        Stacks::from_folded(folded).expect("parses")
    }

    #[test]
    fn equal_samples_give_equal_bytes_and_markup_is_escaped() {
        let some = stacks("main;a<b> 3\nmain;c 1\n");
        let svg = graph("<title>", &some).expect("is drawn");
        assert_eq!(svg, graph("<title>", &some).expect("is drawn"));
        assert!(
            svg.contains("a&lt;b&gt;") && svg.contains("&lt;title&gt;") && !svg.contains("a<b>"),
            "{svg}"
        );
    }

    #[test]
    fn a_difference_shows_both_shares() {
        let svg = difference("d", &stacks("main;a 1\nmain;b 1\n"), &stacks("main;a 30\nmain;b 10\n"))
            .expect("is drawn");
        assert!(svg.contains("main;a") || svg.contains(">a "), "{svg}");
        assert!(svg.contains("+25"), "{svg}");
    }
}
