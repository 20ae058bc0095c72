//! `throng doctor --for N --apply`: raises the sysctls that are short, all of them or none, and
//! prints how to undo it.
//!
//! The old values are in a file before the first change, so they survive a lost terminal. If a
//! change fails, the changes before it are reverted.

mod undo;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use throng_doctor::preflight::{Preflight, Sysctl};
use throng_machine::ports::parse_ranges;
use throng_machine::sysctl::sysctl_path;

use super::preflight::exit;
use crate::{Exit, Failure, output};
use undo::{UNDO_FOLDER, UndoFile};

/// Raises the sysctls of `answer`, prints each change, and checks again. Lowers nothing.
///
/// # Errors
/// The user is not root, the undo file cannot be written, or the kernel refuses a change. Then
/// every value is restored, or the error names those that are not.
pub(super) fn apply(answer: &Preflight, check: impl Fn() -> Preflight) -> Result<Exit, Failure> {
    let sysctls = answer.sysctls();
    if sysctls.is_empty() {
        output::say(format!("nothing to change: no sysctl is short.\n\n{answer}"));
        return Ok(exit(answer));
    }
    let ApplyPlan { changes, sufficient, impossible } = plan(&Live, &sysctls);
    if impossible.iter().any(|(_, error)| is_for_root(error)) && !is_root() {
        return Err(for_root(&sysctls));
    }
    for (name, now) in sufficient {
        output::say(format!("{name} is already {now}"));
    }
    for (sysctl, error) in &impossible {
        output::print_error(format!("not changed: {}: {}", sysctl.name, why(sysctl, error)));
    }
    if !changes.is_empty() {
        raise_and_print(&Live, &changes, Path::new(UNDO_FOLDER))?;
    }
    let after = check();
    output::say(format!("\n{after}"));
    Ok(exit(&after))
}

/// Makes `changes`, and prints each.
fn raise_and_print(
    sysctls: &impl Sysctls,
    changes: &[Change<'_>],
    folder: &Path,
) -> Result<(), Failure> {
    let undo = UndoFile::write(folder, changes).map_err(|error| {
        Failure::new(format!(
            "{error}\n  nothing was changed, because the undo file must exist first"
        ))
    })?;
    match raise_all(sysctls, changes) {
        Ok(made) => {
            for (change, set) in changes.iter().zip(made) {
                let Change { sysctl, old } = change;
                output::say(describe_change(sysctl, old, &set));
                if !is_the_same(&set, &sysctl.value) {
                    output::print_error(format!(
                        "not changed as requested: {}: the requested value is {}",
                        sysctl.name, sysctl.value
                    ));
                }
            }
            let path = undo.keep();
            output::say(format!("undo all changes: sysctl -p {}", path.display()));
            Ok(())
        }
        Err(refused) => {
            let mut text = format!("{}\n  ", refused.why);
            text += if refused.left.is_empty() {
                "every value is restored: the changes made before were reverted"
            } else {
                "not every change could be reverted"
            };
            if !refused.left.is_empty() {
                text += &format!(": {} {}", refused.left.join(", "), "are still raised");
                text += &format!("\n  undo: sysctl -p {}", undo.keep().display());
            }
            Err(Failure::new(text))
        }
    }
}

/// The sysctls of this machine, or of a test.
trait Sysctls {
    fn read(&self, name: &str) -> io::Result<String>;
    /// Checks that it can be written, without changing anything.
    fn check(&self, name: &str) -> io::Result<()>;
    fn write(&self, name: &str, value: &str) -> io::Result<()>;
}

/// The sysctls below `/proc/sys`.
struct Live;

impl Live {
    fn path(name: &str) -> String {
        format!("/{}", sysctl_path(name))
    }
}

impl Sysctls for Live {
    fn read(&self, name: &str) -> io::Result<String> {
        fs::read_to_string(Self::path(name))
    }

    fn check(&self, name: &str) -> io::Result<()> {
        File::options().write(true).open(Self::path(name)).map(drop)
    }

    fn write(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(Self::path(name), value)
    }
}

/// A sysctl to raise, and its old value.
struct Change<'a> {
    sysctl: &'a Sysctl,
    old: String,
}

/// The changes to make, and the reasons for those that are not made.
#[derive(Default)]
struct ApplyPlan<'a> {
    changes: Vec<Change<'a>>,
    /// Sysctls that need no change, with their current values.
    sufficient: Vec<(&'a str, String)>,
    /// Sysctls that do not exist in this namespace, or are read-only.
    impossible: Vec<(&'a Sysctl, io::Error)>,
}

/// Checks all sysctls before the first is changed.
fn plan<'a>(sysctls: &impl Sysctls, requested: &[&'a Sysctl]) -> ApplyPlan<'a> {
    let mut plan = ApplyPlan::default();
    for &sysctl in requested {
        match sysctls.read(&sysctl.name).map(|now| normalized(&now)) {
            Ok(now) if !is_raised(&now, &sysctl.value) => {
                plan.sufficient.push((&sysctl.name, now));
            }
            Ok(old) => match sysctls.check(&sysctl.name) {
                Ok(()) => plan.changes.push(Change { sysctl, old }),
                Err(error) => plan.impossible.push((sysctl, error)),
            },
            Err(error) => plan.impossible.push((sysctl, error)),
        }
    }
    plan
}

