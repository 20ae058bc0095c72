//! k6: scripts in JavaScript, as far as they are lists of steps.
//!
//! A script is a program, and only a program can say what another one does. [`parser`] reads the
//! part of the language that lists steps; all else is a mistake at its place.

mod checked;
mod effects;
mod handlers;
mod iterations;
mod keys;
mod lexer;
mod load;
mod once;
mod parser;
mod request;
mod script;
mod session;
mod syntax;
mod think;
mod thresholds;
mod tls;
mod urls;
mod values;

use throng_base::units::{show_duration, show_rate};

use crate::draft::Draft;
use crate::importer::Importer;
use crate::source::{Source, Span};
use crate::step;
use crate::step_names::StepNames;
use crate::tls::scheme;
use crate::translator::Translator;
use crate::trial::StepTrial;
use crate::yaml::Yaml;
use iterations::classes;
use keys::{OPTIONS, SCENARIO, TRAFFIC};
use load::{Load, Members};
use script::{Item, Script};
use syntax::{Expression, Statement, StatementKind};
use thresholds::Kinds;
use values::Values;

pub(crate) const K6: Importer = Importer {
    tool: "k6",
    reads: "scripts of requests and WebSocket sessions with literals",
    program: None,
    recognises,
    read,
};

/// Constructs that become the same wherever they stand.
#[cfg(test)]
pub(crate) const ROWS: &[&[crate::row::Row]] = &[OPTIONS];

/// Reports whether the text imports a module of k6.
fn recognises(source: &Source<'_>) -> bool {
    source.text.lines().map(str::trim_start).any(|line| {
        let module = line.split_once("from").map(|(_, module)| module.trim_start());
        let module = module.map(|module| module.trim_start_matches(['\'', '"']));
        let is_k6 = |module: &str| module.starts_with("k6'") || module.starts_with("k6\"");
        line.starts_with(['i', '}'])
            && module.is_some_and(|module| module.starts_with("k6/") || is_k6(module))
    })
}

fn read(translator: &mut Translator<'_>) -> Option<Draft> {
    let statements = translator.accept(parser::parse(translator.source.text))?;
    let mut values = Values::new(translator.expansion.clone());
    for statement in &statements {
        read_top(translator, &mut values, statement);
    }
    let options = statements.iter().rev().find_map(|statement| match &statement.kind {
        StatementKind::Constant(name, value) if name == "options" => Some(value),
        _ => None,
    });
    let options = options.map(|value| values.resolved(value, 0));
    let Called { load, function, others } = read_options(translator, options.as_ref())?;
    let body = statements.iter().find_map(|statement| match &statement.kind {
        StatementKind::Function(name, body) if *name == function => Some(body),
        _ => None,
    });
    let Some(body) = body else {
        let label = format!("expected a function `{function}`: `export default function () {{}}`");
        return translator.fail(&(0..0), "the script has no such function", label);
    };
    report_others(translator, &statements, &function, &others);
    let names = StepNames::default();
    let (server, items, socket) = (None, Vec::new(), None);
    let mut script = Script { translator: &mut *translator, values, names, server, items, socket };
    let called = |wanted: &str| {
        statements.iter().find(|statement| match &statement.kind {
            StatementKind::Function(name, _) => name == wanted,
            _ => false,
        })
    };
    let (setup, data) = called("setup").map(|setup| script.setup(setup)).unwrap_or_default();
    let values = script.values.clone();
    script.take_data(body, data.as_ref());
    match body.statements() {
        Ok(statements) => script.statements(statements),
        Err(refusal) => script.translator.mistakes.push(refusal),
    }
    let values = std::mem::replace(&mut script.values, values);
    let teardown = called("teardown").map(|teardown| script.teardown(teardown, data.as_ref()));
    let Script { mut items, server, .. } = script;
    if !translator.mistakes.is_empty() {
        return None;
    }
    let options = options.as_ref();
    add_user_agent(translator, &values, options, &mut items);
    let draft = draft(translator, items, server, load, &values, options)?;
    Some(Draft { setup, teardown: teardown.unwrap_or_default(), ..draft })
}

