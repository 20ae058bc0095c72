//! Reading single values of a phase.

use throng_base::units::parse_count;

use super::phase::{Curve, Level, Spacing};
use crate::scenario::node::Node;
use crate::scenario::reader::Reader;
use crate::scenario::values::bounded_rate;

/// Reads a number of at least 1.
pub(super) fn read_above_zero(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<u64> {
    let number = reader.quantity(node, what, parse_count)?;
    if number == 0 {
        reader.error(node.span.clone(), format!("{what} is zero"), "at least 1");
        return None;
    }
    Some(number)
}

/// Reads a number of users.
pub(super) fn read_users(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<u32> {
    let users = reader.quantity(node, what, parse_count)?;
    let fits = u32::try_from(users).ok();
    if fits.is_none() {
        let most = u32::MAX;
        reader.error(node.span.clone(), "too many users", format!("at most {most}"));
    }
    fits
}

/// Reads a number of users, or a rate of arrivals: what has a unit of time is a rate.
pub(super) fn read_level(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Level> {
    if node.scalar().is_some_and(|text| text.contains('/')) {
        return bounded_rate(reader, node, what).map(Level::Rate);
    }
    read_users(reader, node, what).map(Level::Users)
}

/// Reads the form of a change; linear if it is not written.
pub(crate) fn read_curve(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Curve> {
    let known = [("linear", Curve::Linear), ("exponential", Curve::Exponential)];
    node.map_or(Some(Curve::default()), |node| reader.one_of(node, "`curve`", &known))
}

/// Reads the distribution of the gaps between arrivals.
pub(super) fn read_spacing(reader: &mut Reader<'_>, node: Option<&Node>) -> Option<Spacing> {
    let known = [("poisson", Spacing::Poisson), ("even", Spacing::Even)];
    node.map_or(Some(Spacing::default()), |node| reader.one_of(node, "`spacing`", &known))
}
