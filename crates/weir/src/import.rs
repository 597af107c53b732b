//! `weir import`: translate an nginx or HAProxy configuration.

use crate::outcome::{Failure, Outcome, say};
use clap::Args;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use weir_import::{Files, Imported, Kind};

/// Translate an nginx or HAProxy configuration into one of the gateway.
///
/// The result names the source line of each part. Comments at its top and standard error list the untranslated
/// directives, one per line: FILE:LINE: DIRECTIVE: the reason, and what to do instead.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ImportArgs {
    /// The configuration; files that it includes are read, too; - reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The format: nginx or haproxy [default: recognized by content]
    #[arg(long, value_name = "KIND")]
    from: Option<Kind>,
    /// Write to this file, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Overwrite the file of --out
    #[arg(long, requires = "out")]
    force: bool,
    /// Exit with 3 if a directive was not translated
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  weir import /etc/nginx/nginx.conf
  weir import /etc/haproxy/haproxy.cfg --out imported.toml && weir check --config imported.toml
  cat /etc/nginx/sites-enabled/app | weir import --from nginx -

Exit codes:
  0  translated, even if something was left out
  1  a file cannot be read or written
  2  usage, or the configuration cannot be parsed: file, line and what was expected
  3  with --strict: something was left out";

pub(crate) fn run(args: &ImportArgs) -> Outcome {
    let (text, name) = read(&args.file)?;
    if let Some(out) = args.out.as_ref().filter(|out| !args.force && out.exists()) {
        let message = format!("--out: {} exists; overwrite it with --force, or name another", out.display());
        return Err(Failure::usage(message));
    }
    let Imported { toml, losses } =
        weir_import::import(&text, &name, args.from, &Files).map_err(Failure::usage)?;
    match &args.out {
        Some(out) => write(out, args.force, &toml)?,
        None => say(&toml)?,
    }
    let mut err = io::stderr().lock();
    for loss in &losses {
        // If stderr is closed, the comments in the result still report the losses.
        let _ = writeln!(err, "{loss}");
    }
    drop(err);
    let left_out = format!("{} of {} not translated", losses.len(), name.display());
    match losses.is_empty() {
        false if args.strict => Err(Failure { message: left_out, code: 3 }),
        false => {
            let _ = writeln!(io::stderr(), "weir: {left_out}");
            Ok(())
        }
        true => Ok(()),
    }
}

fn read(file: &Path) -> Result<(String, PathBuf), Failure> {
    let bytes = match file.as_os_str() == "-" {
        true => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        }
        false => fs::read(file),
    };
    let name = if file.as_os_str() == "-" { PathBuf::from("stdin") } else { file.to_owned() };
    let bytes = bytes.map_err(|error| Failure::run(format!("cannot read {}: {error}", name.display())))?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), name))
}

/// Writes the file. Without `force`, this does not overwrite a file that another process has created meanwhile.
fn write(out: &Path, force: bool, toml: &str) -> Outcome {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let written = options.open(out).and_then(|mut file| file.write_all(toml.as_bytes()));
    written.map_err(|error| Failure::run(format!("--out: cannot write {}: {error}", out.display())))
}
