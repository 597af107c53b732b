//! `weir man`: manual pages.

use crate::outcome::{Failure, Outcome, say};
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Print a manual page, or write all of them to a directory.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Subcommand to document, such as targets install [default: weir itself]
    subcommand: Vec<String>,
    /// Write all pages (weir.1, weir-load.1, ..) to this directory, creating it if needed
    #[arg(long, value_name = "DIR", conflicts_with = "subcommand")]
    dir: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  weir man load | man -l -
  weir man targets install | man -l -
  weir man --dir ~/.local/share/man/man1";

pub(crate) fn run(args: ManArgs, program: Command) -> Outcome {
    // Prevents an entry for `weir help load`, which has no page.
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let commands = shown(&program);
    if let Some(dir) = args.dir {
        return write_all(&commands, &dir);
    }
    let name = args.subcommand.join("-");
    let found = commands.iter().find(|command| name_below(&program, command) == name);
    let command = found.ok_or_else(|| {
        let known: Vec<&str> = commands[1..].iter().map(|command| name_below(&program, command)).collect();
        Failure::usage(format!(
            "unknown subcommand `{}`: expected one of {}",
            args.subcommand.join(" "),
            known.join(", ")
        ))
    })?;
    say(page(command).map_err(Failure::run)?.1)
}

/// Lists a command and its subcommands, except hidden ones.
fn shown(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    std::iter::once(command).chain(below.flat_map(shown)).collect()
}

/// The command's name below the program's, such as `targets-install`; empty for the program itself.
fn name_below<'a>(program: &Command, command: &'a Command) -> &'a str {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let below = name.strip_prefix(program.get_name()).unwrap_or(name);
    below.strip_prefix('-').unwrap_or(below)
}

fn write_all(commands: &[&Command], dir: &Path) -> Outcome {
    let failed =
        |error, file: &Path| Failure::run(format!("--dir: cannot write {}: {error}", file.display()));
    fs::create_dir_all(dir).map_err(|error| failed(error, dir))?;
    for command in commands {
        let (name, text) = page(command).map_err(Failure::run)?;
        let file = dir.join(name);
        fs::write(&file, text).map_err(|error| failed(error, &file))?;
    }
    Ok(())
}

/// The file name and the text of a command's page.
fn page(command: &Command) -> io::Result<(String, String)> {
    let version = env!("CARGO_PKG_VERSION");
    let after_help = command.get_after_help().map(ToString::to_string);
    // roff would join the lines of this text into paragraphs, so `render_after_help` writes it below, as separate
    // sections.
    let command = command.clone().after_help(None::<&str>);
    let man = Man::new(command).source(format!("weir {version}")).manual("Weir");
    let mut text = Vec::new();
    man.render(&mut text)?;
    if let Some(after_help) = after_help {
        render_after_help(&after_help).to_writer(&mut text)?;
    }
    String::from_utf8(text).map(|text| (man.get_filename(), text)).map_err(io::Error::other)
}

/// The `after_help` text: examples and exit codes line by line, then paragraphs, each under its own heading.
fn render_after_help(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut is_first_note = true;
    for part in text.split("\n\n") {
        let (head, lines) = part.split_once(":\n").unwrap_or((part, ""));
        match head {
            "Example" | "Examples" => as_they_stand(roff.control("SH", ["EXAMPLES"]), lines),
            "Exit codes" => as_they_stand(roff.control("SH", ["EXIT STATUS"]), lines),
            _ => {
                if std::mem::take(&mut is_first_note) {
                    roff.control("SH", ["NOTES"]);
                }
                roff.control("PP", []).text([roman(part)]);
            }
        }
    }
    roff
}

fn as_they_stand(roff: &mut Roff, lines: &str) {
    roff.control("nf", []);
    for line in lines.lines() {
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    roff.control("fi", []);
}