/// Reads a statement outside of functions.
fn read_top(translator: &mut Translator<'_>, values: &mut Values, statement: &Statement) {
    match &statement.kind {
        StatementKind::Import(module) => {
            let is_known = module.starts_with("k6") || module.contains("jslib.k6.io");
            if is_known && !["k6/net/grpc", "k6/browser"].contains(&&**module) {
                let construct = format!("import {module}");
                translator.not_needed(&statement.span, construct, "its functions are known");
            } else {
                let label = "expected a module of k6: `k6`, `k6/http`, `k6/ws`, `k6/websockets`";
                let title = format!("the module `{module}` is not imported");
                translator.mistake(&statement.span, title, label);
            }
        }
        StatementKind::Constant(name, value) => {
            if values.draws(value) {
                let how = "k6 draws it once for each user, and the scenario at each place";
                translator.approximated(&statement.span, &**name, how);
            }
            values.define(name, value);
        }
        StatementKind::Function(..) => {}
        StatementKind::Expression(_) | StatementKind::Return(_) => {
            translator.mistakes.push(parser::program(&statement.span));
        }
    }
}

/// What the options call.
struct Called {
    load: Load,
    /// The function that its users call.
    function: String,
    /// The functions of scenarios that are left out.
    others: Vec<String>,
}

fn read_options(translator: &mut Translator<'_>, options: Option<&Expression>) -> Option<Called> {
    let none = Expression { span: 0..0, kind: syntax::ExpressionKind::Object(Vec::new()) };
    let value = options.unwrap_or(&none);
    let members = Members::read(translator, value, "`options`")?;
    let known = TRAFFIC.iter().copied().chain(OPTIONS.iter().map(|row| row.construct));
    members.check(translator, "`options`", &known.collect::<Vec<_>>());
    for (key, value) in members.iter() {
        translator.has_row(&value.span, OPTIONS, key);
    }
    if let Some(scenarios) = members.get("scenarios") {
        return read_scenarios(translator, scenarios);
    }
    let executor =
        ["stages", "iterations", "duration"].iter().find(|key| members.get(key).is_some());
    let executor = match executor {
        Some(&"stages") => "ramping-vus",
        Some(&"duration") => "constant-vus",
        _ => "shared-iterations",
    };
    let load = load::read(translator, &members, executor)?;
    if load.iterations.is_none() {
        report_end(translator, &value.span, None);
    }
    Some(Called { load, function: "default".to_owned(), others: Vec::new() })
}

/// Reads the first scenario. The others would run beside it.
fn read_scenarios(translator: &mut Translator<'_>, scenarios: &Expression) -> Option<Called> {
    let scenarios = Members::read(translator, scenarios, "`scenarios`")?;
    let mut read = None;
    let mut others = Vec::new();
    for (name, value) in scenarios.iter() {
        if read.is_some() {
            let exec = option(Some(value), "exec").and_then(Expression::text);
            others.extend(exec.map(str::to_owned));
            let remedy = "a scenario of throng has one load; import each of them alone";
            translator.not_supported(&value.span, format!("scenario {name}"), remedy);
            continue;
        }
        let members = Members::read(translator, value, "a scenario")?;
        members.check(translator, "a scenario", SCENARIO);
        let executor = members.get("executor").and_then(Expression::text).unwrap_or_default();
        let function = members.get("exec").and_then(Expression::text).unwrap_or("default");
        for (key, value) in members.iter() {
            let is_zero = value.text().and_then(load::parse_duration).is_some_and(|t| t.is_zero());
            match key {
                "startTime" if !is_zero => {
                    let why = "a load begins with its first users";
                    translator.not_needed(&value.span, key, why);
                }
                "env" => {
                    let remedy = "write the values out";
                    translator.not_supported(&value.span, key, remedy);
                }
                "gracefulRampDown" => {
                    let how = "users that are cut off by the end are counted as such";
                    translator.approximated(&value.span, key, how);
                }
                "tags" => translator.not_needed(&value.span, key, "a matter of reports"),
                _ => {}
            }
        }
        let load = load::read(translator, &members, executor)?;
        let end = members.get("gracefulStop");
        if end.is_some() || load.iterations.is_none() {
            report_end(translator, &end.unwrap_or(value).span, end.and_then(Expression::text));
        }
        read = Some((load, function.to_owned()));
    }
    if read.is_none() {
        let label = "expected `{ name: { executor: 'constant-vus', ... } }`";
        translator.mistake(&(0..0), "`scenarios` is empty", label);
    }
    read.map(|(load, function)| Called { load, function, others })
}

