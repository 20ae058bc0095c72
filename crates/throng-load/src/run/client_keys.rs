//! Certificates and keys of users.

use std::collections::{HashMap, VecDeque};

use throng_tls::{ClientKey, TlsConfigError};

use crate::scenario::{ClientFiles, ClientPaths};

/// Certificates and keys of a core's users, read when they are first needed.
pub(super) struct ClientKeys {
    files: ClientFiles,
    kept: HashMap<ClientPaths, ClientKey>,
    /// Those that are kept, the oldest first.
    oldest: VecDeque<ClientPaths>,
    keys_max: usize,
}

impl ClientKeys {
    /// Creates the keys of a core's users.
    pub(super) fn new(files: ClientFiles) -> Self {
        Self { files, kept: HashMap::new(), oldest: VecDeque::new(), keys_max: KEYS_MAX }
    }

    /// Returns the certificate and the key of a user.
    ///
    /// # Errors
    /// A file cannot be read, or is not one.
    pub(super) fn get(&mut self, user: u64) -> Result<ClientKey, TlsConfigError> {
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
    use crate::scenario::Scenario;

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
        let mut keys = ClientKeys::new(scenario.tls.client.clone().unwrap());
        keys.keys_max = 2;
        (0..3).for_each(|user| drop(keys.get(user).unwrap()));
        (0..3).for_each(|user| std::fs::remove_file(path(user)).unwrap());
        keys.get(1).expect("it is kept");
        keys.get(2).expect("it is kept");
        let error = keys.get(0).unwrap_err().to_string();
        assert!(error.contains("0.pem cannot be read"), "{error}");
    }
}
