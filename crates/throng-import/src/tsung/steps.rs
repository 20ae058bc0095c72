//! The actions of a session become steps.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use super::element::{Child, Element};
use super::ends::TsungServer;
use super::options::{Options, read_range};
use super::think::{SECONDS_MAX, StepsTime, ThinkKind, ThinkTime};
use super::uses::Uses;
use super::variables::{Tables, Variables};
use crate::names::in_letters_and;
use crate::step;
use crate::tls::{CLIENT_FILES, PLAIN};
use crate::translator::Translator;
use crate::yaml::Yaml;

/// What the users of the scenario speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Tcp,
    WebSocket,
    Http,
}

/// The plugin of tsung that sends the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plugin {
    Raw,
    WebSocket,
    Http,
}

/// Why no further action of a session becomes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The session ends before it.
    Ended,
    /// It belongs to a part that is left out.
    LeftOut,
}

/// What the sessions of a scenario share.
#[derive(Debug)]
pub(super) struct Shared<'d> {
    pub(super) tables: Tables<'d>,
    /// Names of transactions.
    pub(super) transactions: Vec<String>,
    /// True if the scenario has the certificate that the sessions set.
    pub(super) has_client_certificate: bool,
    /// Path of the target, once a connect has one.
    pub(super) path: Option<String>,
    /// Line of the first report of a difference, by its text.
    pub(super) reported: BTreeMap<&'static str, usize>,
}

/// The reader of one session.
pub(super) struct StepsReader<'w, 't, 'd> {
    pub(super) translator: &'w mut Translator<'t>,
    pub(super) options: &'w Options<'d>,
    pub(super) server: &'w TsungServer<'d>,
    pub(super) shared: &'w mut Shared<'d>,
    pub(super) wire: Wire,
    pub(super) plugin: Plugin,
    pub(super) variables: Variables,
    /// Users of this session, nearly always.
    pub(super) users_min: u64,
    pub(super) is_only_session: bool,
    /// True if a request of the session waits for an answer.
    pub(super) expects: bool,
    /// Files of which a row is used already.
    pub(super) read_files: Vec<&'d str>,
    pub(super) connected: bool,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) over: Option<Over>,
    /// Think times so far.
    pub(super) time: StepsTime,
    /// Comments that stand before the next step.
    pub(super) comments: Vec<String>,
    /// Variables that the present request sets, by tsung's names and by those of the scenario.
    pub(super) captured: Vec<(String, String)>,
    /// Variables that the present request leaves empty, by tsung's names.
    pub(super) emptied: Vec<String>,
    /// Which names the session uses.
    pub(super) uses: Uses<'d>,
    /// Steps at the beginning of the session, which store what its loops count.
    pub(super) counters: Vec<Yaml>,
    /// Steps that store values for the present request.
    pub(super) sets: Vec<Yaml>,
    /// What a user does after an error, if a request says so.
    pub(super) on_error: Option<&'static str>,
    /// True if a request of the session says that an error ends a user, or its turn.
    pub(super) stops_after_errors: bool,
    /// True if a step keeps a part of an answer.
    pub(super) captures: bool,
    /// Loops around the present action.
    pub(super) loops: usize,
    /// How often the steps stand in the program, because of lists of values.
    pub(super) copies: u64,
    pub(super) transactions: usize,
    /// Lists around the present action, beside that of the session.
    pub(super) depth: usize,
}

impl<'d> StepsReader<'_, '_, 'd> {
    /// Translates the actions in an element.
    pub(super) fn steps(&mut self, element: Element<'d>) -> Vec<Yaml> {
        let children: Vec<_> = element.children().collect();
        self.list(&children)
    }

