//! The secrets of a server's tickets, which servers may share by a file.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use throng_base::input_file::{self, CREDENTIALS_BYTES_MAX};
use zeroize::Zeroizing;

use crate::config::TlsConfigError;

/// Keys of a server's tickets: one seals, and each opens what it has sealed. Servers with the same
/// keys resume each other's sessions.
#[derive(Clone)]
pub struct TicketKeys(Arc<[TicketKey]>);

/// One key: a secret, from which the keys of ciphers are derived.
pub(super) struct TicketKey {
    /// What stands in a ticket, so that no key is tried in vain.
    pub(super) name: [u8; NAME_BYTES],
    pub(super) secret: Zeroizing<[u8; 32]>,
}

impl TicketKeys {
    /// Creates one key from 32 bytes that only the servers know.
    pub fn new(secret: [u8; 32]) -> Self {
        Self([TicketKey::new(Zeroizing::new(secret))].into())
    }

    /// Creates a random key, for one server; `None` if the system has no random bytes.
    pub fn random() -> Option<Self> {
        let mut secret = Zeroizing::new([0; 32]);
        SystemRandom::new().fill(&mut *secret).ok()?;
        Some(Self([TicketKey::new(secret)].into()))
    }

    /// Reads a file of keys in HAProxy's format: a line for each, 48 or 80 random bytes in Base64
    /// (`openssl rand -base64 48`), the newest last, at most 16. The last but one seals; a single
    /// one does, too. So a new key is known to all servers before one of them seals with it:
    /// append it, remove the first line, and give the file to each server in turn.
    ///
    /// # Errors
    /// The file cannot be read, or is not in this format.
    pub fn read(path: &Path) -> Result<Self, TlsConfigError> {
        let file = || path.display().to_string();
        let bytes = input_file::read(path, CREDENTIALS_BYTES_MAX).map_err(|error| {
            TlsConfigError::Unreadable { file: file(), problem: error.to_string() }
        })?;
        Self::parse(&Zeroizing::new(bytes))
            .map_err(|problem| TlsConfigError::BadTicketKeys { file: file(), problem })
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let mut keys = Vec::new();
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let wrong = |what: &str| format!("line {} {what}", at + 1);
            let bytes = STANDARD.decode(line).map_err(|_| wrong("is not Base64"))?;
            let bytes = Zeroizing::new(bytes);
            if !KEY_BYTES.contains(&bytes.len()) {
                return Err(wrong(&format!("has {} bytes, and not 48 or 80", bytes.len())));
            }
            let mut secret = Zeroizing::new([0; 32]);
            secret.copy_from_slice(digest(&SHA256, &bytes).as_ref());
            keys.push(TicketKey::new(secret));
        }
        match keys.len() {
            0 => Err("it is empty".to_owned()),
            1..=KEYS_MAX => Ok(Self(keys.into())),
            count => Err(format!("it has {count} keys, and {KEYS_MAX} are the most")),
        }
    }

    /// Returns the key that seals.
    pub(super) fn sealing(&self) -> &TicketKey {
        &self.0[self.0.len().saturating_sub(2)]
    }

    /// Returns the key of this name.
    pub(super) fn named(&self, name: &[u8]) -> Option<&TicketKey> {
        self.0.iter().find(|key| key.name == name)
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketKeys({})", self.0.len())
    }
}

impl TicketKey {
    fn new(secret: Zeroizing<[u8; 32]>) -> Self {
        let labelled = Zeroizing::new([&b"throng ticket key name"[..], &*secret].concat());
        let hash = digest(&SHA256, &labelled);
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(&hash.as_ref()[..NAME_BYTES]);
        Self { name, secret }
    }
}

/// Bytes of a key's name.
pub(super) const NAME_BYTES: usize = 8;

/// Lengths of a key in a file, as HAProxy and nginx have them.
const KEY_BYTES: [usize; 2] = [48, 80];

/// Most keys of a file: each may open a ticket.
const KEYS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(byte: u8, length: usize) -> String {
        STANDARD.encode(vec![byte; length])
    }

    #[test]
    fn the_last_key_but_one_seals() {
        let [one, two, three] = [1, 2, 3].map(|byte| line(byte, 48));
        let sealing = |text: &str| TicketKeys::parse(text.as_bytes()).unwrap().sealing().name;
        assert_eq!(sealing(&one), sealing(&format!("{one}\n{two}\n")));
        assert_eq!(sealing(&two), sealing(&format!("{one}\r\n\n{two}\n{three}")));
        assert_ne!(sealing(&one), sealing(&two));
    }

    #[test]
    fn what_is_no_key_is_named_by_its_line() {
        let good = line(1, 80);
        let cases: [(Vec<u8>, &str); 6] = [
            (Vec::new(), "it is empty"),
            (b"\n \n".to_vec(), "it is empty"),
            (vec![7; 48], "line 1 is not Base64"),
            (format!("{good}\nno key").into(), "line 2 is not Base64"),
            (format!("{good}\n\n{}", line(1, 32)).into(), "line 3 has 32 bytes, and not 48 or 80"),
            (format!("{good}\n").repeat(17).into(), "it has 17 keys, and 16 are the most"),
        ];
        for (text, problem) in cases {
            assert_eq!(TicketKeys::parse(&text).unwrap_err(), problem);
        }
    }
}
