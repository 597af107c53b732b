//! Scopes: a block's own directives, and those of the enclosing blocks.

use super::Directive;
use std::collections::BTreeMap;

/// Blocks from the outermost to the innermost.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    blocks: Vec<&'a [Directive]>,
    /// Variables that `set` defines, without their `$`.
    pub variables: BTreeMap<String, String>,
}

impl<'a> Scope<'a> {
    /// The scope of a block without blocks around it.
    pub fn new(block: &'a [Directive]) -> Self {
        Self { blocks: vec![block], variables: BTreeMap::new() }.with_variables(block)
    }

    /// The scope of a nested block.
    pub fn within(&self, block: &'a [Directive]) -> Self {
        let mut inner = self.clone();
        inner.blocks.push(block);
        inner.with_variables(block)
    }

    fn with_variables(mut self, block: &'a [Directive]) -> Self {
        for directive in block.iter().filter(|directive| directive.is("set")) {
            if let [name, value] = &directive.args[..] {
                self.variables.insert(name.trim_start_matches('$').to_owned(), value.clone());
            }
        }
        self
    }

    /// The innermost block.
    pub fn own(&self) -> &'a [Directive] {
        self.blocks.last().copied().unwrap_or_default()
    }

    /// The number of blocks.
    pub fn depth(&self) -> usize {
        self.blocks.len()
    }

    /// The directives of the blocks from number `depth` on, outermost first.
    pub fn from(&self, depth: usize) -> impl Iterator<Item = &'a Directive> {
        self.blocks.iter().skip(depth).flat_map(|block| block.iter())
    }

    /// A directive of the innermost block.
    pub fn here(&self, name: &str) -> Option<&'a Directive> {
        self.own().iter().find(|directive| directive.is(name))
    }

    /// The directive of the innermost block that has it.
    pub fn find(&self, name: &str) -> Option<&'a Directive> {
        self.blocks.iter().rev().find_map(|block| block.iter().rfind(|directive| directive.is(name)))
    }

    /// The first argument of [`Scope::find`]'s directive, or an empty text.
    pub fn arg(&self, name: &str) -> &'a str {
        self.find(name).map_or("", Directive::arg)
    }

    /// All directives of the innermost block that has one: nginx does not merge them across blocks.
    pub fn all(&self, name: &str) -> Vec<&'a Directive> {
        self.all_of(&[name])
    }

    /// Like [`Scope::all`], for several names that nginx inherits together.
    pub fn all_of(&self, names: &[&str]) -> Vec<&'a Directive> {
        let of = |block: &&'a [Directive]| {
            let found: Vec<_> =
                block.iter().filter(|directive| names.contains(&directive.name.as_str())).collect();
            (!found.is_empty()).then_some(found)
        };
        self.blocks.iter().rev().find_map(of).unwrap_or_default()
    }
}
