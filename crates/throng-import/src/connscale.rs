//! connscale: its configuration file, and the calls in the console that start connections.
//!
//! The configuration is a list of applications with their settings, `[{server,
//! [{listen_port,8989}, ...]}]`. How many connections there are stands in no file of connscale:
//! it is typed in the console, `client:connections_start(N).`. So lines with such calls may stand
//! in the file, too.

use std::time::Duration;

use throng_base::units::{show_count, show_duration};

use crate::draft::{Draft, DraftClass};
use crate::erlang::{Term, TermKind, parse_terms};
use crate::importer::Importer;
use crate::phase::{hold_for, ramp};
use crate::source::{Source, Span};
use crate::step;
use crate::translator::Translator;
use crate::url::server_name;
use crate::yaml::Yaml;

pub(crate) const CONNSCALE: Importer = Importer {
    tool: "connscale",
    reads: "configuration files, with the console's `connections_start(N)`",
    program: None,
    recognises,
    read,
};

/// The settings that have a meaning for the load.
#[derive(Debug)]
struct Settings {
    host: String,
    /// Where the host stands.
    server: Span,
    port: u16,
    interval: Duration,
    timeout: Duration,
}

/// A call that starts connections.
struct Start {
    span: Span,
    connections: u64,
}

fn recognises(source: &Source<'_>) -> bool {
    let has_start = source.text.lines().any(|line| start_of(line).is_some());
    let has_port = source.text.contains("{listen_port,") || source.text.contains("{listen_port ,");
    has_start || has_port && source.text.contains("{server")
}

fn read(translator: &mut Translator<'_>) -> Option<Draft> {
    let (starts, terms) = split(translator.source.text);
    let terms = translator.accept(parse_terms(&terms))?;
    let mut settings = Settings::default();
    for application in terms.terms.iter().flat_map(|term| term.list().unwrap_or_default()) {
        settings.read_application(translator, application);
    }
    let connections = connections(translator, &starts);
    Some(Draft {
        comments: terms.comments.into_iter().map(|comment| comment.text).collect(),
        target: settings.target(translator),
        load: load(connections),
        classes: vec![settings.class()],
        ..Draft::default()
    })
}

/// Returns the calls in the console, and the text without them, in which all else has its place.
fn split(text: &str) -> (Vec<Start>, String) {
    let (mut starts, mut rest) = (Vec::new(), String::with_capacity(text.len()));
    for line in text.split_inclusive('\n') {
        let begin = rest.len();
        match start_of(line) {
            Some(connections) => {
                starts.push(Start { span: begin..begin + line.trim_end().len(), connections });
                let ending = &line[line.trim_end().len()..];
                rest.extend(std::iter::repeat_n(' ', line.len() - ending.len()));
                rest.push_str(ending);
            }
            None => rest.push_str(line),
        }
    }
    (starts, rest)
}

/// Returns the number of connections that this line starts, if it is a call in the console.
fn start_of(line: &str) -> Option<u64> {
    let line = line.trim();
    let arguments = ["client:connections_start(", "rclient:connections_start("]
        .iter()
        .find_map(|call| line.strip_prefix(call))?;
    arguments.split([',', ')']).next()?.trim().parse().ok()
}

/// Returns how many connections the calls start together.
fn connections(translator: &mut Translator<'_>, starts: &[Start]) -> u64 {
    let sum = starts.iter().fold(0u64, |sum, start| sum.saturating_add(start.connections));
    if sum > CONNECTIONS_MAX {
        let title = format!("{} connections are too many", show_count(sum));
        let label = format!("expected at most {}", show_count(CONNECTIONS_MAX));
        translator.mistake(&starts[starts.len() - 1].span, title, label);
    }
    for start in starts {
        let how = format!(
            "connscale starts the {} at random moments within {}; the scenario starts them at \
             equal distances",
            show_count(start.connections),
            show_duration(Duration::from_millis(start.connections)),
        );
        translator.approximated(&start.span, "connections_start", how);
    }
    if starts.is_empty() {
        let how = format!(
            "the number of connections is typed in connscale's console; the scenario has \
             {CONNECTIONS_DEFAULT}; add a line `client:connections_start(N).`"
        );
        translator.approximated(&(0..0), "connections", how);
        return CONNECTIONS_DEFAULT;
    }
    sum
}

/// Returns the phases that start `connections` and keep them.
fn load(connections: u64) -> Vec<Yaml> {
    let connections = connections.max(1);
    let hold = hold_for(HOLD).comment("connscale holds its connections until it is stopped.");
    vec![ramp(connections, Duration::from_millis(connections)), hold]
}