/// Reports what becomes of iterations that are under way at the end of the load. `time` is how long
/// k6 waits for them.
fn report_end(translator: &mut Translator<'_>, span: &Span, time: Option<&str>) {
    let how = format!(
        "k6 waits {} for iterations that are under way at the end; a scenario waits for none of \
         a closed model and 10s for those of an open one, and counts the others as cut off",
        time.unwrap_or("30s")
    );
    translator.approximated(span, "gracefulStop", how);
}

/// Reports the functions that no user calls. Those of `others` would be called by scenarios that
/// are left out.
fn report_others(
    translator: &mut Translator<'_>,
    statements: &[Statement],
    called: &str,
    others: &[String],
) {
    for statement in statements {
        let StatementKind::Function(name, _) = &statement.kind else { continue };
        match &**name {
            name if name == called => translator.translated(&statement.span, name),
            // They say themselves what becomes of them.
            "setup" | "teardown" => {}
            name if others.iter().any(|other| other == name) => {
                let remedy = "the scenario that calls it is left out; import it alone";
                translator.not_supported(&statement.span, name, remedy);
            }
            _ => translator.not_needed(&statement.span, &**name, "no user calls it"),
        }
    }
}

/// Puts the scenario together.
fn draft(
    translator: &mut Translator<'_>,
    items: Vec<Item>,
    server: Option<(String, Span)>,
    mut load: Load,
    values: &Values,
    options: Option<&Expression>,
) -> Option<Draft> {
    let Some((server, span)) = server else {
        let label = "expected a request or a session";
        return translator.fail(&(0..0), "this script sends nothing", label);
    };
    report_sessions(translator, &items);
    let sessions = session_paths(&items);
    let (of_source, authority) = server.split_once("://").unwrap_or(("http", &*server));
    let is_secure = ["https", "wss"].contains(&of_source);
    let plain = if sessions.is_empty() { "http" } else { "ws" };
    let scheme = scheme(plain, is_secure);
    let path = match &*sessions {
        [first, others @ ..] if !first.contains("${") && others.iter().all(|o| o == first) => first,
        _ => "",
    };
    let target = translator.target(&span, &format!("{scheme}://{authority}"), path);
    if !target.starts_with(plain) || !translator.mistakes.is_empty() {
        if translator.mistakes.is_empty() {
            let label = format!("this script needs a target `{plain}://`");
            translator.mistake(&span, format!("`{target}` is of another scheme"), label);
        }
        return None;
    }
    let tls =
        tls::read(translator, options, (is_secure, &span), items.iter().any(Item::has_request));
    let mut steps = write(&items, path);
    for item in &items {
        let (span, steps, is_first) = match item {
            Item::Request(request) => (request.span.clone(), vec![request.write()], true),
            Item::Session(session) => (session.span.clone(), session.write(path), false),
            Item::Step(_) | Item::Group(..) => continue,
        };
        let target = target.clone();
        translator.trials.push(StepTrial { span, target, steps, is_first });
    }
    report_values(translator, values);
    let mut on_error = load.is_open.then_some("stop");
    if !sessions.is_empty() && items.iter().any(Item::has_request) {
        let how = "k6 goes on after a request or a check that fails; an error in the scenario ends \
                   the turn of its user";
        translator.approximated(&(0..0), "errors", how);
    }
    if sessions.is_empty() {
        report_requests(translator);
        let is_new = option(options, "noVUConnectionReuse");
        let is_new = is_new.is_some_and(|v| matches!(v.kind, syntax::ExpressionKind::Truth(true)));
        // As k6 does after a request that fails.
        on_error = Some("continue");
        if !load.is_open && !is_new {
            steps = vec![step::repeat_for(show_duration(load.length), steps)];
        }
    }
    let thresholds = option(options, "thresholds").map_or(Vec::new(), |value| {
        let kinds = Kinds {
            requests: items.iter().any(Item::has_request),
            sessions: !sessions.is_empty(),
            answers: items.iter().any(Item::awaits_answer),
        };
        thresholds::read(translator, value, kinds)
    });
    let limits = rate_limit(translator, options, &items);
    load.add_iterations();
    let classes = classes(load.iterations, &steps, on_error);
    let comments = translator.source.comments_at_top("//");
    let load = load.phases;
    Some(Draft { comments, target, tls, load, limits, classes, thresholds, ..Draft::default() })
}

