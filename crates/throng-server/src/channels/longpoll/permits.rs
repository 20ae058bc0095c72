//! The number of long-poll sessions of a server, and the share of each address.
//!
//! A session needs no connection, so one client could take all of them with one connection. An
//! address has a share, and a session that its client has never polled or posted to gives its place
//! to a new one of the same address, or of one that has no session.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ConnectionId;

/// The permits of the sessions, shared by all cores of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionPermits(Arc<Mutex<PermitTable>>);

impl SessionPermits {
    /// Takes a permit for one more session of an address. If another session must end for it,
    /// returns that, too. `None` without room for it.
    pub(crate) fn take(
        &self,
        from: IpAddr,
        sessions_max: usize,
    ) -> Option<(SessionPermit, Option<ConnectionId>)> {
        let mut table = lock(&self.0);
        let free = sessions_max.saturating_sub(table.held);
        let own = table.addresses.get(&from).map_or(0, |address| address.held);
        let ended = match free {
            1.. if own < share(free) => None,
            1.. => Some(table.end_unused(from)?),
            0 if own > 0 => Some(table.end_unused(from)?),
            0 => {
                let largest = table.largest_unused()?;
                Some(table.end_unused(largest)?)
            }
        };
        let number = table.next_number;
        table.next_number += 1;
        table.add(from);
        let permit = SessionPermit { permits: self.clone(), from, number, state: PermitState::New };
        Some((permit, ended))
    }
}

/// Returns how many sessions one address may have while so many are free.
fn share(free: usize) -> usize {
    (free / 4).max(SHARE_LEAST)
}

/// The sessions of all addresses. Cores change it behind a lock, which none of them holds for more
/// than a few steps in these maps, however many addresses there are.
#[derive(Debug, Default)]
struct PermitTable {
    /// Sessions that have not been told to end.
    held: usize,
    addresses: HashMap<IpAddr, AddressSessions>,
    /// The addresses with an unused session, by how many sessions they have.
    with_unused: BTreeSet<(usize, IpAddr)>,
    next_number: u64,
}

/// The sessions of an address: at least one.
#[derive(Debug, Default)]
struct AddressSessions {
    held: usize,
    /// Sessions that their client has not used yet, the oldest first.
    unused: BTreeMap<u64, ConnectionId>,
}

impl PermitTable {
    fn add(&mut self, from: IpAddr) {
        self.held += 1;
        self.addresses.entry(from).or_default();
        self.change(from, |address| address.held += 1);
    }

    fn remove(&mut self, from: IpAddr) {
        self.held -= 1;
        self.change(from, |address| address.held -= 1);
    }

    /// Takes the permit of the oldest unused session of an address. The caller ends the session.
    fn end_unused(&mut self, from: IpAddr) -> Option<ConnectionId> {
        let (_, session) = self.change(from, |address| address.unused.pop_first())??;
        self.remove(from);
        Some(session)
    }

    /// Returns the address that has the most sessions, of those with an unused one.
    fn largest_unused(&self) -> Option<IpAddr> {
        self.with_unused.last().map(|(_, from)| *from)
    }

    /// Changes the sessions of an address. `None` if it has none.
    fn change<T>(
        &mut self,
        from: IpAddr,
        change: impl FnOnce(&mut AddressSessions) -> T,
    ) -> Option<T> {
        let address = self.addresses.get_mut(&from)?;
        self.with_unused.remove(&(address.held, from));
        let changed = change(address);
        if address.held == 0 {
            self.addresses.remove(&from);
        } else if !address.unused.is_empty() {
            self.with_unused.insert((address.held, from));
        }
        Some(changed)
    }
}

/// The permit of one session, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct SessionPermit {
    permits: SessionPermits,
    from: IpAddr,
    number: u64,
    state: PermitState,
}

/// What the permit's session has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PermitState {
    /// It has no token yet.
    New,
    /// It has begun. It may have been told to end since.
    Unused,
    /// Its client has polled or posted.
    Used,
    /// It was told to end, and another session has its permit.
    Taken,
}

