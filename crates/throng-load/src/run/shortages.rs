//! Events for resources that the generator ran out of, once each. `connect_failed` has the counts.

use std::net::SocketAddr;

use throng_driver::DriverCapacity;
use throng_measure::{Limit, RunEventKind};

use crate::generator::ConnectFailure;
use crate::source::SourcePlan;

/// Shortages that have been reported.
#[derive(Debug)]
pub(super) struct Shortages {
    /// The driver, which knows its limits.
    driver: DriverCapacity,
    /// The source addresses, formatted.
    sources: String,
    ports_reported: bool,
    /// The ports of the targets, formatted.
    target_ports: String,
    self_connect_reported: bool,
    /// Reported fd shortages, by core.
    fds_reported: Vec<bool>,
    watches_reported: bool,
    /// Reads a limit as it is now.
    read: fn(Limit) -> Option<u64>,
}

impl Shortages {
    pub(super) fn new(
        driver: DriverCapacity,
        sources: &SourcePlan,
        targets: &[SocketAddr],
        cores: usize,
        read: fn(Limit) -> Option<u64>,
    ) -> Self {
        let mut ports: Vec<_> = targets.iter().map(|target| target.port().to_string()).collect();
        ports.dedup();
        Self {
            driver,
            sources: sources.to_string(),
            ports_reported: false,
            target_ports: ports.join(","),
            self_connect_reported: false,
            fds_reported: vec![false; cores],
            watches_reported: false,
            read,
        }
    }

    /// Returns the new events of one core, given its failed connects by reason.
    pub(super) fn new_events(
        &mut self,
        core: usize,
        failures: &[(ConnectFailure, u64)],
    ) -> Vec<RunEventKind> {
        let has = |failure| failures.iter().any(|(why, _)| *why == failure);
        let limit_of = |(why, _): &(ConnectFailure, u64)| match why {
            ConnectFailure::Errno(errno) => self.driver.limit_reached(*errno),
            _ => None,
        };
        let reached: Vec<Limit> = failures.iter().filter_map(limit_of).collect();
        let mut events = Vec::new();
        if reached.contains(&Limit::PORTS) && !std::mem::replace(&mut self.ports_reported, true) {
            events.push(RunEventKind::PortsExhausted { source: self.sources.clone() });
        }
        if reached.contains(&Limit::FDS) && !std::mem::replace(&mut self.fds_reported[core], true) {
            events.push(RunEventKind::GeneratorFdsExhausted { core: core as u32 });
        }
        if reached.contains(&Limit::EPOLL_WATCHES)
            && !std::mem::replace(&mut self.watches_reported, true)
        {
            // Another program may change it during the run: it counts as it is now.
            let watches_max = (self.read)(Limit::EPOLL_WATCHES);
            events.push(RunEventKind::GeneratorWatchesExhausted { watches_max });
        }
        if has(ConnectFailure::SelfConnected)
            && !std::mem::replace(&mut self.self_connect_reported, true)
        {
            events.push(RunEventKind::SelfConnected { ports: self.target_ports.clone() });
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use throng_driver::{DriverFactory, Epoll, Errno};

    use super::*;

    #[test]
    fn each_shortage_is_reported_once() {
        let targets = ["127.0.0.1:40050".parse().unwrap()];
        let sources = SourcePlan::loopback(3);
        let mut shortages = Shortages::new(Epoll.capacity(), &sources, &targets, 2, |_| Some(300));
        let failures = [
            (ConnectFailure::Timeout, 7),
            (ConnectFailure::Errno(Errno::ADDR_NOT_AVAILABLE), 2),
            (ConnectFailure::Errno(Errno::TABLE_FULL), 1),
        ];
        let ports = RunEventKind::PortsExhausted { source: "127.1.0.1 and 2 more".into() };
        let fds = |core| RunEventKind::GeneratorFdsExhausted { core };
        assert_eq!(shortages.new_events(0, &failures), [ports, fds(0)]);
        assert_eq!(shortages.new_events(0, &failures), []);
        assert_eq!(
            shortages.new_events(1, &failures),
            [fds(1)],
            "tables are a core's, ports are not"
        );
        assert_eq!(shortages.new_events(1, &failures[..1]), []);
        let watches = [(ConnectFailure::Errno(Errno::NO_SPACE), 84)];
        let event = RunEventKind::GeneratorWatchesExhausted { watches_max: Some(300) };
        assert_eq!(shortages.new_events(1, &watches), [event]);
        assert_eq!(shortages.new_events(0, &watches), []);
        let itself = [(ConnectFailure::SelfConnected, 1)];
        let events = RunEventKind::SelfConnected { ports: "40050".into() };
        assert_eq!(shortages.new_events(0, &itself), [events]);
        assert_eq!(
            shortages.new_events(1, &itself),
            [],
            "the kernel's ports are those of all cores"
        );
    }

    #[test]
    fn what_a_driver_does_not_use_never_runs_out() {
        let driver = DriverCapacity { limits: &[Limit::FDS], ..Epoll.capacity() };
        let mut shortages = Shortages::new(driver, &SourcePlan::Any, &[], 1, |_| None);
        let failures = [
            (ConnectFailure::Errno(Errno::ADDR_NOT_AVAILABLE), 2),
            (ConnectFailure::Errno(Errno::TABLE_FULL), 1),
        ];
        let fds = RunEventKind::GeneratorFdsExhausted { core: 0 };
        assert_eq!(shortages.new_events(0, &failures), [fds]);
    }
}
