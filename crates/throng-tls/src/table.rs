//! The TLS connections of a core.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use throng_base::Instant;

use crate::handshake::{Handshake, HandshakeKeys, TicketReader};
use crate::keys::{ConnKeys, ConnState, Flag, LargeKeys, SmallKeys, Way};
use crate::places::Places;
use crate::record::{ContentType, Sealer};
use crate::slot::{PackedSlot, Slot};
use crate::{Alert, TlsClient, TlsClientConfig, TlsCounters, TlsError, TlsServerConfig};

/// Table of a core's TLS connections: keys, running handshakes, and what few connections have.
///
/// The table never sees a socket or a clock. Its caller keeps the records that arrived in part,
/// bounds the handshakes at once, and closes what is too slow.
pub struct TlsTable {
    /// Time of Unix at [`Instant::ZERO`]: certificates and tickets expire.
    unix_at_zero: Duration,
    slots: Places<PackedSlot>,
    small: Places<SmallKeys>,
    large: Places<LargeKeys>,
    handshakes: Places<Box<Handshake>>,
    sides: Places<Side>,
    /// Clients that wait for a ticket, and until when, the earliest first.
    waits: VecDeque<(TlsKey, Instant)>,
    failures: HashMap<TlsKey, TlsError>,
    pub(crate) counters: TlsCounters,
}

/// Number of a connection in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TlsKey(pub NonZeroU32);

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsStatus<'a> {
    /// The handshake is running.
    Opening,
    /// Data can be sent and received.
    Open,
    /// The peer sent `close_notify`: everything arrived. Without it, the end of the connection cuts
    /// what the peer sent.
    Finished,
    /// The connection cannot go on.
    Failed(&'a TlsError),
}

/// Keys of an open connection, and what of the table may change with them.
pub(crate) struct OpenConn<'a> {
    pub keys: &'a mut dyn ConnKeys,
    pub sides: &'a mut Places<Side>,
    pub counters: &'a mut TlsCounters,
}

/// What few connections have, and only for a while.
#[derive(Default)]
pub(crate) struct Side {
    /// A message after the handshake that did not arrive whole.
    pub message: Vec<u8>,
    /// What reads the ticket that a client waits for, and until when.
    pub tickets: Option<(Box<TicketReader>, Instant)>,
}

impl TlsTable {
    /// Creates an empty table. `unix_at_zero` is the time of Unix at [`Instant::ZERO`].
    pub fn new(unix_at_zero: Duration) -> Self {
        Self {
            unix_at_zero,
            slots: Places::new(),
            small: Places::new(),
            large: Places::new(),
            handshakes: Places::new(),
            sides: Places::new(),
            waits: VecDeque::new(),
            failures: HashMap::new(),
            counters: TlsCounters::default(),
        }
    }

    /// Returns what was counted.
    pub const fn counters(&self) -> &TlsCounters {
        &self.counters
    }

    /// Returns the number of handshakes that are running.
    pub const fn handshakes(&self) -> u32 {
        self.handshakes.len()
    }

    /// Begins the handshake of a server. The first bytes of the client should be there: until then
    /// a connection needs nothing.
    pub fn accept(&mut self, config: &TlsServerConfig) -> TlsKey {
        self.begin(Handshake::server(config))
    }

    /// Begins the handshake of a client, and appends its first bytes to `out`. Without
    /// `offers_session`, the handshake is a full one.
    pub fn connect(
        &mut self,
        config: &TlsClientConfig,
        offers_session: bool,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> TlsKey {
        self.connect_as(config, TlsClient::default(), offers_session, now, out)
    }

    /// Begins the handshake of this client, as [`Self::connect`] does.
    pub fn connect_as(
        &mut self,
        config: &TlsClientConfig,
        client: TlsClient,
        offers_session: bool,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> TlsKey {
        let unix = self.unix_secs(now);
        self.begin(Handshake::client(config, client, offers_session, unix, out))
    }

    /// Returns the key of a connection that failed before it began.
    pub(crate) fn refuse(&mut self, error: TlsError) -> TlsKey {
        self.begin(Err(error))
    }

    /// Returns how far the connection is.
    pub fn status(&self, key: TlsKey) -> TlsStatus<'_> {
        let is_finished = match self.slot(key) {
            Some(Slot::Handshake(_)) => return TlsStatus::Opening,
            Some(Slot::Small(at)) => self.small.get(at).is_some_and(SmallKeys::is_finished),
            Some(Slot::Large(at)) => self.large.get(at).is_some_and(LargeKeys::is_finished),
            Some(Slot::Failed) | None => {
                let error = self.failures.get(&key);
                return TlsStatus::Failed(error.unwrap_or(&TlsError::NotOpen));
            }
        };
        if is_finished { TlsStatus::Finished } else { TlsStatus::Open }
    }

    /// Appends records with all bytes of `pieces` to `out`, as few as possible. What was appended
    /// must be sent, in this order and once.
    ///
    /// # Errors
    /// The connection is not open, or its key may seal nothing more: then it has failed.
    pub fn seal<'p>(
        &mut self,
        key: TlsKey,
        pieces: impl IntoIterator<Item = &'p [u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        let OpenConn { keys, counters, .. } = self.open_conn(key).ok_or(TlsError::NotOpen)?;
        let (half, state) = keys.split(Way::Send);
        if state.is(Flag::WeClosed) {
            return Err(TlsError::NotOpen);
        }
        let mut sealer = Sealer::new(half);
        let updated = match state.take(Flag::OwesUpdate) {
            true => sealer.key_update(false, out),
            false => Ok(()),
        };
        let sealed = updated.and_then(|()| sealer.data(pieces, out));
        counters.records_sealed += sealer.records;
        counters.key_updates += sealer.updates;
        if let Err(error) = &sealed {
            self.fail(key, error.clone(), out);
        }
        sealed
    }

