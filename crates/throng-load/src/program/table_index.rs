//! Where the values of a program's tables are, so that equal ones share a place.

use std::collections::HashMap;
use std::fmt::{self, Debug, Write};
use std::hash::{DefaultHasher, Hasher};

/// The indexes of the tables whose values may be equal.
#[derive(Default)]
pub(super) struct TableIndexes {
    pub(super) step_names: TableIndex,
    pub(super) conditions: TableIndex,
    pub(super) templates: TableIndex,
    pub(super) think_times: TableIndex,
    pub(super) handshakes: TableIndex,
    pub(super) topics: TableIndex,
}

/// The places of a table's values, by a hash of what they look like. A value may have parts that
/// have no hash of their own.
#[derive(Default)]
pub(super) struct TableIndex {
    places: HashMap<u64, Vec<u32>>,
    /// Values that were compared.
    #[cfg(test)]
    compared: usize,
}

impl TableIndex {
    /// Returns the index of `value` in the table, to which only this function adds. Equal values
    /// share one.
    pub(super) fn index_of<T: PartialEq + Debug>(&mut self, table: &mut Vec<T>, value: T) -> u32 {
        let mut looks = Looks(DefaultHasher::new());
        write!(looks, "{value:?}").expect("a hasher takes every text");
        let places = self.places.entry(looks.0.finish()).or_default();
        #[cfg(test)]
        {
            self.compared += places.len();
        }
        let known = places.iter().copied().find(|place| table[*place as usize] == value);
        known.unwrap_or_else(|| {
            let place = table.len() as u32;
            table.push(value);
            places.push(place);
            place
        })
    }
}

/// A hash of a text that is written piece by piece.
struct Looks(DefaultHasher);

impl Write for Looks {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_compared_with_no_other_that_looks_different() {
        let (mut index, mut table) = (TableIndex::default(), Vec::new());
        for _ in 0..2 {
            for number in 0..5_000_u32 {
                assert_eq!(index.index_of(&mut table, format!("value {number}")), number);
            }
        }
        assert_eq!((table.len(), index.compared), (5_000, 5_000));
    }
}
