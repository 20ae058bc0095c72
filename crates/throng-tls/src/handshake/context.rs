//! What a step of a handshake may read and writes beside its connection. rustls passes no argument
//! through to the traits that ask for it, so it stands in a slot of the thread for one step.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::KeyLog;
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use zeroize::Zeroize;

use crate::client::{ClientKey, TlsClient};
use crate::key_schedule::SECRET_BYTES_MAX;

/// Receiver of the lines of a key log, each in the format of NSS that Wireshark reads. With them,
/// all connections can be decrypted.
#[derive(Clone)]
pub struct KeyLogSink(Arc<dyn Fn(&str) + Send + Sync>);

impl KeyLogSink {
    /// Creates a receiver. `log` gets a line without its end, on the thread of the connection's
    /// core, which waits for it.
    pub fn new(log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(log))
    }

    /// Gives it a line.
    pub fn log(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for KeyLogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLogSink")
    }
}

/// First traffic secrets of both directions, as rustls reports them.
#[derive(Default)]
pub(crate) struct TrafficSecrets {
    pub client: LoggedSecret,
    pub server: LoggedSecret,
}

/// Secret of one direction; empty if none was reported.
pub(crate) struct LoggedSecret {
    bytes: [u8; SECRET_BYTES_MAX],
    length: usize,
}

impl Default for LoggedSecret {
    fn default() -> Self {
        Self { bytes: [0; SECRET_BYTES_MAX], length: 0 }
    }
}

impl LoggedSecret {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn set(&mut self, secret: &[u8]) {
        self.zeroize();
        self.length = secret.len().min(SECRET_BYTES_MAX);
        self.bytes[..self.length].copy_from_slice(&secret[..self.length]);
    }
}

impl Zeroize for LoggedSecret {
    fn zeroize(&mut self) {
        self.bytes.zeroize();
        self.length = 0;
    }
}

impl Drop for LoggedSecret {
    fn drop(&mut self) {
        self.zeroize();
    }
}

struct Step {
    unix_secs: u64,
    offers_session: bool,
    client: TlsClient,
    secrets: TrafficSecrets,
}

thread_local! {
    static STEP: RefCell<Option<Step>> = const { RefCell::new(None) };
}

/// Guard of a step: the slot is empty when it is dropped, be it by a panic.
pub(crate) struct StepGuard(());

impl StepGuard {
    /// Fills the slot.
    pub(crate) fn enter(unix_secs: u64, offers_session: bool, client: TlsClient) -> Self {
        let secrets = TrafficSecrets::default();
        STEP.set(Some(Step { unix_secs, offers_session, client, secrets }));
        Self(())
    }

    /// Moves the secrets that the step reported to the state of its handshake.
    pub(crate) fn move_secrets(&mut self, to: &mut TrafficSecrets) {
        STEP.with_borrow_mut(|step| {
            let Some(step) = step else { return };
            for (from, to) in [
                (&mut step.secrets.client, &mut to.client),
                (&mut step.secrets.server, &mut to.server),
            ] {
                if from.length > 0 {
                    to.set(from.bytes());
                    from.zeroize();
                }
            }
        });
    }
}

impl Drop for StepGuard {
    fn drop(&mut self) {
        STEP.set(None);
    }
}

/// Reports whether the connection of this step offers to resume a session.
pub(crate) fn offers_session() -> bool {
    STEP.with_borrow(|step| step.as_ref().is_some_and(|step| step.offers_session))
}

/// Returns the owner of the sessions that the connection of this step may resume, and of those that
/// it begins.
pub(crate) fn session_owner() -> u64 {
    STEP.with_borrow(|step| step.as_ref().map_or(0, |step| step.client.owner))
}

/// Returns the key of the client of this step, if it has one of its own.
pub(crate) fn client_key() -> Option<ClientKey> {
    STEP.with_borrow(|step| step.as_ref()?.client.key.clone())
}

/// Returns the seconds of Unix at this step.
pub(crate) fn unix_secs() -> Option<u64> {
    STEP.with_borrow(|step| step.as_ref().map(|step| step.unix_secs))
}

/// Clock of rustls: the time that the caller of the step passed.
#[derive(Debug)]
pub(crate) struct StepClock;

impl TimeProvider for StepClock {
    fn current_time(&self) -> Option<UnixTime> {
        unix_secs().map(|secs| UnixTime::since_unix_epoch(Duration::from_secs(secs)))
    }
}

/// Key log of rustls, the only way to its traffic secrets. It passes all secrets on to `sink`.
pub(crate) struct SecretCatcher {
    pub sink: Option<KeyLogSink>,
}

impl fmt::Debug for SecretCatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretCatcher")
    }
}

impl KeyLog for SecretCatcher {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        STEP.with_borrow_mut(|step| match (step, label) {
            (Some(step), CLIENT) => step.secrets.client.set(secret),
            (Some(step), SERVER) => step.secrets.server.set(secret),
            _ => {}
        });
        if let Some(sink) = &self.sink {
            sink.log(&format!("{label} {} {}", hex(client_random), hex(secret)));
        }
    }

    fn will_log(&self, label: &str) -> bool {
        self.sink.is_some() || [CLIENT, SERVER].contains(&label)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const CLIENT: &str = "CLIENT_TRAFFIC_SECRET_0";
const SERVER: &str = "SERVER_TRAFFIC_SECRET_0";