    /// Appends a key update. With `asks`, the peer must take a new key, too.
    ///
    /// # Errors
    /// The connection is not open, or has TLS 1.2.
    pub fn update_keys(
        &mut self,
        key: TlsKey,
        asks: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        let OpenConn { keys, counters, .. } = self.open_conn(key).ok_or(TlsError::NotOpen)?;
        let (half, state) = keys.split(Way::Send);
        if state.is(Flag::WeClosed) || !state.suite.is_13() {
            return Err(TlsError::NotOpen);
        }
        state.take(Flag::OwesUpdate);
        counters.key_updates += 1;
        counters.records_sealed += 1;
        Sealer::new(half).key_update(asks, out)
    }

    /// Ends the sending direction: appends `close_notify`, once. Receiving goes on.
    pub fn finish(&mut self, key: TlsKey, out: &mut Vec<u8>) {
        self.send_alert(key, Alert::CLOSE_NOTIFY, out);
    }

    /// Forgets a connection. Its keys are overwritten where they stand.
    pub fn forget(&mut self, key: TlsKey) {
        if self.slot(key) == Some(Slot::Failed) {
            self.failures.remove(&key);
        }
        self.take_side(key);
        self.clear(key);
        self.slots.clear(key.index());
    }

    /// Makes a connection fail, and appends the alert that tells the peer.
    pub(crate) fn fail(&mut self, key: TlsKey, error: TlsError, out: &mut Vec<u8>) {
        match self.slot(key) {
            Some(Slot::Handshake(_)) => self.counters.handshakes_failed += 1,
            _ => self.counters.failed += 1,
        }
        if let Some(alert) = error.alert() {
            self.send_alert(key, alert, out);
        }
        self.take_side(key);
        self.clear(key);
        self.set_slot(key, Slot::Failed);
        self.failures.insert(key, error);
    }

    /// Replaces the handshake of a connection by its keys.
    pub(crate) fn begin_conn(&mut self, key: TlsKey, done: HandshakeKeys, now: Instant) {
        let slot = match done.agreed.suite.needs_large_keys() {
            true => Slot::Large(self.large.insert(LargeKeys::new(&done.agreed, done.is_client))),
            false => Slot::Small(self.small.insert(SmallKeys::new(&done.agreed, done.is_client))),
        };
        self.set_slot(key, slot);
        if let Some(reader) = done.tickets {
            let until = now + TICKET_WAIT;
            self.put_side(key, Side { tickets: Some((reader, until)), ..Side::default() });
            self.waits.push_back((key, until));
        }
    }

    /// Drops what waits for tickets that did not arrive in time.
    pub(crate) fn end_ticket_waits(&mut self, now: Instant) {
        while let Some((key, until)) = self.waits.front().copied()
            && until <= now
        {
            self.waits.pop_front();
            let mut side = self.take_side(key);
            // The key may be another connection's by now, which waits longer.
            side.tickets.take_if(|(_, until)| *until <= now);
            self.put_side(key, side);
        }
    }

    /// Returns the seconds of Unix at this moment.
    pub(crate) fn unix_secs(&self, now: Instant) -> u64 {
        (self.unix_at_zero + now.since(Instant::ZERO)).as_secs()
    }

