//! Rates, as a scenario writes them.

use throng_base::units::show_count;

/// Returns a rate in the first unit in which it is a whole number: `5/s`, `30/m`, `7/h`. `None` if
/// it is one in none.
pub(crate) fn show_whole(per_second: f64) -> Option<String> {
    [("s", 1.0), ("m", 60.0), ("h", 3_600.0)].iter().find_map(|(unit, seconds)| {
        let turns = (per_second * seconds).round();
        let is_whole = (1.0..WHOLE_MAX).contains(&turns)
            && (turns / seconds - per_second).abs() < 1e-12 * per_second;
        is_whole.then(|| format!("{}/{unit}", show_count(turns as u64)))
    })
}

/// The largest number that is certainly whole.
const WHOLE_MAX: f64 = 1e12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_whole_number_of_a_unit() {
        for (per_second, expected) in
            [(5.0, Some("5/s")), (0.5, Some("30/m")), (1.0 / 3_600.0, Some("1/h")), (0.7123, None)]
        {
            assert_eq!(show_whole(per_second).as_deref(), expected);
        }
    }
}
