//! The certificates of a server, as `throng serve` and `throng ctl reload` show them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use throng_base::units::{plural, show_utc};
use throng_tls::CertifiedPair;

/// A file of certificates, and when it expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CertificateFacts {
    /// Name of the file.
    file: String,
    /// The moment at which the first certificate of the file expires, if it can be read.
    valid_until: Option<String>,
    /// Whole days until then, negative afterwards.
    days_left: Option<i64>,
}

impl CertificateFacts {
    /// Returns the facts of each pair, now.
    pub(crate) fn of(pairs: &[CertifiedPair]) -> Vec<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        pairs.iter().map(|pair| Self::at(pair.chain.name(), pair.valid_until(), now)).collect()
    }

    fn at(file: &str, until: Option<u64>, now: u64) -> Self {
        let days = |until: u64| (until as i64 - now as i64).div_euclid(SECONDS_OF_DAY);
        Self {
            file: file.to_owned(),
            valid_until: until.map(|until| show_utc(Duration::from_secs(until))),
            days_left: until.map(days),
        }
    }

    /// Returns the file and its time: `chain.pem until 2027-01-01T00:00:00Z (34 days)`.
    pub(crate) fn show(&self) -> String {
        let Self { file, valid_until, days_left } = self;
        match (valid_until, days_left) {
            (Some(until), Some(..0)) => format!("{file}, expired since {until}"),
            (Some(until), Some(days @ ..1_000)) => {
                format!("{file} until {until} ({})", show_days(*days))
            }
            (Some(until), _) => format!("{file} until {until}"),
            (None, _) => file.clone(),
        }
    }

    /// Returns a warning if the time ends soon, or is over.
    pub(crate) fn warning(&self) -> Option<String> {
        let Self { file, valid_until, days_left } = self;
        let (until, days) = (valid_until.as_ref()?, (*days_left)?);
        let what = match days {
            ..0 => format!("expired at {until}: clients refuse it"),
            0..SOON_DAYS => format!("expires in {}, at {until}", show_days(days)),
            _ => return None,
        };
        Some(format!("warning: {file} {what}; renew it, then `throng ctl reload` or SIGHUP"))
    }
}

/// Joins the files with their times.
pub(crate) fn show(certificates: &[CertificateFacts]) -> String {
    certificates.iter().map(CertificateFacts::show).collect::<Vec<_>>().join(", ")
}

fn show_days(days: i64) -> String {
    format!("{days} {}", plural(days.unsigned_abs(), "day", "days"))
}

const SECONDS_OF_DAY: i64 = 86_400;

/// Days before the end of a certificate at which it should have been renewed: ACME clients do so
/// three to four weeks before.
const SOON_DAYS: i64 = 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_left_are_shown_and_few_of_them_warned_of() {
        let day = SECONDS_OF_DAY as u64;
        let facts = |until: u64| CertificateFacts::at("a.pem", Some(until), 100 * day);
        for (until, shows, warns) in [
            (114 * day, "a.pem until 1970-04-25T00:00:00Z (14 days)", ""),
            (114 * day - 1, "a.pem until 1970-04-24T23:59:59Z (13 days)", "expires in 13 days"),
            (102 * day - 1, "a.pem until 1970-04-12T23:59:59Z (1 day)", "expires in 1 day, at"),
            (100 * day, "a.pem until 1970-04-11T00:00:00Z (0 days)", "expires in 0 days"),
            (1_100 * day, "a.pem until 1973-01-05T00:00:00Z", ""),
            (100 * day - 1, "a.pem, expired since 1970-04-10T23:59:59Z", "clients refuse it"),
        ] {
            assert_eq!(facts(until).show(), shows);
            let warning = facts(until).warning();
            assert_eq!(warning.is_some(), !warns.is_empty(), "{warning:?}");
            assert!(warning.unwrap_or_default().contains(warns));
        }
        let unknown = CertificateFacts::at("a.pem", None, 0);
        assert_eq!((unknown.show().as_str(), unknown.warning()), ("a.pem", None));
    }
}
