//! curl as a client, without WebSockets.

use super::{GIGABYTE, Pair, Sum, all_but, blocks, digest, pattern};
use crate::common::Certificates;
use crate::peers::{Curl, Got};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;
use std::thread;

pub(super) struct Client(Curl);

impl Client {
    pub(super) fn new(certificates: &Certificates) -> Option<Self> {
        Curl::new(certificates).map(Self)
    }

    /// Sends a request; the response must be complete.
    fn ask(&self, pair: &Pair<'_>, path: &str, flags: &[&str]) -> Result<Got, String> {
        let got = self.0.get(&format!("{}{path}", pair.base), flags);
        match got.exit {
            Some(0) => Ok(got),
            exit => Err(format!("{path}: exit code {exit:?}, status {}: {}\n", got.status, got.stderr)),
        }
    }

    fn site(&self, pair: &Pair<'_>) -> Result<String, String> {
        let mut lines = String::new();
        for path in ["/", "/style.css", "/picture.png"] {
            let got = self.ask(pair, path, &[])?;
            let kind = got.field("content-type").unwrap_or_default();
            let _ = writeln!(lines, "GET {path} {} {kind} {}", got.status, digest(&got.body));
        }
        let picture = self.ask(pair, "/picture.png", &[])?;
        for (name, condition) in [("etag", "If-None-Match"), ("last-modified", "If-Modified-Since")] {
            let value = picture.field(name).unwrap_or_default();
            let got = self.ask(pair, "/picture.png", &["-H", &format!("{condition}: {value}")])?;
            let _ = writeln!(lines, "{name} {} {}", got.status, got.body.len());
        }
        let part = self.ask(pair, "/picture.png", &["--range", "10-19"])?;
        let range = part.field("content-range").unwrap_or_default();
        let _ = writeln!(lines, "range {} {range} {}", part.status, digest(&part.body));
        // With --head the output is the head.
        let head = self.ask(pair, "/picture.png", &["--head", "--output", "/dev/null"])?;
        let length = head.field("content-length").unwrap_or_default();
        let _ = writeln!(lines, "HEAD {} {length} {}", head.status, head.body.len());
        let _ = writeln!(lines, "missing {}", self.ask(pair, "/missing", &[])?.status);
        Ok(lines)
    }

    fn api(&self, pair: &Pair<'_>) -> Result<String, String> {
        let mut lines = String::new();
        for (method, path, body) in [
            ("POST", "/api/items", "{\"name\":\"Zoë\"}"),
            ("GET", "/api/items/1", ""),
            ("PUT", "/api/items/1", "{\"name\":\"Ada\"}"),
            ("DELETE", "/api/items/1", ""),
            ("GET", "/api/items/1", ""),
            ("POST", "/api/items", "{\"name\":"),
        ] {
            let mut flags = vec!["--request", method];
            if !body.is_empty() {
                flags.extend(["--json", body]);
            }
            let got = self.ask(pair, path, &flags)?;
            let place = got.field("location").unwrap_or_default();
            let said = text(&got);
            let words = [method, &got.status.to_string(), &place, &said].map(str::to_owned);
            let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
            let _ = writeln!(lines, "{}", words.join(" "));
        }
        let gzip = self.ask(pair, "/api/gzip", &["--compressed"])?;
        let encoding = gzip.field("content-encoding").unwrap_or_default();
        let _ = writeln!(lines, "gzip {} {encoding} {}", gzip.status, digest(&gzip.body));
        lines.push_str(&self.echo(pair, &[])?);
        Ok(lines)
    }

    fn echo(&self, pair: &Pair<'_>, flags: &[&str]) -> Result<String, String> {
        let body = format!("@{}", self.0.file(&pattern(300_000)));
        let flags = [&["--data-binary", &body][..], flags].concat();
        let got = self.ask(pair, "/api/echo", &flags)?;
        let framing = got.field("x-framing").unwrap_or_default();
        Ok(format!("echo {} {framing} {}\n", got.status, digest(&got.body)))
    }

    fn expect(&self, pair: &Pair<'_>) -> Result<String, String> {
        let body = self.0.file(&pattern(300_000));
        // Without 100 (Continue), curl does not send the body.
        let flags = ["--upload-file", &body, "-H", "Expect: 100-continue", "--expect100-timeout", "100"];
        let got = self.ask(pair, &format!("/api/{}", pair.steps), &flags)?;
        Ok(format!("{} {} {}\n", pair.steps, got.status, text(&got)))
    }

    fn events(&self, pair: &Pair<'_>) -> Result<String, String> {
        let path = format!("/events/curl-{}", pair.base.len());
        let mut stream = self.0.command(&["--no-buffer", &format!("{}{path}", pair.base)]);
        let mut child = stream.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = String::new();
        let mut number = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let Ok(line) = line else { break };
            if let Some(data) = line.strip_prefix("data: ") {
                number += 1;
                let confirmed = self.ask(pair, &format!("{path}/{number}"), &["--request", "POST"]);
                let _ = writeln!(lines, "{data} {}", confirmed.map_or(0, |got| got.status));
            }
        }
        let status = child.wait().unwrap();
        if status.success() { Ok(lines) } else { Err(format!("{lines}{status}\n")) }
    }

    /// Uploads a body whose length curl does not know, and so in chunks.
    fn upload(&self, pair: &Pair<'_>) -> Result<String, String> {
        let mut command = self.0.command(&["--upload-file", "-", &format!("{}/bulk", pair.base)]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let length = pair.length;
        let writer = thread::spawn(move || blocks(length).try_for_each(|block| stdin.write_all(block)));
        let output = child.wait_with_output().unwrap();
        let written = writer.join().unwrap();
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let Ok(value) = serde_json::from_str::<serde_json::Value>(&answer) else {
            return Err(format!("{}, {written:?}: {answer}\n", output.status));
        };
        Ok(format!("upload {} {}\n", value["bytes"], value["sha256"].as_str().unwrap_or_default()))
    }

    fn download(&self, pair: &Pair<'_>) -> Result<String, String> {
        let mut command = self.0.command(&[&format!("{}/bulk/{}", pair.base, pair.length)]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut sum = Sum::default();
        let mut block = vec![0; 65536];
        while let Ok(read @ 1..) = stdout.read(&mut block) {
            sum.update(&block[..read]);
        }
        let status = child.wait().unwrap();
        let line = format!("download {}\n", sum.line());
        if status.success() { Ok(line) } else { Err(format!("{line}{status}\n")) }
    }

    fn slow(&self, pair: &Pair<'_>) -> Result<String, String> {
        let mut lines = String::new();
        for name in ["late", "trickle", "never"] {
            let got = self.ask(pair, &format!("/slow/{name}"), &[])?;
            let _ = writeln!(lines, "{name} {} {}", got.status, text(&got).trim());
        }
        Ok(lines)
    }
}

impl super::Client for Client {
    fn services(&self) -> Vec<&'static str> {
        all_but(&["websocket"])
    }

    fn transcript(&self, pair: &Pair<'_>) -> Result<String, String> {
        match pair.steps {
            "site" => self.site(pair),
            "api" => self.api(pair),
            "chunked" => self.echo(pair, &["-H", "Transfer-Encoding: chunked"]),
            "continued" | "refused" => self.expect(pair),
            "events" => self.events(pair),
            "upload" => self.upload(pair),
            "download" => self.download(pair),
            "slow" => self.slow(pair),
            steps => Err(format!("no such steps: {steps}")),
        }
    }

    fn bulk(&self) -> u64 {
        GIGABYTE
    }
}

fn text(got: &Got) -> String {
    String::from_utf8_lossy(&got.body).into_owned()
}
