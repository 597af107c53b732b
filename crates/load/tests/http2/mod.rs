//! HTTP/2, against a server with faults.

mod faults;
mod grpc;
mod server;
mod usual;

use server::{Script, Server};
use std::sync::mpsc;
use std::time::Duration;
use weir_http2::{Budgets, Config, Settings};
use weir_load::result::{Http2Figures, LoadResult};
use weir_load::{HttpVersion, Options, run};

/// Connections of each run's trial.
const TRIAL: u64 = 1;

fn options(url: &str) -> Options {
    let mut options = Options::new(url.parse().unwrap());
    options.http = HttpVersion::Http2.into();
    options.connections = 4;
    options.streams = 8;
    options.phases.window = Duration::from_millis(500);
    options.phases.warmup = Duration::from_millis(50);
    options
}

fn load(options: &Options) -> LoadResult {
    run(options, &mpsc::channel().1, |_| {}).unwrap()
}

fn figures(result: &LoadResult) -> &Http2Figures {
    result.http2.as_ref().unwrap()
}

/// Asserts the properties of every run without errors.
#[track_caller]
fn assert_good(result: &LoadResult) {
    assert_eq!(result.errors, [].into(), "{:?}", result.error_examples);
    assert!(result.requests > 0 && result.response.count > 0);
    assert!(figures(result).requests_per_write > 0.0 && figures(result).header_bytes_per_response > 9.0);
}

/// A server with these settings, and no limits on abuse: the engine resets many streams.
fn config(settings: Settings) -> Config {
    let budgets = Budgets { resets: u32::MAX, provoked_resets: u32::MAX, ..Budgets::default() };
    Config { settings: Settings { enable_push: false, ..settings }, budgets, ..Config::default() }
}

fn usual() -> Config {
    config(Settings { max_concurrent_streams: Some(100), ..Settings::default() })
}
