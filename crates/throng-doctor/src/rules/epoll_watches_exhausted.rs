//! The Unix user of a program has no epoll watch left for another socket.

use throng_measure::{Endpoint, Finding, Limit, RunEventKind, Side};
use throng_report::render::count;

use super::Rule;
use crate::counted::connections;
use crate::outages::events;
use crate::run_view::{Growth, RunView};

pub(super) const RULE: Rule =
    Rule::new("epoll_watches_exhausted", find).explains(&["server_closes_early", "half_open"]);

/// The sign is `ENOSPC` from a connect or an accept: both opened a socket and could not add it to
/// epoll. The kernel does not report how many watches a user has; the errno is the only sign.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let client = run.connect_failures("ENOSPC");
    let server = run
        .server_growth("server.accept_errors.ENOSPC", |server| server.accept_errors.get("ENOSPC"));
    let (end, side, whose) = match (&client, &server) {
        (Some(_), Some(_)) => (Endpoint::Client, Side::Kernel, "The user of generator and server"),
        (Some(_), None) => (Endpoint::Client, Side::Client, "The generator's user"),
        (None, Some(_)) => (Endpoint::Server, Side::Server, "The server's user"),
        (None, None) => return None,
    };
    let most = most_when_it_bit(run).or(run.facts(end).epoll_watches_max);
    let all = most.map_or(String::new(), |most| format!(" of {}", count(most as f64)));
    let refused = Growth::total([&client, &server].into_iter().flatten());
    let needed = run.header.users_planned.saturating_mul(2) as i64 + SPARE;
    let wanted = most.unwrap_or(0).saturating_mul(2).max(needed);
    let finding = Finding::new(
        RULE.id,
        side,
        format!(
            "{whose} has no epoll watch left{all}: {} failed with ENOSPC. All programs \
             of that user share the limit (fs.epoll.max_user_watches). Each connection takes one \
             watch in the generator and one in the server.",
            connections(refused)
        ),
    )
    .with_evidence([client, server].into_iter().flatten())
    .remedied_by(Limit::EPOLL_WATCHES.raise(wanted));
    Some(finding)
}

/// Returns the limit at the first failed connect. Another program may have changed it since the run
/// began.
fn most_when_it_bit(run: &RunView<'_>) -> Option<i64> {
    events(run).find_map(|(_, kind)| match kind {
        RunEventKind::GeneratorWatchesExhausted { watches_max } => {
            watches_max.and_then(|most| i64::try_from(most).ok())
        }
        _ => None,
    })
}

/// Watches for other programs of the user.
const SPARE: i64 = 100_000;

#[cfg(test)]
mod tests {
    use throng_measure::{Metric, RunEvent, ServerSnapshot};

    use super::super::fixture::Run;
    use super::*;

    fn refused_by_the_server(run: Run, errno: &'static str) -> Run {
        run.changed(move |interval, second| {
            let server = interval.server.get_or_insert_with(ServerSnapshot::default);
            server.accept_errors.add(errno, 7 * second);
        })
    }

    fn refused_by_the_generator(errno: &'static str) -> Run {
        Run::quiet().loaded(move |load, second| load.connect_failed.add(errno, 3 * second))
    }

    #[test]
    fn the_program_that_was_refused_is_named() {
        let side = |run: &Run| run.speaks(&RULE).side;
        let generator =
            refused_by_the_generator("ENOSPC").with(Metric::SYSCTL_FS_EPOLL_MAX_USER_WATCHES, 400);
        assert_eq!(side(&generator), Side::Client);
        assert_eq!(
            generator.speaks(&RULE).first_sentence(),
            "The generator's user has no epoll watch left of 400: 30 connections failed with ENOSPC"
        );
        assert_eq!(side(&refused_by_the_server(Run::quiet(), "ENOSPC")), Side::Server);
        assert_eq!(side(&refused_by_the_server(generator, "ENOSPC")), Side::Kernel);
    }

    #[test]
    fn the_limit_is_that_of_the_moment_at_which_it_bit() {
        let run = refused_by_the_generator("ENOSPC")
            .with(Metric::SYSCTL_FS_EPOLL_MAX_USER_WATCHES, 5_490_000)
            .changed(|interval, second| {
                let kind = RunEventKind::GeneratorWatchesExhausted { watches_max: Some(300) };
                let first = (second == 1).then(|| RunEvent::new(1_000, kind));
                interval.events.extend(first);
            });
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The generator's user has no epoll watch left of 300: 30 connections failed with ENOSPC"
        );
        assert!(!found.remedy.contains("10980000"), "{}", found.remedy);
    }

    #[test]
    fn other_limits_have_other_names() {
        refused_by_the_generator("EMFILE").is_silent(&RULE);
        refused_by_the_server(Run::quiet(), "ENOMEM").is_silent(&RULE);
    }
}
