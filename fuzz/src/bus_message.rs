//! A message of a fleet over the bus: to an agent, to a coordinator, and from an observer.

/// Checks that the bytes are refused, or survive being written again.
pub fn check(bytes: &[u8]) {
    throng_fleet::kinds_of_message(bytes);
}
