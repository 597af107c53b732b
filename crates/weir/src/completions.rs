//! `weir completions SHELL`: shell completion scripts.

use crate::outcome::{Failure, Outcome, say};
use clap::{Args, Command};
use clap_complete::{Shell, generate};

/// Print a shell completion script.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  weir completions bash > /etc/bash_completion.d/weir
  weir completions zsh > \"${fpath[1]}/_weir\"
  weir completions fish > ~/.config/fish/completions/weir.fish
  source <(weir completions bash)      # for this session alone";

pub(crate) fn run(args: CompletionsArgs, mut program: Command) -> Outcome {
    let mut script = Vec::new();
    generate(args.shell, &mut program, "weir", &mut script);
    say(String::from_utf8(script).map_err(Failure::run)?)
}
