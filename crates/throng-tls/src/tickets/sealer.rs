//! The tickets of a server. Nothing is kept of a session: the ticket holds it, sealed.
//!
//! Each core seals with a key of its own, and any core derives any key from what stands in the
//! ticket: no lock, and nothing that cores share but the keys, which do not change.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;

use super::keys::{NAME_BYTES, TicketKey, TicketKeys};
use crate::handshake::unix_secs;

/// Sealer of the tickets of one core.
pub(crate) struct TicketSealer {
    keys: TicketKeys,
    core: u16,
    /// Random bytes of this sealer: after a restart, or on another node, the numbers begin anew
    /// under another key.
    salt: [u8; SALT_BYTES],
    next: AtomicU64,
}

impl TicketSealer {
    pub(crate) fn new(keys: TicketKeys, core: u16) -> Option<Self> {
        let mut salt = [0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).ok()?;
        Some(Self { keys, core, salt, next: AtomicU64::new(0) })
    }
}

impl TicketKey {
    /// Returns the key of the cipher that belongs to the first bytes of a ticket.
    fn cipher(&self, of: &[u8]) -> LessSafeKey {
        let secret = Salt::new(HKDF_SHA256, b"throng tickets").extract(&self.secret[..]);
        let info = [of];
        let key = secret.expand(&info, &AES_256_GCM).expect("one key is short enough");
        LessSafeKey::new(UnboundKey::from(key))
    }
}

impl fmt::Debug for TicketSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketSealer(core {})", self.core)
    }
}

impl ProducesTickets for TicketSealer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        EPOCH_SECS as u32
    }

    /// Seals a session: name of the key (8), epoch (4), salt (16), core (2), number (8), session
    /// and tag.
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let epoch = (unix_secs()? / EPOCH_SECS) as u32;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut ticket = Vec::with_capacity(PREFIX_BYTES + plain.len() + AES_256_GCM.tag_len());
        let key = self.keys.sealing();
        ticket.extend_from_slice(&key.name);
        ticket.extend_from_slice(&epoch.to_be_bytes());
        ticket.extend_from_slice(&self.salt);
        ticket.extend_from_slice(&self.core.to_be_bytes());
        let key = key.cipher(&ticket);
        ticket.extend_from_slice(&number.to_be_bytes());
        ticket.extend_from_slice(plain);
        let (prefix, session) = ticket.split_at_mut(PREFIX_BYTES);
        let aad = Aad::from(&*prefix);
        let tag = key.seal_in_place_separate_tag(nonce(number), aad, session).ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    /// Opens a ticket of this epoch or the one before, of any core and node.
    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        if cipher.len() > TICKET_BYTES_MAX {
            return None;
        }
        let (prefix, session) = cipher.split_at_checked(PREFIX_BYTES)?;
        let (name, rest) = prefix.split_at(NAME_BYTES);
        let key = self.keys.named(name)?;
        let epoch = u64::from(u32::from_be_bytes(*rest.first_chunk()?));
        let now = unix_secs()? / EPOCH_SECS;
        if epoch != now && epoch + 1 != now {
            return None;
        }
        let (of_key, number) = prefix.split_at(PREFIX_BYTES - 8);
        let number = u64::from_be_bytes(*number.first_chunk()?);
        let mut session = session.to_vec();
        let plain =
            key.cipher(of_key).open_in_place(nonce(number), Aad::from(prefix), &mut session);
        let bytes = plain.ok()?.len();
        session.truncate(bytes);
        Some(session)
    }
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

const SALT_BYTES: usize = 16;

/// Bytes before the sealed session.
const PREFIX_BYTES: usize = NAME_BYTES + 4 + SALT_BYTES + 2 + 8;

/// Longest ticket that is tried: a session with a chain of certificates is shorter.
const TICKET_BYTES_MAX: usize = 16 << 10;

/// Time for which a key seals, and a ticket is valid. A ticket is opened for up to twice as long.
const EPOCH_SECS: u64 = 6 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::StepGuard;

    /// Seals at one moment, and opens at another.
    fn check(from: &TicketSealer, at: u64, to: &TicketSealer, later: u64) -> Option<Vec<u8>> {
        let guard = StepGuard::enter(at, false, Default::default());
        let ticket = from.encrypt(b"session").unwrap();
        drop(guard);
        let _guard = StepGuard::enter(later, false, Default::default());
        to.decrypt(&ticket)
    }

    #[test]
    fn each_core_and_node_opens_the_tickets_of_all_others() {
        let keys = TicketKeys::new([7; 32]);
        let sealers = [0, 1, 9].map(|core| TicketSealer::new(keys.clone(), core).unwrap());
        for from in &sealers {
            for to in &sealers {
                assert_eq!(check(from, 1_000, to, 1_000).as_deref(), Some(&b"session"[..]));
            }
        }
        let stranger = TicketSealer::new(TicketKeys::random().unwrap(), 0).unwrap();
        assert_eq!(check(&sealers[0], 1_000, &stranger, 1_000), None);
    }

    #[test]
    fn a_ticket_is_opened_until_its_epoch_and_the_next_are_over() {
        let sealer = TicketSealer::new(TicketKeys::new([7; 32]), 0).unwrap();
        let at = 10 * EPOCH_SECS;
        for (later, is_valid) in [(0, true), (EPOCH_SECS, true), (2 * EPOCH_SECS, false)] {
            assert_eq!(check(&sealer, at, &sealer, at + later).is_some(), is_valid);
        }
        assert_eq!(check(&sealer, at, &sealer, at - 1), None);
    }

    #[test]
    fn a_changed_or_cut_ticket_is_refused() {
        let sealer = TicketSealer::new(TicketKeys::new([7; 32]), 3).unwrap();
        let _guard = StepGuard::enter(1_000, false, Default::default());
        let ticket = sealer.encrypt(b"session").unwrap();
        assert_ne!(ticket, sealer.encrypt(b"session").unwrap());
        for bit in 0..ticket.len() * 8 {
            let mut changed = ticket.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(sealer.decrypt(&changed), None);
        }
        for length in 0..ticket.len() {
            assert_eq!(sealer.decrypt(&ticket[..length]), None);
        }
    }
}
