//! `sessions`: those that the scenario can have, and their weights.

use super::element::Element;
use super::ends::TsungServer;
use super::options::OptionUse;
use super::steps::{Plugin, Wire};
use crate::draft::DraftClass;
use crate::expected::near_or;
use crate::translator::Translator;
use crate::weights::Weights;

/// The sessions of a file.
#[derive(Debug)]
pub(super) struct Sessions<'d> {
    /// Those of the scenario: at least one.
    pub(super) kept: Vec<Session<'d>>,
    pub(super) wire: Wire,
    /// Sum of their weights.
    pub(super) weight_total: u64,
    has_websocket_server: bool,
}

/// A session of the scenario.
#[derive(Debug)]
pub(super) struct Session<'d> {
    pub(super) element: Element<'d>,
    pub(super) name: &'d str,
    pub(super) plugin: Plugin,
    /// Share of the users, relative to the others; at least 1.
    pub(super) weight: u32,
}

/// A session as it is written.
struct Written<'d> {
    element: Element<'d>,
    name: &'d str,
    kind: &'d str,
    /// What its users speak, if throng speaks it.
    wire: Option<(Plugin, Wire)>,
    share: f64,
}

impl<'d> Sessions<'d> {
    /// Reads the sessions. `setups` are weights of the only phase, which go before their own.
    pub(super) fn read(
        translator: &mut Translator<'_>,
        root: Element<'d>,
        server: &TsungServer<'d>,
        setups: &[Element<'d>],
    ) -> Option<Self> {
        let Some(sessions) = root.child("sessions") else {
            let label = "expected `<sessions>` with a `session` in it";
            return translator.fail(&root.span(), "there is no session", label);
        };
        let mistakes = translator.mistakes.len();
        let list = sessions.elements();
        let mut all: Vec<_> =
            list.filter_map(|session| Written::read(translator, session, server)).collect();
        if all.is_empty() && translator.mistakes.len() == mistakes {
            let label = "expected a `session` in it";
            translator.mistake(&sessions.span(), "there is no session", label);
        }
        check_shares(translator, all.iter().map(|session| (session.element, session.share)));
        if translator.mistakes.len() == mistakes && !setups.is_empty() {
            set_up(translator, &mut all, setups);
        }
        if translator.mistakes.len() > mistakes {
            return None;
        }
        let wire = choose(&all);
        let Some(wire) = wire else {
            let label = "expected a session of type ts_raw, ts_websocket or ts_http that has users";
            let title = "throng speaks the protocol of no session";
            return translator.fail(&all[0].element.span(), title, label);
        };
        let kept = keep(translator, all, wire);
        let weight_total = kept.iter().map(|session| u64::from(session.weight)).sum();
        Some(Self { kept, wire, weight_total, has_websocket_server: server.is_websocket })
    }

    /// Reports whether a session of the scenario needs such an option.
    pub(super) fn uses(&self, option: OptionUse<'_>) -> bool {
        match option {
            OptionUse::Http => self.kept.iter().any(|session| session.plugin == Plugin::Http),
            OptionUse::WebSocketServer => {
                let is_raw = |session: &Session<'_>| session.plugin == Plugin::Raw;
                self.has_websocket_server && self.kept.iter().any(is_raw)
            }
            OptionUse::File(id) => self.kept.iter().any(|session| {
                session.element.all("setdynvars").any(|set| {
                    let is_file = matches!(set.value("sourcetype"), Some("file" | "local_file"));
                    is_file && set.value("fileid").unwrap_or("default") == id
                })
            }),
        }
    }

    /// Reports what users do when they have no connection: one entry for each `on_error`.
    pub(super) fn report_errors(
        &self,
        translator: &mut Translator<'_>,
        root: Element<'_>,
        classes: &[DraftClass],
    ) {
        let Some(sessions) = root.child("sessions") else { return };
        let has_no_retries = has_no_retries(root);
        let has_http = self.kept.iter().any(|session| session.plugin == Plugin::Http);
        for way in ["stop", "continue", "restart"] {
            let of_way = || classes.iter().filter(|class| class.on_error == Some(way));
            let count = of_way().count();
            if count == 0 {
                continue;
            }
            let user = if count == classes.len() {
                "a user".to_owned()
            } else {
                let shown = of_way().take(NAMES_SHOWN_MAX).map(|class| format!("`{}`", class.name));
                let rest = if count > NAMES_SHOWN_MAX { " and others" } else { "" };
                format!("a user of {}{rest}", shown.collect::<Vec<_>>().join(", "))
            };
            let does = match way {
                "stop" => "stops",
                "restart" => "begins again a second later",
                _ => "goes on with its next step",
            };
            // Without retries tsung stops after a failed connect, too.
            let when = if has_no_retries && way == "stop" {
                "its connection ends"
            } else {
                "its connect fails or its connection ends"
            };
            let then = match self.wire {
                _ if way != "continue" => "",
                Wire::WebSocket if has_http => {
                    ", and its steps are errors until its next `connect`, except requests of HTTP, \
                     which connect anew"
                }
                Wire::Tcp | Wire::WebSocket => {
                    ", and its steps are errors until its next `connect`"
                }
                Wire::Http => ", and its next request connects anew",
            };
            let tsung = match (has_no_retries, way) {
                (true, "stop") => "connects anew at the next request",
                (true, _) => "stops after a failed connect, and connects anew at the next request",
                (false, _) => "tries three more times, and connects anew at the next request",
            };
            let how = format!("{user} {does} when {when}{then}; tsung {tsung}");
            translator.approximated(&sessions.span(), "sessions", how);
        }
    }
}

impl Session<'_> {
    /// Reports whether a user does not go on after an answer that some request does not want.
    pub(super) fn stops_after_errors(&self) -> bool {
        self.element.all("match").any(|element| {
            let is_end = matches!(element.value("do"), Some("abort" | "restart"));
            is_end && element.value("when") == Some("nomatch")
        })
    }