/// The reason why nothing was changed, and the changes that could not be reverted.
struct ApplyError {
    why: String,
    left: Vec<String>,
}

/// Makes all changes or none, and returns the value that the kernel reports for each.
fn raise_all(sysctls: &impl Sysctls, changes: &[Change<'_>]) -> Result<Vec<String>, ApplyError> {
    let mut made = Vec::new();
    for Change { sysctl, old } in changes {
        match raise(sysctls, sysctl, old) {
            Ok(set) => made.push(set),
            Err(error) => {
                let why = format!("{}: {}", sysctl.name, why(sysctl, &error));
                let revert =
                    |change: &&Change<'_>| sysctls.write(&change.sysctl.name, &change.old).is_err();
                // Includes the failed change: the kernel may have applied it in part.
                let begun = changes[..=made.len()].iter().rev();
                let left = begun.filter(revert).map(|change| change.sysctl.name.clone());
                let is_left = |name: &String| {
                    let old = changes.iter().find(|change| change.sysctl.name == *name);
                    let now = sysctls.read(name).map(|now| normalized(&now));
                    old.zip(now.ok()).is_none_or(|(change, now)| change.old != now)
                };
                return Err(ApplyError { why, left: left.filter(is_left).collect() });
            }
        }
    }
    Ok(made)
}

fn raise(sysctls: &impl Sysctls, sysctl: &Sysctl, old: &str) -> io::Result<String> {
    sysctls.write(&sysctl.name, &sysctl.value)?;
    let read = sysctls.read(&sysctl.name);
    let set = read.map_or_else(|_| sysctl.value.clone(), |set| normalized(&set));
    if set == old { Err(io::Error::other("the kernel did not change the value")) } else { Ok(set) }
}

fn is_for_root(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn for_root(sysctls: &[&Sysctl]) -> Failure {
    let by_hand: String =
        sysctls.iter().map(|s| format!("\n  sysctl -w {}=\"{}\"", s.name, s.value)).collect();
    Failure::new(format!(
        "changing sysctls needs root: sudo {}\n  or by hand:{by_hand}",
        std::env::args().collect::<Vec<_>>().join(" "),
    ))
}

/// Describes the change, with the command that undoes it.
fn describe_change(sysctl: &Sysctl, old: &str, set: &str) -> String {
    let name = &sysctl.name;
    format!("{name}: {} -> {}\n  undo: sysctl -w {name}=\"{old}\"", shown(old), shown(set))
}

/// Reports whether the kernel applied `value`: it returns lists of ports sorted, with neighbours
/// joined to ranges.
fn is_the_same(set: &str, value: &str) -> bool {
    let ports = |text: &str| -> Option<BTreeSet<u16>> {
        let ranges = parse_ranges(text).ok()?;
        Some(ranges.into_iter().flat_map(|(first, last)| first..=last).collect())
    };
    set == value || ports(set).is_some_and(|set| Some(set) == ports(value))
}

/// Reports whether `value` widens `now`: no number is lower, except the first of a range of ports,
/// which is not higher. Another process may have changed the sysctl since the check.
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
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "read-only here; set it on the host".to_owned()
        }
        _ => format!("the kernel refused {}: {error}", sysctl.value),
    }
}

fn is_root() -> bool {
    let status =
        throng_machine::status::status(&throng_machine::ProcRoot::default(), std::process::id());
    status.known().is_none_or(|status| status.uid == 0)
}

