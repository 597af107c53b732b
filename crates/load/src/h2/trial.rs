//! The exchange of prefaces, which shows whether a server speaks HTTP/2 (RFC 9113, section 3.4).

use super::connection::config;
use crate::options::Options;
use weir_http2::{Connection, ConnectionError, Event, Head, Role};

/// The client's side of the exchange. No request is sent.
pub(crate) struct Greeting {
    http: Connection,
    head: Head,
}

impl Greeting {
    pub(crate) fn new(options: &Options) -> Self {
        let config = config(options.streams, options.stream_window);
        Self { http: Connection::new(Role::Client, config), head: Head::new() }
    }

    /// The bytes to send.
    pub(crate) fn output(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.http.settle(&mut out);
        out
    }

    /// Takes the received bytes; whether the server has sent its SETTINGS.
    ///
    /// # Errors
    /// When the server does not speak HTTP/2: the message names the reason and a remedy.
    pub(crate) fn receive(&mut self, input: &mut Vec<u8>) -> Result<bool, String> {
        let step = self.http.feed(input, &mut self.head).map_err(|error| not_http2(input, error))?;
        input.drain(..step.consumed);
        Ok(step.event == Some(Event::Settings))
    }
}

/// The message for bytes that a server of HTTP/2 does not send first.
pub(super) fn not_http2(input: &[u8], error: ConnectionError) -> String {
    match input {
        [b'H', b'T', b'T', b'P', b'/', b'1', ..] => {
            "the server responded with HTTP/1.1 to the preface of HTTP/2; use --http 1.1".to_string()
        }
        _ => format!("the server does not speak HTTP/2: {error}; use --http 1.1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http2::Config;

    #[test]
    fn a_server_of_http2_sends_settings() {
        let mut server = Connection::new(Role::Server, Config::default());
        let mut settings = Vec::new();
        server.settle(&mut settings);
        let mut greeting = Greeting::new(&Options::new("http://a/".parse().unwrap()));
        assert!(greeting.output().starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
        let mut input = settings[..5].to_vec();
        assert_eq!(greeting.receive(&mut input), Ok(false));
        input.extend_from_slice(&settings[5..]);
        assert_eq!(greeting.receive(&mut input), Ok(true));
    }

    #[test]
    fn other_servers_are_named() {
        for (input, why) in [
            (
                "HTTP/1.1 400 Bad Request\r\n\r\n",
                "responded with HTTP/1.1 to the preface of HTTP/2; use --http 1.1",
            ),
            ("SSH-2.0-OpenSSH_9.2\r\n", "the server does not speak HTTP/2: "),
        ] {
            let mut greeting = Greeting::new(&Options::new("http://a/".parse().unwrap()));
            let error = greeting.receive(&mut input.as_bytes().to_vec()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
