//! `sgcli run`: its options, in a command or in a comment of a script.

use super::load::{RampShape, Ramps};
use crate::command_line::Word;
use crate::expected::near_or;
use crate::source::Span;
use crate::translator::Translator;

/// What `sgcli run` is asked for; without options, its defaults.
#[derive(Clone, Debug)]
pub(super) struct RunCommand {
    /// The file of the script.
    pub(super) script: Option<Word>,
    pub(super) host: String,
    pub(super) port: u64,
    pub(super) protocol: String,
    /// Where the hosts or the protocol stand.
    pub(super) address: Span,
    pub(super) size: u64,
    pub(super) params: serde_json::Value,
    rampup_s: u64,
    sustain_s: u64,
    rampdown_s: u64,
    span: Span,
}

impl Default for RunCommand {
    fn default() -> Self {
        Self {
            script: None,
            host: "localhost".to_owned(),
            port: 5000,
            protocol: "http".to_owned(),
            address: 0..0,
            size: 10_000,
            params: serde_json::Value::Object(serde_json::Map::new()),
            rampup_s: 900,
            sustain_s: 900,
            rampdown_s: 900,
            span: 0..0,
        }
    }
}

impl RunCommand {
    /// Reads the words of a command, the first of which is `sgcli`.
    pub(super) fn read(translator: &mut Translator<'_>, words: &[Word]) -> Self {
        let mut command = Self::default();
        let (mut words, mut plain) = (words.iter().skip(1).peekable(), Vec::new());
        while let Some(word) = words.next() {
            if !word.text.starts_with('-') || word.text == "-" {
                plain.push(word);
                continue;
            }
            let (name, inline) = match word.text.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (&*word.text, None),
            };
            let Some(option) = OPTIONS.iter().find(|names| names.contains(&name)) else {
                let known = OPTIONS.iter().flat_map(|names| names.iter().copied());
                let label = near_or(name, known, "expected an option of `sgcli run`");
                translator.mistake(&word.span, format!("sgcli has no option `{name}`"), label);
                words.next_if(|value| inline.is_none() && !value.text.starts_with('-'));
                continue;
            };
            let value = match inline {
                Some(text) => Some(Word { span: word.span.clone(), text }),
                None => words.next().cloned(),
            };
            match value {
                Some(value) => command.option(translator, option[0], &value),
                None => {
                    let label = "expected its value after it";
                    translator.mistake(&word.span, format!("`{name}` has no value"), label);
                }
            }
        }
        match &plain[..] {
            [run, _, script] if run.text == "run" => {
                command.span = run.span.clone();
                command.script = Some((*script).clone());
            }
            plain => {
                let span = plain.last().map_or(0..0, |word| word.span.clone());
                let title = "this command of sgcli cannot be read";
                translator.mistake(&span, title, "expected `sgcli run NAME SCRIPT`");
            }
        }
        command
    }

    fn option(&mut self, translator: &mut Translator<'_>, name: &str, value: &Word) {
        let span = &value.span;
        let mut number = |most: u64| match value.text.parse::<u64>() {
            Ok(number) if number <= most => Some(number),
            _ => {
                let title = format!("`{name} {}` cannot be read", value.text);
                let label = format!("expected a whole number of at most {most}");
                translator.fail(span, title, label)
            }
        };
        match name {
            "--coordinator-host" => {
                let why = "throng needs no coordinator; start it on each machine";
                return translator.not_needed(span, name, why);
            }
            "--size" => self.size = number(u64::from(u32::MAX)).unwrap_or(self.size),
            "--target-port" => self.port = number(65_535).unwrap_or(self.port),
            "--rampup" => self.rampup_s = number(SECONDS_MAX).unwrap_or(self.rampup_s),
            "--sustain" => self.sustain_s = number(SECONDS_MAX).unwrap_or(self.sustain_s),
            "--rampdown" => self.rampdown_s = number(SECONDS_MAX).unwrap_or(self.rampdown_s),
            "--target-hosts" => {
                self.address = span.clone();
                let mut hosts = value.text.split(',').map(str::trim);
                self.host = hosts.next().unwrap_or_default().to_owned();
                if hosts.next().is_some() {
                    let remedy = "a scenario has one target: give a name that stands for all \
                                  addresses; users take them in turn";
                    return translator.not_supported(span, name, remedy);
                }
            }
            "--target-protocol" => {
                self.protocol = value.text.clone();
                self.address = span.clone();
            }
            _ => match serde_json::from_str(&value.text) {
                Ok(params @ serde_json::Value::Object(_)) => self.params = params,
                _ => {
                    let label = "expected an object of JSON: '{\"key\": 1}'";
                    return translator.mistake(span, "the parameters cannot be read", label);
                }
            },
        }
        translator.translated(span, name);
    }

    /// Returns its ramps.
    pub(super) fn ramps(&self) -> Ramps {
        let shape =
            RampShape::Ramp { up_ms: self.rampup_s * 1000, down_ms: self.rampdown_s * 1000 };
        Ramps { shape, sustain_ms: self.sustain_s * 1000, span: self.span.clone() }
    }
}

/// Options of `sgcli run`; the first name of each is the long one.
const OPTIONS: [&[&str]; 9] = [
    &["--coordinator-host", "-c"],
    &["--target-hosts", "-t"],
    &["--size", "-s"],
    &["--target-port"],
    &["--target-protocol"],
    &["--script-params"],
    &["--rampup"],
    &["--sustain"],
    &["--rampdown"],
];

/// Longest ramp: a month.
const SECONDS_MAX: u64 = 31 * 86_400;
