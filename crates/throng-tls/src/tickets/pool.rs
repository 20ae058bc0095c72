//! The tickets of the clients of a core.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use crate::handshake::{offers_session, session_owner};

/// Bounded pool of tickets. A ticket of TLS 1.3 is used once; the oldest is used, and dropped,
/// first. A ticket has 0.7 to 3 kB, because it keeps its chain of certificates. Clients share the
/// tickets of their owner.
///
/// The lock is for rustls, which demands it: a pool belongs to one core.
#[derive(Clone)]
pub struct TicketPool(Arc<Mutex<Pool>>);

struct Pool {
    sessions: HashMap<Place, Sessions>,
    /// The places of `sessions`, the oldest first.
    places: VecDeque<Place>,
    tickets_max: usize,
    keeps_newest: bool,
    /// Tickets of TLS 1.3 of all places.
    tickets: usize,
}

/// Owner of sessions, and the server that they are with.
type Place = (u64, ServerName<'static>);

#[derive(Default)]
struct Sessions {
    tls13: VecDeque<Tls13ClientSessionValue>,
    /// A session of TLS 1.2 is resumed any number of times.
    tls12: Option<Tls12ClientSessionValue>,
    group: Option<NamedGroup>,
}

impl TicketPool {
    /// Creates a pool of at most this many tickets. With `keeps_newest`, each owner keeps one with
    /// each server.
    pub fn new(tickets_max: usize, keeps_newest: bool) -> Self {
        let (sessions, places) = (HashMap::new(), VecDeque::new());
        let pool = Pool { sessions, places, tickets_max, keeps_newest, tickets: 0 };
        Self(Arc::new(Mutex::new(pool)))
    }

    /// Returns an empty pool with the same rules.
    pub(crate) fn empty(&self) -> Self {
        let pool = self.pool();
        Self::new(pool.tickets_max, pool.keeps_newest)
    }

    /// Returns the number of tickets of TLS 1.3.
    pub fn len(&self) -> usize {
        self.pool().tickets
    }

    /// Reports whether no ticket of TLS 1.3 is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reports whether the next connection of this owner to this server can offer a session.
    pub fn has_session(&self, owner: u64, server: &ServerName<'_>) -> bool {
        let pool = self.pool();
        let found = pool.sessions.get(&(owner, server.to_owned()));
        found.is_some_and(|sessions| !sessions.tls13.is_empty() || sessions.tls12.is_some())
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TicketPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketPool({} tickets)", self.len())
    }
}

impl Pool {
    /// Returns the sessions of the client of this step with a server; an empty entry if it has
    /// none. The oldest entry makes room.
    fn sessions(&mut self, server: ServerName<'static>) -> &mut Sessions {
        let place = (session_owner(), server);
        if !self.sessions.contains_key(&place) {
            if self.places.len() >= self.tickets_max.max(PLACES_MIN) {
                self.drop_oldest();
            }
            self.places.push_back(place.clone());
        }
        self.sessions.entry(place).or_default()
    }

    fn of_step(&mut self, server: &ServerName<'_>) -> Option<&mut Sessions> {
        self.sessions.get_mut(&(session_owner(), server.to_owned()))
    }

    fn insert(&mut self, server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        if self.tickets_max == 0 {
            return;
        }
        let (is_full, keeps_newest) = (self.tickets >= self.tickets_max, self.keeps_newest);
        let sessions = self.sessions(server.clone());
        let replaces = (is_full || keeps_newest) && sessions.tls13.pop_front().is_some();
        if is_full && !replaces {
            self.drop_oldest();
        }
        self.sessions(server).tls13.push_back(ticket);
        self.tickets += usize::from(!replaces);
    }

    fn take(&mut self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let ticket = self.of_step(server)?.tls13.pop_front()?;
        self.tickets -= 1;
        Some(ticket)
    }

    /// Drops the sessions of the oldest place that has tickets, and those of the places before it.
    fn drop_oldest(&mut self) {
        while let Some(place) = self.places.pop_front() {
            let tickets = self.sessions.remove(&place).map_or(0, |sessions| sessions.tls13.len());
            self.tickets -= tickets;
            if tickets > 0 {
                break;
            }
        }
    }
}

/// Way of rustls to a pool.
#[derive(Debug)]
pub(crate) struct PoolStore(pub TicketPool);

impl ClientSessionStore for PoolStore {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.0.pool().sessions(server_name).group = Some(group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.0.pool().of_step(server_name)?.group
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        let mut pool = self.0.pool();
        if pool.tickets_max > 0 {
            pool.sessions(server_name).tls12 = Some(value);
        }
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        if !offers_session() {
            return None;
        }
        self.0.pool().of_step(server_name)?.tls12.clone()
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        if let Some(sessions) = self.0.pool().of_step(server_name) {
            sessions.tls12 = None;
        }
    }

    fn insert_tls13_ticket(
        &self,
        server_name: ServerName<'static>,
        value: Tls13ClientSessionValue,
    ) {
        self.0.pool().insert(server_name, value);
    }

    fn take_tls13_ticket(
        &self,
        server_name: &ServerName<'static>,
    ) -> Option<Tls13ClientSessionValue> {
        if offers_session() { self.0.pool().take(server_name) } else { None }
    }
}

/// Least number of owners and servers whose sessions are kept.
const PLACES_MIN: usize = 256;
