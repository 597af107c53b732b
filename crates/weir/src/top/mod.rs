//! `weir top`: a live view of a running gateway, from its admin address.

mod sample;
mod screen;
mod terminal;

use crate::outcome::{Failure, Outcome, say};
use clap::Args;
use sample::{Gateway, Sample};
use screen::{Size, View};
use std::io::{IsTerminal as _, stdout};
use std::thread;
use std::time::Duration;
use terminal::Terminal;
use weir_transport::Place;

/// Show the activity of a running gateway: rates, responses, servers, early ends.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  weir top
  weir top --admin 127.0.0.1:9901 --once
  weir top --admin unix:/run/weir-admin.sock

The gateway needs an [admin] or a [metrics] table in its configuration. Rates are those since the last
refresh, with --once those of one interval. A * marks a weight, or a service's servers, set at run time. q quits.")]
pub(crate) struct TopArgs {
    /// The gateway's admin address: HOST:PORT, a URL, or unix:PATH
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9901", value_parser = place)]
    admin: Place,
    /// Time between refreshes
    #[arg(long, value_name = "SECONDS", value_parser = crate::serve::seconds, default_value = "1")]
    every: Duration,
    /// Print one interval and exit
    #[arg(long)]
    once: bool,
}

pub(crate) fn run(args: &TopArgs) -> Outcome {
    let mut gateway = Gateway::new(&args.admin);
    let first = gateway.sample().map_err(|why| Failure::run(format!("{}: {why}", args.admin)))?;
    if args.once {
        thread::sleep(args.every);
        let now = gateway.sample().map_err(|why| Failure::run(format!("{}: {why}", args.admin)))?;
        return say(View { admin: &args.admin, before: &first, now: &now, lost: None }.draw(Size::UNLIMITED));
    }
    let terminal = if stdout().is_terminal() { Terminal::enter() } else { None };
    watch(args, &mut gateway, first, terminal.as_ref())
}

/// Refreshes until a key, a signal or a closed stdout ends it. Survives a restart of the gateway.
fn watch(args: &TopArgs, gateway: &mut Gateway<'_>, first: Sample, terminal: Option<&Terminal>) -> Outcome {
    let (mut before, mut now) = (first.clone(), first);
    loop {
        match terminal {
            Some(terminal) if terminal.is_quit_within(args.every) => return Ok(()),
            Some(_) => {}
            None => thread::sleep(args.every),
        }
        let lost = match gateway.sample() {
            Ok(next) => {
                before = std::mem::replace(&mut now, next);
                None
            }
            Err(why) => Some(why),
        };
        let view = View { admin: &args.admin, before: &before, now: &now, lost: lost.as_deref() };
        match terminal {
            Some(terminal) => terminal.show(&view.draw(terminal.size()))?,
            None => say(view.draw(Size::UNLIMITED))?,
        }
    }
}

/// Parses an admin address: `HOST:PORT`, a URL, or `unix:PATH`.
fn place(text: &str) -> Result<Place, String> {
    let place: Place = match text {
        _ if text.starts_with("unix:") || text.contains("://") => text.parse()?,
        _ if text.starts_with('/') => format!("unix:{text}").parse()?,
        _ => format!("http://{text}").parse()?,
    };
    match place.tls() {
        true => Err(format!(
            "`{text}`: the admin address speaks no TLS: expected HOST:PORT, http://HOST:PORT or unix:PATH"
        )),
        false => Ok(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme() {
        for (text, expected) in [
            ("127.0.0.1:9901", "http://127.0.0.1:9901"),
            ("localhost:9901", "http://localhost:9901"),
            ("[::1]:9901", "http://[::1]:9901"),
            ("http://127.0.0.1:9901", "http://127.0.0.1:9901"),
            ("unix:/run/weir.sock", "unix:/run/weir.sock"),
            ("/run/weir.sock", "unix:/run/weir.sock"),
        ] {
            assert_eq!(place(text).map(|place| place.to_string()), Ok(expected.to_owned()), "{text}");
        }
        for text in ["", "https://127.0.0.1:9901", "127.0.0.1:port", "unix:relative", "ftp://a:1", "a b:1"] {
            assert!(place(text).is_err(), "{text}");
        }
    }
}
