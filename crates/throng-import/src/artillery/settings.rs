//! The parts of `config` that every step heeds.

use std::time::Duration;

use throng_base::units::show_duration;
use throng_load::scenario::YamlNode;

use crate::source::Span;
use crate::translator::Translator;

use super::{rows, time, tls};
use crate::fields::{Fields, is_true};

/// What `config` says about all steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings<'n> {
    /// Headers of each request, and of each upgrade.
    pub(super) headers: Option<&'n YamlNode>,
    /// Cookies of each request.
    pub(super) cookie: Option<&'n YamlNode>,
    /// Subprotocols of each WebSocket.
    pub(super) subprotocols: Option<&'n YamlNode>,
    /// What a request may take.
    pub(super) timeout: Option<Duration>,
    /// What the answer to a message may take.
    pub(super) answer_timeout: Option<Duration>,
    /// Whether a WebSocket offers no compression.
    pub(super) is_plain: bool,
    /// How much each think time varies.
    pub(super) jitter: Option<Jitter>,
    /// Whether Artillery checks what `expect` says.
    pub(super) has_expect: bool,
}

/// How much think times vary.
#[derive(Clone, Copy, Debug)]
pub(super) enum Jitter {
    Percent(f64),
    Span(Duration),
}

impl<'n> Settings<'n> {
    /// Reads `defaults`, `http`, `ws` and `plugins` of `config`.
    pub(super) fn read(translator: &mut Translator<'_>, config: &Fields<'n>) -> Self {
        let mut settings = Self::default();
        if let Some((span, node)) = config.entry("defaults") {
            settings.read_defaults(translator, node);
            translator.translated(&span, "defaults");
        }
        if let Some((_, node)) = config.entry("http") {
            settings.read_http(translator, node);
        }
        if let Some((_, node)) = config.entry("ws") {
            settings.read_ws(translator, node);
        }
        // One for all engines comes first (`engine_http.ts`, `step`; `engine_ws.ts`, `step`).
        if let Some((span, node)) = config.entry("timeout") {
            let timeout = time::duration(translator, node, "`timeout`");
            settings.timeout = timeout;
            settings.answer_timeout = timeout;
            translator.translated(&span, "timeout");
        }
        if let Some((_, node)) = config.entry("plugins") {
            settings.read_plugins(translator, node);
        }
        settings
    }

    fn read_defaults(&mut self, translator: &mut Translator<'_>, node: &'n YamlNode) {
        let keys = ["headers", "cookie", "think", "strictCapture", "timeout"];
        let Some(fields) = Fields::read(translator, node, "`defaults`", &keys) else { return };
        if let Some(headers) = fields.get("headers")
            && let Some(earlier) = self.headers.replace(headers)
        {
            let remedy = "the headers of `http: {defaults}` stand in their place: join the two";
            translator.not_supported(&earlier.span, "defaults headers", remedy);
        }
        self.cookie = fields.get("cookie");
        if let Some((span, _)) = fields.entry("timeout") {
            let why = "Artillery does not read it; `http: {timeout}` is what it reads";
            translator.suspicious(&span, "defaults timeout", why);
        }
        if let Some((span, _)) = fields.entry("strictCapture") {
            let how = "a value that is not found is always an error in the scenario";
            translator.approximated(&span, "strictCapture", how);
        }
        let Some(node) = fields.get("think") else { return };
        let Some(think) = Fields::read(translator, node, "`think`", &["jitter"]) else { return };
        let Some(node) = think.get("jitter") else { return };
        let text = node.scalar().unwrap_or_default();
        let percent = text.strip_suffix('%').and_then(|text| text.trim().parse::<f64>().ok());
        self.jitter = match (percent, text.parse::<f64>(), time::parse(text)) {
            (Some(percent), ..) if (0.0..=100.0).contains(&percent) => {
                Some(Jitter::Percent(percent))
            }
            // A plain number is of milliseconds here.
            (None, Ok(ms), _) if (0.0..=1e9).contains(&ms) => {
                Some(Jitter::Span(Duration::from_micros((ms * 1e3) as u64)))
            }
            (None, Err(_), Some(span)) => {
                Some(self.jitter_span(translator, &node.span, text, span))
            }
            _ => {
                let label = "expected a share such as `20%`, or a duration such as `500ms`";
                translator.fail(&node.span, "`jitter` cannot be read", label)
            }
        };
    }

