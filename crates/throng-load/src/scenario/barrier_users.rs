//! How many users the barriers of a scenario wait for.

use throng_base::units::show_count;

use super::reader::Reader;
use super::{Class, Model, Scenario, ScenarioLoad};
use crate::program::{CueKind, Program};
use crate::schedule;

/// Sets the number of users of barriers for all users. Reports barriers for more users than the
/// load ever has: they never open.
pub(super) fn set(reader: &mut Reader<'_>, scenario: &mut Scenario) {
    if !scenario.cues.iter().any(|cue| cue.kind != CueKind::Signal) {
        return;
    }
    let program = Program::compile(scenario);
    let load = &scenario.load;
    for cue in &mut scenario.cues {
        let CueKind::Barrier { users } = &mut cue.kind else { continue };
        let (classes, span) = reader.cues.barrier(&cue.name);
        let name = &cue.name;
        let is_closed =
            classes.iter().all(|class| Model::of(load.of_class(*class)) == Model::Closed);
        let most = match load {
            ScenarioLoad::Shared(phases) => {
                program.users_of_classes(&classes, schedule::peak_users(phases))
            }
            ScenarioLoad::ByClass(_) => {
                schedule::peak_users_beside(classes.iter().map(|class| load.of_class(*class)))
            }
        };
        if *users == 0 && !is_closed {
            let title = format!("the barrier `{name}` needs a number of users");
            let label = format!("for example `barrier: {{name: {name}, users: 100}}`");
            reader.error(span, title, label).help =
                Some("users that arrive by a rate are as many as the server lets be".to_owned());
        } else if *users == 0 {
            *users = u32::try_from(most).unwrap_or(u32::MAX).max(1);
        } else if u64::from(*users) > most {
            let title = format!("the barrier `{name}` never opens");
            let label = format!(
                "it waits for {} users, and the load has at most {}{}",
                show_count((*users).into()),
                show_count(most),
                of_classes(&scenario.classes, &classes)
            );
            let help = match is_closed {
                true => "leave `users` out for all of them".to_owned(),
                false => format!("write at most {}", show_count(most)),
            };
            reader.error(span, title, label).help = Some(help);
        }
    }
}

/// Names the classes of which the users are, if there are others.
fn of_classes(all: &[Class], classes: &[usize]) -> String {
    let names: Vec<_> = all.iter().enumerate().filter(|(at, _)| classes.contains(at)).collect();
    if names.len() == all.len() {
        return String::new();
    }
    let names: Vec<_> = names.iter().map(|(_, class)| format!("`{}`", class.name)).collect();
    format!(" of {}", names.join(" and "))
}
