//! The fuzz target of what a process of a fleet reads from the bus.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::envelope;
use crate::message::{AgentMessage, Hello, Order, Question};
use crate::observer::{ObserverHello, ObserverSample};
use crate::request::Answer;
use crate::within::{self, HELLO_BYTES_MAX, MESSAGE_BYTES_MAX, OBSERVER_BYTES_MAX};

/// Reads `bytes` as each kind of message, and returns the names of the kinds that they are.
///
/// # Panics
/// If what was read is not the same after it is written and read again.
#[doc(hidden)]
pub fn kinds_of_message(bytes: &[u8]) -> Vec<&'static str> {
    if let Some((envelope, packet)) = envelope::decode(bytes) {
        let written = envelope::encode(&envelope, packet);
        assert_eq!(envelope::decode(&written), Some((envelope, packet)));
        return kinds_of_message(packet);
    }
    let kinds = [
        ("hello", is_read::<Hello>(bytes, HELLO_BYTES_MAX)),
        ("question", is_read::<Question>(bytes, HELLO_BYTES_MAX)),
        ("order", is_read::<Order>(bytes, MESSAGE_BYTES_MAX)),
        ("agent message", is_read::<AgentMessage>(bytes, MESSAGE_BYTES_MAX)),
        ("answer", is_read::<Answer>(bytes, MESSAGE_BYTES_MAX)),
        ("observer hello", is_read::<ObserverHello>(bytes, OBSERVER_BYTES_MAX)),
        ("observer sample", is_read::<ObserverSample>(bytes, MESSAGE_BYTES_MAX)),
    ];
    kinds.into_iter().filter(|(_, is_read)| *is_read).map(|(name, _)| name).collect()
}

/// Reports whether `bytes` are a message of this kind.
fn is_read<T: Serialize + DeserializeOwned>(bytes: &[u8], bytes_max: usize) -> bool {
    let Ok(message) = within::read::<T>(bytes, bytes_max) else { return false };
    let written = serde_json::to_vec(&message).expect("what was read can be written");
    let again: T = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(serde_json::to_vec(&again).expect("as before"), written);
    true
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_message_of_the_corpus_is_what_its_name_says() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/bus_message");
        let mut inputs = 0;
        for input in fs::read_dir(corpus).unwrap() {
            let path = input.unwrap().path();
            let kinds = kinds_of_message(&fs::read(&path).unwrap());
            let name = path.file_stem().unwrap().to_string_lossy().replace('-', " ");
            let expected = name.split(" of ").next().unwrap();
            match expected {
                "refused" => assert_eq!(kinds, [""; 0], "{name}"),
                kind => assert!(kinds.contains(&kind), "{name}: {kinds:?}"),
            }
            inputs += 1;
        }
        assert!(inputs >= 5, "{inputs} inputs only");
    }
}
