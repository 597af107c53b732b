//! From a scenario's text to the report.

use std::io::{self, BufWriter, Read, Write};
use std::process::ExitCode;

use crate::error::Error;
use crate::report::Report;
use crate::scenario::Scenario;
use crate::stack::Stack;
use crate::{handshake, memory, primitive, transfer};

/// An engine's `main`: the scenario comes from standard input, the report goes to standard output.
pub fn main(stack: &impl Stack) -> ExitCode {
    let mut input = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut input);
    let result = read.and_then(|_| run(stack, &input, BufWriter::new(io::stdout().lock())));
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("engine: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a scenario and reports it. Returns whether the report ends with `done`.
pub fn run(stack: &impl Stack, scenario: &[u8], output: impl Write) -> io::Result<bool> {
    let mut report = Report::new(output);
    match parse(scenario).and_then(|scenario| measure(stack, &scenario, &mut report)) {
        Ok(()) => report.done().map(|()| true),
        Err(error) => report.error(&error).map(|()| false),
    }
}

fn parse(scenario: &[u8]) -> Result<Scenario, Error> {
    let text =
        str::from_utf8(scenario).map_err(|error| Error::scenario(format!("expected UTF-8: {error}")))?;
    Scenario::parse(text)
}

fn measure(stack: &impl Stack, scenario: &Scenario, report: &mut Report<impl Write>) -> Result<(), Error> {
    report.facts(&stack.facts())?;
    match scenario {
        Scenario::Facts => {}
        Scenario::Handshake(scenario) => {
            report.handshakes(&handshake::run(stack, scenario)?, scenario.connection.locks)?;
        }
        Scenario::Transfer(scenario) => report.transfers(&transfer::run(stack, scenario)?)?,
        Scenario::Memory(scenario) => report.memory(scenario.pairs * 2, &memory::run(stack, scenario)?)?,
        Scenario::Primitive(scenario) => report.operations(&primitive::run(stack, scenario)?)?,
    }
    Ok(())
}
