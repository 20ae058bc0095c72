//! `throng doctor --for N --apply`: raises the sysctls that are short, and says how to undo it.

use std::fs;
use std::io;

use throng_doctor::preflight::{Preflight, Sysctl};
use throng_doctor::sysctl::sysctl_path;

use super::preflight::exit;
use crate::{Exit, Failure, output};

/// Raises what `answer` says, prints each change, and looks again. Nothing is ever lowered.
///
/// # Errors
/// A plain user asked.
pub(super) fn apply(answer: &Preflight, look: impl Fn() -> Preflight) -> Result<Exit, Failure> {
    let sysctls = answer.sysctls();
    if sysctls.is_empty() {
        output::say(format!("nothing to change: no sysctl is short.\n\n{answer}"));
        return Ok(exit(answer));
    }
    let mut failed = Vec::new();
    for sysctl in sysctls {
        match raise(sysctl) {
            Ok(Change::Made { old }) => output::say(format!(
                "{}: {} -> {}\n  undo: sysctl -w {}=\"{old}\"",
                sysctl.name,
                shown(&old),
                sysctl.value,
                sysctl.name
            )),
            Ok(Change::NotNeeded { now }) => {
                output::say(format!("{} is {now} already", sysctl.name));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_root() => {
                return Err(Failure::new(format!(
                    "sysctls are root's to change: sudo {}\n  or by hand:{}",
                    std::env::args().collect::<Vec<_>>().join(" "),
                    answer
                        .sysctls()
                        .iter()
                        .map(|s| format!("\n  sysctl -w {}=\"{}\"", s.name, s.value))
                        .collect::<String>()
                )));
            }
            Err(error) => failed.push(format!("{}: {}", sysctl.name, why(sysctl, &error))),
        }
    }
    failed.iter().for_each(|line| output::complain(format!("not changed: {line}")));
    let after = look();
    output::say(format!("\n{after}"));
    Ok(exit(&after))
}

/// What became of one.
enum Change {
    Made { old: String },
    NotNeeded { now: String },
}

fn raise(sysctl: &Sysctl) -> io::Result<Change> {
    let path = format!("/{}", sysctl_path(&sysctl.name));
    let now = words(&fs::read_to_string(&path)?);
    if !is_raised(&now, &sysctl.value) {
        return Ok(Change::NotNeeded { now });
    }
    fs::write(&path, &sysctl.value)?;
    let set = words(&fs::read_to_string(&path)?);
    if set != sysctl.value {
        return Err(io::Error::other(format!("the kernel took it as {set}")));
    }
    Ok(Change::Made { old: now })
}

/// Whether `value` widens `now`: no number of it is lower, but for the first of a range of ports, which is no higher. Somebody
/// may have changed it between the look and now.
fn is_raised(now: &str, value: &str) -> bool {
    let numbers = |text: &str| -> Option<Vec<u64>> {
        text.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
    };
    match (numbers(now), numbers(value)) {
        (Some(now), Some(value)) if now.len() == value.len() => match (&now[..], &value[..]) {
            ([first, last], [to_first, to_last]) => {
                now != value && to_first <= first && to_last >= last
            }
            _ => now != value && now.iter().zip(&value).all(|(now, value)| value >= now),
        },
        // A list of ports, which grows at its end.
        _ => value != now && value.starts_with(now),
    }
}

fn why(sysctl: &Sysctl, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "it does not exist in this network namespace; set it on the host".to_owned()
        }
        io::ErrorKind::PermissionDenied => "read-only here; set it on the host".to_owned(),
        _ => format!("{} is refused: {error}", sysctl.value),
    }
}

fn is_root() -> bool {
    let status = throng_doctor::status::status(&throng_doctor::Root::default(), std::process::id());
    status.known().is_none_or(|status| status.uid == 0)
}

/// Numbers that the kernel separates by tabs, by one space each.
fn words(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "(empty)" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_ever_lowered() {
        assert!(is_raised("128", "4096") && !is_raised("4096", "128") && !is_raised("128", "128"));
        assert!(is_raised("1 2 3", "1 2 4") && !is_raised("1 9 3", "1 2 4"));
        assert!(is_raised("32768 60999", "1024 65535"), "a range grows at both ends");
        assert!(!is_raised("1024 60999", "2048 65535"));
        assert!(is_raised("", "5555") && is_raised("80,90-95", "80,90-95,5555"));
        assert!(!is_raised("70,80", "80,5555"), "somebody else has changed it");
    }
}