    /// Returns an open connection.
    pub(crate) fn open_conn(&mut self, key: TlsKey) -> Option<OpenConn<'_>> {
        let keys: &mut dyn ConnKeys = match self.slot(key)? {
            Slot::Small(at) => self.small.get_mut(at)?,
            Slot::Large(at) => self.large.get_mut(at)?,
            Slot::Handshake(_) | Slot::Failed => return None,
        };
        Some(OpenConn { keys, sides: &mut self.sides, counters: &mut self.counters })
    }

    /// Returns the running handshake of a connection.
    pub(crate) fn handshake(&mut self, key: TlsKey) -> Option<&mut Handshake> {
        let Slot::Handshake(at) = self.slot(key)? else { return None };
        self.handshakes.get_mut(at).map(|handshake| &mut **handshake)
    }

    /// Takes the handshake of a connection out of the table.
    pub(crate) fn take_handshake(&mut self, key: TlsKey) -> Option<Box<Handshake>> {
        let Slot::Handshake(at) = self.slot(key)? else { return None };
        self.handshakes.take(at)
    }

    /// Takes what the connection has in the side table; an empty entry if it has nothing.
    fn take_side(&mut self, key: TlsKey) -> Side {
        let conn = self.open_conn(key);
        conn.map(|conn| conn.keys.state().take_side(conn.sides)).unwrap_or_default()
    }

    fn put_side(&mut self, key: TlsKey, side: Side) {
        if let Some(OpenConn { keys, sides, .. }) = self.open_conn(key) {
            keys.state().put_side(side, sides);
        }
    }

    fn begin(&mut self, handshake: Result<Handshake, TlsError>) -> TlsKey {
        let (slot, error) = match handshake {
            Ok(handshake) => (Slot::Handshake(self.handshakes.insert(Box::new(handshake))), None),
            Err(error) => (Slot::Failed, Some(error)),
        };
        let index = self.slots.insert(PackedSlot::new(slot));
        let key = TlsKey(NonZeroU32::MIN.saturating_add(index));
        if let Some(error) = error {
            self.counters.handshakes_failed += 1;
            self.failures.insert(key, error);
        }
        key
    }

    fn send_alert(&mut self, key: TlsKey, alert: Alert, out: &mut Vec<u8>) {
        let Some(OpenConn { keys, counters, .. }) = self.open_conn(key) else { return };
        let (half, state) = keys.split(Way::Send);
        if state.set(Flag::WeClosed) {
            return;
        }
        // No number is left for an alert only after 2^64 records.
        if Sealer::new(half).one(ContentType::Alert, &[alert.level(), alert.0], out).is_ok() {
            counters.records_sealed += 1;
        }
    }

    /// Drops the state of a connection; its slot stays.
    fn clear(&mut self, key: TlsKey) {
        match self.slot(key) {
            Some(Slot::Handshake(at)) => self.handshakes.clear(at),
            Some(Slot::Small(at)) => self.small.clear(at),
            Some(Slot::Large(at)) => self.large.clear(at),
            Some(Slot::Failed) | None => {}
        }
    }

    pub(crate) fn slot(&self, key: TlsKey) -> Option<Slot> {
        self.slots.get(key.index()).map(|slot| slot.get())
    }

    fn set_slot(&mut self, key: TlsKey, slot: Slot) {
        if let Some(place) = self.slots.get_mut(key.index()) {
            *place = PackedSlot::new(slot);
        }
    }
}

impl ConnState {
    /// Takes what the connection has in the side table; an empty entry if it has nothing.
    pub(crate) fn take_side(&mut self, sides: &mut Places<Side>) -> Side {
        let place = self.side.take();
        place.and_then(|place| sides.take(place.get() - 1)).unwrap_or_default()
    }

    /// Puts an entry into the side table, unless it is empty.
    pub(crate) fn put_side(&mut self, side: Side, sides: &mut Places<Side>) {
        if side.tickets.is_some() || !side.message.is_empty() {
            self.side = NonZeroU32::new(sides.insert(side) + 1);
        }
    }
}

impl TlsKey {
    const fn index(self) -> u32 {
        self.0.get() - 1
    }
}

/// Time for which a client waits for a ticket: what reads it has ten times the bytes of its keys.
const TICKET_WAIT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;
    use crate::key_schedule::SECRET_BYTES_MAX;
    use crate::keys::{HalfMaterial, KeyMaterial};
    use crate::suite::Suite;

    /// TLS 1.2 has no key updates, which TLS 1.3 sends before a limit is reached.
    #[test]
    fn a_key_of_tls_1_2_that_may_seal_no_more_ends_its_connection() {
        let half = || HalfMaterial {
            secret: Zeroizing::new([0; SECRET_BYTES_MAX]),
            key: Zeroizing::new([1; 32]),
            iv: [2; 12],
            seq: 0,
        };
        let suite = Suite::Tls12Aes128;
        let agreed = KeyMaterial { suite, send: half(), receive: half() };
        let mut table = TlsTable::new(Duration::ZERO);
        let at = table.small.insert(SmallKeys::new(&agreed, true));
        let key = table.slots.insert(PackedSlot::new(Slot::Small(at)));
        let key = TlsKey(NonZeroU32::MIN.saturating_add(key));
        let keys = table.open_conn(key).unwrap().keys;
        keys.half(Way::Send).set_records(suite.records_max() - 1);
        let mut out = Vec::new();
        assert_eq!(table.seal(key, [&b"last"[..]], &mut out), Ok(()));
        assert_eq!(table.status(key), TlsStatus::Open);
        out.clear();
        assert_eq!(table.seal(key, [&b"next"[..]], &mut out), Err(TlsError::KeysExhausted));
        assert_eq!(out[0], ContentType::Alert as u8, "the peer is told, and nothing else is sent");
        assert_eq!(table.status(key), TlsStatus::Failed(&TlsError::KeysExhausted));
        out.clear();
        assert_eq!(table.seal(key, [&b"more"[..]], &mut out), Err(TlsError::NotOpen));
        assert_eq!((out, table.counters().failed), (Vec::new(), 1));
    }
}
