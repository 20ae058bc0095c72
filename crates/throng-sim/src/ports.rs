//! Local ports of connections, and their TIME-WAIT.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;

use throng_base::{Instant, Prng};
use throng_driver::Errno;

/// Pairs of local address and target that are in use.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    /// End of the use of each pair; [`Instant::FAR`] while the connection is open.
    bound: BTreeMap<(SocketAddr, SocketAddr), Instant>,
}

impl Ports {
    /// Binds `source` for `target`. For port 0, binds a free port of `range`.
    pub(crate) fn bind(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        range: &RangeInclusive<u16>,
        now: Instant,
        prng: &mut Prng,
    ) -> Result<SocketAddr, Errno> {
        if source.port() != 0 {
            return self.bind_pair(source, target, now).ok_or(Errno::ADDR_NOT_AVAILABLE);
        }
        let (first, count) = (*range.start(), range.len() as u64);
        let offset = prng.below(count);
        (0..count)
            .map(|n| first + ((offset + n) % count) as u16)
            .find_map(|port| self.bind_pair(SocketAddr::new(source.ip(), port), target, now))
            .ok_or(Errno::ADDR_NOT_AVAILABLE)
    }

    /// Releases a pair, or keeps it in TIME-WAIT until `until`.
    pub(crate) fn release(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        until: Option<Instant>,
    ) {
        match until {
            Some(until) => self.bound.insert((source, target), until),
            None => self.bound.remove(&(source, target)),
        };
    }

    fn bind_pair(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        now: Instant,
    ) -> Option<SocketAddr> {
        let until = self.bound.entry((source, target)).or_insert(Instant::ZERO);
        if *until > now {
            return None;
        }
        *until = Instant::FAR;
        Some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_taken_once_for_each_target_and_free_again_after_time_wait() {
        let (mut ports, mut prng) = (Ports::default(), Prng::new(1));
        let source: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let targets: [SocketAddr; 2] =
            ["127.0.0.1:80".parse().unwrap(), "127.0.0.1:81".parse().unwrap()];
        let mut take = |ports: &mut Ports, n: usize, at: u64| {
            ports.bind(source, targets[n], &(5..=6), Instant::from_nanos(at), &mut prng)
        };
        let first = take(&mut ports, 0, 0).unwrap();
        assert_ne!(take(&mut ports, 0, 0).unwrap(), first);
        assert_eq!(take(&mut ports, 0, 0), Err(Errno::ADDR_NOT_AVAILABLE));
        assert!(take(&mut ports, 1, 0).is_ok());
        ports.release(first, targets[0], Some(Instant::from_nanos(10)));
        assert_eq!(take(&mut ports, 0, 9), Err(Errno::ADDR_NOT_AVAILABLE));
        assert_eq!(take(&mut ports, 0, 10), Ok(first));
    }
}