    /// Reports whether a request of the session waits for an answer.
    pub(super) fn expects(&self) -> bool {
        let waits = |raw: Element<'_>| raw.value("ack") == Some("local");
        let asks = |message: Element<'_>| {
            message.value("type") == Some("message") && message.value("ack") != Some("no_ack")
        };
        let mut think = self.element.all("thinktime");
        self.element.all("raw").any(waits)
            || self.element.all("websocket").any(asks)
            || think.any(|think| think.value("value") == Some("wait_bidi"))
    }
}

impl<'d> Written<'d> {
    fn read(
        translator: &mut Translator<'_>,
        element: Element<'d>,
        server: &TsungServer<'d>,
    ) -> Option<Self> {
        let name = translator.require(element, "name", "login");
        let kind = translator.require(element, "type", "ts_websocket");
        let kind = kind.and_then(|_| translator.word(element, "type", TYPES));
        let share = read_share(translator, element);
        for (attribute, why) in [
            ("bidi", "a user of throng reads whatever comes, at any time"),
            (
                "persistent",
                "`sessions` says what a user does when the server closes its connection",
            ),
        ] {
            if element.get(attribute).is_some() {
                translator.not_needed(&element.span(), element.with(attribute), why);
            }
        }
        let (name, kind) = name.zip(kind)?;
        let becomes_websocket =
            || element.all("change_type").any(|it| it.value("new_type") == Some("ts_websocket"));
        let wire = match kind {
            "ts_raw" if server.is_websocket => Some((Plugin::Raw, Wire::WebSocket)),
            "ts_raw" => Some((Plugin::Raw, Wire::Tcp)),
            "ts_websocket" => Some((Plugin::WebSocket, Wire::WebSocket)),
            "ts_http" if becomes_websocket() => Some((Plugin::Http, Wire::WebSocket)),
            "ts_http" => Some((Plugin::Http, Wire::Http)),
            _ => None,
        };
        Some(Self { element, name: name.value.trim(), kind, wire, share: share? })
    }
}

/// Reads `probability` or `weight`.
fn read_share(translator: &mut Translator<'_>, element: Element<'_>) -> Option<f64> {
    match (element.get("probability"), element.get("weight")) {
        (Some(_), None) => translator.number(element, "probability", 0.0..=100.0),
        (None, Some(_)) => translator.number(element, "weight", 0.0..=1e9),
        (Some(_), Some(second)) => {
            let label = "expected one of `probability` and `weight`";
            translator.fail(&second.span, "this session has two shares", label)
        }
        (None, None) => {
            let label = "expected `probability=\"...\"` or `weight=\"...\"`";
            translator.fail(&element.span(), "this session has no share of the users", label)
        }
    }
}

/// Reports whether a failed connect is not tried again.
fn has_no_retries(root: Element<'_>) -> bool {
    let options = root.child("options").into_iter().flat_map(Element::elements);
    let of_retries = options.filter(|option| option.value("name") == Some("max_retries"));
    of_retries.last().and_then(|option| option.value("value")) == Some("0")
}

