//! Servers that drain, refuse, reset, close or hang.

use super::*;
use weir_http2::ErrorCode;

/// Requests above the last stream are sent again, on another connection.
#[test]
fn goaway_loses_no_request() {
    let server = Server::start(Script::GoAway { after: 11 }, usual());
    let result = load(&options(&server.url("http", "/bytes/10")));
    let totals = server.stop();
    assert_good(&result);
    assert_eq!((totals.answers, result.response.censored), (result.answered_in_all, 0));
    assert_eq!(totals.connections, result.connections_opened + TRIAL);
    let figures = figures(&result);
    assert!(figures.goaways["no_error"] > 0 && figures.refused > 0, "{figures:?}");
    assert_eq!((figures.retried, &figures.resets), (figures.refused, &[].into()));
    assert_eq!(result.seconds.iter().map(|second| second.goaways).sum::<u64>(), figures.goaways["no_error"]);
}

#[test]
fn a_drain_in_two_steps_loses_no_request() {
    let server = Server::start(Script::Drain { after: 50 }, usual());
    let result = load(&options(&server.url("http", "/bytes/10")));
    let totals = server.stop();
    assert_good(&result);
    assert_eq!(totals.answers, result.answered_in_all);
    assert!(result.connections_opened > 4 && figures(&result).goaways["no_error"] > 0);
}

#[test]
fn refused_requests_are_sent_again() {
    let script = Script::Reset { every: 3, code: ErrorCode::REFUSED_STREAM };
    let server = Server::start(script, usual());
    let result = load(&options(&server.url("http", "/bytes/10")));
    let totals = server.stop();
    assert_good(&result);
    assert_eq!(totals.answers, result.answered_in_all);
    let figures = figures(&result);
    assert!(figures.refused > 0 && figures.retried == figures.refused);
    assert_eq!(figures.resets, [("refused_stream".to_string(), figures.refused)].into());
    assert_eq!(result.seconds.iter().map(|second| second.refused).sum::<u64>(), figures.refused);
}

#[test]
fn a_request_that_is_always_refused_has_failed() {
    let script = Script::Reset { every: 1, code: ErrorCode::REFUSED_STREAM };
    let server = Server::start(script, usual());
    let result = load(&options(&server.url("http", "/bytes/10")));
    assert_eq!(server.stop().answers, 0);
    assert!(result.requests == 0 && result.errors["stream_reset"] > 0);
    assert!(result.error_examples["stream_reset"].contains("refused a request again and again"));
    // Ten retries for each error, but for those at the edges of the window.
    let figures = figures(&result);
    assert!(figures.refused > figures.retried && figures.retried > 0, "{figures:?}");
}

#[test]
fn a_reset_is_an_error_with_its_code() {
    let script = Script::Reset { every: 5, code: ErrorCode::INTERNAL_ERROR };
    let server = Server::start(script, usual());
    let result = load(&options(&server.url("http", "/bytes/10")));
    assert_eq!(server.stop().answers, result.answered_in_all);
    let errors = result.errors["stream_reset"];
    assert_eq!((result.errors.len(), figures(&result).retried), (1, 0));
    assert!(figures(&result).resets["internal_error"] <= errors && result.requests > 0);
    assert_eq!(result.error_examples["stream_reset"], "the server reset the stream with internal_error");
}

#[test]
fn a_wrong_status_is_an_error() {
    let server = Server::start(Script::Status(404), usual());
    let result = load(&options(&server.url("http", "/bytes/10")));
    server.stop();
    assert!(result.errors["status"] > 0 && result.requests == 0);
    assert_eq!(result.error_examples["status"], "status 404");
}

/// The requests in flight fail, and another connection takes the next ones.
#[test]
fn a_closed_connection_loses_its_requests() {
    let server = Server::start(Script::Close { after: 20 }, usual());
    let result = load(&options(&server.url("http", "/bytes/10")));
    let totals = server.stop();
    assert!(result.errors["closed"] > 0 && result.requests > 0, "{:?}", result.errors);
    assert_eq!(totals.connections, result.connections_opened + TRIAL);
    assert!(result.connections_opened > 4);
}

#[test]
fn a_silent_server_times_out() {
    let server = Server::start(Script::Silent, usual());
    let mut options = options(&server.url("http", "/bytes/10"));
    options.timeout = Duration::from_millis(20);
    let result = load(&options);
    server.stop();
    assert!(result.errors["timeout"] > 0 && result.requests == 0);
    assert_eq!(result.response.censored, result.response.count);
    assert_eq!(result.connections_opened, 4, "the connections stay");
}

/// Requests time out while they wait for a stream.
#[test]
fn a_server_that_allows_no_streams_times_out() {
    let none = Settings { max_concurrent_streams: Some(0), ..Settings::default() };
    let server = Server::start(Script::Respond, config(none));
    let mut options = options(&server.url("http", "/bytes/10"));
    options.timeout = Duration::from_millis(20);
    let result = load(&options);
    assert_eq!(server.stop().answers, 0);
    assert!(result.errors["timeout"] > 0 && result.requests == 0);
    assert!(result.response.censored > 0);
}
