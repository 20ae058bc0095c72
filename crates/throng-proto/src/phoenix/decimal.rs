//! Refs as decimal strings, written without an allocation.

/// The decimal digits of a number.
///
/// ```
/// assert_eq!(throng_proto::phoenix::Decimal::new(407).as_str(), "407");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    digits: [u8; DIGITS_MAX],
    first: u8,
}

impl Decimal {
    /// Computes the digits of `number`.
    pub const fn new(mut number: u64) -> Self {
        let mut digits = [b'0'; DIGITS_MAX];
        let mut first = DIGITS_MAX - 1;
        loop {
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return Self { digits, first: first as u8 };
            }
            first -= 1;
        }
    }

    /// Returns the digits as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.digits[self.first as usize..]).unwrap_or_default()
    }
}

/// The digits of 2^64.
const DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 9, 10, 99, 100, 1_234_567_890, u64::MAX] {
            assert_eq!(Decimal::new(number).as_str(), number.to_string());
        }
    }
}
