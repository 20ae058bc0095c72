//! Stressgrid: scripts in Elixir, plans in JSON, and `sgcli run`.
//!
//! A script is the life of a device: it becomes the steps of a user, who begins again at its end.
//! How many devices there are stands in a plan or in a command. A script alone has the defaults of
//! `sgcli`, or the options of a comment `# sgcli run ...`.

mod answer_pattern;
mod command;
mod control;
mod device;
mod elixir;
mod http;
mod json;
mod load;
mod pattern;
mod plan;
mod rows;
mod socket;
mod value;

use throng_load::scenario::{Diagnostic, Scheme};

use crate::call::calls;
use crate::command_line::first_command;
use crate::comments::Comment;
use crate::draft::{Draft, DraftClass};
use crate::importer::{Importer, Program};
use crate::source::{LineEnds, Source, Span};
use crate::step;
use crate::tls::{self, TlsDraft};
use crate::translator::Translator;
use crate::url::server_name;
use crate::weights::Weights;
use crate::yaml::Yaml;
use command::RunCommand;
use device::{Device, FUNCTIONS, Wire};
use elixir::Script;
use plan::Block;
use rows::PROTOCOLS;

pub(crate) const STRESSGRID: Importer = Importer {
    tool: "Stressgrid",
    reads: "scripts, plans, and a file with the command `sgcli run`",
    program: Some(Program {
        name: PROGRAM,
        advice: "write this command into its script as a comment of one line, `# sgcli run ...`, \
                 with its variables filled in, and import the script",
    }),
    recognises,
    read,
};

/// Constructs that become the same wherever they stand.
#[cfg(test)]
pub(crate) const ROWS: &[&[crate::row::Row]] = &[rows::CALLS, rows::PROTOCOLS];

fn recognises(source: &Source<'_>) -> bool {
    is_plan(source)
        || calls(source.text, PROGRAM)
        || ["ex", "exs"].contains(&source.extension())
        || source.text.lines().any(begins_like_a_script)
}

fn is_plan(source: &Source<'_>) -> bool {
    let text = source.text.trim_start();
    text.starts_with(['[', '{'])
        && ["\"start_run\"", "\"run_plan\""].iter().any(|it| text.contains(it))
}

/// Reports whether a line calls a function that only scripts of Stressgrid have.
fn begins_like_a_script(line: &str) -> bool {
    let line = line.rsplit_once(" = ").map_or(line, |(_, call)| call).trim();
    let name = line.split(['(', ' ']).next().unwrap_or_default();
    let has_arguments = line.len() > name.len();
    has_arguments
        && ["delay", "ws_upgrade", "ws_send_text", "ws_send_json", "start_timing", "inc_counter"]
            .contains(&name)
}

fn read(translator: &mut Translator<'_>) -> Option<Draft> {
    let source = translator.source;
    if is_plan(&source) {
        return read_plan(translator);
    }
    if calls(source.text, PROGRAM) {
        return read_command(translator);
    }
    let script = translator.accept(elixir::parse(source.text))?;
    let command = command_of(translator, &script);
    let wire = wire(translator, &[&script], &command.protocol, &command.address)?;
    let server = (&*command.protocol, &*command.host, command.port);
    let (target, tls) = target(translator, wire, server, &command.address);
    let params = command.params.clone();
    let load = load(translator, &command);
    let steps = Device::new(translator, wire, params, script.comments.clone()).script(&script);
    Some(Draft {
        target,
        tls,
        load: load?,
        classes: vec![DraftClass { name: "device".to_owned(), weight: 1, steps, on_error: None }],
        ..Draft::default()
    })
}

/// Returns the phases of a command.
fn load(translator: &mut Translator<'_>, command: &RunCommand) -> Option<Vec<Yaml>> {
    let ramps = command.ramps();
    let devices = ramps.effective(command.size);
    report_loss(translator, &ramps.span, command.size, devices);
    ramps.phases(translator, devices)
}

fn report_loss(translator: &mut Translator<'_>, span: &Span, size: u64, devices: u64) {
    if devices > 0 && devices < size {
        let how = format!(
            "Stressgrid starts the same number of devices in each step: {devices} of {size}; so \
             does the scenario"
        );
        translator.approximated(span, "size", how);
    }
}

