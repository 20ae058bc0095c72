//! Numbers and UUIDs as variables write them: as bytes, or as text.

use throng_base::Prng;

use super::variable::VariableScope;

/// Appends a whole number of this many bytes. Notes a number that does not fit.
pub(super) fn write_integer(
    number: Option<i128>,
    bytes: usize,
    is_little: bool,
    scope: &mut VariableScope<'_>,
    out: &mut Vec<u8>,
) {
    let Some(number) = number else { return scope.fail(NOT_WHOLE) };
    let number =
        u64::try_from(number).ok().filter(|number| bytes == 8 || number >> (bytes * 8) == 0);
    let Some(number) = number else {
        return scope.fail(match bytes {
            1 => "a number that does not fit into `u8`",
            2 => "a number that does not fit into `u16`",
            4 => "a number that does not fit into `u32`",
            _ => "a number that does not fit into `u64`",
        });
    };
    match is_little {
        true => out.extend_from_slice(&number.to_le_bytes()[..bytes]),
        false => out.extend_from_slice(&number.to_be_bytes()[8 - bytes..]),
    }
}

/// Appends a number in groups of seven bits, the lowest first; each byte but the last has its
/// highest bit set (MQTT 5.0 section 1.5.5).
pub(super) fn write_varint(number: Option<i128>, scope: &mut VariableScope<'_>, out: &mut Vec<u8>) {
    let Some(number) = number else { return scope.fail(NOT_WHOLE) };
    let Ok(mut number) = u64::try_from(number) else {
        return scope.fail("a number that does not fit into `varint`");
    };
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Returns the bytes that a text names in hexadecimal; blanks between them are skipped.
pub(super) fn read_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let digits = text.iter().filter(|byte| !byte.is_ascii_whitespace()).map(digit);
    let digits = digits.collect::<Option<Vec<_>>>()?;
    let is_whole = digits.len() % 2 == 0;
    is_whole.then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Appends a random UUID (RFC 9562 version 4).
pub(super) fn write_uuid(prng: &mut Prng, out: &mut Vec<u8>) {
    let mut bytes = [0; 16];
    prng.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend([byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]));
    }
}

/// Appends a number in decimal.
pub(super) fn write_number(number: i128, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    let mut number = number.unsigned_abs();
    let mut buffer = [0u8; DIGITS_MAX];
    let mut at = buffer.len();
    loop {
        at -= 1;
        // Most numbers fit into 64 bits, whose division is far cheaper.
        number = match u64::try_from(number) {
            Ok(small) => {
                buffer[at] = b'0' + (small % 10) as u8;
                u128::from(small / 10)
            }
            Err(_) => {
                buffer[at] = b'0' + (number % 10) as u8;
                number / 10
            }
        };
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&buffer[at..]);
}

const NOT_WHOLE: &str = "a value that is no whole number";
/// Bytes of a variable-length number of 64 bits.
pub(super) const VARINT_BYTES_MAX: usize = 10;
/// Most digits of a number, with its sign.
pub(super) const DIGITS_MAX: usize = 40;
/// Bytes of the text of a UUID.
pub(super) const UUID_BYTES: usize = 36;
/// Digits in hexadecimal.
pub(super) const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_written_as_usual(number: i64) {
            let mut out = Vec::new();
            write_number(number.into(), &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    #[test]
    fn a_uuid_has_its_version_and_variant() {
        let mut out = Vec::new();
        write_uuid(&mut Prng::new(7), &mut out);
        let text = String::from_utf8(out).unwrap();
        let lengths: Vec<_> = text.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{text}");
        assert_eq!(text.as_bytes()[14], b'4', "{text}");
        assert!(b"89ab".contains(&text.as_bytes()[19]), "{text}");
    }
}
