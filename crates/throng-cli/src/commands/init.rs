//! `throng init`: writes a first scenario for a server.

use std::path::{Path, PathBuf};

use clap::Args;
use throng_load::protocols::{Protocol, Starter};
use throng_load::scenario::{Scenario, Target, TargetError};

use crate::output_place::{self, unwritable};
use crate::{Exit, Failure, output};

/// Write a first scenario for a server
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Init {
    /// Server to load: tcp://host:port, ws://host:port/path or http://host:port/path
    #[arg(value_name = "URL", value_parser = StarterUrl::parse)]
    url: StarterUrl,
    /// Write the scenario to this file
    #[arg(short, long, value_name = "SCENARIO.yaml", default_value = "scenario.yaml")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

impl Init {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let path = &self.output;
        output_place::check(path)?;
        if path.exists() && !self.force {
            return Err(unwritable(path, "it exists; --force overwrites it"));
        }
        let (name, text) = (path.display().to_string(), self.url.scenario());
        // What is written can be run.
        Scenario::parse(&text, &name).map_err(Failure::mistakes)?;
        std::fs::write(path, text).map_err(|error| unwritable(path, error))?;
        output::say(next_commands(path, self.url.starter()));
        Ok(Exit::Met)
    }
}

/// Names what was written, and the commands that use it.
fn next_commands(path: &Path, starter: &Starter) -> String {
    let name = path.display();
    format!(
        "{name}: {}, for 15 seconds. Write your {} into it; then\n  \
         throng try {name}     shows one user and every message\n  \
         throng run {name}     loads the server",
        starter.load, starter.edit
    )
}

/// The URL of the server that a first scenario is for.
#[derive(Clone, Debug)]
struct StarterUrl {
    target: Target,
    /// Path of the first request, if the scheme is that of HTTP.
    request: String,
}

impl StarterUrl {
    fn parse(text: &str) -> Result<Self, TargetError> {
        // A scenario has no path in an HTTP target: each request has its own.
        let is_of = |scheme: &str| {
            text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        };
        let after = HTTP.into_iter().find(|scheme| is_of(scheme)).map_or(text.len(), str::len);
        let end = text[after..].find(['/', '?', '#']).map_or(text.len(), |at| after + at);
        let target = Target::parse(&text[..end])?;
        let (path, _fragment) = text[end..].split_once('#').unwrap_or((&text[end..], ""));
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self { target, request: format!("{slash}{path}") })
    }

    /// Returns the starter of the protocol that the server is likely to speak.
    fn starter(&self) -> &'static Starter {
        let path = self.target.path.split('?').next().unwrap_or_default();
        &Protocol::likely(self.target.scheme, path).row().starter
    }

    /// Returns the scenario.
    fn scenario(&self) -> String {
        let request = serde_json::to_string(&self.request).expect("a text becomes JSON");
        let text = self.starter().text.replace("PATH", &request);
        text.replacen("TARGET", &self.target.url(), 1)
    }
}

const HTTP: [&str; 2] = ["http://", "https://"];

const EXAMPLES: &str = "\
Examples:
  throng init ws://127.0.0.1:8080/ws                   write scenario.yaml
  throng init tcp://127.0.0.1:5555 -o hello.yaml       name the file
  throng init ws://127.0.0.1:4000/socket/websocket     Phoenix Channels, by the end of the path
  throng init http://127.0.0.1:8080/items              the first request is GET /items";

#[cfg(test)]
mod tests {
    use throng_load::program::Program;

    use super::*;

    /// Checks that the scenario for a URL is read without a mistake or a warning.
    #[track_caller]
    fn check(url: &str, target: &str, protocol: Protocol, line: &str) {
        let text = StarterUrl::parse(url).unwrap().scenario();
        let scenario = Scenario::parse(&text, "scenario.yaml").unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(scenario.target.to_string(), target);
        assert_eq!(scenario.protocol, protocol, "{url}");
        let warnings = Program::compile(&scenario).warnings("scenario.yaml", &text);
        assert!(warnings.is_empty(), "{url}: {warnings}");
        assert!(!text.contains("TARGET") && !text.contains("PATH"), "{text}");
        assert!(text.lines().any(|one| one.trim_start().starts_with(line)), "{line}: {text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100 || line.contains(target)));
    }

    #[test]
    fn every_starter_is_a_scenario() {
        check("tcp://127.0.0.1:5555", "tcp://127.0.0.1:5555", Protocol::Tcp, "- send:");
        check("tcp://[::1]:5555", "tcp://[::1]:5555", Protocol::Tcp, "- expect:");
        let chat = "ws://127.0.0.1:8080/ws?room=1&name=%20a";
        check(chat, chat, Protocol::Ws, "- expect: {json:");
        check("ws://10.0.0.2,h", "ws://10.0.0.2,h:80", Protocol::Ws, "- connect");
        let socket = "ws://h:4000/socket/websocket";
        check(socket, socket, Protocol::Phoenix, "- join:");
        let with_query = "ws://h:4000/socket/websocket?vsn=1.0.0";
        check(with_query, with_query, Protocol::Phoenix, "protocol: phoenix");
        for plain in ["ws://h:4000/websocket", "ws://h:4000/a/websockets"] {
            check(plain, plain, Protocol::Ws, "- send:");
        }
    }

    #[test]
    fn the_path_of_an_http_url_is_that_of_the_first_request() {
        for (url, line) in [
            ("http://h:8080", "- get: \"/\""),
            ("http://h:8080/", "- get: \"/\""),
            ("http://h:8080/items/1?a=\"b\"#top", "- get: \"/items/1?a=\\\"b\\\"\""),
            ("http://h:8080?page=1", "- get: \"/?page=1\""),
        ] {
            check(url, "http://h:8080", Protocol::Http, line);
        }
        check("https://h/items", "https://h:443", Protocol::Http, "- get: \"/items\"");
    }

    #[test]
    fn a_url_that_is_no_target_is_refused() {
        for (url, says) in [
            ("127.0.0.1:5555", "the scheme is missing"),
            ("udp://h/a", "not supported"),
            ("http://:80/a", "expected a host"),
            ("tcp://h", "the port is missing"),
        ] {
            let error = StarterUrl::parse(url).expect_err(url).to_string();
            assert!(error.contains(says), "{url}: {error}");
        }
    }
}