/// Returns the options in the comment `# sgcli run ...` of a script.
fn command_of(translator: &mut Translator<'_>, script: &Script) -> RunCommand {
    let found = script.comments.iter().find(|comment| comment.text.starts_with("sgcli run"));
    let Some(Comment { offset: at, text }) = found else {
        let how = "the script has no comment `# sgcli run ...`: the load is that of sgcli without \
                   options, 10k devices for 45 minutes at localhost:5000";
        translator.approximated(&(0..0), "sgcli run", how);
        return RunCommand::default();
    };
    let begin = at + translator.source.text[*at..].find("sgcli").unwrap_or(0);
    match first_command(text) {
        Ok(mut command) => {
            for word in &mut command.words {
                word.span = begin + word.span.start..begin + word.span.end;
            }
            RunCommand::read(translator, &command.words)
        }
        Err(mistake) => {
            let span = begin + mistake.span.start..begin + mistake.span.end;
            translator.mistakes.push(Diagnostic { span, ..mistake });
            RunCommand::default()
        }
    }
}

/// Reads a file with the command `sgcli run`. Its script is in another file.
fn read_command(translator: &mut Translator<'_>) -> Option<Draft> {
    let command = translator.accept(first_command(translator.source.text))?;
    let run = RunCommand::read(translator, &command.words);
    let wire = wire(translator, &[], &run.protocol, &run.address)?;
    let server = (&*run.protocol, &*run.host, run.port);
    let (target, tls) = target(translator, wire, server, &run.address);
    let load = load(translator, &run);
    if let Some(script) = &run.script {
        let remedy = format!(
            "the steps are in {0}: put this command into it as a comment, `# sgcli run ...`, and \
             import {0}",
            script.text
        );
        translator.not_supported(&script.span, "script", remedy);
    }
    let nothing = step::wait("1s").comment("The steps of the script.");
    let class =
        DraftClass { name: "device".to_owned(), weight: 1, steps: vec![nothing], on_error: None };
    Some(Draft {
        comments: command.comments,
        target,
        tls,
        load: load?,
        classes: vec![class],
        ..Draft::default()
    })
}

fn read_plan(translator: &mut Translator<'_>) -> Option<Draft> {
    let plan = plan::read(translator)?;
    let mut scripts = Vec::new();
    for block in &plan.blocks {
        match elixir::parse(&block.script) {
            Ok(script) => scripts.push(script),
            Err(mistake) => {
                translator.mistakes.extend(in_plan(block, vec![mistake]));
            }
        }
    }
    if scripts.len() < plan.blocks.len() {
        return None;
    }
    let all: Vec<&Script> = scripts.iter().collect();
    let wire = wire(translator, &all, &plan.protocol, &plan.address)?;
    let server = (&*plan.protocol, &*plan.host, plan.port);
    let (target, tls) = target(translator, wire, server, &plan.address);
    let sizes: Vec<u64> =
        plan.blocks.iter().map(|block| plan.ramps.effective(block.size)).collect();
    let size = plan.blocks.iter().map(|block| block.size).fold(0, u64::saturating_add);
    let devices = sizes.iter().copied().fold(0, u64::saturating_add);
    report_loss(translator, &plan.ramps.span, size, devices);
    let load = plan.ramps.phases(translator, devices)?;
    let weights = Weights::of_sizes(&sizes).each;
    let mut classes = Vec::new();
    let blocks = plan.blocks.iter().zip(&scripts).zip(sizes.iter().zip(weights));
    for ((block, script), (size, weight)) in blocks {
        let steps = block_steps(translator, block, script, wire);
        if *size > 0 {
            let name = format!("block{}", classes.len() + 1);
            classes.push(DraftClass { name, weight, steps, on_error: None });
        }
    }
    Some(Draft { target, tls, load, classes, ..Draft::default() })
}

/// Returns the steps of a block. What its script has to report is in the line of the block.
fn block_steps(
    translator: &mut Translator<'_>,
    block: &Block,
    script: &Script,
    wire: Wire,
) -> Vec<Yaml> {
    let source = Source { name: translator.source.name, text: &block.script };
    let was_over = translator.expansion.is_over();
    let mut inner = translator.within(source);
    let params = block.params.clone();
    let steps = Device::new(&mut inner, wire, params, script.comments.clone()).script(script);
    let Translator { mistakes, mut entries, .. } = inner;
    let line = translator.line_of(block.span.start);
    entries.iter_mut().for_each(|entry| entry.line = line);
    translator.entries.extend(entries);
    translator.mistakes.extend(in_plan(block, mistakes));
    if !was_over {
        translator.expansion.move_to(&block.span);
    }
    steps
}

