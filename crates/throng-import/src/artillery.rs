//! Artillery: YAML or JSON with `config` and `scenarios`.
//!
//! `config` becomes the target, the load, the data and the thresholds; each scenario of the
//! engines http and ws becomes a class of users.

mod address;
mod capture;
mod condition;
mod engine;
mod expect;
mod flow;
mod http;
mod json;
mod loops;
mod merge;
mod payload;
mod phases;
mod rows;
mod scalar;
mod settings;
mod template;
mod thresholds;
mod time;
mod tls;
mod variables;
mod ws;

use throng_load::scenario::{YamlKind, YamlNode};

use crate::draft::{Draft, DraftClass};
use crate::fields::{Fields, is_true, list};
use crate::importer::Importer;
use crate::source::{Source, Span};
use crate::step_names::StepNames;
use crate::tls::scheme as over_tls;
use crate::translator::Translator;
use crate::trial::refusal_of_load;
use crate::url::Url;
use crate::yaml::Yaml;
use engine::Engine;
use flow::Flow;
use settings::Settings;
use variables::Variables;

pub(crate) const ARTILLERY: Importer = Importer {
    tool: "artillery",
    reads: "scenarios in YAML or JSON",
    program: None,
    recognises,
    read,
};

/// Constructs that become the same wherever they stand.
#[cfg(test)]
pub(crate) const ROWS: &[&[crate::row::Row]] = &[rows::CONFIG, rows::HTTP, rows::WS, rows::PLUGINS];