impl Settings {
    /// Reads `{server, [...]}` or `{client, [...]}`.
    fn read_application(&mut self, translator: &mut Translator<'_>, application: &Term) {
        let Some((name, [settings])) = application.tagged() else {
            let label = "expected an application and its settings: `{server, [...]}`";
            return translator.mistake(&application.span, "this is not an application", label);
        };
        let Some(settings) = settings.list() else {
            let label = format!("expected a list, found {}", settings.describe());
            let title = format!("the settings of `{name}` are not a list");
            return translator.mistake(&settings.span, title, label);
        };
        for setting in settings {
            self.read_setting(translator, setting);
        }
    }

    /// Reads `{name, value}`.
    fn read_setting(&mut self, translator: &mut Translator<'_>, setting: &Term) {
        let Some((name, [value])) = setting.tagged() else {
            let label = "expected a name and a value: `{listen_port, 8989}`";
            return translator.mistake(&setting.span, "this is not a setting", label);
        };
        let expected = match name {
            "listen_port" => match port(value) {
                Some(port) => {
                    self.port = port;
                    None
                }
                None => Some("a port from 1 to 65535"),
            },
            "server" => match host(value) {
                Some(host) => {
                    self.host = host;
                    self.server = value.span.clone();
                    None
                }
                None => Some("an address, `{127,0,0,1}`, or a name in quotes"),
            },
            "interval" => milliseconds(value, &mut self.interval),
            "timeout" => milliseconds(value, &mut self.timeout),
            "acceptors" | "backlog" => {
                let why = "a setting of connscale's server; the scenario is its client; see \
                           `throng serve pingpong --help`";
                return translator.not_needed(&setting.span, name, why);
            }
            "client1" | "client2" | "client3" | "client4" | "cookie" | "ebin_dir" => {
                let why = "throng needs no Erlang nodes; start it on each machine";
                return translator.not_needed(&setting.span, name, why);
            }
            _ => {
                let label = "expected `listen_port`, `server`, `interval`, `timeout`, `acceptors`, \
                             `backlog`, `cookie`, `ebin_dir` or a client";
                let title = format!("connscale has no setting `{name}`");
                return translator.mistake(&setting.span, title, label);
            }
        };
        match expected {
            None if name == "interval" => {
                let how = "connscale counts the interval from the answer; the scenario pings at \
                           equal distances, whenever the answers arrive";
                translator.approximated(&setting.span, name, how);
            }
            None => translator.translated(&setting.span, name),
            Some(expected) => {
                let label = format!("expected {expected}");
                translator.mistake(&value.span, format!("`{name}` cannot be read"), label);
            }
        }
    }

    fn target(&self, translator: &mut Translator<'_>) -> String {
        let server = server_name(&self.host, self.port);
        translator.target(&self.server, &format!("tcp://{server}"), "")
    }

    /// Returns the users: they connect, and ping until an answer is late.
    fn class(&self) -> DraftClass {
        let first = format!("uniform(1ms, {})", show_duration(self.interval));
        let pong = ("text", Yaml::text("Pong"));
        let pong = step::await_message("expect", pong, &[], self.timeout);
        let turn = vec![step::send(("text", Yaml::text("Ping")), true), pong];
        let period = ("period", Yaml::plain(show_duration(self.interval)));
        DraftClass {
            name: "client".to_owned(),
            weight: 1,
            steps: vec![Yaml::text("connect"), step::wait(first), step::every(period, None, turn)],
            on_error: Some("stop"),
        }
    }
}

/// The settings that connscale has without a file.
impl Default for Settings {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            server: 0..0,
            port: 8989,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
        }
    }
}

fn port(value: &Term) -> Option<u16> {
    match value.kind {
        TermKind::Integer(port) => u16::try_from(port).ok().filter(|port| *port > 0),
        _ => None,
    }
}

/// Returns the host in `{127,0,0,1}` or `"name"`.
fn host(value: &Term) -> Option<String> {
    let TermKind::Tuple(parts) = &value.kind else { return value.text().map(str::to_owned) };
    let octet = |part: &Term| match part.kind {
        TermKind::Integer(octet) => u8::try_from(octet).ok(),
        _ => None,
    };
    let octets: Vec<u8> = parts.iter().map(octet).collect::<Option<_>>()?;
    let octets: [u8; 4] = octets.try_into().ok()?;
    Some(std::net::Ipv4Addr::from(octets).to_string())
}

/// Stores a time in milliseconds. Returns what was expected if it is none.
fn milliseconds(value: &Term, span: &mut Duration) -> Option<&'static str> {
    match value.kind {
        TermKind::Integer(ms) if (1..=TIME_MAX_MS).contains(&ms) => {
            *span = Duration::from_millis(ms.unsigned_abs());
            None
        }
        _ => Some("a number of milliseconds, from 1 to a day"),
    }
}

/// Connections where the file starts none: the example of connscale's README.
const CONNECTIONS_DEFAULT: u64 = 10;

/// The most connections of one file.
const CONNECTIONS_MAX: u64 = 100_000_000;

/// How long the scenario keeps its connections.
const HOLD: &str = "5m";

/// The longest interval: a day.
const TIME_MAX_MS: i64 = 86_400_000;