fn check_shares<'d>(
    translator: &mut Translator<'_>,
    all: impl Iterator<Item = (Element<'d>, f64)>,
) {
    let all: Vec<_> = all.collect();
    let Some((last, _)) = all.last() else { return };
    let has_weight = |(element, _): &&(Element<'_>, f64)| element.get("weight").is_some();
    let sum: f64 = all.iter().map(|(_, share)| share).sum();
    match all.iter().filter(has_weight).count() {
        0 if (sum - 100.0).abs() > 0.05 => {
            let title = format!("the probabilities are {sum} together");
            translator.mistake(&last.span(), title, "expected 100");
        }
        with_weight if with_weight > 0 && with_weight < all.len() => {
            let label = "expected `weight` in all of them, or `probability` in all of them";
            translator.mistake(&last.span(), "the sessions mix weights and probabilities", label);
        }
        _ if sum <= 0.0 => {
            translator.mistake(&last.span(), "no session has users", "expected more than 0");
        }
        _ => {}
    }
}

/// Gives the sessions the weights of the only phase. A session that it does not name keeps its own.
fn set_up(translator: &mut Translator<'_>, all: &mut [Written<'_>], setups: &[Element<'_>]) {
    let mut shares: Vec<_> = all.iter().map(|session| (session.element, session.share)).collect();
    for setup in setups {
        let name = translator.require(*setup, "name", "login");
        let share = read_share(translator, *setup);
        let (Some(name), Some(share)) = (name, share) else { return };
        let known = all.iter().position(|session| session.name == name.value.trim());
        let Some(known) = known else {
            let label = near_or(
                name.value,
                all.iter().map(|session| session.name),
                "expected the name of a session",
            );
            let title = format!("there is no session `{}`", name.value);
            return translator.mistake(&name.span, title, label);
        };
        shares[known] = (*setup, share);
    }
    for (session, (_, share)) in all.iter_mut().zip(&shares) {
        session.share = *share;
    }
    check_shares(translator, shares.into_iter());
}

/// Returns the protocol of the scenario: that of the session with most users.
fn choose(all: &[Written<'_>]) -> Option<Wire> {
    let with_users = all.iter().filter(|session| session.share > 0.0);
    let known = with_users.filter_map(|session| Some((session.share, session.wire?.1)));
    let known: Vec<_> = known.collect();
    let (_, best) =
        known.iter().copied().reduce(|best, it| if it.0 > best.0 { it } else { best })?;
    let has_websockets = known.iter().any(|(_, wire)| *wire == Wire::WebSocket);
    // A scenario of WebSockets may have HTTP requests, too.
    Some(if best == Wire::Http && has_websockets { Wire::WebSocket } else { best })
}

/// Returns the sessions of this protocol, and reports what becomes of each.
fn keep<'d>(
    translator: &mut Translator<'_>,
    all: Vec<Written<'d>>,
    scenario: Wire,
) -> Vec<Session<'d>> {
    let mut kept = Vec::new();
    for session in all {
        let span = session.element.span();
        let fits =
            |wire: Wire| wire == scenario || wire == Wire::Http && scenario == Wire::WebSocket;
        if session.share <= 0.0 {
            let why = "no user runs it";
            translator.not_needed(&span, "session", why);
        } else if let Some((plugin, _)) = session.wire.filter(|(_, wire)| fits(*wire)) {
            translator.translated(&span, format!("session {}", session.kind));
            kept.push((session, plugin));
        } else {
            let remedy = match session.wire {
                None => {
                    "throng speaks TCP, WebSockets and HTTP; what the session does over \
                         another protocol can be written for TCP byte by byte"
                }
                Some(_) => {
                    "a scenario has one protocol, and most users of this file speak \
                            another one; make a scenario of each"
                }
            };
            translator.not_supported(&span, format!("session {}", session.kind), remedy);
        }
    }
    let shares: Vec<_> = kept.iter().map(|(session, _)| session.share).collect();
    let sessions = kept.into_iter().zip(Weights::of_shares(&shares).each);
    let session = |((session, plugin), weight): ((Written<'d>, Plugin), u32)| Session {
        element: session.element,
        name: session.name,
        plugin,
        weight,
    };
    sessions.map(session).collect()
}

/// Most names of sessions that a note lists.
const NAMES_SHOWN_MAX: usize = 8;

const TYPES: &[&str] = words![
    "ts_http" "ts_raw" "ts_websocket" "ts_jabber" "ts_pgsql" "ts_mysql" "ts_ldap" "ts_webdav"
    "ts_fs" "ts_shell" "ts_job" "ts_amqp" "ts_mqtt"
];
