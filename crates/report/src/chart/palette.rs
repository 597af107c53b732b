//! Distinguishing targets by colour and, for accessibility, by shape and dash, the same in all charts.
//!
//! The colours are Okabe and Ito's, which remain distinct for the common kinds of colour blindness; `style.css` holds
//! a darker set for paper and a lighter one for dark screens.

use super::svg::short;

/// The number of classes `c0`, `c1` .. in `style.css`.
pub(crate) const COLOURS: usize = 8;

/// The look of a target in every chart of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The target's position in the experiment.
    pub place: usize,
    /// The second of the A/A pair: its target's colour and shape, hollow and dotted.
    pub is_again: bool,
}

impl Look {
    /// The class that sets the colour.
    pub fn colour(self) -> String {
        format!("c{}", self.place % COLOURS)
    }

    /// The classes of its line; from the ninth target, colours repeat with another dash.
    pub fn line(self) -> String {
        match (self.is_again, self.place / COLOURS % 3) {
            (true, _) => format!("line {} d3", self.colour()),
            (false, 0) => format!("line {}", self.colour()),
            (false, dash) => format!("line {} d{dash}", self.colour()),
        }
    }

    /// The classes of shapes filled with its colour.
    pub fn fill(self) -> String {
        format!("{} {}", if self.is_again { "hollow" } else { "fill" }, self.colour())
    }

    /// The commands of a path: its shape around a point. The shape changes with each repetition of the colours.
    pub fn marker(self, x: f64, y: f64, radius: f64) -> String {
        let r = radius;
        let corners: &[(f64, f64)] = match (self.place + self.place / COLOURS) % COLOURS {
            0 => {
                let (left, y, r) = (short(x - r), short(y), short(r));
                let d = short(radius * 2.0);
                return format!("M{left} {y}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z");
            }
            1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2 => &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
            3 => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
            4 => &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
            5 => &[
                (-0.4, -1.2),
                (0.4, -1.2),
                (0.4, -0.4),
                (1.2, -0.4),
                (1.2, 0.4),
                (0.4, 0.4),
                (0.4, 1.2),
                (-0.4, 1.2),
                (-0.4, 0.4),
                (-1.2, 0.4),
                (-1.2, -0.4),
                (-0.4, -0.4),
            ],
            6 => &[(-1.2, 0.0), (0.8, -1.1), (0.8, 1.1)],
            _ => &[(-1.2, -0.45), (1.2, -0.45), (1.2, 0.45), (-1.2, 0.45)],
        };
        let points: Vec<String> =
            corners.iter().map(|(dx, dy)| format!("{} {}", short(x + dx * r), short(y + dy * r))).collect();
        format!("M{}z", points.join("L"))
    }

    /// The marker as an element beside a name.
    pub fn key(self) -> String {
        let (class, path) = (self.fill(), self.marker(6.0, 6.0, 4.5));
        format!(
            r#"<svg class="mark" viewBox="0 0 12 12" aria-hidden="true"><path d="{path}" class="{class}"/></svg>"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn twenty_targets_and_the_second_of_a_pair_look_different() {
        let look = |place| Look { place, is_again: false };
        let words = |look: Look| (look.colour(), look.line(), look.marker(0.0, 0.0, 5.0), look.fill());
        let all: BTreeSet<_> = (0..20).map(|place| words(look(place))).collect();
        assert_eq!(all.len(), 20);
        let first: BTreeSet<_> = (0..8).map(|place| look(place).marker(0.0, 0.0, 5.0)).collect();
        assert_eq!(first.len(), 8, "without any colour");
        assert_ne!(words(Look { place: 1, is_again: true }), words(look(1)));
    }
}
