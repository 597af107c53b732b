//! `weir man`: the manual pages.

use crate::words::say;
use crate::{Cli, Failure, Outcome};
use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Write a manual page to standard output, or all of them to a directory.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// The subcommand whose page is written [default: the program's]
    subcommand: Option<String>,
    /// Write all pages there: weir.1, weir-load.1 and so on; the directory is made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "subcommand")]
    dir: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  weir man load | man -l -
  weir man --dir ~/.local/share/man/man1";

pub(crate) fn run(args: ManArgs) -> Outcome {
    // `weir help load` is no command that has a page.
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    if let Some(dir) = args.dir {
        return write_all(&program, &dir);
    }
    let command = match &args.subcommand {
        None => &program,
        Some(name) => program.find_subcommand(name).ok_or_else(|| {
            let known: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
            Failure::usage(format!("`{name}` is no subcommand; allowed: {}", known.join(", ")))
        })?,
    };
    say(page(command).map_err(Failure::run)?.1)
}

fn write_all(program: &Command, dir: &Path) -> Outcome {
    let failed =
        |error, file: &Path| Failure::run(format!("--dir: cannot write {}: {error}", file.display()));
    fs::create_dir_all(dir).map_err(|error| failed(error, dir))?;
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    for command in std::iter::once(program).chain(shown) {
        let (name, text) = page(command).map_err(Failure::run)?;
        let file = dir.join(name);
        fs::write(&file, text).map_err(|error| failed(error, &file))?;
    }
    Ok(())
}

/// The page's file name and its text.
fn page(command: &Command) -> io::Result<(String, String)> {
    let version = env!("CARGO_PKG_VERSION");
    let examples = command.get_after_help().map(ToString::to_string);
    // Its lines would be filled like a paragraph: they become a section of their own below.
    let command = command.clone().after_help(None::<&str>);
    let man = Man::new(command).source(format!("weir {version}")).manual("Weir");
    let mut text = Vec::new();
    man.render(&mut text)?;
    if let Some(examples) = examples {
        render_examples(&examples).to_writer(&mut text)?;
    }
    String::from_utf8(text).map(|text| (man.get_filename(), text)).map_err(io::Error::other)
}

/// The examples as they stand in `--help`, line by line, under a heading of the page's own.
fn render_examples(examples: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in examples.lines().skip(1) {
        roff.text([roman(line.trim_start())]);
    }
    roff.control("fi", []);
    roff
}
