//! Numbers as text that packs well and that a page reads fast.
//!
//! Each number is written as its difference to the last known one, in groups of five bits, the
//! lowest first, the sign in the lowest bit: one character for a group. Characters from `0` to `O`
//! end a number, those from `]` to `|` continue it, and `!` is an unknown value. No character needs
//! an escape in JSON.

/// Returns a series as text.
pub(super) fn series(values: impl IntoIterator<Item = Option<i64>>) -> String {
    let mut text = String::new();
    let mut last = 0;
    for value in values {
        match value {
            Some(value) => {
                number(&mut text, value.wrapping_sub(std::mem::replace(&mut last, value)));
            }
            None => text.push('!'),
        }
    }
    text
}

/// Appends one number.
pub(super) fn number(text: &mut String, number: i64) {
    let mut rest = ((number as u64) << 1) ^ ((number >> 63) as u64);
    while rest >= 32 {
        text.push(char::from(b']' + (rest & 31) as u8));
        rest >>= 5;
    }
    text.push(char::from(b'0' + rest as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads as the page does.
    fn read(text: &str) -> Vec<Option<i64>> {
        let (mut values, mut sum, mut rest, mut shift) = (Vec::new(), 0_i64, 0_u64, 0);
        for byte in text.bytes() {
            match byte {
                b'!' => values.push(None),
                b']'.. => {
                    rest |= u64::from(byte - b']') << shift;
                    shift += 5;
                }
                _ => {
                    rest |= u64::from(byte - b'0') << shift;
                    sum = sum.wrapping_add((rest >> 1) as i64 ^ -((rest & 1) as i64));
                    values.push(Some(sum));
                    (rest, shift) = (0, 0);
                }
            }
        }
        values
    }

    #[test]
    fn a_series_comes_back_whatever_its_values() {
        let all = [
            Some(0),
            None,
            Some(15),
            Some(-16),
            Some(i64::MAX),
            Some(i64::MIN),
            None,
            Some(7),
            Some(7),
        ];
        assert_eq!(read(&series(all)), all);
    }

    #[test]
    fn a_small_step_is_one_character_that_json_does_not_escape() {
        assert_eq!(series([Some(100), Some(101), None, Some(86), Some(86)]), "e62!M0");
        let every: String = (-2000..2000).map(|n| series([Some(n)])).collect();
        assert_eq!(serde_json::to_string(&every).unwrap().len(), every.len() + 2);
    }
}
