//! The output of a run: one JSON object per line.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::allocator;
use crate::connect::Outcomes;
use crate::error::Error;
use crate::handshake;
use crate::measure::Measured;
use crate::memory::Held;
use crate::names::{self, Named, Side};
use crate::notes::{LOCKS, SPANS, Sum};
use crate::stack::Facts;
use crate::transfer;

/// Writes the lines.
pub(crate) struct Report<W> {
    output: W,
}

/// Samples in one line.
const SAMPLES: usize = 1000;

impl<W: Write> Report<W> {
    pub(crate) fn new(output: W) -> Report<W> {
        Report { output }
    }

    pub(crate) fn facts(&mut self, facts: &Facts) -> io::Result<()> {
        self.line(&json!({
            "type": "facts",
            "stack": facts.stack,
            "tls": facts.tls,
            "crypto": facts.crypto,
            "compiler": facts.compiler,
            "allocator": allocator::NAME,
            "build": if cfg!(debug_assertions) { "debug" } else { "release" },
            "features": facts.features,
        }))
    }

    /// `locks`: whether requested.
    pub(crate) fn handshakes(
        &mut self,
        threads: &[Measured<handshake::Record>],
        locks: bool,
    ) -> io::Result<()> {
        self.outcomes(threads.iter().map(|thread| &thread.record.outcomes))?;
        for (number, thread) in threads.iter().enumerate() {
            self.thread(number, thread)?;
            self.samples(number, Side::Client, &thread.record.client_ns)?;
            self.samples(number, Side::Server, &thread.record.server_ns)?;
        }
        let records = || threads.iter().map(|thread| &thread.record);
        self.span(Side::Client, "session", records().map(|record| record.client_session))?;
        self.span(Side::Server, "session", records().map(|record| record.server_session))?;
        for (span, side, name) in SPANS {
            self.span(side, name, records().map(|record| record.spans[span as usize]))?;
        }
        for (lock, name) in LOCKS {
            let Sum { ns, count } = total(records().map(|record| record.locks[lock as usize]));
            if locks && count > 0 {
                self.line(&json!({ "type": "lock", "name": name, "operations": count, "held_ns": ns }))?;
            }
        }
        Ok(())
    }

    pub(crate) fn transfers(&mut self, threads: &[Measured<transfer::Record>]) -> io::Result<()> {
        self.outcomes(threads.iter().map(|thread| &thread.record.outcomes))?;
        for (number, thread) in threads.iter().enumerate() {
            self.thread(number, thread)?;
            for side in [Side::Client, Side::Server] {
                let bytes = thread.record.moved;
                self.line(
                    &json!({ "type": "moved", "thread": number, "side": side.name(), "bytes": bytes }),
                )?;
            }
            self.samples(number, Side::Client, &thread.record.client_ns)?;
            self.samples(number, Side::Server, &thread.record.server_ns)?;
        }
        Ok(())
    }

    pub(crate) fn memory(&mut self, sessions: usize, held: &Held) -> io::Result<()> {
        self.outcomes([&held.outcomes])?;
        self.line(&json!({
            "type": "memory",
            "sessions": sessions,
            "before_kib": held.before_kib,
            "after_kib": held.after_kib,
        }))
    }

    pub(crate) fn operations(&mut self, threads: &[Measured<Vec<u64>>]) -> io::Result<()> {
        for (number, thread) in threads.iter().enumerate() {
            self.thread(number, thread)?;
            self.samples(number, Side::Operation, &thread.record)?;
        }
        Ok(())
    }

    pub(crate) fn error(&mut self, error: &Error) -> io::Result<()> {
        self.line(&json!({ "type": "error", "fault": error.fault.name(), "message": error.message }))?;
        self.output.flush()
    }

    pub(crate) fn done(&mut self) -> io::Result<()> {
        self.line(&json!({ "type": "done" }))?;
        self.output.flush()
    }

    fn outcomes<'a>(&mut self, threads: impl IntoIterator<Item = &'a Outcomes>) -> io::Result<()> {
        let mut all = Outcomes::new();
        for (key, count) in threads.into_iter().flatten() {
            *all.entry(*key).or_default() += count;
        }
        for ((side, outcome), count) in all {
            self.line(&json!({
                "type": "negotiated",
                "side": side.name(),
                "version": names::version(outcome.version),
                "kind": outcome.kind.name(),
                "suite": names::suite(outcome.suite),
                "group": outcome.group.map(names::group),
                "signature": outcome.signature.map(names::signature),
                "count": count,
            }))?;
        }
        Ok(())
    }

    fn thread<R>(&mut self, number: usize, thread: &Measured<R>) -> io::Result<()> {
        self.line(&json!({
            "type": "thread",
            "thread": number,
            "units": thread.units,
            "wall_ns": thread.wall_ns,
            "cpu_ns": thread.usage.cpu_ns,
            "voluntary_switches": thread.usage.voluntary_switches,
        }))
    }

    fn samples(&mut self, thread: usize, side: Side, samples: &[u64]) -> io::Result<()> {
        for ns in samples.chunks(SAMPLES) {
            self.line(&json!({ "type": "samples", "thread": thread, "side": side.name(), "ns": ns }))?;
        }
        Ok(())
    }

    fn span(&mut self, side: Side, name: &str, threads: impl Iterator<Item = Sum>) -> io::Result<()> {
        let Sum { ns, count } = total(threads);
        if count == 0 {
            return Ok(());
        }
        self.line(&json!({ "type": "span", "side": side.name(), "name": name, "ns": ns, "count": count }))
    }

    fn line(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.output, "{value}")
    }
}

fn total(sums: impl Iterator<Item = Sum>) -> Sum {
    sums.fold(Sum::default(), |mut total, sum| {
        total.merge(sum);
        total
    })
}
