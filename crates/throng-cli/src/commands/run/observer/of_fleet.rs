//! The observer of a fleet that sees the loaded server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_fleet::{BusWatch, ObserverHello, Observers};
use throng_run::recorder::FactsStream;

use super::super::flags::Run;
use crate::Failure;

/// Connects to the observer that was named, or else, in a run of agents, to one that observes a
/// port of the target. Returns its stream, and a note about it and others.
///
/// # Errors
/// The named observer does not answer.
pub(super) fn find(
    typed: &Run,
    targets: &[SocketAddr],
) -> Result<(Option<FactsStream>, Option<String>), Failure> {
    let named = typed.fleet.observer.as_deref();
    let is_wanted = named.is_some() || typed.fleet.is_used() && typed.server_facts.is_none();
    if !is_wanted {
        return Ok((None, None));
    }
    let (bus, subjects) = (typed.fleet.bus.connect("throng run")?, typed.fleet.bus.subjects());
    let lost = |error| Failure::new(format!("--bus: {error}"));
    let mut observers = Observers::listen(&*bus, &subjects).map_err(lost)?;
    let until = Instant::now() + HELLOS_WITHIN;
    let is_there = |known: &BTreeMap<String, ObserverHello>| {
        named.is_some_and(|name| known.contains_key(name))
    };
    while Instant::now() < until && !is_there(observers.known()) {
        std::thread::sleep(LOOK_EVERY);
    }
    let known = observers.known();
    let Some((name, others)) = choose(known, named, targets)? else { return Ok((None, None)) };
    let watch = BusWatch::new(Arc::clone(&bus), subjects, name.clone());
    let stream = FactsStream::of(watch)
        .map_err(|error| Failure::new(format!("--observer {name}: {error}")))?;
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; --observer takes another: {}", others.join(", ")),
    };
    let host = &known[&name].facts.host;
    Ok((Some(stream), Some(format!("server's side: from observer {name} on {host}{others}"))))
}

/// Returns the name of the observer to take, and those of others that observe the same port.
fn choose(
    known: &BTreeMap<String, ObserverHello>,
    named: Option<&str>,
    targets: &[SocketAddr],
) -> Result<Option<(String, Vec<String>)>, Failure> {
    let observes = |hello: &&ObserverHello| {
        targets.iter().any(|target| hello.observes.ports.contains(&target.port()))
    };
    let fitting: Vec<String> =
        known.values().filter(observes).map(|hello| hello.facts.name.to_string()).collect();
    let chosen = match named {
        None => fitting.first().cloned(),
        Some(name) if known.contains_key(name) => Some(name.to_owned()),
        Some(name) => {
            let all: Vec<_> = known.keys().map(String::as_str).collect();
            let there = match all.is_empty() {
                true => "none answered".to_owned(),
                false => format!("there are: {}", all.join(", ")),
            };
            return Err(Failure::new(format!(
                "--observer {name}: no observer of the group has this name; {there}\n  start it \
                 beside the server: throng agent --observe --port PORT --name {name} --bus URL"
            )));
        }
    };
    Ok(chosen.map(|chosen| {
        let others = fitting.into_iter().filter(|name| *name != chosen).collect();
        (chosen, others)
    }))
}

/// Time in which observers say who they are: each does it once a second.
const HELLOS_WITHIN: Duration = Duration::from_millis(2_200);
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    fn observers(all: &[(&str, u16)]) -> BTreeMap<String, ObserverHello> {
        let one = |(name, port): &(&str, u16)| {
            let mut hello = ObserverHello::default();
            hello.facts.name = throng_bus::Name::new(*name).unwrap();
            hello.observes.ports = vec![*port];
            (hello.facts.name.to_string(), hello)
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn the_observer_of_the_targets_port_is_taken_unless_another_is_named() {
        let known = observers(&[("db", 5432), ("web-1", 4000), ("web-2", 4000)]);
        let targets = ["10.0.0.1:4000".parse().unwrap()];
        let choose = |named, targets: &[SocketAddr]| choose(&known, named, targets).unwrap();
        let web = |name: &str, other: &str| Some((name.to_owned(), vec![other.to_owned()]));
        assert_eq!(choose(None, &targets), web("web-1", "web-2"));
        assert_eq!(choose(Some("web-2"), &targets), web("web-2", "web-1"));
        let both = vec!["web-1".to_owned(), "web-2".to_owned()];
        assert_eq!(choose(Some("db"), &targets), Some(("db".to_owned(), both)));
        assert_eq!(choose(None, &["10.0.0.1:80".parse().unwrap()]), None);
        assert!(super::choose(&known, Some("web-3"), &targets).is_err());
    }
}