/// Replaces the tabs between numbers by single spaces.
fn normalized(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "(empty)" } else { text }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::*;

    /// Sysctls in memory, some of which the kernel refuses or ignores.
    #[derive(Default)]
    struct Fake {
        values: RefCell<BTreeMap<String, String>>,
        refuses: Vec<&'static str>,
        ignores: Vec<&'static str>,
        read_only: Vec<&'static str>,
        /// Whether an old value is refused, too.
        refuses_all: bool,
    }

    impl Sysctls for Fake {
        fn read(&self, name: &str) -> io::Result<String> {
            let value = self.values.borrow().get(name).cloned();
            value.map(|value| value + "\n").ok_or(io::ErrorKind::NotFound.into())
        }

        fn check(&self, name: &str) -> io::Result<()> {
            if self.read_only.contains(&name) {
                Err(io::ErrorKind::ReadOnlyFilesystem.into())
            } else {
                Ok(())
            }
        }

        fn write(&self, name: &str, value: &str) -> io::Result<()> {
            let is_new = value != OLD;
            if self.refuses.contains(&name) && is_new || self.refuses_all && !is_new {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            if !self.ignores.contains(&name) {
                self.values.borrow_mut().insert(name.to_owned(), value.to_owned());
            }
            Ok(())
        }
    }

    const OLD: &str = "128";

    fn requested() -> [Sysctl; 3] {
        ["a", "b", "c"].map(|name| Sysctl {
            name: name.to_owned(),
            old: OLD.to_owned(),
            value: "4096".to_owned(),
        })
    }

    fn fake() -> Fake {
        let values = ["a", "b", "c"].map(|name| (name.to_owned(), OLD.to_owned()));
        Fake { values: RefCell::new(values.into()), ..Fake::default() }
    }

    /// Returns the raised sysctls, the remaining undo files, and the result.
    fn raise_all_of(fake: &Fake) -> (String, Vec<String>, Result<(), String>) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("throng");
        let requested = requested();
        let plan = plan(fake, &requested.iter().collect::<Vec<_>>());
        let result =
            raise_and_print(fake, &plan.changes, &folder).map_err(|error| error.to_string());
        let values = fake.values.borrow();
        let raised = values.iter().filter(|(_, value)| *value != OLD).map(|(name, _)| &**name);
        let files = fs::read_dir(&folder).unwrap();
        let text =
            |file: io::Result<fs::DirEntry>| fs::read_to_string(file.unwrap().path()).unwrap();
        (raised.collect(), files.map(text).collect(), result)
    }

    #[test]
    fn all_are_raised_and_the_file_that_undoes_it_stays() {
        let (raised, files, result) = raise_all_of(&fake());
        assert_eq!((&*raised, files.len()), ("abc", 1));
        assert!(result.is_ok());
        let set: Vec<_> = files[0].lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(set, ["a = 128", "b = 128", "c = 128"]);
    }

    #[test]
    fn when_one_is_refused_those_before_it_are_reverted() {
        for fake in [
            Fake { refuses: vec!["c"], ..fake() },
            Fake { ignores: vec!["c"], ..fake() },
            Fake { refuses: vec!["a"], ..fake() },
        ] {
            let (raised, files, result) = raise_all_of(&fake);
            assert_eq!((&*raised, files.len()), ("", 0), "nothing is to be undone");
            assert!(result.unwrap_err().contains("every value is restored"));
        }
    }

    #[test]
    fn what_cannot_be_reverted_is_named_with_the_file_that_does_it() {
        let fake = Fake { refuses: vec!["c"], refuses_all: true, ..fake() };
        let (raised, files, result) = raise_all_of(&fake);
        assert_eq!((&*raised, files.len()), ("ab", 1));
        let error = result.unwrap_err();
        assert!(error.contains("b, a are still raised"), "{error}");
        assert!(error.contains("sysctl -p /"), "{error}");
    }

    #[test]
    fn what_cannot_be_changed_here_is_known_before_anything_is() {
        let fake = Fake { read_only: vec!["b"], ..fake() };
        fake.values.borrow_mut().remove("a");
        fake.values.borrow_mut().insert("c".to_owned(), "9999".to_owned());
        let requested = requested();
        let plan = plan(&fake, &requested.iter().collect::<Vec<_>>());
        assert!(plan.changes.is_empty());
        assert_eq!(plan.sufficient, [("c", "9999".to_owned())]);
        let impossible: Vec<_> =
            plan.impossible.iter().map(|(sysctl, error)| why(sysctl, error)).collect();
        assert!(impossible[0].contains("does not exist"), "{impossible:?}");
        assert!(impossible[1].contains("read-only"), "{impossible:?}");
    }

    #[test]
    fn without_an_undo_file_nothing_is_changed() {
        let (fake, requested) = (fake(), requested());
        let plan = plan(&fake, &requested.iter().collect::<Vec<_>>());
        let error =
            raise_and_print(&fake, &plan.changes, Path::new("/proc/no/throng")).unwrap_err();
        assert!(error.to_string().contains("nothing was changed"), "{error}");
        assert!(fake.values.borrow().values().all(|value| value == OLD));
    }

    #[test]
    fn nothing_is_ever_lowered() {
        assert!(is_raised("128", "4096") && !is_raised("4096", "128") && !is_raised("128", "128"));
        assert!(is_raised("1 2 3", "1 2 4") && !is_raised("1 9 3", "1 2 4"));
        assert!(is_raised("32768 60999", "1024 65535"), "a range grows at both ends");
        assert!(!is_raised("1024 60999", "2048 65535"));
        assert!(is_raised("", "5555") && is_raised("80,90-95", "80,90-95,5555"));
        assert!(!is_raised("70,80", "80,5555"), "another process changed it");
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
            describe_change(&sysctl, "", "5555"),
            "net.ipv4.ip_local_reserved_ports: (empty) -> 5555\n  \
             undo: sysctl -w net.ipv4.ip_local_reserved_ports=\"\""
        );
    }
}
