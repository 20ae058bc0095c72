//! A plan: the JSON that a client sends to Stressgrid's coordinator.

use serde_json::Value;
use throng_load::scenario::Diagnostic;

use super::load::{RampShape, Ramps};
use crate::expected::one_of;
use crate::source::{Source, Span};
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
    let source = translator.source;
    let root: Value = match serde_json::from_str(source.text) {
        Ok(root) => root,
        Err(error) => {
            let span = source.char_at(offset(&source, error.line(), error.column()));
            let what = error.to_string();
            let label = what.split(" at line").next().unwrap_or_default().to_owned();
            let title = "the plan is not JSON";
            translator.mistakes.push(Diagnostic::new(span, title, label));
            return None;
        }
    };
    let messages = match &root {
        Value::Array(messages) => messages.clone(),
        message => vec![message.clone()],
    };
    let mut run = None;
    for message in &messages {
        let names = message.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
        let name = match (names.as_deref(), message.as_str()) {
            (Some([name]), _) => name.clone(),
            (_, Some(name)) => name.to_owned(),
            _ => {
                let label = "expected an object with `start_run`";
                translator.mistake(&(0..1), "this message of the plan cannot be read", label);
                continue;
            }
        };
        let span = find(&source, &name, 0);
        match &*name {
            "start_run" | "run_plan" if run.is_none() => run = Some((name.clone(), span)),
            "start_run" | "run_plan" => {
                let remedy =
                    "a scenario is one run: import each `start_run` from a file of its own";
                translator.not_supported(&span, name, remedy);
            }
            "abort_run" => translator.not_needed(&span, name, "`throng ctl` ends a run"),
            "remove_report" => {
                translator.not_needed(&span, name, "the report of a run is a file");
            }
            _ => unknown(translator, &span, "message", &name, &MESSAGES),
        }
    }
    let Some((name, span)) = run else {
        let label = "expected `[{\"start_run\": {...}}]`";
        translator.mistake(&(0..1), "the plan starts no run", label);
        return None;
    };
    let body = messages.iter().find_map(|message| message.get(&name))?;
    let plan = read_run(translator, body, &span);
    plan.filter(|_| translator.mistakes.is_empty())
}

fn read_run(translator: &mut Translator<'_>, run: &Value, span: &Span) -> Option<RunPlan> {
    let source = translator.source;
    let Some(fields) = run.as_object() else {
        let label = "expected an object with `addresses`, `blocks` and `opts`";
        translator.mistake(span, "`start_run` is not an object", label);
        return None;
    };
    for key in fields.keys().filter(|key| !RUN_KEYS.contains(&&***key)) {
        unknown(translator, &find(&source, key, span.start), "key", key, &RUN_KEYS);
    }
    let addresses = fields.get("addresses").and_then(Value::as_array).cloned().unwrap_or_default();
    let address_span = find(&source, "addresses", span.start);
    let address_span = if address_span.is_empty() { span.clone() } else { address_span };
    if addresses.len() > 1 {
        let remedy = "a scenario has one target: give a name that stands for all addresses";
        translator.not_supported(&address_span, "addresses", remedy);
    }
    let address = addresses.first();
    let text = |key: &str| address.and_then(|it| it.get(key)).and_then(Value::as_str);
    let Some(host) = text("host").map(str::to_owned) else {
        let label = "expected `\"addresses\": [{\"host\": \"...\", \"port\": 80}]`";
        translator.mistake(&address_span, "the run has no address", label);
        return None;
    };
    let protocol = text("protocol").unwrap_or("http").to_owned();
    let port = address.and_then(|it| it.get("port")).map_or(Some(80), Value::as_u64);
    let port = port.filter(|port| (1..65_536).contains(port));
    if port.is_none() {
        let span = find(&source, "port", address_span.start);
        translator.mistake(&span, "this is not a port", "expected a number from 1 to 65535");
    } else if addresses.len() == 1 {
        translator.translated(&address_span, "addresses");
    }
    let blocks = read_blocks(translator, fields, span);
    let ramps = read_opts(translator, fields.get("opts"), span);
    Some(RunPlan { host, port: port?, protocol, address: address_span, blocks, ramps: ramps? })
}

