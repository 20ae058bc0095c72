//! Steps of users, as a scenario writes them.

use std::time::Duration;

use throng_base::units::show_duration;

use crate::yaml::Yaml;

/// Returns a think time: `wait: 1s`.
pub(crate) fn wait(time: impl ToString) -> Yaml {
    Yaml::entry("wait", Yaml::plain(time))
}

/// Returns a think time, unless it is none.
pub(crate) fn rest(time: Duration) -> Option<Yaml> {
    (!time.is_zero()).then(|| wait(show_duration(time)))
}

/// Returns the setting of a step that waits at most so long.
pub(crate) fn timeout(time: Duration) -> (&'static str, Yaml) {
    ("timeout", Yaml::plain(show_duration(time)))
}

/// Returns the setting of a step that stores parts of an answer, unless it stores none.
pub(crate) fn capture(places: &[(String, Yaml)]) -> Option<(&'static str, Yaml)> {
    (!places.is_empty()).then(|| ("capture", Yaml::map(places.iter().cloned())))
}

/// Returns the step that sends a payload, which stands under `text`, `json`, `hex` or the like.
pub(crate) fn send(payload: (&str, Yaml), is_answered: bool) -> Yaml {
    if let (("text", text), true) = (&payload, is_answered) {
        return Yaml::entry("send", text.clone());
    }
    let reply = (!is_answered).then(|| ("reply", Yaml::plain(false)));
    Yaml::entry("send", Yaml::map([payload].into_iter().chain(reply)))
}

/// Returns the step, `expect` or `receive`, that waits for a message with this pattern, and stores
/// parts of it.
pub(crate) fn await_message(
    step: &str,
    pattern: (&str, Yaml),
    captures: &[(String, Yaml)],
    time: Duration,
) -> Yaml {
    let settings = capture(captures).into_iter().chain([timeout(time)]);
    Yaml::entry(step, Yaml::map([pattern].into_iter().chain(settings)))
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

/// Returns the step that stores texts under names.
pub(crate) fn set_all<K: Into<String>>(texts: Vec<(K, Yaml)>) -> Yaml {
    Yaml::entry("set", Yaml::map(texts))
}

/// Returns the step that takes others so many times.
pub(crate) fn repeat(times: impl ToString, body: Vec<Yaml>) -> Yaml {
    block("repeat", ("times", Yaml::plain(times)), body)
}

/// Returns the step that takes others again and again, for a time.
pub(crate) fn repeat_for(time: impl ToString, body: Vec<Yaml>) -> Yaml {
    block("repeat", ("for", Yaml::plain(time)), body)
}

/// Returns the step that takes others again and again, while a condition holds.
pub(crate) fn repeat_while(condition: impl Into<String>, body: Vec<Yaml>) -> Yaml {
    block("repeat", ("while", Yaml::text(condition)), body)
}

/// Returns the step that takes others at a pace, `rate` or `period`: for a time, or always.
pub(crate) fn every(pace: (&str, Yaml), time: Option<String>, body: Vec<Yaml>) -> Yaml {
    let time = time.map(|time| ("for", Yaml::plain(time)));
    let body = ("do", Yaml::list(body));
    Yaml::entry("every", Yaml::map([pace].into_iter().chain(time).chain([body])))
}

/// Returns the step that takes one of several lists, by their weights.
pub(crate) fn choose(choices: impl IntoIterator<Item = (u32, Yaml)>) -> Yaml {
    let choice =
        |(weight, step)| Yaml::map([("weight", Yaml::plain(weight)), ("do", Yaml::list([step]))]);
    Yaml::entry("choose", Yaml::list(choices.into_iter().map(choice)))
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
