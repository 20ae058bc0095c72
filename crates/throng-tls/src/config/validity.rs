//! When a certificate is valid, read from its DER (RFC 5280 section 4.1).

/// Returns the moments from which and until which a certificate is valid, in seconds of Unix;
/// `None` if it cannot be read.
pub(crate) fn validity(certificate: &[u8]) -> Option<(u64, u64)> {
    let (_, rest) = element(from_issuer(certificate)?, SEQUENCE)?;
    let (times, _) = element(rest, SEQUENCE)?;
    let (from, rest) = time(times)?;
    let (until, _) = time(rest)?;
    Some((from, until))
}

/// Returns the elements of a certificate from its issuer on: the issuer, its validity, its subject,
/// its key, extensions.
pub(super) fn from_issuer(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut rest, _) = element(certificate, SEQUENCE)?;
    // "TBSCertificate ::= SEQUENCE { version [0], serialNumber, signature, issuer, validity"
    if rest.first() == Some(&VERSION) {
        (_, rest) = element(rest, VERSION)?;
    }
    for tag in [INTEGER, SEQUENCE] {
        (_, rest) = element(rest, tag)?;
    }
    Some(rest)
}

/// Returns the content of the first element, and what follows it.
pub(super) fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let [first, length, rest @ ..] = der else { return None };
    let (length, rest) = match *length {
        short @ ..0x80 => (usize::from(short), rest),
        long => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            if bytes.len() > 4 {
                return None;
            }
            (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
    };
    (*first == tag).then(|| rest.split_at_checked(length)).flatten()
}

/// Returns a time, and what follows it. Up to 2049 the year has two digits.
pub(super) fn time(der: &[u8]) -> Option<(u64, &[u8])> {
    let is_utc = der.first() == Some(&UTC_TIME);
    let (text, rest) = element(der, if is_utc { UTC_TIME } else { GENERALIZED_TIME })?;
    let digits = text.strip_suffix(b"Z")?;
    let (year, digits) = digits.split_at_checked(if is_utc { 2 } else { 4 })?;
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<i64>().ok();
    let year = match number(year)? {
        year if !is_utc => year,
        year @ 50.. => 1900 + year,
        year => 2000 + year,
    };
    let mut parts = digits.chunks(2).map(number);
    let mut next = || parts.next().flatten();
    let (month, day) = (next()?, next()?);
    let (hour, minute, second) = (next()?, next()?, next()?);
    if !(1..=12).contains(&month) {
        return None;
    }
    let secs = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((u64::try_from(secs).unwrap_or(0), rest))
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March, so a
/// leap day is the last of its year.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, month) = (year.div_euclid(400), (month + 9) % 12);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn the_validity_of_a_certificate_is_read() {
        let table = [
            ((1970, 1, 1), (2000, 2, 29), 0, 951_782_400),
            ((2026, 11, 28), (2049, 12, 31), 1_795_824_000, 2_524_521_600),
            ((2000, 3, 1), (2400, 2, 29), 951_868_800, 13_574_563_200),
        ];
        for (from, until, from_secs, until_secs) in table {
            let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
            params.not_before = date_time_ymd(from.0, from.1, from.2);
            params.not_after = date_time_ymd(until.0, until.1, until.2);
            let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            assert_eq!(validity(certificate.der()), Some((from_secs, until_secs)));
            for length in 0..certificate.der().len() / 2 {
                assert_eq!(validity(&certificate.der()[..length]), None);
            }
        }
    }
}