impl SessionPermit {
    /// Notes that the session has begun.
    pub(crate) fn begun(&mut self, session: ConnectionId) {
        lock(&self.permits.0).change(self.from, |address| {
            address.unused.insert(self.number, session);
        });
        self.state = PermitState::Unused;
    }

    /// Notes that its client has used the session.
    pub(crate) fn used(&mut self) {
        if self.state == PermitState::Unused {
            let mut table = lock(&self.permits.0);
            let is_held =
                table.change(self.from, |address| address.unused.remove(&self.number).is_some());
            self.state = if is_held == Some(true) { PermitState::Used } else { PermitState::Taken };
        }
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        self.used();
        if self.state != PermitState::Taken {
            lock(&self.permits.0).remove(self.from);
        }
    }
}

fn lock(table: &Mutex<PermitTable>) -> MutexGuard<'_, PermitTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sessions that an address may have however few are free.
const SHARE_LEAST: usize = 16;

#[cfg(test)]
mod tests {
    use throng_base::Key;

    use super::*;

    const MAX: usize = 1_000;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn id(number: u32) -> ConnectionId {
        ConnectionId::new(0, Key::new(number, 1))
    }

    /// Begins sessions of an address, and returns the permits that are still theirs.
    fn begin(permits: &SessionPermits, from: u8, sessions: u32) -> Vec<SessionPermit> {
        let begun = (0..sessions).filter_map(|number| {
            let (mut permit, _) = permits.take(address(from), MAX)?;
            permit.begun(id(number));
            Some(permit)
        });
        begun.collect()
    }

    fn held(permits: &SessionPermits) -> (usize, usize) {
        let table = lock(&permits.0);
        (table.held, table.addresses.len())
    }

    #[test]
    fn an_address_has_a_share_and_leaves_the_rest() {
        let permits = SessionPermits::default();
        let mut kept = begin(&permits, 1, 5_000);
        assert_eq!(held(&permits), (200, 1), "a quarter of what is then free");
        assert_eq!(begin(&permits, 2, 100).len(), 100);
        kept.iter_mut().for_each(SessionPermit::used);
        assert!(permits.take(address(1), MAX).is_none(), "all of its sessions are used");
        drop(kept);
        assert_eq!(held(&permits), (0, 0));
    }

    #[test]
    fn the_oldest_session_that_was_never_used_goes_first() {
        let permits = SessionPermits::default();
        let mut kept = begin(&permits, 1, 200);
        kept[0].used();
        let (_permit, ended) = permits.take(address(1), MAX).unwrap();
        assert_eq!(ended, Some(id(1)));
        // It was used at the same moment: that is too late.
        kept[1].used();
        drop(kept);
        assert_eq!(held(&permits), (1, 1));
    }

    #[test]
    fn an_address_without_a_session_gets_one_for_an_unused_one_of_others() {
        let permits = SessionPermits::default();
        let mut kept: Vec<_> = (0..=255).flat_map(|from| begin(&permits, from, 16)).collect();
        assert_eq!(held(&permits).0, MAX);
        let new: IpAddr = [10, 0, 1, 1].into();
        let (_permit, ended) = permits.take(new, MAX).unwrap();
        assert!(ended.is_some());
        assert!(permits.take(new, MAX).is_none(), "it has one, and none is free");
        kept.iter_mut().for_each(SessionPermit::used);
        assert!(permits.take([10, 0, 1, 2].into(), MAX).is_none());
        drop(kept);
        assert_eq!(held(&permits), (1, 1));
    }

    #[test]
    fn a_session_that_never_began_gives_its_permit_back() {
        let permits = SessionPermits::default();
        let taken = permits.take(address(1), 1).unwrap();
        assert!(permits.take(address(2), 1).is_none());
        drop(taken);
        assert!(permits.take(address(2), 1).is_some());
    }
}
