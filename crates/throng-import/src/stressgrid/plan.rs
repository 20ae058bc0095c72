//! A plan: the JSON that a client sends to Stressgrid's coordinator.

use serde_json::Value;
use throng_load::scenario::{Diagnostic, YamlKind, YamlNode};

use super::load::{RampShape, Ramps};
use crate::expected::one_of;
use crate::fields::{Fields, one_or_more};
use crate::source::Span;
use crate::translator::Translator;

/// A `start_run`.
#[derive(Clone, Debug)]
pub(super) struct RunPlan {
    pub(super) host: String,
    pub(super) port: u64,
    pub(super) protocol: String,
    pub(super) address: Span,
    pub(super) blocks: Vec<Block>,
    pub(super) ramps: Ramps,
}

/// Devices with one script.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) script: String,
    pub(super) params: Value,
    pub(super) size: u64,
    /// Where its script stands.
    pub(super) span: Span,
}

/// Reads a plan. `None` if it has mistakes, which are reported.
pub(super) fn read(translator: &mut Translator<'_>) -> Option<RunPlan> {
    let root = YamlNode::parse(translator.source.text).map_err(|mistake| {
        let title = "the plan is not JSON".to_owned();
        Diagnostic { title, ..mistake }
    });
    let root = translator.accept(root)?;
    let mut run = None;
    for message in one_or_more(&root) {
        let (key, body) = match &message.kind {
            YamlKind::Map(entries) if entries.len() == 1 => (&entries[0].0, &entries[0].1),
            _ => (message, message),
        };
        let Some(name) = key.scalar() else {
            let label = "expected an object with `start_run`";
            translator.mistake(&message.span, "this message of the plan cannot be read", label);
            continue;
        };
        match name {
            "start_run" | "run_plan" if run.is_none() => run = Some((body, &key.span)),
            "start_run" | "run_plan" => {
                let remedy =
                    "a scenario is one run: import each `start_run` from a file of its own";
                translator.not_supported(&key.span, name, remedy);
            }
            "abort_run" => translator.not_needed(&key.span, name, "`throng ctl` ends a run"),
            "remove_report" => {
                translator.not_needed(&key.span, name, "the report of a run is a file");
            }
            _ => {
                let title = format!("a plan has no message `{name}`");
                translator.mistake(&key.span, title, one_of(name, &MESSAGES));
            }
        }
    }
    let Some((body, span)) = run else {
        let label = "expected `[{\"start_run\": {...}}]`";
        return translator.fail(&(0..1), "the plan starts no run", label);
    };
    let plan = read_run(translator, body, span);
    plan.filter(|_| translator.mistakes.is_empty())
}

fn read_run(translator: &mut Translator<'_>, run: &YamlNode, span: &Span) -> Option<RunPlan> {
    let fields = Fields::read(translator, run, "`start_run`", &RUN_KEYS)?;
    let (address_span, addresses) = match fields.entry("addresses") {
        Some((span, addresses)) => (span, one_or_more(addresses)),
        None => (span.clone(), Vec::new()),
    };
    if addresses.len() > 1 {
        let remedy = "a scenario has one target: give a name that stands for all addresses";
        translator.not_supported(&address_span, "addresses", remedy);
    }
    let address = match addresses.first() {
        Some(address) => Fields::read_any(translator, address, "an address")?,
        None => Fields::default(),
    };
    let text = |key: &str| address.get(key).and_then(YamlNode::scalar);
    let Some(host) = text("host") else {
        let label = "expected `\"addresses\": [{\"host\": \"...\", \"port\": 80}]`";
        return translator.fail(&address_span, "the run has no address", label);
    };
    let port = match address.get("port") {
        Some(port) => number(translator, port, "this port", 1..=65_535),
        None => Some(80),
    };
    if port.is_some() && addresses.len() == 1 {
        translator.translated(&address_span, "addresses");
    }
    let (host, protocol) = (host.to_owned(), text("protocol").unwrap_or("http").to_owned());
    let blocks = read_blocks(translator, &fields, span);
    let ramps = read_opts(translator, &fields, span);
    Some(RunPlan { host, port: port?, protocol, address: address_span, blocks, ramps: ramps? })
}

