//! tsung: the XML of its version 1.
//!
//! A session becomes a class of users, its requests and think times become steps, and the phases
//! of arrivals become those of the load. `docs/importing/tsung.md` has a table of all constructs.

mod answer;
mod document;
mod dtd;
mod element;
mod ends;
mod http;
mod load;
mod loops;
mod options;
mod request;
mod sessions;
mod setdynvars;
mod steps;
mod think;
mod tls;
mod uses;
mod variables;

use std::collections::BTreeMap;

use crate::draft::{Draft, DraftClass};
use crate::importer::Importer;
use crate::source::Source;
use crate::translator::Translator;
use element::{Child, Element};
use ends::TsungServer;
use load::Load;
use options::{OptionUse, Options};
use sessions::{Session, Sessions};
use steps::{Plugin, Shared, StepsReader, Wire};
use think::StepsTime;
use uses::Uses;
use variables::{Tables, Variables, plain_name};

pub(crate) const TSUNG: Importer = Importer {
    tool: "tsung",
    reads: "scenarios in XML of tsung 1.x",
    program: None,
    recognises,
    read,
};

/// Constructs that become the same wherever they stand.
#[cfg(test)]
pub(crate) const ROWS: &[&[crate::row::Row]] = &[options::OPTIONS];

fn recognises(source: &Source<'_>) -> bool {
    let mut tags =
        source.text.match_indices("<tsung").map(|(at, tag)| &source.text[at + tag.len()..]);
    let is_tag = tags.any(|behind| behind.starts_with(|c: char| c.is_whitespace() || c == '>'));
    is_tag || source.text.contains("<!DOCTYPE tsung")
}

fn read(translator: &mut Translator<'_>) -> Option<Draft> {
    let text = translator.source.text;
    let document = translator.accept(document::parse(text))?;
    let root = Element::new(document.root_element());
    if root.name() != "tsung" {
        return translator.fail(&root.span(), "this is not a file of tsung", "expected `<tsung>`");
    }
    if !dtd::check(translator, root) {
        return None;
    }
    let mut comments = Vec::new();
    for node in document.root().children().filter(|node| node.is_comment()) {
        comments.extend(node.text().map(str::to_owned));
    }
    comments.extend(ends::read_others(translator, root));
    for part in root.children() {
        collect_comments(part, &mut comments);
    }
    // What follows reports its own mistakes, too, so that all are seen at once.
    ends::read_clients(translator, root);
    let server = TsungServer::read(translator, root);
    let load = Load::read(translator, root);
    let setups = load.as_ref().map(|load| load.setups.clone()).unwrap_or_default();
    let server = server?;
    let sessions = Sessions::read(translator, root, &server, &setups);
    let uses =
        |option: OptionUse<'_>| sessions.as_ref().is_some_and(|sessions| sessions.uses(option));
    let options = Options::read(translator, root, uses);
    let (sessions, load) = sessions.zip(load)?;
    let file = File { root, server: &server, options: &options, load: &load };
    file.draft(translator, &sessions, comments)
}

/// Collects the comments of the parts that become no phases and no steps.
fn collect_comments(part: Child<'_>, comments: &mut Vec<String>) {
    match part {
        Child::Comment(text) => comments.push(text.to_owned()),
        Child::Element(part) if matches!(part.name(), "load" | "sessions") => {}
        Child::Element(part) => part.children().for_each(|child| collect_comments(child, comments)),
    }
}

/// The parts of a file.
struct File<'w, 'd> {
    root: Element<'d>,
    server: &'w TsungServer<'d>,
    options: &'w Options<'d>,
    load: &'w Load<'d>,
}