/// Returns the member of `options` with this name.
fn option<'e>(options: Option<&'e Expression>, key: &str) -> Option<&'e Expression> {
    let options = options.and_then(Expression::object).unwrap_or_default();
    options.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
}

/// Returns the limit of `rps`: the requests of all users together.
fn rate_limit(
    translator: &mut Translator<'_>,
    options: Option<&Expression>,
    items: &[Item],
) -> Option<Yaml> {
    let value = option(options, "rps")?;
    let Some(rate) = value.number().filter(|rate| (0.0..=RPS_MAX).contains(rate)) else {
        let label = "expected a number of requests a second";
        return translator.fail(&value.span, "`rps` cannot be read", label);
    };
    if rate == 0.0 || !items.iter().any(Item::has_request) {
        return translator.skip(&value.span, "rps", "it limits no request");
    }
    translator.translated(&value.span, "rps");
    let all = Yaml::map([("request", Yaml::plain(show_rate(rate)))]);
    Some(Yaml::entry("all", all))
}

/// Adds the header of `userAgent` to all requests and sessions that have none of their own.
fn add_user_agent(
    translator: &mut Translator<'_>,
    values: &Values,
    options: Option<&Expression>,
    items: &mut [Item],
) {
    let Some(value) = option(options, "userAgent") else { return };
    match values.clone().text(value) {
        Ok(agent) => {
            items.iter_mut().for_each(|item| item.add_header("user-agent", &agent));
            translator.translated(&value.span, "userAgent");
        }
        Err(mistake) => translator.mistakes.push(mistake),
    }
}

/// Reports what the steps of sessions leave out.
fn report_sessions(translator: &mut Translator<'_>, items: &[Item]) {
    for item in items {
        match item {
            Item::Group(_, items) => report_sessions(translator, items),
            Item::Session(session) => {
                if let Some(omitted) = session.omits() {
                    let remedy = "a user does one thing at a time; write the steps in their order";
                    translator.not_supported(&session.span, omitted, remedy);
                }
            }
            Item::Request(_) | Item::Step(_) => {}
        }
    }
}

/// Returns the paths of all sessions.
fn session_paths(items: &[Item]) -> Vec<String> {
    let paths = items.iter().flat_map(|item| match item {
        Item::Session(session) => vec![session.path.clone()],
        Item::Group(_, items) => session_paths(items),
        _ => Vec::new(),
    });
    paths.collect()
}

fn write(items: &[Item], target_path: &str) -> Vec<Yaml> {
    let steps = items.iter().flat_map(|item| match item {
        Item::Request(request) => vec![request.write()],
        Item::Session(session) => session.write(target_path),
        Item::Step(step) => vec![step.clone()],
        Item::Group(name, items) => {
            vec![step::transaction(&**name, write(items, target_path))]
        }
    });
    steps.collect()
}

/// Reports what values of the scenario have otherwise than those of the script.
fn report_values(translator: &mut Translator<'_>, values: &Values) {
    if let Some(span) = &values.iteration {
        let how = "`${counter}` counts the messages with it in them, and not the iterations";
        translator.approximated(span, "__ITER", how);
    }
    if let Some(span) = &values.untyped_json {
        let how =
            "a value that a step has stored is a text in JSON, where k6 sends a number as one";
        translator.approximated(span, "values of answers in JSON", how);
    }
    let mut defaults = values.defaults.clone();
    defaults.dedup();
    for (span, name) in &defaults {
        let how = "its default stands here; import the script again with another one, or pass \
                   `--target`";
        translator.approximated(span, name, how);
    }
    for span in &values.random_texts {
        let how = "the scenario's text is as long, of digits and not of letters";
        translator.approximated(span, "randomString", how);
    }
}

/// Reports what holds for all requests.
fn report_requests(translator: &mut Translator<'_>) {
    let how = "k6 follows redirects, and takes any status; in the scenario a status other than \
               2xx is an error, unless `expect` names it, and the user goes on";
    translator.approximated(&(0..0), "requests", how);
    let how = "a request without `timeout` may take 60s in k6, and 5s in the scenario";
    translator.approximated(&(0..0), "timeouts", how);
    let how = "k6 forgets cookies after each iteration; a user of the scenario keeps them";
    translator.approximated(&(0..0), "cookies", how);
}

/// The largest limit of requests a second.
const RPS_MAX: f64 = 1e9;
