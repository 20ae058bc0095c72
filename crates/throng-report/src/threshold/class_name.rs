//! The names of measurements of a class: `class.api.http.p99`.

use throng_measure::Operation;

/// The beginning of a measurement of the users of a class.
pub(super) const CLASS: &str = "class.";

/// Returns the divisions of `api.v2.http.p99` into a class and a measurement: the name of either
/// may have dots.
pub(super) fn divisions(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let dots = name.match_indices('.').map(move |(at, _)| (&name[..at], &name[at + 1..]));
    dots.filter(|(class, of)| !class.is_empty() && !of.is_empty())
}

/// Reports whether an operation is measured by class. Probes reach the users of all classes.
pub(super) fn is_of_class(operation: Operation) -> bool {
    operation != Operation::Broadcast
}
