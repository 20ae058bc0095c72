//! TLS as the transport of a run.

use std::collections::{HashMap, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

use throng_base::Instant;
use throng_driver::Clock;
use throng_proto::TransportFactory;
use throng_tls::{ClientKey, KeyLogSink, TlsClientConfig, TlsConfigError, TlsTransport};

use super::plan::LoadError;
use crate::scenario::{ClientFiles, ClientPaths, Scenario};

/// Returns the transport of the connections to the scenario's target; `None` if they are plain.
/// Their secrets go to `key_log`.
///
/// # Errors
/// The machine has no authorities to trust, or the target's name cannot be that of a certificate.
pub(super) fn transport(
    scenario: &Scenario,
    key_log: Option<KeyLogSink>,
) -> Result<Option<TransportFactory>, LoadError> {
    if !scenario.target.is_secure {
        return Ok(None);
    }
    let mut options = scenario.tls.options(&scenario.target);
    options.key_log = key_log;
    let config = TlsClientConfig::new(&options).map_err(|error| {
        LoadError::Options(format!("cannot reach {} over TLS: {error}", scenario.target))
    })?;
    let settings = scenario.tls.clone();
    let since_zero = Clock.now().since(Instant::ZERO);
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_at_zero = unix.saturating_sub(since_zero);
    let make = move |_core| {
        let transport = TlsTransport::new(unix_at_zero);
        let mut transport = transport.with_client(config.for_other_core(), settings.resume_share());
        if settings.has_own_sessions() {
            transport = transport.with_own_sessions();
        }
        if let Some(files) = &settings.client {
            let mut keys = ClientKeys::new(files.clone(), KEYS_MAX);
            transport = transport.with_client_keys(Box::new(move |user| keys.get(user)));
        }
        Box::new(transport) as _
    };
    Ok(Some(TransportFactory::new(make)))
}

/// Certificates and keys of a core's users, read when they are first needed.
struct ClientKeys {
    files: ClientFiles,
    kept: HashMap<ClientPaths, ClientKey>,
    /// Those that are kept, the oldest first.
    oldest: VecDeque<ClientPaths>,
    keys_max: usize,
}

impl ClientKeys {
    fn new(files: ClientFiles, keys_max: usize) -> Self {
        Self { files, kept: HashMap::new(), oldest: VecDeque::new(), keys_max }
    }

    fn get(&mut self, user: u64) -> Result<ClientKey, TlsConfigError> {
        let paths = self.files.paths(user);
        if let Some(key) = self.kept.get(&paths) {
            return Ok(key.clone());
        }
        let key = self.files.read(&paths)?;
        if self.oldest.len() >= self.keys_max
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.kept.remove(&oldest);
        }
        self.oldest.push_back(paths.clone());
        self.kept.insert(paths, key.clone());
        Ok(key)
    }
}

/// Keys that a core keeps, of about 3 KB each. Another one is read from its file again.
const KEYS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_keeps_a_bounded_number_of_keys() {
        let folder = tempfile::tempdir().unwrap();
        let pair = throng_tls::SelfSigned::new(&["user".to_owned()]).unwrap().pair;
        let pem = [pair.chain.text(), b"\n", pair.key.text()].concat();
        let path = |user: u64| folder.path().join(format!("{user}.pem"));
        (0..3).for_each(|user| std::fs::write(path(user), &pem).unwrap());
        let text = "target: wss://h/\ntls: {client: {cert: \"${user.id}.pem\"}}\n\
                    load: [ramp: {to: 3, over: 1s}]\nuser: [connect]\n";
        let name = folder.path().join("scenario.yaml").display().to_string();
        let scenario = Scenario::parse(text, &name).unwrap_or_else(|it| panic!("{it}"));
        let mut keys = ClientKeys::new(scenario.tls.client.clone().unwrap(), 2);
        (0..3).for_each(|user| drop(keys.get(user).unwrap()));
        (0..3).for_each(|user| std::fs::remove_file(path(user)).unwrap());
        keys.get(1).expect("it is kept");
        keys.get(2).expect("it is kept");
        let error = keys.get(0).unwrap_err().to_string();
        assert!(error.contains("0.pem cannot be read"), "{error}");
    }
}
