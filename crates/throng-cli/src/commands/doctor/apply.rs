//! `throng doctor --for N --apply`: raises the sysctls that are short, and says how to undo it.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use throng_doctor::ports::parse_ranges;
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
            Ok(Change::Made { old, set }) => {
                output::say(told(sysctl, &old, &set));
                if !is_the_same(&set, &sysctl.value) {
                    failed.push(format!("{}: {} was asked for", sysctl.name, sysctl.value));
                }
            }
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
    failed.iter().for_each(|line| output::complain(format!("not changed as asked: {line}")));
    let after = look();
    output::say(format!("\n{after}"));
    Ok(exit(&after))
}

/// What became of one.
enum Change {
    /// It is `set` now, which is not always what was asked for.
    Made {
        old: String,
        set: String,
    },
    NotNeeded {
        now: String,
    },
}

fn raise(sysctl: &Sysctl) -> io::Result<Change> {
    let path = format!("/{}", sysctl_path(&sysctl.name));
    let now = words(&fs::read_to_string(&path)?);
    if !is_raised(&now, &sysctl.value) {
        return Ok(Change::NotNeeded { now });
    }
    fs::write(&path, &sysctl.value)?;
    let set = fs::read_to_string(&path).map_or_else(|_| sysctl.value.clone(), |set| words(&set));
    if set == now {
        return Err(io::Error::other("the kernel left it as it was"));
    }
    Ok(Change::Made { old: now, set })
}

/// The change, and the command that undoes it.
fn told(sysctl: &Sysctl, old: &str, set: &str) -> String {
    let name = &sysctl.name;
    format!("{name}: {} -> {}\n  undo: sysctl -w {name}=\"{old}\"", shown(old), shown(set))
}

/// Whether the kernel has taken `value` as it was meant: lists of ports come back sorted, with neighbours made one range.
fn is_the_same(set: &str, value: &str) -> bool {
    let ports = |text: &str| -> Option<BTreeSet<u16>> {
        let ranges = parse_ranges(text).ok()?;
        Some(ranges.into_iter().flat_map(|(first, last)| first..=last).collect())
    };
    set == value || ports(set).is_some_and(|set| Some(set) == ports(value))
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

    #[test]
    fn a_list_of_ports_is_the_same_in_any_order() {
        assert!(is_the_same("80,5555,9000-9100", "80,9000-9100,5555"));
        assert!(is_the_same("5554-5556", "5554,5556,5555"), "neighbours become a range");
        assert!(!is_the_same("80,9000-9100", "80,9000-9100,5555"));
        assert!(is_the_same("1 2 3", "1 2 3") && !is_the_same("1 2 3", "1 2 4"));
        assert!(!is_the_same("100000", "200000"), "no port is so high");
    }

    #[test]
    fn whatever_the_kernel_made_of_it_can_be_undone() {
        let name = "net.ipv4.ip_local_reserved_ports".to_owned();
        let sysctl = Sysctl { name, old: String::new(), value: "5555".to_owned() };
        assert_eq!(
            told(&sysctl, "", "5555"),
            "net.ipv4.ip_local_reserved_ports: (empty) -> 5555\n  \
             undo: sysctl -w net.ipv4.ip_local_reserved_ports=\"\""
        );
    }
}
