//! The names of barriers and cues. There is one set of names for both, and for all classes: users
//! of one class may wait for those of another.

use throng_base::units::{nearest, parse_count};

use super::cue_use::{CueUse, NamedUse};
use super::node::Node;
use super::reader::Reader;
use super::step_name;
use crate::program::{Cue, CueKind};

/// Reads the name of a barrier or cue, which the step uses so.
pub(crate) fn read(reader: &mut Reader<'_>, node: &Node, does: CueUse) -> Option<String> {
    let what = if does.is_barrier() { "the name of a barrier" } else { "the name of a signal" };
    let name = reader.text(node, what, "a name such as `start`")?;
    if let Err(label) = step_name::check(name) {
        reader.error(node.span.clone(), format!("`{name}` cannot be {what}"), label);
        return None;
    }
    if let Some(key) = reader.solo_key {
        let title = format!("`{key}` has one user, which no other one waits for");
        let label = "take this step out: barriers and signals are for the users of the load";
        reader.error(node.span.clone(), title, label);
        return None;
    }
    let class = reader.cues.classes.saturating_sub(1);
    let (name, span) = (name.to_owned(), node.span.clone());
    reader.cues.uses.push(NamedUse { name: name.clone(), span, class, does });
    Some(name)
}

/// Reads the number of users of a barrier.
pub(crate) fn read_users(reader: &mut Reader<'_>, node: &Node) -> Option<u32> {
    let users = reader.quantity(node, "`users`", parse_count)?;
    match u32::try_from(users) {
        Ok(0) => reader.error(node.span.clone(), "a barrier for 0 users", "at least 1"),
        Ok(users) => return Some(users),
        Err(_) => reader.error(
            node.span.clone(),
            "a barrier for too many users",
            format!("at most {}", u32::MAX),
        ),
    };
    None
}

/// Returns the cues of all classes, once each. Reports names that are used in a way that would let
/// users wait for ever.
pub(super) fn check(reader: &mut Reader<'_>) -> Option<Vec<Cue>> {
    let uses = std::mem::take(&mut reader.cues.uses);
    let mistakes_before = reader.mistakes.len();
    let mut cues = Vec::<Cue>::new();
    for (at, this) in uses.iter().enumerate() {
        let name = &this.name;
        let first = uses[..at].iter().find(|other| other.name == *name);
        let Some(first) = first else {
            if !check_pair(reader, &uses, this) {
                continue;
            }
            let users = uses.iter().filter(|other| other.name == *name).find_map(NamedUse::users);
            let kind = match this.does {
                // The number of all users takes its place once it is known.
                CueUse::Barrier { .. } => CueKind::Barrier { users: users.unwrap_or(0) },
                CueUse::Signal | CueUse::WaitFor => CueKind::Signal,
            };
            // A signal has a step that waits: the pair was checked.
            let awaits = |other: &&NamedUse| other.name == *name && other.does != CueUse::Signal;
            let place = uses.iter().find(awaits).unwrap_or(this);
            let line = reader.line_number(place.span.start);
            cues.push(Cue { name: name.clone(), line, kind });
            continue;
        };
        if first.does.is_barrier() != this.does.is_barrier() {
            let title = format!("`{name}` is the name of a barrier and of a signal");
            let label = "take another name: a barrier has no signal";
            reader.error(this.span.clone(), title, label);
        }
        let known = uses[..at].iter().filter(|it| it.name == *name).find_map(NamedUse::users);
        if let (Some(known), Some(users)) = (known, this.users())
            && known != users
        {
            let title = format!("the barrier `{name}` has two numbers of users");
            let label = format!("it is {known} in another step; take that, or another name");
            reader.error(this.span.clone(), title, label);
        }
    }
    if cues.len() > CUES_MAX {
        let span = uses[uses.len() - 1].span.clone();
        let label = format!("a scenario may have {CUES_MAX}");
        reader.error(span, "too many names of barriers and signals", label);
    }
    reader.cues.uses = uses;
    (reader.mistakes.len() == mistakes_before).then_some(cues)
}

/// Reports a signal for which no step waits, and a wait for a signal that no step gives.
fn check_pair(reader: &mut Reader<'_>, uses: &[NamedUse], this: &NamedUse) -> bool {
    let (name, span) = (&this.name, this.span.clone());
    let others = |does: CueUse| uses.iter().filter(move |it| it.does == does);
    let needed = match this.does {
        CueUse::Barrier { .. } => return true,
        CueUse::Signal => CueUse::WaitFor,
        CueUse::WaitFor => CueUse::Signal,
    };
    // A name that is a barrier's, too, is reported there.
    if uses.iter().any(|it| it.name == *name && (it.does == needed || it.does.is_barrier())) {
        return true;
    }
    let near = nearest(name, others(needed).map(|it| it.name.as_str()));
    let (title, label, help) = match this.does {
        CueUse::WaitFor => (
            format!("no step gives the signal `{name}`"),
            "users would wait here until the run ends",
            format!("add `signal: {name}` to the steps of the users that they wait for"),
        ),
        _ => (
            format!("no step waits for the signal `{name}`"),
            "nothing follows from it",
            format!("add `wait_for: {name}` to the steps that wait for it, or take this one out"),
        ),
    };
    let label = near.map_or(label.to_owned(), |near| format!("did you mean `{near}`?"));
    reader.error(span, title, label).help = Some(help);
    false
}

/// Barriers and cues of a scenario.
const CUES_MAX: usize = 64;