    /// Returns a jitter with a unit, which Artillery leaves out (`jitter.ts`): it is of
    /// milliseconds.
    fn jitter_span(
        &self,
        translator: &mut Translator<'_>,
        place: &Span,
        text: &str,
        meant: Duration,
    ) -> Jitter {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        let ms = Duration::from_millis(digits.parse().unwrap_or_default());
        if ms != meant {
            let why = format!("Artillery reads the number alone, as {ms:?}");
            translator.suspicious(place, "jitter", why);
        }
        Jitter::Span(ms)
    }

    fn read_http(&mut self, translator: &mut Translator<'_>, node: &'n YamlNode) {
        let keys = ["timeout", "maxSockets", "pool", "extendedMetrics", "defaults", "cookieJar"];
        let Some(fields) = Fields::read(translator, node, "`http`", &keys) else { return };
        for (key, span, node) in fields.iter() {
            match key {
                "timeout" => {
                    self.timeout = time::duration(translator, node, "`timeout`");
                    translator.translated(&span, "http timeout");
                }
                "defaults" => self.read_defaults(translator, node),
                _ => {
                    translator.has_row(&span, rows::HTTP, &format!("http {key}"));
                }
            }
        }
    }

    fn read_ws(&mut self, translator: &mut Translator<'_>, node: &'n YamlNode) {
        let keys = [WS_KEYS, tls::KEYS].concat();
        let Some(fields) = Fields::read(translator, node, "`ws`", &keys) else { return };
        for (key, span, node) in fields.iter() {
            match key {
                "headers" => self.headers = Some(node),
                "subprotocols" => self.subprotocols = Some(node),
                "timeout" => {
                    self.answer_timeout = time::duration(translator, node, "`timeout`");
                }
                "perMessageDeflate" => self.is_plain = node.scalar() == Some("false"),
                // The target decides what becomes of it: `tls` reads it.
                key if tls::is_key(key) => continue,
                _ => {
                    translator.has_row(&span, rows::WS, &format!("ws {key}"));
                    continue;
                }
            }
            translator.translated(&span, format!("ws {key}"));
        }
    }

    fn read_plugins(&mut self, translator: &mut Translator<'_>, node: &'n YamlNode) {
        let Some(fields) = Fields::read_any(translator, node, "`plugins`") else { return };
        for (key, span, _) in fields.iter() {
            match key {
                "expect" => {
                    self.has_expect = true;
                    translator.translated(&span, "plugin expect");
                }
                "ensure" => translator.translated(&span, "plugin ensure"),
                _ => {
                    let construct = format!("plugin {key}");
                    if !translator.has_row(&span, rows::PLUGINS, &construct) {
                        let why = "throng has no plugins; write what it does as steps, if it \
                                   concerns the traffic";
                        translator.not_needed(&span, construct, why);
                    }
                }
            }
        }
    }
}

impl Jitter {
    /// Returns the think time around `mean`, in the scenario's words.
    pub(super) fn around(self, mean: Duration) -> String {
        match self {
            Self::Percent(percent) => format!("{} ±{percent}%", show_duration(mean)),
            Self::Span(span) => {
                let least = mean.saturating_sub(span).max(Duration::from_micros(1));
                format!("uniform({}, {})", show_duration(least), show_duration(mean + span))
            }
        }
    }
}

/// Reports whether a setting is switched on.
pub(super) fn is_on(node: Option<&YamlNode>) -> bool {
    node.is_some_and(is_true)
}

const WS_KEYS: &[&str] = words![
    "headers" "subprotocols" "timeout" "perMessageDeflate" "proxy" "localAddress" "family"
];
