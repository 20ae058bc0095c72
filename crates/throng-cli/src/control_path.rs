//! The choice of the process that a command is about: by its socket, its id, or as the only one.

use std::path::{Path, PathBuf};

use throng_control::{Process, ProcessList, ProcessRole, Verb};
use throng_report::render::Table;

use crate::Failure;

/// Returns the socket at `control`, that of the process `pid`, or that of the only process that
/// supports `verb`. A verb that changes something never takes a process that the user did not name:
/// the only one may be another one than the user thinks.
pub(crate) fn control_path(
    control: Option<&Path>,
    pid: Option<u32>,
    verb: Verb,
) -> Result<PathBuf, Failure> {
    if let Some(path) = control {
        return Ok(path.to_owned());
    }
    let ProcessList { processes: found, silent, refused } = throng_control::find();
    if let Some(why) = refused {
        return Err(Failure::new(refused_folder(&why)));
    }
    if let Some(pid) = pid {
        return match found.iter().find(|process| process.pid == pid) {
            Some(process) => Ok(process.path.clone()),
            None => {
                let watch = match verb {
                    Verb::Inspect => format!(
                        "; a server of another program has none: watch it with `throng doctor \
                         --watch --pid {pid}`"
                    ),
                    _ => String::new(),
                };
                Err(Failure::new(format!(
                    "process {pid} has no control socket of this user that answers; `throng ctl \
                     list` shows the processes that do{watch}"
                )))
            }
        };
    }
    // Only generators start and stop users, and only servers can be inspected or reloaded.
    let role = match verb {
        Verb::Inspect | Verb::Reload => Some(ProcessRole::Server),
        _ if verb.needs_n() => Some(ProcessRole::Load),
        _ => None,
    };
    let can = |process: &&Process| role.is_none_or(|role| process.role == role);
    let mut matching: Vec<_> = found.iter().filter(can).collect();
    // A calibration and a lab start servers of their own: another server is the one that is meant.
    if role == Some(ProcessRole::Server) && matching.len() > 1 {
        let (own, others): (Vec<_>, Vec<_>) =
            matching.into_iter().partition(|process| is_child_of_throng(process.pid));
        matching = if others.is_empty() { own } else { others };
    }
    match matching[..] {
        [_, ..] if verb.is_change() => Err(Failure::new(format!(
            "`throng ctl {}` changes a process, which must be named; add --pid N\n\n{}",
            verb.name(),
            table(matching)
        ))),
        [one] => Ok(one.path.clone()),
        [] if !silent.is_empty() => Err(Failure::new(does_not_answer(silent[0]))),
        [] => Err(Failure::new(match role {
            Some(ProcessRole::Load) => "no throng process runs a load on this machine",
            Some(ProcessRole::Server) => {
                "no throng server of this user runs on this machine; start one with `throng \
                 serve`, or watch a server of another program with `throng doctor --watch --port \
                 PORT`"
            }
            None => "no throng process of this user runs on this machine",
        })),
        _ => {
            let table = table(matching);
            Err(Failure::new(format!("several processes match; add --pid N\n\n{table}")))
        }
    }
}

/// Explains why the folder of control sockets is not read.
pub(crate) fn refused_folder(why: &str) -> String {
    format!(
        "{why}\n  another user may have put sockets there; --control PATH reaches a process by its \
         socket"
    )
}

/// Explains a process without an answer.
pub(crate) fn does_not_answer(pid: u32) -> String {
    format!(
        "process {pid} does not answer on its control socket: it hangs, was stopped (SIGSTOP), or \
         is too busy"
    )
}

/// Reports whether the process was started by one of this program.
fn is_child_of_throng(pid: u32) -> bool {
    let parent = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let parent: u32 =
            status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        std::fs::read_link(format!("/proc/{parent}/exe")).ok()
    };
    parent().is_some_and(|parent| std::env::current_exe().is_ok_and(|this| this == parent))
}

/// Returns a table of processes.
pub(crate) fn table<'a>(found: impl IntoIterator<Item = &'a Process>) -> Table {
    use throng_report::render::Align::{Left, Right};
    let mut table =
        Table::with_head(["pid", "role", "what", "control"]).aligned(&[Right, Left, Left, Left]);
    for Process { pid, role, title, path } in found {
        table.row([pid.to_string(), role.to_string(), title.clone(), path.display().to_string()]);
    }
    table
}
