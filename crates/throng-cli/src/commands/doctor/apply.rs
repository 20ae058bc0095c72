//! `throng doctor --for N --apply`: raises the sysctls that are short, all of them or none, and says how
//! to undo it.
//!
//! What they were is in a file before the first is changed, so that it outlives a lost terminal; when
//! one cannot be changed, those before it are taken back.

mod undo;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use throng_doctor::ports::parse_ranges;
use throng_doctor::preflight::{Preflight, Sysctl};
use throng_doctor::sysctl::sysctl_path;

use super::preflight::exit;
use crate::{Exit, Failure, output};
use undo::{UNDO_FOLDER, UndoFile};

/// Raises what `answer` says, prints each change, and looks again. Nothing is ever lowered.
///
/// # Errors
/// A plain user asked; the undo file cannot be written; the kernel refuses a change. Then everything is
/// as it was, or the error says what is not.
pub(super) fn apply(answer: &Preflight, look: impl Fn() -> Preflight) -> Result<Exit, Failure> {
    let sysctls = answer.sysctls();
    if sysctls.is_empty() {
        output::say(format!("nothing to change: no sysctl is short.\n\n{answer}"));
        return Ok(exit(answer));
    }
    let ApplyPlan { changes, raised_already, impossible } = plan(&Live, &sysctls);
    if impossible.iter().any(|(_, error)| is_for_root(error)) && !is_root() {
        return Err(for_root(&sysctls));
    }
    for (name, now) in raised_already {
        output::say(format!("{name} is {now} already"));
    }
    for (sysctl, error) in &impossible {
        output::print_error(format!("left as it is: {}: {}", sysctl.name, why(sysctl, error)));
    }
    if !changes.is_empty() {
        raise_and_tell(&Live, &changes, Path::new(UNDO_FOLDER))?;
    }
    let after = look();
    output::say(format!("\n{after}"));
    Ok(exit(&after))
}

