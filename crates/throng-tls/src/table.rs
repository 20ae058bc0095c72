//! The TLS connections of a core.

use std::num::NonZeroU32;
use std::time::Duration;

use throng_base::{Instant, Slab};

use crate::conn::{Slot, TlsConn};
use crate::handshake::Handshake;
use crate::keys::{ConnKeys, Flag, LargeKeys, SmallKeys, Way};
use crate::record::{ContentType, Sealer};
use crate::side::Side;
use crate::{TlsClientConfig, TlsCounters, TlsError, TlsLimits, TlsServerConfig};

/// Table of a core's TLS connections: keys, running handshakes, and what few connections have.
pub struct TlsTable {
    pub(crate) limits: TlsLimits,
    /// Time of Unix at [`Instant::ZERO`]: certificates and tickets expire.
    unix_at_zero: Duration,
    pub(crate) small: Slab<SmallKeys>,
    pub(crate) large: Slab<LargeKeys>,
    pub(crate) handshakes: Slab<Box<Handshake>>,
    sides: Slab<Side>,
    pub(crate) counters: TlsCounters,
}

impl TlsTable {
    /// Creates an empty table. `unix_at_zero` is the time of Unix at [`Instant::ZERO`].
    pub const fn new(limits: TlsLimits, unix_at_zero: Duration) -> Self {
        Self {
            limits,
            unix_at_zero,
            small: Slab::new(),
            large: Slab::new(),
            handshakes: Slab::new(),
            sides: Slab::new(),
            counters: TlsCounters {
                handshakes_full: 0,
                handshakes_resumed: 0,
                handshakes_failed: 0,
                handshakes_refused: 0,
                records_sealed: 0,
                records_opened: 0,
                key_updates: 0,
                tickets_received: 0,
                failed: 0,
                parts_bytes: 0,
            },
        }
    }

    /// Returns what was counted.
    pub const fn counters(&self) -> &TlsCounters {
        &self.counters
    }

    /// Reports whether another handshake may begin. Without room, the caller leaves the first bytes
    /// of a client in the kernel, and does not connect.
    pub fn has_room(&self) -> bool {
        self.handshakes.len() < self.limits.handshakes_max
    }

    /// Begins the handshake of a server. The first bytes of the client should be there: until then
    /// a connection needs nothing.
    ///
    /// # Errors
    /// As many handshakes as allowed are running.
    pub fn accept(&mut self, config: &TlsServerConfig, now: Instant) -> Result<TlsConn, TlsError> {
        self.begin(|| Handshake::server(config, now))
    }

    /// Begins the handshake of a client, and appends its first bytes to `out`. Without
    /// `offers_session`, the handshake is a full one.
    ///
    /// # Errors
    /// As many handshakes as allowed are running, or the configuration does not allow one.
    pub fn connect(
        &mut self,
        config: &TlsClientConfig,
        offers_session: bool,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<TlsConn, TlsError> {
        let unix = self.unix_secs(now);
        self.begin(|| Handshake::client(config, offers_session, now, unix, out))
    }

    /// Appends records with all bytes of `pieces` to `out`, and the answer to a key update before
    /// them if one is due. Without pieces, only the answer.
    ///
    /// What was appended must be sent, in this order and once.
    ///
    /// # Errors
    /// The connection is not open, or its key may seal nothing more.
    pub fn seal<'p>(
        &mut self,
        conn: &TlsConn,
        pieces: impl IntoIterator<Item = &'p [u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        let keys = keys_of(&mut self.small, &mut self.large, conn).ok_or(TlsError::NotOpen)?;
        let (half, state) = keys.split(Way::Send);
        if state.is(Flag::WeClosed) {
            return Err(TlsError::NotOpen);
        }
        let mut sealer = Sealer::new(half);
        let mut result = Ok(());
        if state.clear(Flag::OwesUpdate) {
            result = sealer.key_update(false, out);
        }
        result = result.and_then(|()| sealer.data(pieces, out));
        self.counters.records_sealed += sealer.records;
        self.counters.key_updates += sealer.updates;
        result
    }

    /// Appends a request for new keys in both directions (TLS 1.3 alone).
    ///
    /// # Errors
    /// The connection is not open, or has TLS 1.2.
    pub fn update_keys(&mut self, conn: &TlsConn, out: &mut Vec<u8>) -> Result<(), TlsError> {
        let keys = keys_of(&mut self.small, &mut self.large, conn).ok_or(TlsError::NotOpen)?;
        let (half, state) = keys.split(Way::Send);
        if state.is(Flag::WeClosed) || !state.suite.is_13() {
            return Err(TlsError::NotOpen);
        }
        self.counters.key_updates += 1;
        self.counters.records_sealed += 1;
        Sealer::new(half).key_update(true, out)
    }

    /// Appends `close_notify`, once. The connection can receive afterwards, but not send.
    pub fn close(&mut self, conn: &TlsConn, out: &mut Vec<u8>) {
        self.send_alert(conn, crate::Alert::CLOSE_NOTIFY, out);
    }

    /// Checks how the connection ends, when the peer sends nothing more.
    ///
    /// # Errors
    /// The peer did not send `close_notify`: an attacker may have cut what it sent.
    pub fn end_of_input(&mut self, conn: &TlsConn) -> Result<(), TlsError> {
        match keys_of(&mut self.small, &mut self.large, conn) {
            None => Err(TlsError::EndInHandshake),
            Some(keys) => match keys.state().is(Flag::PeerClosed) {
                true => Ok(()),
                false => Err(TlsError::Truncated),
            },
        }
    }

