//! Names beside the ends of lines, moved apart where they would lie on each other.

/// Moves heights apart so that each is at least `gap` from the next, in the order that they have, within `low` and
/// `high` where there is room; those with room of their own stay.
pub(crate) fn spread(heights: &[f64], gap: f64, [low, high]: [f64; 2]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|left, right| heights[*left].total_cmp(&heights[*right]));
    let mut placed = heights.to_vec();
    let mut next = low;
    for index in &order {
        placed[*index] = placed[*index].max(next);
        next = placed[*index] + gap;
    }
    let mut most = high;
    for index in order.iter().rev() {
        placed[*index] = placed[*index].min(most);
        most = placed[*index] - gap;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_moved_apart_and_keep_their_order() {
        assert_eq!(spread(&[10.0, 50.0], 12.0, [0.0, 100.0]), [10.0, 50.0], "far enough");
        assert_eq!(spread(&[50.0, 49.0], 12.0, [0.0, 100.0]), [61.0, 49.0]);
        assert_eq!(spread(&[99.0, 98.0, 97.0], 12.0, [0.0, 100.0]), [100.0, 88.0, 76.0]);
        assert_eq!(spread(&[], 12.0, [0.0, 100.0]), [0.0; 0]);
        let all = spread(&[5.0; 20], 12.0, [0.0, 300.0]);
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 12.0 - 1e-9), "{all:?}");
    }
}
