//! The tickets of a client, for all users of a core.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use crate::handshake::offers_session;

/// Bounded pool of tickets. A ticket of TLS 1.3 is used once; the oldest is used, and dropped,
/// first. A ticket has 0.7 to 3 kB, because it keeps its chain of certificates.
///
/// The lock is for rustls, which demands it: a pool belongs to one core.
#[derive(Clone)]
pub struct TicketPool(Arc<Mutex<Pool>>);

struct Pool {
    servers: HashMap<ServerName<'static>, ServerTickets>,
    tickets_max: usize,
    /// Tickets of TLS 1.3 of all servers.
    tickets: usize,
}

#[derive(Default)]
struct ServerTickets {
    tls13: VecDeque<Tls13ClientSessionValue>,
    /// A session of TLS 1.2 is resumed any number of times.
    tls12: Option<Tls12ClientSessionValue>,
    group: Option<NamedGroup>,
}

impl TicketPool {
    /// Creates a pool of at most this many tickets.
    pub fn new(tickets_max: usize) -> Self {
        let pool = Pool { servers: HashMap::new(), tickets_max, tickets: 0 };
        Self(Arc::new(Mutex::new(pool)))
    }

    /// Returns the most tickets of TLS 1.3.
    pub(crate) fn tickets_max(&self) -> usize {
        self.pool().tickets_max
    }

    /// Returns the number of tickets of TLS 1.3.
    pub fn len(&self) -> usize {
        self.pool().tickets
    }

    /// Reports whether no ticket of TLS 1.3 is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reports whether the next connection to this server can offer a session.
    pub fn has_session(&self, server: &ServerName<'_>) -> bool {
        let pool = self.pool();
        let tickets = pool.servers.get(&server.to_owned());
        tickets.is_some_and(|of_server| !of_server.tls13.is_empty() || of_server.tls12.is_some())
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
    /// Returns the tickets of a server; an empty entry, if there is room for one more server.
    fn server(&mut self, name: ServerName<'static>) -> Option<&mut ServerTickets> {
        let has_room = self.servers.len() < SERVERS_MAX || self.servers.contains_key(&name);
        has_room.then(|| self.servers.entry(name).or_default())
    }

    fn insert(&mut self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let is_full = self.tickets >= self.tickets_max;
        let Some(server) = self.server(name) else { return };
        // Another server's tickets are as good as this one's: only its own make room.
        if is_full && server.tls13.pop_front().is_none() {
            return;
        }
        server.tls13.push_back(ticket);
        self.tickets += usize::from(!is_full);
    }

    fn take(&mut self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let ticket = self.servers.get_mut(name)?.tls13.pop_front()?;
        self.tickets -= 1;
        Some(ticket)
    }
}

/// Way of rustls to a pool.
#[derive(Debug)]
pub(crate) struct PoolStore(pub TicketPool);

impl ClientSessionStore for PoolStore {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        if let Some(server) = self.0.pool().server(server_name) {
            server.group = Some(group);
        }
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.0.pool().servers.get(&server_name.to_owned())?.group
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        let mut pool = self.0.pool();
        let keeps = pool.tickets_max > 0;
        if let Some(server) = pool.server(server_name).filter(|_| keeps) {
            server.tls12 = Some(value);
        }
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        if !offers_session() {
            return None;
        }
        self.0.pool().servers.get(&server_name.to_owned())?.tls12.clone()
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        if let Some(server) = self.0.pool().servers.get_mut(server_name) {
            server.tls12 = None;
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

/// Servers whose tickets are kept.
const SERVERS_MAX: usize = 256;
