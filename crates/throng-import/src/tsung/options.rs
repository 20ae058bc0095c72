//! `options`: defaults of the sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use super::element::{Attribute, Element};
use super::think::{SECONDS_MAX, ThinkKind, seconds};
use crate::expected::near_or;
use crate::row::Row;
use crate::translator::Translator;

/// The options that concern the traffic.
#[derive(Debug)]
pub(super) struct Options<'d> {
    pub(super) think: ThinkDefaults,
    /// How long a connect may take; `None` for as long as the kernel tries.
    pub(super) connect_timeout: Option<Duration>,
    /// How long an answer may take.
    pub(super) idle_timeout: Duration,
    /// How long a wait for other users may take.
    pub(super) global_timeout: Option<Duration>,
    /// Users that wait for one another.
    pub(super) global_number: u32,
    /// The handshake of a server of type `websocket`.
    pub(super) websocket: WebSocketOptions<'d>,
    /// Browsers of `ts_http`, each with its probability.
    pub(super) user_agents: Vec<(f64, String)>,
    /// Files of `setdynvars`, by their ids.
    pub(super) files: BTreeMap<&'d str, Attribute<'d>>,
}

/// Think times of the sessions that do not say their own.
#[derive(Debug)]
pub(super) struct ThinkDefaults {
    pub(super) value: f64,
    pub(super) kind: ThinkKind,
    /// True if they hold for all think times, whatever the sessions say.
    pub(super) overrides: bool,
}

#[derive(Debug, Default)]
pub(super) struct WebSocketOptions<'d> {
    pub(super) path: Option<Attribute<'d>>,
    pub(super) origin: Option<Attribute<'d>>,
    pub(super) subprotocols: Option<Attribute<'d>>,
    /// `None` for the default, which is binary.
    pub(super) is_text: Option<bool>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            think: ThinkDefaults { value: 5.0, kind: ThinkKind::Fixed, overrides: false },
            connect_timeout: None,
            idle_timeout: Duration::from_secs(600),
            global_timeout: None,
            global_number: 100,
            websocket: WebSocketOptions::default(),
            user_agents: Vec::new(),
            files: BTreeMap::new(),
        }
    }
}

