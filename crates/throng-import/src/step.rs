//! Steps of users, as a scenario writes them.

use crate::yaml::Yaml;

/// Returns a think time: `wait: 1s`.
pub(crate) fn wait(time: impl ToString) -> Yaml {
    Yaml::entry("wait", Yaml::plain(time))
}

/// Returns the step that connects, with these settings.
pub(crate) fn connect<K: Into<String>>(settings: Vec<(K, Yaml)>) -> Yaml {
    match settings.is_empty() {
        true => Yaml::text("connect"),
        false => Yaml::entry("connect", Yaml::map(settings)),
    }
}

/// Returns the step that stores a text under a name.
pub(crate) fn set(name: impl Into<String>, text: impl Into<String>) -> Yaml {
    Yaml::entry("set", Yaml::map([(name, Yaml::text(text))]))
}

/// Returns the step that takes others so many times.
pub(crate) fn repeat(times: impl ToString, body: Vec<Yaml>) -> Yaml {
    block("repeat", ("times", Yaml::plain(times)), body)
}

/// Returns the step that takes others again and again, for a time.
pub(crate) fn repeat_for(time: impl ToString, body: Vec<Yaml>) -> Yaml {
    block("repeat", ("for", Yaml::plain(time)), body)
}

/// Returns the step that takes others at a rate, for a time.
pub(crate) fn every(rate: Yaml, time: impl ToString, body: Vec<Yaml>) -> Yaml {
    let entries = [("rate", rate), ("for", Yaml::plain(time)), ("do", Yaml::list(body))];
    Yaml::entry("every", Yaml::map(entries))
}

/// Returns the step that takes others once for each value, which they have under this name.
pub(crate) fn foreach(name: impl Into<String>, values: Vec<Yaml>, body: Vec<Yaml>) -> Yaml {
    let entries =
        [("name", Yaml::text(name)), ("in", Yaml::list(values)), ("do", Yaml::list(body))];
    Yaml::entry("foreach", Yaml::map(entries))
}

/// Returns the step that takes others where a condition holds.
pub(crate) fn branch(condition: impl Into<String>, body: Vec<Yaml>) -> Yaml {
    block("if", ("condition", Yaml::text(condition)), body)
}

/// Returns the step that takes others where a condition holds, and `otherwise` where it does not.
pub(crate) fn branch_else(
    condition: impl Into<String>,
    body: Vec<Yaml>,
    otherwise: Vec<Yaml>,
) -> Yaml {
    let entries = [
        ("condition", Yaml::text(condition)),
        ("do", Yaml::list(body)),
        ("else", Yaml::list(otherwise)),
    ];
    Yaml::entry("if", Yaml::map(entries))
}

/// Returns the step that measures others together.
pub(crate) fn transaction(name: impl Into<String>, body: Vec<Yaml>) -> Yaml {
    block("transaction", ("name", Yaml::text(name)), body)
}

fn block(key: &str, setting: (&str, Yaml), body: Vec<Yaml>) -> Yaml {
    Yaml::entry(key, Yaml::map([setting, ("do", Yaml::list(body))]))
}