impl<'d> File<'_, 'd> {
    fn draft(
        &self,
        translator: &mut Translator<'_>,
        sessions: &Sessions<'d>,
        mut comments: Vec<String>,
    ) -> Option<Draft> {
        let ids = self.options.files.keys().map(|id| plain_name(id)).collect();
        let tls = tls::read(translator, self.root, self.server);
        let mut shared = Shared {
            has_client_certificate: tls.client.is_some(),
            tables: Tables::new(ids),
            transactions: Vec::new(),
            path: None,
            reported: BTreeMap::new(),
        };
        let (mut classes, mut time) = (Vec::new(), StepsTime::default());
        let mut above = Vec::new();
        let kept = sessions.kept.iter().map(|session| (session.element.range().start, session));
        let kept: BTreeMap<_, _> = kept.collect();
        let parts = self.root.child("sessions").into_iter().flat_map(Element::children);
        for part in parts {
            let element = match part {
                Child::Comment(text) => {
                    above.push(text.to_owned());
                    continue;
                }
                Child::Element(element) => element,
            };
            let Some(session) = kept.get(&element.range().start) else { continue };
            let own_comments = std::mem::take(&mut above);
            let class = self.class(translator, sessions, session, &mut shared, own_comments);
            let (class, of_class, rest) = class;
            above = rest;
            time = time.max(of_class);
            classes.extend(class);
        }
        comments.extend(above);
        comments.extend(self.load.comments.iter().cloned());
        if classes.is_empty() {
            let span = sessions.kept[0].element.span();
            if translator.mistakes.is_empty() {
                let label = "expected a request or a think time that a scenario can have";
                translator.mistake(&span, "nothing is left of the sessions", label);
            }
            return None;
        }
        sessions.report_errors(translator, self.root, &classes);
        let scheme = match sessions.wire {
            Wire::Tcp => "tcp",
            Wire::WebSocket => "ws",
            Wire::Http => "http",
        };
        let path = shared.path.as_deref().unwrap_or_default();
        let path = if path == "/" { "" } else { path };
        let address = self.server.address(scheme);
        let target = translator.target(&self.server.span, &address, path);
        Some(Draft {
            comments: comments
                .iter()
                .flat_map(|text| text.trim().lines())
                .map(|line| line.trim().to_owned())
                .collect(),
            target,
            tls,
            data: shared.tables.into_files(),
            load: self.load.write(translator, time),
            classes,
            ..Draft::default()
        })
    }

    /// Returns the class of a session, how long its users take, and comments behind its last step.
    fn class(
        &self,
        translator: &mut Translator<'_>,
        sessions: &Sessions<'d>,
        session: &Session<'d>,
        shared: &mut Shared<'d>,
        comments: Vec<String>,
    ) -> (Option<DraftClass>, StepsTime, Vec<String>) {
        let mut reader = StepsReader {
            translator,
            options: self.options,
            server: self.server,
            shared,
            wire: sessions.wire,
            plugin: session.plugin,
            variables: Variables::default(),
            users_min: self.load.users_min() / sessions.weight_total * u64::from(session.weight),
            is_only_session: sessions.kept.len() == 1,
            expects: session.expects(),
            read_files: Vec::new(),
            connected: false,
            connect_timeout: self.options.connect_timeout,
            over: None,
            time: StepsTime::default(),
            comments,
            captured: Vec::new(),
            emptied: Vec::new(),
            uses: Uses::of(session.element),
            counters: Vec::new(),
            sets: Vec::new(),
            on_error: None,
            stops_after_errors: session.stops_after_errors(),
            captures: false,
            loops: 0,
            copies: 1,
            transactions: 0,
            depth: 0,
        };
        let mut steps = Vec::new();
        if session.plugin == Plugin::Http {
            steps.extend(reader.draw_agent(&session.element.span()));
        }
        let of_session = reader.steps(session.element);
        steps.append(&mut reader.counters);
        let begin = steps.len();
        steps.extend(of_session);
        let goes_on = reader.captures || session.plugin == Plugin::Http;
        let default = if goes_on { "continue" } else { "stop" };
        let on_error = reader.on_error.unwrap_or(default);
        let (time, rest) = (reader.time, std::mem::take(&mut reader.comments));
        if steps.len() == begin {
            if sessions.kept.len() > 1 {
                let remedy = "nothing is left of it; write its steps into the scenario";
                translator.not_supported(&session.element.span(), "session", remedy);
            }
            return (None, time, rest);
        }
        let class = DraftClass {
            name: session.name.to_owned(),
            weight: session.weight,
            steps,
            on_error: Some(on_error),
        };
        (Some(class), time, rest)
    }
}