impl<'d> Options<'d> {
    /// Reads all options. `uses` reports whether a session needs such an option.
    pub(super) fn read(
        translator: &mut Translator<'_>,
        root: Element<'d>,
        uses: impl Fn(OptionUse<'_>) -> bool,
    ) -> Self {
        let mut options = Self::default();
        let list = root.child("options").into_iter().flat_map(Element::elements);
        for option in list {
            options.read_one(translator, option, &uses);
        }
        options
    }

    fn read_one(
        &mut self,
        translator: &mut Translator<'_>,
        option: Element<'d>,
        uses: &impl Fn(OptionUse<'_>) -> bool,
    ) {
        let Some(found) = translator.require(option, "name", "thinktime") else { return };
        let name = found.value.trim();
        let construct = format!("option {name}");
        let span = option.span();
        let is_default = match name {
            "max_retries" => option.value("value") == Some("0"),
            "http_use_server_as_proxy" => option.value("value") == Some("false"),
            _ => false,
        };
        if super::tls::OPTIONS.contains(&name) {
            // The target decides what becomes of them: `tls` reads them.
            return;
        }
        if !is_default && translator.has_row(&span, OPTIONS, &construct) {
            return;
        }
        match name {
            "thinktime" => self.read_think(translator, option),
            "connect_timeout" => self.connect_timeout = milliseconds(translator, option),
            "idle_timeout" => {
                self.idle_timeout =
                    milliseconds(translator, option).unwrap_or(Duration::from_secs(600));
            }
            "global_ack_timeout" => self.global_timeout = milliseconds(translator, option),
            "global_number" => {
                let number = translator.integer(option, "value", 1..=u64::from(u32::MAX));
                self.global_number = number.map_or(100, |number| number as u32);
            }
            "user_agent" => return self.read_user_agents(translator, option, uses),
            "file_server" | "local_file_server" => {
                let id = option.value("id").unwrap_or("default");
                if let Some(path) = translator.require(option, "value", "users.csv") {
                    self.files.insert(id, path);
                }
                if !uses(OptionUse::File(id)) {
                    let why = "no session of the scenario reads this file";
                    return translator.not_needed(&span, construct, why);
                }
            }
            "websocket_path"
            | "websocket_frame"
            | "websocket_origin"
            | "websocket_subprotocols" => {
                self.read_websocket(translator, option, name);
                if !uses(OptionUse::WebSocketServer) {
                    let why = "it is for servers of type `websocket`";
                    return translator.not_needed(&span, construct, why);
                }
            }
            "max_retries" => {}
            "http_use_server_as_proxy" => {
                return translator.not_needed(&span, construct, "the scenario has no proxy");
            }
            _ => {
                let known = OPTIONS.iter().filter_map(|row| row.construct.strip_prefix("option "));
                let known = known.chain(KNOWN.iter().chain(&super::tls::OPTIONS).copied());
                let label =
                    near_or(name, known, "expected an option of tsung, such as `thinktime`");
                let title = format!("tsung has no option `{name}`");
                return translator.mistake(&found.span, title, label);
            }
        }
        translator.translated(&span, construct);
    }

    fn read_think(&mut self, translator: &mut Translator<'_>, option: Element<'d>) {
        let value = translator.number(option, "value", 0.0..=SECONDS_MAX);
        let is_random = translator.flag(option, "random").unwrap_or(false);
        let range = read_range(translator, option, 0);
        self.think = ThinkDefaults {
            value: value.unwrap_or(5.0),
            kind: match range {
                Some((low, high)) => ThinkKind::Range(low, high),
                None if is_random => ThinkKind::Random,
                None => ThinkKind::Fixed,
            },
            overrides: translator.flag(option, "override").unwrap_or(false),
        };
    }

    fn read_websocket(&mut self, translator: &mut Translator<'_>, option: Element<'d>, name: &str) {
        let value = translator.require(option, "value", "...");
        match name {
            "websocket_path" => self.websocket.path = value,
            "websocket_origin" => self.websocket.origin = value,
            "websocket_subprotocols" => self.websocket.subprotocols = value,
            _ => {
                let frame = translator.word(option, "value", &["text", "binary"]);
                self.websocket.is_text = frame.map(|frame| frame == "text");
            }
        }
    }

    fn read_user_agents(
        &mut self,
        translator: &mut Translator<'_>,
        option: Element<'d>,
        uses: &impl Fn(OptionUse<'_>) -> bool,
    ) {
        for agent in option.elements() {
            let share = translator.number(agent, "probability", 0.0..=100.0).unwrap_or(100.0);
            let text: String = agent.text().split_whitespace().collect::<Vec<_>>().join(" ");
            if share > 0.0 && !text.is_empty() {
                self.user_agents.push((share, text));
            }
        }
        match uses(OptionUse::Http) {
            true => translator.translated(&option.span(), "option user_agent"),
            false => {
                let why = "no session of the scenario sends HTTP requests";
                translator.not_needed(&option.span(), "option user_agent", why);
            }
        }
    }
}

/// What a session may need of the options.
#[derive(Clone, Copy, Debug)]
pub(super) enum OptionUse<'k> {
    /// The file with this id.
    File(&'k str),
    Http,
    WebSocketServer,
}

/// Reads `min` and `max` of a think time: whole seconds, and both or neither, as tsung reads them.
pub(super) fn read_range(
    translator: &mut Translator<'_>,
    element: Element<'_>,
    min: u64,
) -> Option<(f64, f64)> {
    let given = (element.get("min"), element.get("max"));
    let bounds = min..=SECONDS_MAX as u64;
    let low = translator.integer(element, "min", bounds.clone());
    let high = translator.integer(element, "max", bounds);
    if let (Some(one), None) | (None, Some(one)) = given {
        let label = "expected `min` and `max`: tsung refuses one of them alone";
        translator.mistake(&one.span, "this think time has one bound", label);
    }
    let (low, high) = low.zip(high)?;
    if low > high || high == 0 {
        let label = format!("expected `max` to be at least {}", low.max(1));
        return translator.fail(&element.span(), "no time is between these bounds", label);
    }
    Some((low as f64, high as f64))
}

/// Reads a time in milliseconds. `None` for `infinity`.
pub(super) fn milliseconds(
    translator: &mut Translator<'_>,
    option: Element<'_>,
) -> Option<Duration> {
    let value = translator.require(option, "value", "1000")?;
    if value.value.trim() == "infinity" {
        return None;
    }
    translator.number(option, "value", 1.0..=SECONDS_MAX * 1e3).map(|ms| seconds(ms / 1e3))
}

/// Options that become the same in each file.
pub(super) const OPTIONS: &[Row] = rows! {
    "option hibernate" NotNeeded PARSE => "it saves memory of tsung's";
    "option ports_range" NotNeeded PARSE =>
        "throng uses all ports of the kernel's range; `throng run --source ADDRESS --source-ports \
         MIN-MAX` sets another one";
    "option seed" NotNeeded PARSE =>
        "`throng run --seed N` sets it; the same seed gives the same run";
    "option tcp_rcv_buffer" "option tcp_snd_buffer" "option udp_rcv_buffer" "option udp_snd_buffer"
        NotNeeded PARSE => BUFFERS;
    "option tcp_reuseaddr" "option tcp_reuseport" "option ip_transparent"
        "option ip_bind_address_no_port" NotNeeded PARSE => SOCKETS;
    "option bosh_path" "option userid_max" "option domain" "option username" "option passwd"
        "option password" "option random_from_fileid" "option offline_from_fileid"
        "option fileid_delimiter" "option muc_service" "option pubsub_service" "option heartbeat"
        "option job_notify_port" NotNeeded PARSE => OTHER_PROTOCOL;
    "option max_ssh_startup_per_core" NotNeeded PARSE =>
        "throng needs no ssh; start it on each machine";
    "option max_retries" "option retry_timeout" Approximated "ts_client:handle_next_request" =>
        RETRIES;
    "option rate_limit" NotSupported "ts_client:token_bucket" =>
        "throng does not slow down its reading; `limits` are for messages and connects";
    "option http_use_server_as_proxy" NotSupported PARSE =>
        "throng sends requests to the target itself; make the target's address that of the server";
};

const PARSE: &str = "ts_config:parse option";

const RETRIES: &str = "a user whose connect fails stops: the scenario tries no second time";

const BUFFERS: &str = "the kernel sizes the buffers: net.ipv4.tcp_rmem and tcp_wmem";

const SOCKETS: &str = "throng sets its sockets' options as it needs them";

const OTHER_PROTOCOL: &str = "it is for a protocol that throng does not speak";

/// The other options.
const KNOWN: &[&str] = words![
    "thinktime" "connect_timeout" "idle_timeout" "global_ack_timeout" "global_number" "user_agent"
    "file_server" "local_file_server" "websocket_path" "websocket_frame" "websocket_origin"
    "websocket_subprotocols"
];