/// Makes `changes`, and tells of each.
fn raise_and_tell(
    sysctls: &impl Sysctls,
    changes: &[Change<'_>],
    folder: &Path,
) -> Result<(), Failure> {
    let undo = UndoFile::write(folder, changes).map_err(|error| {
        Failure::new(format!(
            "{error}\n  nothing was changed: first it must be sure how to undo it"
        ))
    })?;
    match raise_all(sysctls, changes) {
        Ok(made) => {
            for (change, set) in changes.iter().zip(made) {
                let Change { sysctl, old } = change;
                output::say(told(sysctl, old, &set));
                if !is_the_same(&set, &sysctl.value) {
                    output::print_error(format!(
                        "not changed as asked: {}: {} was asked for",
                        sysctl.name, sysctl.value
                    ));
                }
            }
            let path = undo.keep();
            output::say(format!("undo all of it: sysctl -p {}", path.display()));
            Ok(())
        }
        Err(refused) => {
            let mut text = format!("{}\n  ", refused.why);
            text += match refused.left.is_empty() {
                true => "everything is as it was: those that had been changed were taken back",
                false => "not all could be taken back",
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
    /// Whether it may be written; nothing is changed.
    fn check(&self, name: &str) -> io::Result<()>;
    fn write(&self, name: &str, value: &str) -> io::Result<()>;
}

/// Those below `/proc/sys`.
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

/// What is to be raised, and from what.
struct Change<'a> {
    sysctl: &'a Sysctl,
    old: String,
}

/// What becomes of what was asked for.
#[derive(Default)]
struct ApplyPlan<'a> {
    changes: Vec<Change<'a>>,
    /// With what it is now.
    raised_already: Vec<(&'a str, String)>,
    /// Sysctls that do not exist in this namespace, or are read-only.
    impossible: Vec<(&'a Sysctl, io::Error)>,
}

/// Looks at all of them before the first is changed.
fn plan<'a>(sysctls: &impl Sysctls, asked: &[&'a Sysctl]) -> ApplyPlan<'a> {
    let mut plan = ApplyPlan::default();
    for &sysctl in asked {
        match sysctls.read(&sysctl.name).map(|now| words(&now)) {
            Ok(now) if !is_raised(&now, &sysctl.value) => {
                plan.raised_already.push((&sysctl.name, now));
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

/// Why nothing was changed, and what could not be taken back.
struct ApplyError {
    why: String,
    left: Vec<String>,
}

/// Makes all of them or none, and returns what the kernel made of each.
fn raise_all(sysctls: &impl Sysctls, changes: &[Change<'_>]) -> Result<Vec<String>, ApplyError> {
    let mut made = Vec::new();
    for Change { sysctl, old } in changes {
        match raise(sysctls, sysctl, old) {
            Ok(set) => made.push(set),
            Err(error) => {
                let why = format!("{}: {}", sysctl.name, why(sysctl, &error));
                let take_back =
                    |change: &&Change<'_>| sysctls.write(&change.sysctl.name, &change.old).is_err();
                // The one that failed too: it may have been taken in part.
                let begun = changes[..=made.len()].iter().rev();
                let left = begun.filter(take_back).map(|change| change.sysctl.name.clone());
                let is_left = |name: &String| {
                    let old = changes.iter().find(|change| change.sysctl.name == *name);
                    let now = sysctls.read(name).map(|now| words(&now));
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
    let set = read.map_or_else(|_| sysctl.value.clone(), |set| words(&set));
    match set == old {
        true => Err(io::Error::other("the kernel left it as it was")),
        false => Ok(set),
    }
}

fn is_for_root(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn for_root(sysctls: &[&Sysctl]) -> Failure {
    let by_hand: String =
        sysctls.iter().map(|s| format!("\n  sysctl -w {}=\"{}\"", s.name, s.value)).collect();
    Failure::new(format!(
        "sysctls are root's to change: sudo {}\n  or by hand:{by_hand}",
        std::env::args().collect::<Vec<_>>().join(" "),
    ))
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
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "read-only here; set it on the host".to_owned()
        }
        _ => format!("{} is refused: {error}", sysctl.value),
    }
}

fn is_root() -> bool {
    let status =
        throng_doctor::status::status(&throng_doctor::ProcRoot::default(), std::process::id());
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
            match self.read_only.contains(&name) {
                true => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
                false => Ok(()),
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

    fn asked() -> [Sysctl; 3] {
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

    /// What is raised, what is left in the folder of undo files, and what was said.
    fn raise_all_of(fake: &Fake) -> (String, Vec<String>, Result<(), String>) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("throng");
        let asked = asked();
        let plan = plan(fake, &asked.iter().collect::<Vec<_>>());
        let came = raise_and_tell(fake, &plan.changes, &folder).map_err(|error| error.to_string());
        let values = fake.values.borrow();
        let raised = values.iter().filter(|(_, value)| *value != OLD).map(|(name, _)| &**name);
        let files = fs::read_dir(&folder).unwrap();
        let text =
            |file: io::Result<fs::DirEntry>| fs::read_to_string(file.unwrap().path()).unwrap();
        (raised.collect(), files.map(text).collect(), came)
    }

    #[test]
    fn all_are_raised_and_the_file_that_undoes_it_stays() {
        let (raised, files, came) = raise_all_of(&fake());
        assert_eq!((&*raised, files.len()), ("abc", 1));
        assert!(came.is_ok());
        let set: Vec<_> = files[0].lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(set, ["a = 128", "b = 128", "c = 128"]);
    }

    #[test]
    fn when_one_is_refused_those_before_it_are_taken_back() {
        for fake in [
            Fake { refuses: vec!["c"], ..fake() },
            Fake { ignores: vec!["c"], ..fake() },
            Fake { refuses: vec!["a"], ..fake() },
        ] {
            let (raised, files, came) = raise_all_of(&fake);
            assert_eq!((&*raised, files.len()), ("", 0), "nothing is to be undone");
            assert!(came.unwrap_err().contains("everything is as it was"));
        }
    }

    #[test]
    fn what_cannot_be_taken_back_is_named_with_the_file_that_does_it() {
        let fake = Fake { refuses: vec!["c"], refuses_all: true, ..fake() };
        let (raised, files, came) = raise_all_of(&fake);
        assert_eq!((&*raised, files.len()), ("ab", 1));
        let error = came.unwrap_err();
        assert!(error.contains("b, a are still raised"), "{error}");
        assert!(error.contains("sysctl -p /"), "{error}");
    }

    #[test]
    fn what_cannot_be_changed_here_is_known_before_anything_is() {
        let fake = Fake { read_only: vec!["b"], ..fake() };
        fake.values.borrow_mut().remove("a");
        fake.values.borrow_mut().insert("c".to_owned(), "9999".to_owned());
        let asked = asked();
        let plan = plan(&fake, &asked.iter().collect::<Vec<_>>());
        assert!(plan.changes.is_empty());
        assert_eq!(plan.raised_already, [("c", "9999".to_owned())]);
        let impossible: Vec<_> =
            plan.impossible.iter().map(|(sysctl, error)| why(sysctl, error)).collect();
        assert!(impossible[0].contains("does not exist"), "{impossible:?}");
        assert!(impossible[1].contains("read-only"), "{impossible:?}");
    }

    #[test]
    fn without_an_undo_file_nothing_is_changed() {
        let (fake, asked) = (fake(), asked());
        let plan = plan(&fake, &asked.iter().collect::<Vec<_>>());
        let error = raise_and_tell(&fake, &plan.changes, Path::new("/proc/no/throng")).unwrap_err();
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
