//! The false-discovery rate of a family of comparisons (Benjamini and Hochberg 1995).

use std::collections::BTreeMap;

/// The adjusted p-values, in the order given: comparing each with q keeps the expected share of false alarms among the
/// differences found at or below q.
pub fn benjamini_hochberg(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|left, right| p_values[*right].total_cmp(&p_values[*left]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut smallest: f64 = 1.0;
    for (from_largest, index) in order.into_iter().enumerate() {
        let rank = p_values.len() - from_largest;
        smallest = smallest.min(p_values[index] * p_values.len() as f64 / rank as f64);
        adjusted[index] = smallest;
    }
    adjusted
}

/// Adjusts the p-values of `items` within each family; one without a p-value counts as 1.
pub fn adjust<'a, T: 'a, K: Ord>(
    items: impl Iterator<Item = &'a mut T>,
    family: impl Fn(&T) -> K,
    values: impl Fn(&mut T) -> (Option<f64>, &mut Option<f64>),
) {
    let mut families: BTreeMap<K, Vec<&mut T>> = BTreeMap::new();
    for item in items {
        families.entry(family(item)).or_default().push(item);
    }
    for mut members in families.into_values() {
        let p_values: Vec<f64> = members.iter_mut().map(|member| values(member).0.unwrap_or(1.0)).collect();
        for (member, adjusted) in members.iter_mut().zip(benjamini_hochberg(&p_values)) {
            *values(member).1 = Some(adjusted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::benjamini_hochberg;

    #[test]
    fn equals_p_adjust() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.5), "BH")
        let expected = [0.025, 0.05, 0.05, 0.025, 0.5];
        for (found, wanted) in benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005, 0.5]).iter().zip(expected) {
            assert!((found - wanted).abs() < 1e-12, "{found} is not {wanted}");
        }
        assert!(benjamini_hochberg(&[]).is_empty());
        assert_eq!(benjamini_hochberg(&[0.03]), [0.03]);
    }
}
