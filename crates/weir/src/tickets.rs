//! `weir tickets`: files of ticket secrets, created and rotated.

use crate::outcome::{Failure, Outcome, say};
use clap::{Args, Subcommand};
use std::io::ErrorKind;
use std::path::PathBuf;
use weir_tls::{FileError, RotationError, TicketRotation, create_ticket_secrets, rotate_ticket_secrets};

/// Create and rotate a file of TLS ticket secrets (tls.ticket_secrets) for a fleet of gateways.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TicketsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    New(NewArgs),
    Rotate(RotateArgs),
}

/// Create a file with two random secrets, readable only by its owner.
#[derive(Args, Debug)]
#[command(after_help = NEW_NOTES)]
struct NewArgs {
    /// The file, which must not exist
    file: PathBuf,
}

/// Move a file of ticket secrets one step, atomically.
///
/// The second secret becomes the first one and issues tickets from now on. A random secret becomes the second one: it
/// opens tickets, and issues them after the next call. The former first secret opens tickets for two more calls, then
/// it is removed.
#[derive(Args, Debug)]
#[command(after_help = ROTATE_NOTES)]
struct RotateArgs {
    /// The file, which must exist and not be a symbolic link
    file: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  weir tickets new /etc/weir/ticket-secrets       # once
  weir tickets rotate /etc/weir/ticket-secrets    # each day, on one machine";

const NEW_NOTES: &str = "\
Example:
  weir tickets new /etc/weir/ticket-secrets

Give the file to the gateway's user, as with `chown weir: /etc/weir/ticket-secrets`: a
rotation keeps owner, group and mode. On a tmpfs, the secrets never reach a disk; after a
boot, copy the file from another machine.

Exit codes:
  0  created
  1  the file cannot be written
  2  usage, or the file exists";

const ROTATE_NOTES: &str = "\
Examples:
  weir tickets new /etc/weir/ticket-secrets       # once
  weir tickets rotate /etc/weir/ticket-secrets    # each day, on one machine

Crontab of one machine, with a second one. Copy first, and rotate only if that succeeded:
  FILE=/etc/weir/ticket-secrets
  0 3 * * *  rsync -a $FILE gw2:$FILE && weir tickets rotate $FILE >/dev/null

A machine may be one call late: it and the others still open each other's tickets. rsync
replaces the file atomically; with scp, copy to another name and rename it there. On NFS, all
machines read one file: only rotate it. The gateways load a changed file by themselves.

Call it at intervals of at least twice tls.ticket_lifetime, so that no valid ticket is lost:
with the default of 12 h, once a day.

A missing file is an error, in case its name is mistyped. A file written by hand keeps its
first secret in the first place at the first call, which only adds the next one. Comments are
removed. Of two calls at the same time, one fails and changes nothing.

Exit codes:
  0  rotated
  1  the file cannot be read, locked or replaced, or another process rotates it
  2  usage, or no file of secrets";

pub(crate) fn run(args: &TicketsArgs) -> Outcome {
    match &args.command {
        Command::New(NewArgs { file }) => {
            create_ticket_secrets(file).map_err(failure)?;
            say(format_args!("{}: created with 2 secrets\n", file.display()))
        }
        Command::Rotate(RotateArgs { file }) => {
            let TicketRotation { count, dropped, is_promoted } =
                rotate_ticket_secrets(file).map_err(failure)?;
            let first = match is_promoted {
                true => "the next secret issues tickets now",
                false => "had no next secret, the first one still issues tickets",
            };
            say(format_args!("{}: {first}; secrets {count}, dropped {dropped}\n", file.display()))
        }
    }
}

fn failure(error: RotationError) -> Failure {
    match &error {
        RotationError::Exists { .. } | RotationError::File(FileError::Bad { .. }) => Failure::usage(error),
        RotationError::File(FileError::System { source, path, .. })
            if source.kind() == ErrorKind::NotFound =>
        {
            Failure::run(format!("{error}; create it with `weir tickets new {}`", path.display()))
        }
        _ => Failure::run(error),
    }
}