fn read_blocks(translator: &mut Translator<'_>, fields: &Fields<'_>, span: &Span) -> Vec<Block> {
    let (at, list) = match fields.entry("blocks") {
        Some((span, blocks)) => (span, one_or_more(blocks)),
        None => (span.clone(), Vec::new()),
    };
    if list.is_empty() {
        let label = "expected `\"blocks\": [{\"script\": \"...\", \"size\": 1000}]`";
        translator.mistake(&at, "the run has no blocks", label);
    }
    let mut blocks = Vec::new();
    for block in list {
        let keys = ["script", "params", "size"];
        let Some(block) = Fields::read(translator, block, "a block", &keys) else { continue };
        let script = block.entry("script").or(fields.entry("script"));
        let script = script.and_then(|(span, script)| Some((span, script.scalar()?)));
        let size = block.get("size").and_then(YamlNode::scalar);
        let size = size.and_then(|size| size.parse().ok()).filter(|size| *size > 0);
        let Some(((script_at, script), size)) = script.clone().zip(size) else {
            let key = if script.is_none() { "script" } else { "size" };
            let label = "expected `{\"script\": \"delay(1000)\", \"size\": 1000}`";
            translator.mistake(&at, format!("a block has no `{key}`"), label);
            continue;
        };
        let params = block.get("params").and_then(|params| {
            serde_json::from_str(&translator.source.text[params.span.clone()]).ok()
        });
        translator.translated(&script_at, "block");
        let (script, params) = (script.to_owned(), params.unwrap_or_default());
        blocks.push(Block { script, params, size, span: script_at });
    }
    blocks
}

fn read_opts(translator: &mut Translator<'_>, run: &Fields<'_>, span: &Span) -> Option<Ramps> {
    let (at, opts) = match run.entry("opts") {
        Some((at, opts)) => (at, Fields::read(translator, opts, "`opts`", &OPTIONS)?),
        None => (span.clone(), Fields::default()),
    };
    let mut millis = |key: &str, default: u64, least: u64| match opts.get(key) {
        Some(value) => number(translator, value, &format!("`{key}`"), least..=MILLIS_MAX),
        None => Some(default),
    };
    let steps = millis("ramp_steps", 100, 1);
    let up_ms = millis("rampup_step_ms", 1000, 1);
    let sustain_ms = millis("sustain_ms", 300_000, 0);
    let down_ms = millis("rampdown_step_ms", up_ms.unwrap_or(1000), 1);
    let shape = RampShape::Stairs { steps: steps?, up_ms: up_ms?, down_ms: down_ms? };
    if steps?.saturating_mul(up_ms?.max(down_ms?)) > MILLIS_MAX {
        let label = "expected ramps of at most a month";
        translator.mistake(&at, "the ramps are too long", label);
    }
    Some(Ramps { shape, sustain_ms: sustain_ms?, span: at })
}

/// Reads a whole number between these bounds.
fn number(
    translator: &mut Translator<'_>,
    node: &YamlNode,
    what: &str,
    bounds: std::ops::RangeInclusive<u64>,
) -> Option<u64> {
    let number = node.scalar().and_then(|text| text.parse().ok());
    let number = number.filter(|number| bounds.contains(number));
    if number.is_none() {
        let label = format!("expected a whole number from {} to {}", bounds.start(), bounds.end());
        translator.mistake(&node.span, format!("{what} cannot be read"), label);
    }
    number
}

/// Messages of a plan.
const MESSAGES: [&str; 3] = ["start_run", "abort_run", "remove_report"];

/// Keys of a run.
const RUN_KEYS: [&str; 5] = ["name", "addresses", "blocks", "opts", "script"];

/// Keys of `opts`.
const OPTIONS: [&str; 4] = ["ramp_steps", "rampup_step_ms", "sustain_ms", "rampdown_step_ms"];

/// Longest time: a month.
const MILLIS_MAX: u64 = 31 * 86_400_000;
