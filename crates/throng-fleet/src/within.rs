//! The bounds of what arrives over the bus: sizes of messages, and of the numbers, lists and texts
//! in them. What is beyond is refused where it is read.

use std::fmt;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use throng_bus::Text;

/// Reads a message.
///
/// # Errors
/// It has more than `bytes_max` bytes, more parts than memory should hold, or is none.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8], bytes_max: usize) -> Result<T, String> {
    if bytes.len() > bytes_max {
        return Err(format!("a message of {} bytes: {bytes_max} at most", bytes.len()));
    }
    // A part takes two bytes here, and many times as much once it is read.
    let parts = parts(bytes);
    if parts > PARTS_MAX {
        return Err(format!("a message of {parts} parts: {PARTS_MAX} at most"));
    }
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

/// Returns the number of objects and lists in a JSON text.
fn parts(json: &[u8]) -> usize {
    let (mut parts, mut is_text, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => parts += 1,
            _ => {}
        }
    }
    parts
}

/// Reads a number of things that a machine has, or counts.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    checked(u64::deserialize(from)?)
}

/// Reads a number that may not be known.
pub(crate) fn some_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    Option::<u64>::deserialize(from)?.map(checked).transpose()
}

fn checked<E: de::Error>(count: u64) -> Result<u64, E> {
    if count <= COUNT_MAX {
        return Ok(count);
    }
    Err(E::custom(format!("the number {count}: {COUNT_MAX} at most")))
}

/// Reads the number of a machine's CPUs.
pub(crate) fn cpus<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let cpus = usize::deserialize(from)?;
    if (1..=CPUS_MAX).contains(&cpus) {
        return Ok(cpus);
    }
    Err(de::Error::custom(format!("{cpus} CPUs: a machine has 1 to {CPUS_MAX}")))
}

/// Reads a list of at most `MAX` entries.
pub(crate) fn few<'de, D, T, const MAX: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Few<T, const MAX: usize>(std::marker::PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Few<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MAX} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = seq.next_element()? {
                if entries.len() == MAX {
                    return Err(de::Error::invalid_length(MAX + 1, &self));
                }
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    from.deserialize_seq(Few::<T, MAX>(std::marker::PhantomData))
}

/// Reads why something is so. It may have several lines; what is beyond [`REASON_BYTES_MAX`] is cut
/// off.
pub(crate) fn reason<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(cut)
}

/// Reads a reason, if there is one.
pub(crate) fn some_reason<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(from).map(|reason| reason.map(cut))
}

/// Reads a few reasons.
pub(crate) fn reasons<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    few::<D, String, REASONS_MAX>(from).map(|all| all.into_iter().map(cut).collect())
}

/// Reads a line that may not be known.
pub(crate) fn some_line<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::<Text>::deserialize(from).map(|line| line.map(String::from))
}

/// Cuts a reason off that is too long.
fn cut(mut reason: String) -> String {
    if reason.len() > REASON_BYTES_MAX {
        let is_end = |end: &usize| reason.is_char_boundary(*end);
        let most = REASON_BYTES_MAX - CUT_MARK.len();
        let end = (0..=most).rev().find(is_end).unwrap_or(0);
        reason.truncate(end);
        reason.push_str(CUT_MARK);
    }
    reason
}

/// Bytes of a message between a coordinator and an agent at most: an order with a scenario and all
/// its files.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Bytes of an agent's message to its coordinator at most, for each of its cores and once more.
pub(crate) const CORE_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Bytes of what an agent says about itself at most.
pub(crate) const HELLO_BYTES_MAX: usize = 16 << 10;
/// Bytes of what an observer says at most: its hello has the limits of a server.
pub(crate) const OBSERVER_BYTES_MAX: usize = 256 << 10;
/// Bytes of a question, or of a request outside a run, at most.
pub(crate) const REQUEST_BYTES_MAX: usize = 4 << 10;
/// Names of agents, and of observers, that a process keeps at most.
pub const NAMES_MAX: usize = 10_000;
/// CPUs of a machine at most: what Linux can have.
pub(crate) const CPUS_MAX: usize = 8_192;
/// Labels of an agent at most.
pub const LABELS_MAX: usize = 64;
/// Bytes of a reason that are kept.
pub(crate) const REASON_BYTES_MAX: usize = 8 << 10;
/// What stands at the end of a reason that is cut off.
const CUT_MARK: &str = "…";
/// Reasons in one message at most.
const REASONS_MAX: usize = 100;
/// Objects and lists of a message at most: those of an order with a barrier for each of many cores,
/// or of the report of hundreds of cores.
const PARTS_MAX: usize = 1 << 18;
/// Numbers that a machine tells of itself at most: bytes of memory, connections, microseconds.
pub(crate) const COUNT_MAX: u64 = 1 << 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Sample {
        #[serde(deserialize_with = "cpus")]
        cpus: usize,
        #[serde(default, deserialize_with = "some_count")]
        memory: Option<u64>,
        #[serde(default, deserialize_with = "few::<_, _, 3>")]
        labels: Vec<throng_bus::Name>,
        #[serde(default, deserialize_with = "reason")]
        why: String,
    }

    fn sample(json: &str) -> Result<Sample, String> {
        read(json.as_bytes(), 20_000)
    }

    #[test]
    fn what_is_beyond_a_bound_is_refused_and_named() {
        for (json, why) in [
            (r#"{"cpus": 0}"#, "0 CPUs: a machine has 1 to 8192"),
            (r#"{"cpus": 8193}"#, "8193 CPUs"),
            (r#"{"cpus": 1, "memory": 1125899906842625}"#, "the number 1125899906842625"),
            (r#"{"cpus": 1, "labels": ["a", "b", "c", "d"]}"#, "at most 3 entries"),
            (r#"{"cpus": 1, "labels": ["a b"]}"#, "is no name"),
        ] {
            let error = sample(json).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let most = r#"{"cpus": 8192, "memory": 1125899906842624, "labels": ["a", "b", "c"]}"#;
        let read = sample(most).unwrap();
        assert_eq!((read.cpus, read.memory, read.labels.len()), (8_192, Some(COUNT_MAX), 3));
    }

    #[test]
    fn a_message_is_refused_before_it_is_read_if_it_is_too_large() {
        let long = sample(&format!(r#"{{"cpus": 1, "why": "{}"}}"#, "x".repeat(20_000)));
        assert!(long.unwrap_err().contains("bytes: 20000 at most"));
        let many = format!("[{}{{}}]", "{},".repeat(PARTS_MAX));
        let error = read::<serde_json::Value>(many.as_bytes(), MESSAGE_BYTES_MAX).unwrap_err();
        assert!(error.contains("parts: 262144 at most"), "{error}");
        // What stands in a text is no part.
        assert_eq!(parts(br#"{"a": "[{\"[{", "b": ["\\"]}"#), 2);
    }

    #[test]
    fn a_long_reason_is_cut_off() {
        let why = "ü".repeat(REASON_BYTES_MAX);
        let read = sample(&format!(r#"{{"cpus": 1, "why": "{why}"}}"#)).unwrap();
        assert!(read.why.len() <= REASON_BYTES_MAX && read.why.ends_with("ü…"));
        assert_eq!(cut(read.why.clone()), read.why, "once");
    }
}