/// Returns mistakes in a block's script as those of the plan.
fn in_plan(block: &Block, mistakes: Vec<Diagnostic>) -> impl Iterator<Item = Diagnostic> {
    let lines = LineEnds::of(&block.script);
    mistakes.into_iter().map(move |mistake| {
        let line = lines.line_of(mistake.span.start);
        let title = format!("line {line} of the script: {}", mistake.title);
        Diagnostic { span: block.span.clone(), title, ..mistake }
    })
}

/// Returns what the scripts speak.
fn wire(
    translator: &mut Translator<'_>,
    scripts: &[&Script],
    protocol: &str,
    span: &Span,
) -> Option<Wire> {
    let of_target = translator.options.target.as_ref().map(|target| target.scheme);
    let uses = |names: &[&str]| scripts.iter().any(|script| script.calls(names));
    let of_ws = |name: &&str| name.starts_with("ws_");
    let is_ws = uses(&FUNCTIONS.iter().copied().filter(of_ws).collect::<Vec<_>>());
    let is_http = uses(&["get", "post", "put", "delete", "head", "options", "patch"]);
    match protocol {
        "http" | "https" | "tcp" => {}
        _ if translator.has_row(span, PROTOCOLS, &format!("protocol {protocol}")) => {}
        "udp" => {
            let label = "expected `http` or `tcp`: throng has no UDP";
            return translator.fail(span, "devices of UDP cannot be imported", label);
        }
        other => {
            let label = "expected `http`, `tcp`, `http10`, `https`, `http2` or `udp`";
            return translator.fail(span, format!("Stressgrid has no protocol `{other}`"), label);
        }
    }
    let wire = match (of_target, protocol) {
        (Some(Scheme::Tcp), _) | (None, "tcp") => Wire::Tcp,
        (None | Some(Scheme::Ws), _) if is_ws => Wire::Ws,
        (Some(Scheme::Ws), _) => Wire::Ws,
        (Some(_), _) if is_ws => {
            let label = "expected a target ws://: the script opens a WebSocket";
            return translator.fail(span, "the target is not one of WebSockets", label);
        }
        (Some(_), _) => {
            if !is_http && !scripts.is_empty() {
                let why = "the script sends no request, and an HTTP device connects with its \
                           first: it opens no connection; for plain TCP, take a target tcp://";
                translator.suspicious(span, "protocol http", why);
            }
            Wire::Http
        }
        (None, _) if is_http || scripts.is_empty() => Wire::Http,
        (None, _) => {
            let why = "the script sends no request, and an HTTP device connects with its first: it \
                       would open no connection; the scenario opens plain TCP connections, as \
                       `--target-protocol tcp` does";
            translator.suspicious(span, "protocol http", why);
            Wire::Tcp
        }
    };
    Some(wire)
}

/// Returns the target, and how its connections are secured. Erlang verifies nothing unless it is
/// asked to, and gun is not (`gun_device.ex`, `connect`).
fn target(
    translator: &mut Translator<'_>,
    wire: Wire,
    (protocol, host, port): (&str, &str, u64),
    span: &Span,
) -> (String, TlsDraft) {
    let scheme = match wire {
        Wire::Tcp => "tcp",
        Wire::Ws => "ws",
        Wire::Http => "http",
    };
    let of_source = ["https", "http10s", "http2s"].contains(&protocol);
    let address = format!("{}://{}", tls::scheme(scheme, of_source), server_name(host, port));
    let target = translator.target(span, &address, "");
    let construct = "protocol https";
    let is_unverified = of_source && translator.is_secure(of_source);
    if is_unverified && protocol == "https" {
        let how = "Erlang resumes sessions of TLS 1.2, and the scenario those of TLS 1.3, too; \
                   `resume: 0%` makes each handshake a full one";
        translator.approximated(span, construct, how);
    } else if protocol == "https" {
        translator.not_needed(span, construct, tls::PLAIN);
    }
    (target, TlsDraft { is_unverified, ..TlsDraft::default() })
}

const PROGRAM: &str = "sgcli";
