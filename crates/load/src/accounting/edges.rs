//! Clocks at the edges of the window, read by the workers themselves.

use super::accounts::Accounts;
use super::clock;
use super::span::{Edge, Span};
use std::time::Instant;
use weir_reactor::cores;

/// One worker's readings at the edges of the window.
#[derive(Debug)]
pub(crate) struct Edges<'a> {
    index: usize,
    /// Only the first worker reads the clocks of the servers.
    accounts: Option<&'a Accounts>,
    cores: Vec<usize>,
    start: Option<Edge>,
    end: Option<Edge>,
}

impl<'a> Edges<'a> {
    /// For worker `index`, on its own thread.
    pub(crate) fn new(index: usize, accounts: &'a Accounts) -> Self {
        let cores = cores::allowed().map(|cores| cores.0).unwrap_or_default();
        Self { index, accounts: (index == 0).then_some(accounts), cores, start: None, end: None }
    }

    pub(crate) fn start(&mut self) {
        self.start = Some(self.edge());
    }

    pub(crate) fn end(&mut self) {
        self.end = Some(self.edge());
    }

    /// Both edges, once the window is over.
    pub(crate) fn both(self) -> Option<Span> {
        let Self { index, cores, start, end, .. } = self;
        Some(Span { index, cores, from: start?, to: end? })
    }

    fn edge(&self) -> Edge {
        let reading = self.accounts.map(Accounts::read);
        Edge { at: Instant::now(), thread: clock::own_thread(), reading }
    }
}