    /// Returns when the caller must call [`Self::handle_timeout`]; [`Instant::FAR`] for never.
    pub fn deadline(&mut self, conn: &TlsConn) -> Instant {
        if let Slot::Handshake(index) = conn.slot() {
            let begun = self.handshakes.at(index).map(|handshake| handshake.begun);
            return begun.map_or(Instant::FAR, |at| at + ms(self.limits.handshake_timeout_ms));
        }
        let record_timeout = ms(self.limits.record_timeout_ms);
        let Some(side) = self.side(conn) else { return Instant::FAR };
        let of_tickets = side.tickets.as_ref().map_or(Instant::FAR, |(_, until)| *until);
        match side.part.is_empty() {
            true => of_tickets,
            false => of_tickets.min(side.part_since + record_timeout),
        }
    }

    /// Handles the deadline.
    ///
    /// # Errors
    /// The handshake or a record was not complete in time: the caller closes the connection.
    pub fn handle_timeout(&mut self, conn: &TlsConn, now: Instant) -> Result<(), TlsError> {
        if now < self.deadline(conn) {
            return Ok(());
        }
        let limits = self.limits;
        if let Slot::Handshake(_) = conn.slot() {
            self.counters.handshakes_failed += 1;
            return Err(TlsError::HandshakeTimeout(limits.handshake_timeout_ms));
        }
        let mut side = self.take_side(conn);
        side.tickets.take_if(|(_, until)| *until <= now);
        let is_late =
            !side.part.is_empty() && side.part_since + ms(limits.record_timeout_ms) <= now;
        self.put_side(conn, side);
        if is_late {
            self.counters.failed += 1;
            return Err(TlsError::RecordTimeout(limits.record_timeout_ms));
        }
        Ok(())
    }

    /// Forgets a connection. Its keys are overwritten before their place is used again.
    pub fn remove(&mut self, conn: TlsConn) {
        self.take_side(&conn);
        if let Some(keys) = keys_of(&mut self.small, &mut self.large, &conn) {
            keys.wipe();
        }
        match conn.slot() {
            Slot::Handshake(index) => take(&mut self.handshakes, index).map(drop),
            Slot::Small(index) => take(&mut self.small, index).map(drop),
            Slot::Large(index) => take(&mut self.large, index).map(drop),
            Slot::Gone => None,
        };
    }

    /// Appends an alert, unless the connection has sent its last one.
    pub(crate) fn send_alert(&mut self, conn: &TlsConn, alert: crate::Alert, out: &mut Vec<u8>) {
        let Some(keys) = keys_of(&mut self.small, &mut self.large, conn) else { return };
        let (half, state) = keys.split(Way::Send);
        if state.set(Flag::WeClosed) {
            return;
        }
        // No number is left for an alert only if 2^64 records were sealed.
        let _ = Sealer::new(half).one(ContentType::Alert, &[alert.level(), alert.0], out);
        self.counters.records_sealed += 1;
    }

    /// Returns the seconds of Unix at this moment.
    pub(crate) fn unix_secs(&self, now: Instant) -> u64 {
        (self.unix_at_zero + now.since(Instant::ZERO)).as_secs()
    }

    /// Takes what the connection has in the side table; an empty entry if it has nothing.
    pub(crate) fn take_side(&mut self, conn: &TlsConn) -> Side {
        let keys = keys_of(&mut self.small, &mut self.large, conn);
        let place = keys.and_then(|keys| keys.state().side.take());
        let side = place.and_then(|place| take(&mut self.sides, place.get() - 1));
        let side = side.unwrap_or_default();
        self.counters.parts_bytes -= side.parts_bytes() as u64;
        side
    }

    /// Puts an entry into the side table, unless it is empty.
    pub(crate) fn put_side(&mut self, conn: &TlsConn, side: Side) {
        let keys = keys_of(&mut self.small, &mut self.large, conn);
        if let Some(keys) = keys.filter(|_| !side.is_empty()) {
            self.counters.parts_bytes += side.parts_bytes() as u64;
            let index = self.sides.insert(side).index();
            keys.state().side = NonZeroU32::new(index + 1);
        }
    }

    fn side(&mut self, conn: &TlsConn) -> Option<&mut Side> {
        let place = keys_of(&mut self.small, &mut self.large, conn)?.state().side?;
        self.sides.at(place.get() - 1)
    }

    fn begin(
        &mut self,
        create: impl FnOnce() -> Result<Handshake, TlsError>,
    ) -> Result<TlsConn, TlsError> {
        if !self.has_room() {
            self.counters.handshakes_refused += 1;
            return Err(TlsError::TooManyHandshakes(self.limits.handshakes_max));
        }
        let handshake = Box::new(create()?);
        Ok(TlsConn::new(Slot::Handshake(self.handshakes.insert(handshake).index())))
    }
}

/// Returns the keys of an open connection.
pub(crate) fn keys_of<'t>(
    small: &'t mut Slab<SmallKeys>,
    large: &'t mut Slab<LargeKeys>,
    conn: &TlsConn,
) -> Option<&'t mut dyn ConnKeys> {
    match conn.slot() {
        Slot::Small(index) => small.at(index).map(|keys| keys as &mut dyn ConnKeys),
        Slot::Large(index) => large.at(index).map(|keys| keys as &mut dyn ConnKeys),
        Slot::Handshake(_) | Slot::Gone => None,
    }
}

/// Removes the value at this place.
pub(crate) fn take<T>(slab: &mut Slab<T>, index: u32) -> Option<T> {
    slab.key_at(index).and_then(|key| slab.remove(key))
}

fn ms(count: u32) -> Duration {
    Duration::from_millis(u64::from(count))
}
