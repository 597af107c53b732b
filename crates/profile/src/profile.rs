//! CPU time by category: of the innermost frames, and of everything that a category's frames call.

use crate::category::Category;
use crate::rules::{Match, Rules};
use crate::stacks::{Frame, Stack, Stacks};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use weir_stats::proportion;

/// The profile of a set of samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// The number of samples.
    pub samples: u64,
    /// All categories with samples, in display order.
    pub categories: Vec<CategoryShare>,
}

/// What one category takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CategoryShare {
    /// The category.
    pub category: Category,
    /// Of its own functions: these shares add up to 1.
    #[serde(rename = "self")]
    pub own: Share,
    /// Of its own functions and all that they call, which may belong to other categories.
    pub inclusive: Share,
    /// The functions with most of its own time, innermost frames.
    pub functions: Vec<Contributor>,
    /// The outermost functions of the category with most of its inclusive time.
    pub outermost: Vec<Contributor>,
}

/// A share of all samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The number of samples.
    pub samples: u64,
    /// The share of all samples, 0 to 1.
    pub share: f64,
    /// The lower end of its 95 % interval (Wilson).
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A function and its samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contributor {
    /// Its name.
    pub symbol: String,
    /// Its module; may be empty.
    pub module: String,
    /// Its samples.
    pub samples: u64,
}

/// The functions listed per category.
const LISTED: usize = 8;

/// The samples of one category.
#[derive(Default)]
struct Tally {
    own: u64,
    inclusive: u64,
    functions: BTreeMap<u32, u64>,
    outermost: BTreeMap<u32, u64>,
}

impl Profile {
    /// Assigns each stack to a category.
    pub fn new(stacks: &Stacks, rules: &Rules) -> Self {
        let matches = rules.matches(stacks);
        let mut tallies: BTreeMap<Category, Tally> = BTreeMap::new();
        for (stack, samples) in stacks.counts() {
            let own = tallies.entry(category(stack, &matches)).or_default();
            own.own += samples;
            *own.functions.entry(stack[0]).or_default() += samples;
            for (category, outermost) in outermost(stack, &matches) {
                let tally = tallies.entry(category).or_default();
                tally.inclusive += samples;
                *tally.outermost.entry(outermost).or_default() += samples;
            }
        }
        let samples = stacks.samples();
        let share = |(category, tally): (Category, Tally)| CategoryShare {
            category,
            own: Share::new(tally.own, samples),
            inclusive: Share::new(tally.inclusive, samples),
            functions: listed(stacks.frames(), tally.functions),
            outermost: listed(stacks.frames(), tally.outermost),
        };
        Self { samples, categories: tallies.into_iter().map(share).collect() }
    }

    /// The share of a category's own functions; none of it is a share of 0.
    pub fn own(&self, category: Category) -> Share {
        self.of(category).map_or_else(|| Share::new(0, self.samples), |one| one.own)
    }

    /// The share of a category's functions and all that they call.
    pub fn inclusive(&self, category: Category) -> Share {
        self.of(category).map_or_else(|| Share::new(0, self.samples), |one| one.inclusive)
    }

    fn of(&self, category: Category) -> Option<&CategoryShare> {
        self.categories.iter().find(|one| one.category == category)
    }
}

impl Share {
    fn new(samples: u64, of: u64) -> Self {
        let (low, high) = proportion::wilson(samples, of);
        let share = if of == 0 { 0.0 } else { samples as f64 / of as f64 };
        Self { samples, share, low, high }
    }
}

/// The category of a stack: that of the innermost frame with a rule, unless it yields to a caller's.
fn category(stack: &Stack, matches: &[Option<Match>]) -> Category {
    (0..stack.len()).find_map(|depth| category_from(depth, stack, matches)).unwrap_or(Category::Unknown)
}

/// The category that the frame at this depth has under its callers.
fn category_from(depth: usize, stack: &Stack, matches: &[Option<Match>]) -> Option<Category> {
    let matched = |depth: usize| matches[stack[depth] as usize].filter(|one| depth == 0 || !one.is_leaf);
    let mut category = matched(depth)?.category;
    for caller in depth + 1..stack.len() {
        if let Some(outer) = matched(caller)
            && (category.yields_to().contains(&outer.category) || outer.is_whole && category.is_primitive())
        {
            category = outer.category;
        }
    }
    Some(category)
}

/// Each category on a stack, once, with its outermost frame.
fn outermost(stack: &Stack, matches: &[Option<Match>]) -> Vec<(Category, u32)> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for depth in (0..stack.len()).rev() {
        if let Some(category) = category_from(depth, stack, matches)
            && seen.insert(category)
        {
            found.push((category, stack[depth]));
        }
    }
    if found.is_empty() {
        found.push((Category::Unknown, stack[stack.len() - 1]));
    }
    found
}

/// The functions with the most samples.
fn listed(frames: &[Frame], samples: BTreeMap<u32, u64>) -> Vec<Contributor> {
    let mut all: Vec<(u32, u64)> = samples.into_iter().collect();
    all.sort_by_key(|(index, samples)| (std::cmp::Reverse(*samples), &frames[*index as usize]));
    let contributor = |(index, samples): (u32, u64)| {
        let Frame { symbol, module } = frames[index as usize].clone();
        Contributor { symbol, module, samples }
    };
    all.into_iter().take(LISTED).map(contributor).collect()
}

#[cfg(test)]
mod tests;
