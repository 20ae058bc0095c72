//! The serialisation of a connection: the query parameter `vsn`.

/// The version of the serialisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vsn {
    /// 1.0.x: JSON objects, no binary frames.
    V1,
    /// 2.0.x: JSON arrays and binary frames; the version that phoenix.js requests.
    V2,
}

/// A version other than 1.0.x and 2.0.x. The server responds 403 with an empty body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("vsn is neither 1.0.x nor 2.0.x")]
pub struct UnknownVsn;

impl Vsn {
    /// Returns the version that a request requires. `vsn` is the percent-decoded parameter; a
    /// missing one means 1.0.0.
    ///
    /// The parameter must be a version of semver.org 2.0.0, at least 1.0.0 and below 1.1.0, or at
    /// least 2.0.0 and below 2.1.0.
    pub fn from_query(vsn: Option<&str>) -> Result<Self, UnknownVsn> {
        let Some(vsn) = vsn else { return Ok(Self::V1) };
        match series(vsn) {
            Some(1) => Ok(Self::V1),
            Some(2) => Ok(Self::V2),
            _ => Err(UnknownVsn),
        }
    }

    /// Returns the value with which a client requests this version.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "1.0.0",
            Self::V2 => "2.0.0",
        }
    }
}

/// Returns the `n` of a version in the series `n.0.x`. A pre-release of `n.0.0` is earlier than the
/// series.
fn series(version: &str) -> Option<u64> {
    let (version, build) = split(version, '+');
    let (core, pre) = split(version, '-');
    let mut numbers = core.split('.');
    let [major, minor, patch] = [numbers.next()?, numbers.next()?, numbers.next()?].map(number);
    let (major, minor, patch) = (major?, minor?, patch?);
    let parts =
        |text: Option<&str>, part: fn(&str) -> bool| text.is_none_or(|t| t.split('.').all(part));
    let is_valid =
        numbers.next().is_none() && parts(pre, is_pre_release) && parts(build, is_identifier);
    let is_pre_series = patch == 0 && pre.is_some();
    (is_valid && minor == 0 && !is_pre_series).then_some(major)
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(head, tail)| (head, Some(tail)))
}

/// Parses digits without a leading zero.
fn number(text: &str) -> Option<u64> {
    let plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_pre_release(text: &str) -> bool {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    is_identifier(text) && (!digits || text == "0" || !text.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_vsn_is_the_first_version() {
        assert_eq!(Vsn::from_query(None), Ok(Vsn::V1));
    }

    #[test]
    fn patches_and_builds_belong_to_their_series() {
        for (vsn, want) in [
            ("1.0.0", Vsn::V1),
            ("1.0.7", Vsn::V1),
            ("2.0.0", Vsn::V2),
            ("2.0.12", Vsn::V2),
            ("2.0.0+build.01", Vsn::V2),
            ("2.0.1-rc.1", Vsn::V2),
        ] {
            assert_eq!(Vsn::from_query(Some(vsn)), Ok(want), "{vsn}");
            assert_eq!(Vsn::from_query(Some(want.as_str())), Ok(want));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for vsn in [
            "",
            "1",
            "1.0",
            "2.0",
            "1.1.0",
            "2.1.0",
            "3.0.0",
            "0.0.0",
            "01.0.0",
            "2.0.00",
            "2.0.0.0",
            "2.0.x",
            "v2.0.0",
            " 2.0.0",
            "2.0.0-rc.1",
            "2.0.1-01",
            "2.0.1-",
            "2.0.0+",
            "2.0.0+a..b",
            "2.0.+1",
            "2.0.-1",
            "99999999999999999999.0.0",
            "２.0.0",
        ] {
            assert_eq!(Vsn::from_query(Some(vsn)), Err(UnknownVsn), "{vsn:?}");
        }
    }
}