fn read_blocks(
    translator: &mut Translator<'_>,
    fields: &serde_json::Map<String, Value>,
    span: &Span,
) -> Vec<Block> {
    let source = translator.source;
    let list = fields.get("blocks").and_then(Value::as_array).cloned().unwrap_or_default();
    let at = find(&source, "blocks", span.start);
    let at = if at.is_empty() { span.clone() } else { at };
    if list.is_empty() {
        let label = "expected `\"blocks\": [{\"script\": \"...\", \"size\": 1000}]`";
        translator.mistake(&at, "the run has no blocks", label);
    }
    let (mut blocks, mut from) = (Vec::new(), at.start);
    for block in &list {
        let known = ["script", "params", "size"];
        for key in block.as_object().into_iter().flat_map(|block| block.keys()) {
            if !known.contains(&&**key) {
                unknown(translator, &find(&source, key, at.start), "key", key, &known);
            }
        }
        let script = block.get("script").or(fields.get("script")).and_then(Value::as_str);
        let script_at = find(&source, "script", from);
        from = script_at.end;
        let size = block.get("size").and_then(Value::as_u64).filter(|size| *size > 0);
        let Some((script, size)) = script.zip(size) else {
            let key = if script.is_none() { "script" } else { "size" };
            let label = "expected `{\"script\": \"delay(1000)\", \"size\": 1000}`";
            translator.mistake(&at, format!("a block has no `{key}`"), label);
            continue;
        };
        let params = block.get("params").cloned().unwrap_or_default();
        translator.translated(&script_at, "block");
        blocks.push(Block { script: script.to_owned(), params, size, span: script_at });
    }
    blocks
}

fn read_opts(translator: &mut Translator<'_>, opts: Option<&Value>, span: &Span) -> Option<Ramps> {
    let source = translator.source;
    let at = find(&source, "opts", span.start);
    let at = if at.is_empty() { span.clone() } else { at };
    let keys = ["ramp_steps", "rampup_step_ms", "sustain_ms", "rampdown_step_ms"];
    for key in opts.and_then(Value::as_object).into_iter().flat_map(|opts| opts.keys()) {
        if !keys.contains(&&**key) {
            unknown(translator, &find(&source, key, at.start), "option", key, &keys);
        }
    }
    let mut number = |key: &str, default: u64, least: u64| {
        let Some(value) = opts.and_then(|opts| opts.get(key)) else { return Some(default) };
        let number = value.as_u64().filter(|number| (least..=MILLIS_MAX).contains(number));
        if number.is_none() {
            let span = find(&source, key, at.start);
            let label = format!("expected a whole number from {least} to {MILLIS_MAX}");
            translator.mistake(&span, format!("`{key}` cannot be read"), label);
        }
        number
    };
    let steps = number("ramp_steps", 100, 1);
    let up_ms = number("rampup_step_ms", 1000, 1);
    let sustain_ms = number("sustain_ms", 300_000, 0);
    let down_ms = number("rampdown_step_ms", up_ms.unwrap_or(1000), 1);
    let shape = RampShape::Stairs { steps: steps?, up_ms: up_ms?, down_ms: down_ms? };
    if steps?.saturating_mul(up_ms?.max(down_ms?)) > MILLIS_MAX {
        let label = "expected ramps of at most a month";
        translator.mistake(&at, "the ramps are too long", label);
    }
    Some(Ramps { shape, sustain_ms: sustain_ms?, span: at })
}

fn unknown(translator: &mut Translator<'_>, span: &Span, what: &str, name: &str, known: &[&str]) {
    let label = one_of(name, known);
    translator.mistake(span, format!("a plan has no {what} `{name}`"), label);
}

/// Returns where a key or a text stands, at `from` or behind it.
fn find(source: &Source<'_>, name: &str, from: usize) -> Span {
    let quoted = format!("\"{name}\"");
    let found = source.text.get(from..).and_then(|rest| rest.find(&quoted));
    found.map_or(0..0, |at| from + at..from + at + quoted.len())
}

/// Returns the byte at this line and column, both from 1.
fn offset(source: &Source<'_>, line: usize, column: usize) -> usize {
    let before: usize =
        source.text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before + column.saturating_sub(1)
}

/// Messages of a plan.
const MESSAGES: [&str; 3] = ["start_run", "abort_run", "remove_report"];

/// Keys of a run.
const RUN_KEYS: [&str; 5] = ["name", "addresses", "blocks", "opts", "script"];

/// Longest time: a month.
const MILLIS_MAX: u64 = 31 * 86_400_000;