/// Reports whether the text has the keys of such a file. A scenario of throng has none of them at
/// its top level.
fn recognises(source: &Source<'_>) -> bool {
    let has_key = |key: &str, is_top: bool| {
        source.text.lines().any(|line| {
            let start =
                line.trim_start_matches([' ', '\t', '-', '{']).trim_start_matches(['"', '\'']);
            let is_json = source.text.trim_start().starts_with('{');
            let is_there = !is_top || is_json || !line.starts_with([' ', '\t', '-']);
            let rest = start.strip_prefix(key).map(|rest| rest.trim_start_matches(['"', '\'']));
            is_there && rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
    };
    // In flow style a key may stand anywhere in a line.
    let is_within = |key: &str| {
        source.text.match_indices(key).any(|(at, _)| {
            let (before, after) = (&source.text[..at], &source.text[at + key.len()..]);
            let after = after.trim_start_matches(['"', '\'']).trim_start();
            before.ends_with([' ', '{', ',', '[', '"', '\'']) && after.starts_with(':')
        })
    };
    let is_one_line = source.text.trim_start().starts_with('{')
        && ["config", "scenarios", "flow"].iter().all(|key| is_within(key));
    is_one_line
        || (has_key("scenarios", true) && (has_key("flow", false) || is_within("flow")))
        || (has_key("config", true) && (has_key("phases", false) || is_within("phases")))
}

fn read(translator: &mut Translator<'_>) -> Option<Draft> {
    let source = translator.source;
    let mut root = translator.accept(YamlNode::parse(source.text))?;
    merge::fill(&mut root);
    let fields = Fields::read_any(translator, &root, "the file")?;
    report_root(translator, &fields);
    let Some(scenarios) = fields.get("scenarios") else {
        let label = "expected `scenarios: [{flow: [...]}]`";
        return translator.fail(&(0..0), "the file has no scenarios", label);
    };
    let config = read_config(translator, &fields)?;
    let of_config = config.get("engine").and_then(YamlNode::scalar).unwrap_or("http");
    let scenarios: Vec<_> = list(translator, scenarios, "`scenarios`")?
        .iter()
        .filter_map(|node| ScenarioFields::read(translator, node, of_config))
        .collect();
    let engine = chosen_engine(translator, &scenarios)?;
    let (target, base) = target(translator, &config, engine)?;
    let tls = tls::read(translator, &config, engine, is_secure(&base));
    let load = phases::read(translator, config.get("phases"));
    check_load(translator, &config, &load, &target);
    let mut variables = read_variables(translator, &config, &base);
    let data = match config.get("payload") {
        Some(node) => payload::read(translator, node, &mut variables),
        None => Vec::new(),
    };
    let settings = Settings::read(translator, &config);
    if engine == Engine::Ws {
        report_connects(translator);
    }
    if engine == Engine::Http {
        report_requests(translator, &settings);
    }
    let mut flow = Flow {
        translator: &mut *translator,
        engine,
        target,
        base,
        settings,
        variables,
        names: StepNames::default(),
        is_once: false,
        is_over: false,
        has_untyped: false,
        has_encoded: false,
        first_step: None,
        has_answers: false,
    };
    let setup = once(&mut flow, &fields, "before");
    flow.variables.end_setup();
    let classes: Vec<_> = scenarios
        .iter()
        .filter(|scenario| scenario.engine == Some(engine))
        .filter_map(|scenario| scenario.class(&mut flow))
        .collect();
    let teardown = once(&mut flow, &fields, "after");
    let Flow { target, has_answers, has_encoded, has_untyped, .. } = flow;
    report_bodies(translator, has_untyped, has_encoded);
    let thresholds = read_thresholds(translator, &config, thresholds::Kind { engine, has_answers });
    if classes.is_empty() && translator.mistakes.is_empty() {
        let label = "expected a scenario of the engine http or ws with steps";
        translator.mistake(&(0..0), "the file has no scenario that can be imported", label);
    }
    let comments = source.comments_at_top("#");
    let draft = Draft { comments, target, data, load, classes, thresholds, ..Draft::default() };
    Some(Draft { tls, setup, teardown, ..draft })
}

fn read_config<'n>(translator: &mut Translator<'_>, fields: &Fields<'n>) -> Option<Fields<'n>> {
    let config = match fields.get("config") {
        Some(node) => {
            let plugins = names_of_plugins(node);
            let keys: Vec<_> = CONFIG_KEYS.iter().copied().chain(plugins).collect();
            Fields::read(translator, node, "`config`", &keys)?
        }
        None => Fields::default(),
    };
    report_others(translator, &config);
    Some(config)
}

fn report_bodies(translator: &mut Translator<'_>, has_untyped: bool, has_encoded: bool) {
    if has_untyped {
        let how = "Artillery names no type of a body without `content-type`, and the scenario \
                   `text/plain; charset=utf-8`";
        translator.approximated(&(0..0), "content-type", how);
    }
    if has_encoded {
        let how = "a blank in the value of a variable is `+` in the forms and the queries of \
                   Artillery, and `%20` in those of the scenario";
        translator.approximated(&(0..0), "variables in forms and queries", how);
    }
}

/// An entry of `scenarios`.
struct ScenarioFields<'n> {
    fields: Fields<'n>,
    span: Span,
    name: String,
    engine: Option<Engine>,
    /// Where its engine stands.
    engine_span: Span,
    weight: u32,
}

impl<'n> ScenarioFields<'n> {
    /// Reads a scenario. `of_config` is the engine of one that names none.
    fn read(translator: &mut Translator<'_>, node: &'n YamlNode, of_config: &str) -> Option<Self> {
        let fields = Fields::read(translator, node, "a scenario", SCENARIO_KEYS)?;
        let name = fields.get("name").and_then(YamlNode::scalar).unwrap_or("scenario").to_owned();
        let span = translator.source.char_at(node.span.start);
        let engine_name = fields.get("engine").and_then(YamlNode::scalar).unwrap_or(of_config);
        let engine = Engine::named(engine_name);
        let engine_span = fields.get("engine").map_or(span.clone(), |node| node.span.clone());
        if engine.is_none() {
            let remedy = match engine_name {
                "socketio" | "socketio-v3" => {
                    "Socket.IO is not in this version; write its frames as WebSocket messages"
                }
                _ => "only the engines http and ws are imported; the scenario is left out",
            };
            translator.not_supported(&engine_span, format!("engine {engine_name}"), remedy);
        }
        let weight = match fields.get("weight") {
            None => 1,
            Some(node) => {
                let weight = node.scalar().and_then(|text| text.parse::<u32>().ok());
                let Some(weight) = weight.filter(|weight| *weight <= WEIGHT_MAX) else {
                    let label = "expected a whole number from 0 to a million";
                    return translator.fail(&node.span, "`weight` cannot be read", label);
                };
                weight
            }
        };
        if weight == 0 {
            return translator.skip(&span, format!("scenario {name}"), "its weight is 0");
        }
        for key in ["beforeScenario", "afterScenario", "beforeRequest", "afterResponse"] {
            if let Some((span, _)) = fields.entry(key) {
                let remedy = "JavaScript is not run; write what the function does as steps";
                translator.not_supported(&span, key, remedy);
            }
        }
        Some(Self { fields, span, name, engine, engine_span, weight })
    }

    /// Returns the steps of one user. `None` after a mistake.
    fn steps(&self, flow: &mut Flow<'_, '_, '_>) -> Option<Vec<Yaml>> {
        flow.variables.begin_user();
        flow.is_over = false;
        let Some(node) = self.fields.get("flow") else {
            let label = "expected `flow: [...]`";
            return flow.translator.fail(&self.span, "this scenario has no steps", label);
        };
        flow.first_step = first_value(node);
        let mut steps = flow.steps(node);
        let is_connected = steps.iter().any(Yaml::is_connect);
        if flow.engine == Engine::Ws && !is_connected {
            steps.insert(0, flow.first_connect(&self.span));
        }
        if !flow.translator.expansion.charge(&self.span, flow.variables.drawn_bytes()) {
            return None;
        }
        if let Some(draw) = flow.variables.draw() {
            steps.insert(0, draw);
        }
        Some(steps)
    }

    fn class(&self, flow: &mut Flow<'_, '_, '_>) -> Option<DraftClass> {
        let mut steps = self.steps(flow)?;
        if steps.is_empty() {
            let why = "none of its steps can be imported";
            return flow.translator.skip(&self.span, format!("scenario {}", self.name), why);
        }
        flow.translator.translated(&self.span, format!("scenario {}", self.name));
        let comments = flow.translator.source.comments_above(self.span.start, "#");
        Yaml::comment_first(&mut steps, comments);
        let name = self.name.clone();
        Some(DraftClass { name, weight: self.weight, steps, on_error: Some("stop") })
    }
}

fn read_variables(translator: &mut Translator<'_>, config: &Fields<'_>, target: &str) -> Variables {
    let mut variables = Variables::default();
    variables.has_functions = config.get("processor").is_some();
    variables.set_target(target);
    if let Some(node) = config.get("variables") {
        variables.read(translator, node);
    }
    variables
}

/// Returns where the value of the first step of a flow stands.
fn first_value(flow: &YamlNode) -> Option<usize> {
    match &flow.kind {
        YamlKind::List(items) => first_value(items.first()?),
        YamlKind::Map(entries) => Some(entries.first()?.1.span.start),
        _ => None,
    }
}

/// Returns the steps of `before` or `after`, which one user takes.
fn once(flow: &mut Flow<'_, '_, '_>, root: &Fields<'_>, key: &str) -> Vec<Yaml> {
    let Some((span, node)) = root.entry(key) else { return Vec::new() };
    let Some(scenario) = ScenarioFields::read(flow.translator, node, "http") else {
        return Vec::new();
    };
    let Some(engine) = scenario.engine else { return Vec::new() };
    if engine == Engine::Ws && flow.engine == Engine::Http {
        let remedy = "a scenario of requests opens no WebSocket; write its steps as requests";
        return flow.translator.omit(&span, key, remedy);
    }
    let users = std::mem::replace(&mut flow.engine, engine);
    flow.is_once = true;
    let steps = scenario.steps(flow);
    flow.is_once = false;
    flow.engine = users;
    flow.translator.translated(&span, key);
    steps.unwrap_or_default()
}

/// Returns the engine of the scenarios. A scenario of another one is left out.
fn chosen_engine(
    translator: &mut Translator<'_>,
    scenarios: &[ScenarioFields<'_>],
) -> Option<Engine> {
    let Some(first) = scenarios.iter().find_map(|scenario| scenario.engine) else {
        if translator.mistakes.is_empty() {
            let label = "expected a scenario of the engine http or ws";
            let place = scenarios.first().map_or(0..0, |scenario| scenario.engine_span.clone());
            translator.mistake(&place, "the file has no scenario that can be imported", label);
        }
        return None;
    };
    for scenario in scenarios.iter().filter(|scenario| scenario.engine.is_some()) {
        if scenario.engine != Some(first) {
            let remedy = format!(
                "a scenario of throng speaks one protocol; import the scenarios of the engine {} \
                 alone",
                scenario.engine.map_or("", Engine::name)
            );
            translator.not_supported(&scenario.span, format!("scenario {}", scenario.name), remedy);
        }
    }
    Some(first)
}

/// Returns the target of the scenario, and the one of the file, with its path.
fn target(
    translator: &mut Translator<'_>,
    config: &Fields<'_>,
    engine: Engine,
) -> Option<(String, String)> {
    let scheme = engine.name();
    let Some((span, node)) = config.entry("target") else {
        if translator.options.target.is_none() {
            let label = match target_of_environment(config) {
                Some((name, target)) => {
                    format!("the environment `{name}` has one: pass `--target {target}`")
                }
                None => "expected `target` in `config`, or `--target`".to_owned(),
            };
            return translator.fail(&(0..0), "the file has no target", label);
        }
        let target = translator.target(&(0..0), scheme, "");
        return Some((target.clone(), target));
    };
    let base = crate::fields::text(translator, node, "`target`")?;
    let Some(url) = Url::split(base) else {
        if translator.options.target.is_some() {
            let target = translator.target(&span, scheme, "");
            return Some((target.clone(), target));
        }
        let label = match target_of_environment(config) {
            Some((name, target)) => {
                format!("the environment `{name}` has a target: pass `--target {target}`")
            }
            None if base.contains("{{") => {
                "a target is known before the run: write it, or pass `--target`".to_owned()
            }
            None => "expected a URL such as `http://127.0.0.1:8080`, or `--target`".to_owned(),
        };
        return translator.fail(&node.span, format!("`{base}` is not a target"), label);
    };
    translator.translated(&span, "target");
    let path = if engine == Engine::Ws && url.path != "/" { url.path } else { "" };
    let mistakes = translator.mistakes.len();
    let address = format!("{}://{}", over_tls(scheme, url.is_secure()), url.authority);
    let target = translator.target(&node.span, &address, path);
    if translator.mistakes.len() > mistakes {
        return None;
    }
    if !target.starts_with(scheme) {
        let label = format!("the scenarios of this file need a target `{scheme}://`");
        return translator.fail(&node.span, format!("`{target}` is of another scheme"), label);
    }
    Some((target, base.to_owned()))
}

/// Reports whether a URL is over TLS.
fn is_secure(url: &str) -> bool {
    Url::split(url).is_some_and(|url| url.is_secure())
}

fn check_load(translator: &mut Translator<'_>, config: &Fields<'_>, load: &[Yaml], target: &str) {
    if !translator.mistakes.is_empty() {
        return;
    }
    if let Some(refusal) = refusal_of_load(target, load) {
        let span = config.entry("phases").map_or(0..0, |(span, _)| span);
        translator.mistake(&span, refusal.title, refusal.label);
    }
}

/// Reads `ensure`, which may stand among the plugins.
fn read_thresholds(
    translator: &mut Translator<'_>,
    config: &Fields<'_>,
    kind: thresholds::Kind,
) -> Vec<String> {
    let of_plugins = config.get("plugins").and_then(|node| match &node.kind {
        YamlKind::Map(entries) => {
            entries.iter().find(|(key, _)| key.scalar() == Some("ensure")).map(|(_, node)| node)
        }
        _ => None,
    });
    let is_map = |node: &&YamlNode| matches!(node.kind, YamlKind::Map(_));
    let nodes = [config.get("ensure"), of_plugins.filter(is_map)];
    let read = |node| thresholds::read(translator, node, kind);
    nodes.into_iter().flatten().flat_map(read).collect()
}

/// Reports the keys at the top that Artillery does not read. They often hold what aliases repeat.
fn report_root(translator: &mut Translator<'_>, root: &Fields<'_>) {
    for (key, span, _) in root.iter().filter(|(key, ..)| !ROOT_KEYS.contains(key)) {
        translator.not_needed(&span, key, "Artillery does not read it");
    }
}

/// Reports what holds for all connects.
fn report_connects(translator: &mut Translator<'_>) {
    let how = "a connect may take as long as it needs in Artillery, and 5s in the scenario";
    translator.approximated(&(0..0), "connect timeout", how);
}

/// Reports what holds for all requests.
fn report_requests(translator: &mut Translator<'_>, settings: &Settings<'_>) {
    let how = "Artillery goes on after any status and follows redirects; in the scenario a status \
               other than 2xx is an error and ends the user, unless `expect` names it; Artillery \
               asks for compressed answers, and the scenario does not";
    translator.approximated(&(0..0), "requests", how);
    if settings.timeout.is_none() {
        let how = "a request may take 10s in Artillery, and 5s in the scenario";
        translator.approximated(&(0..0), "http timeout", how);
    }
}

/// Returns the keys of `plugins`: each may have its settings beside `plugins`, too.
fn names_of_plugins(config: &YamlNode) -> Vec<&str> {
    let member = |key: &str| match &config.kind {
        YamlKind::Map(entries) => {
            entries.iter().find(|(name, _)| name.scalar() == Some(key)).map(|(_, node)| node)
        }
        _ => None,
    };
    match member("plugins").map(|plugins| &plugins.kind) {
        Some(YamlKind::Map(plugins)) => {
            plugins.iter().filter_map(|(name, _)| name.scalar()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the name and the target of the first of `environments` that has one.
fn target_of_environment<'n>(config: &Fields<'n>) -> Option<(&'n str, &'n str)> {
    let YamlKind::Map(environments) = &config.get("environments")?.kind else { return None };
    environments.iter().find_map(|(name, environment)| {
        let YamlKind::Map(entries) = &environment.kind else { return None };
        let target = entries.iter().find(|(key, _)| key.scalar() == Some("target"))?;
        name.scalar().zip(target.1.scalar())
    })
}

/// Reports the keys that no class of users needs.
fn report_others(translator: &mut Translator<'_>, config: &Fields<'_>) {
    for (key, span, node) in config.iter() {
        match key {
            key if translator.has_row(&span, rows::CONFIG, key) => {}
            key if !CONFIG_KEYS.contains(&key) => {
                translator.not_needed(&span, key, "the settings of a plugin");
            }
            "http2" if is_true(node) => {
                let remedy = "requests are of HTTP/1.1";
                translator.not_supported(&span, key, remedy);
            }
            _ => {}
        }
    }
}

const ROOT_KEYS: [&str; 5] = ["config", "scenarios", "before", "after", "version"];

const CONFIG_KEYS: &[&str] = words![
    "target" "phases" "variables" "payload" "defaults" "http" "ws" "socketio" "plugins" "ensure"
    "processor" "environments" "tls" "bundling" "includeFiles" "statsInterval" "engine" "engines"
    "http2" "timeout"
];

const SCENARIO_KEYS: &[&str] = words![
    "name" "engine" "weight" "flow" "beforeScenario" "afterScenario" "beforeRequest" "afterResponse"
];

/// The largest weight of a class.
const WEIGHT_MAX: u32 = 1_000_000;