    /// Translates a list of actions, each with the comments before it.
    pub(super) fn list(&mut self, children: &[Child<'d>]) -> Vec<Yaml> {
        let mut steps = Vec::new();
        for (index, child) in children.iter().enumerate() {
            let element = match child {
                Child::Comment(text) => {
                    self.comments.push((*text).to_owned());
                    continue;
                }
                Child::Element(element) => *element,
            };
            if let Some(over) = self.over {
                self.leave_out(element, over);
                continue;
            }
            let comments = std::mem::take(&mut self.comments);
            let rest = &children[index + 1..];
            let (mut new, takes_rest) = match self.depth {
                0 if self.aborts_in(element) => (self.if_else(element, rest), true),
                _ => (self.step(element), false),
            };
            if new.is_empty() {
                self.comments.splice(0..0, comments);
            } else {
                Yaml::comment_first(&mut new, &comments);
            }
            steps.append(&mut new);
            if takes_rest {
                break;
            }
        }
        steps
    }

    /// Reports actions that become no steps.
    fn leave_out(&mut self, element: Element<'d>, over: Over) {
        let span = element.span();
        match over {
            Over::Ended => {
                let why = "the session ends before it";
                self.translator.not_needed(&span, element.name(), why);
            }
            Over::LeftOut => {
                let remedy = "it follows a `change_type` that is left out";
                self.translator.not_supported(&span, element.name(), remedy);
            }
        }
    }

    /// Translates one action.
    fn step(&mut self, element: Element<'d>) -> Vec<Yaml> {
        match element.name() {
            "request" => self.request(element),
            "thinktime" => self.thinktime(element),
            "transaction" => self.transaction(element),
            "setdynvars" => self.setdynvars(element),
            "for" => self.for_loop(element),
            "foreach" => self.foreach(element),
            "repeat" => self.repeat(element),
            "if" => self.if_then(element),
            "change_type" => self.change_type(element),
            "set_option" => self.set_option(element),
            "interaction" => {
                let why = "tsung measures the time between two users' actions, and no user waits \
                           for the other; a `probe` or a `receive` with a name measures it";
                self.translator.skip(&element.span(), "interaction", why)
            }
            "abort" => self.abort(element),
            // The end of a loop, which the loop reads.
            _ => Vec::new(),
        }
    }

    fn thinktime(&mut self, element: Element<'d>) -> Vec<Yaml> {
        let span = element.span();
        match element.value("value") {
            Some("wait_global") => return self.wait_global(&span, "thinktime wait_global"),
            Some("wait_bidi") => return self.wait_bidi(&span),
            Some(value) if value.contains("%%") => {
                let remedy = "a `wait` has no variables; write the time";
                return self.translator.omit(&span, "thinktime", remedy);
            }
            _ => {}
        }
        let value = self.translator.number(element, "value", 0.0..=SECONDS_MAX);
        let own_range = read_range(self.translator, element, 1);
        let is_random = self.translator.flag(element, "random");
        let defaults = &self.options.think;
        let kind = match (own_range, is_random) {
            (Some((low, high)), _) => ThinkKind::Range(low, high),
            (None, Some(true)) => ThinkKind::Random,
            (None, Some(false)) => ThinkKind::Fixed,
            (None, None) => defaults.kind,
        };
        if defaults.overrides {
            return self.think(ThinkTime::of(defaults.value, defaults.kind), &span);
        }
        if let Some(value) = value {
            self.check_value(element, value, kind, own_range.is_some());
        }
        self.think(ThinkTime::of(value.unwrap_or(defaults.value), kind), &span)
    }

    /// Reports a value of a think time that tsung refuses or does not use.
    fn check_value(&mut self, element: Element<'d>, value: f64, kind: ThinkKind, has_range: bool) {
        let span = element.get("value").map_or(element.span(), |found| found.span);
        if has_range {
            let label = "expected `value`, or `min` and `max`: tsung refuses both together";
            self.translator.mistake(&span, "this think time is written twice", label);
        } else if value == 0.0 {
            let label = "expected more than 0: tsung refuses the file";
            self.translator.mistake(&span, "this think time is no time", label);
        } else if let ThinkKind::Range(..) = kind {
            let why = "`min` and `max` of the option `thinktime` go before this value in tsung, \
                       and so they do in the scenario: write `random=\"false\"` here";
            self.translator.suspicious(&span, "thinktime value", why);
        }
    }

    fn think(&mut self, time: ThinkTime, span: &Range<usize>) -> Vec<Yaml> {
        self.translator.translated(span, "thinktime");
        self.time = self.time.plus(time.time());
        time.step().into_iter().collect()
    }

    /// Returns the wait for other users.
    pub(super) fn wait_global(&mut self, span: &Range<usize>, construct: &str) -> Vec<Yaml> {
        let users = self.options.global_number;
        if u64::from(users) > self.users_min {
            let remedy = "fewer users than `global_number` run this session: tsung's would wait \
                          for ever; set the option to their number";
            return self.translator.omit(span, construct, remedy);
        }
        self.translator.translated(span, construct);
        let mut barrier = vec![("name", Yaml::text("global")), ("users", Yaml::plain(users))];
        barrier.extend(self.options.global_timeout.map(step::timeout));
        vec![Yaml::entry("barrier", Yaml::map(barrier))]
    }

    fn wait_bidi(&mut self, span: &Range<usize>) -> Vec<Yaml> {
        if self.wire == Wire::Http {
            let remedy = "a server of HTTP sends nothing unasked; take it out";
            return self.translator.omit(span, "thinktime wait_bidi", remedy);
        }
        let mut steps = self.connect_before(span);
        let how = "tsung waits for ever for the next message; a user of the scenario stops after a \
                   day";
        self.approximated_once(span, "thinktime wait_bidi", how);
        self.time = self.time.plus(StepsTime::OPEN);
        steps.push(step::await_message("receive", self.anything(), &[], DAY));
        steps
    }

    fn transaction(&mut self, element: Element<'d>) -> Vec<Yaml> {
        let Some(name) = self.translator.require(element, "name", "login") else {
            return Vec::new();
        };
        let name = transaction_name(name.value);
        let is_new = !self.shared.transactions.contains(&name);
        let too_many = is_new && self.shared.transactions.len() >= TRANSACTION_NAMES_MAX;
        let is_measured = !too_many && self.transactions < TRANSACTIONS_MAX;
        self.transactions += 1;
        self.depth += 1;
        let steps = self.steps(element);
        self.depth -= 1;
        self.transactions -= 1;
        if !is_measured {
            let how = "its steps are there, and are not measured together: a scenario has at most \
                       64 names, and 4 transactions in one another";
            self.translator.approximated(&element.span(), "transaction", how);
            return steps;
        }
        self.translator.translated(&element.span(), "transaction");
        if steps.is_empty() {
            return steps;
        }
        if is_new {
            self.shared.transactions.push(name.clone());
        }
        vec![step::transaction(name, steps)]
    }

    fn change_type(&mut self, element: Element<'d>) -> Vec<Yaml> {
        let kind = self.translator.require(element, "new_type", "ts_http");
        let host = self.translator.require(element, "host", "127.0.0.1");
        let port = self.translator.require(element, "port", "8080");
        let (Some(kind), Some(host), Some(port)) = (kind, host, port) else { return Vec::new() };
        let is_same =
            host.value.trim() == self.server.host && port.value.trim() == self.server.port;
        let plugin = match kind.value.trim() {
            "ts_http" => Some(Plugin::Http),
            "ts_websocket" => Some(Plugin::WebSocket),
            _ => None,
        };
        let Some(plugin) = plugin.filter(|_| is_same && self.wire == Wire::WebSocket) else {
            let remedy = "a scenario has one target and one protocol, HTTP requests before a \
                          WebSocket excepted; make a scenario of each part";
            self.translator.not_supported(&element.span(), "change_type", remedy);
            self.over = Some(Over::LeftOut);
            return Vec::new();
        };
        self.translator.translated(&element.span(), "change_type");
        self.plugin = plugin;
        if plugin == Plugin::Http { self.close() } else { Vec::new() }
    }

    fn set_option(&mut self, element: Element<'d>) -> Vec<Yaml> {
        let name = element.value("name").unwrap_or_default();
        let construct = format!("set_option {name}");
        if name == "connect_timeout" {
            self.connect_timeout = super::options::milliseconds(self.translator, element);
            self.translator.translated(&element.span(), construct);
            return Vec::new();
        }
        if name == "certificate" {
            return self.set_certificate(&element.span(), construct);
        }
        let remedy = match name {
            "rate_limit" => "throng does not slow down its reading",
            _ => "write it in the steps of the scenario, for example in `headers`",
        };
        self.translator.omit(&element.span(), construct, remedy)
    }

    /// Reports a certificate that the user shows from here on. tsung closes the connection before.
    fn set_certificate(&mut self, span: &Range<usize>, construct: String) -> Vec<Yaml> {
        if !self.translator.is_secure(self.server.is_secure) {
            return self.translator.skip(span, construct, PLAIN);
        }
        if !self.shared.has_client_certificate {
            return self.translator.omit(span, construct, CLIENT_FILES);
        }
        let how = "all users of the scenario show it, from their first connection on";
        self.translator.approximated(span, construct, how);
        self.close()
    }

    fn abort(&mut self, element: Element<'d>) -> Vec<Yaml> {
        if self.translator.word(element, "type", &["session", "all"]) == Some("all") {
            let remedy = "no step ends a run; `throng ctl drain` does";
            return self.translator.omit(&element.span(), "abort all", remedy);
        }
        self.translator.translated(&element.span(), "abort");
        self.over = Some(Over::Ended);
        Vec::new()
    }

    /// Returns the steps that connect, if the user is not connected.
    pub(super) fn connect_before(&mut self, span: &Range<usize>) -> Vec<Yaml> {
        if self.connected || self.wire == Wire::Http {
            return Vec::new();
        }
        if self.plugin == Plugin::WebSocket {
            let why = "no handshake is before it; the scenario connects first";
            self.translator.suspicious(span, "websocket", why);
        }
        vec![self.connect(None)]
    }

    /// Returns the step that closes, if the user is connected.
    pub(super) fn close(&mut self) -> Vec<Yaml> {
        let was_connected = std::mem::replace(&mut self.connected, false);
        if was_connected && self.wire != Wire::Http {
            vec![Yaml::text("close")]
        } else {
            Vec::new()
        }
    }

    /// Returns what any answer satisfies.
    pub(super) fn anything(&self) -> (&'static str, Yaml) {
        match self.wire {
            Wire::Tcp => ("bytes", Yaml::plain(1)),
            _ => ("regex", Yaml::text(".*")),
        }
    }

    /// Reports whether the present action may run several times.
    pub(super) fn is_repeated(&self) -> bool {
        self.loops > 0 || self.copies > 1
    }

    /// Reports a difference in full where it is the first of its kind.
    pub(super) fn approximated_once(
        &mut self,
        span: &Range<usize>,
        construct: &str,
        how: &'static str,
    ) {
        let line = self.translator.line_of(span.start);
        match self.shared.reported.get(how) {
            Some(first) => {
                let how = format!("as in line {first}");
                self.translator.approximated(span, construct, how);
            }
            None => {
                self.shared.reported.insert(how, line);
                self.translator.approximated(span, construct, how);
            }
        }
    }

    /// Returns the time-out of a connect.
    pub(super) fn timeout_of_connect(&self) -> (&'static str, Yaml) {
        let default =
            if self.wire == Wire::Tcp { KERNEL_CONNECT } else { self.options.idle_timeout };
        step::timeout(self.connect_timeout.unwrap_or(default))
    }
}

/// Returns a name that a transaction may have.
fn transaction_name(name: &str) -> String {
    let name = in_letters_and("-", name.trim(), "tr_", NAME_CHARS_MAX);
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// About as long as Linux tries to connect.
const KERNEL_CONNECT: Duration = Duration::from_secs(120);

const DAY: Duration = Duration::from_secs(86_400);

/// Longest name of a transaction.
const NAME_CHARS_MAX: usize = 32;

/// Most names of transactions of a scenario.
const TRANSACTION_NAMES_MAX: usize = 64;

/// Deepest nesting of transactions.
const TRANSACTIONS_MAX: usize = 4;
