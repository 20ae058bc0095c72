//! A line of k6: the declaration of a metric, or a point.

use std::borrow::Cow;

use serde::Deserialize;

use super::super::json_place::problem;
use super::super::utc::UtcTime;
use super::metric::MetricUse;

/// A point of which the run file has something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) at: UtcTime,
    pub(super) metric: MetricUse,
    /// A count, or milliseconds.
    pub(super) value: f64,
}

/// A line as it is written.
#[derive(Debug, Deserialize)]
pub(super) struct PointLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) metric: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) data: PointData<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PointData<'a> {
    /// Of a declaration: `trend`.
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Option<Cow<'a, str>>,
    /// Of a declaration: `time`.
    #[serde(borrow, default)]
    pub(super) contains: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    time: Option<Cow<'a, str>>,
    #[serde(default)]
    value: Option<f64>,
    #[serde(borrow, default)]
    pub(super) tags: Option<Tags<'a>>,
}

/// The tags that say what a point is of.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Tags<'a> {
    #[serde(borrow, default)]
    pub(super) status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) expected_response: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) error_code: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) group: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) url: Option<Cow<'a, str>>,
}

impl<'a> PointLine<'a> {
    pub(super) fn parse(line: &'a str) -> Result<Self, String> {
        let parsed: Self = serde_json::from_str(line).map_err(|error| problem(&error))?;
        match parsed.kind.as_ref() {
            "Metric" | "Point" => Ok(parsed),
            kind => Err(format!("`type` is `{kind}`, and not `Metric` or `Point`")),
        }
    }

    pub(super) fn is_declaration(&self) -> bool {
        self.kind == "Metric"
    }

    /// Returns the moment and the value of a point, or a title and a label.
    pub(super) fn moment_and_value(&self) -> Result<(UtcTime, f64), (String, String)> {
        let expected = |what: &str| format!("expected {what}");
        let Some(time) = &self.data.time else {
            return Err(("this point has no `time`".to_owned(), expected("a moment in RFC 3339")));
        };
        let Some(moment) = UtcTime::parse(time) else {
            return Err((format!("`{time}` is no moment"), expected("2017-05-09T14:34:45.6Z")));
        };
        match self.data.value {
            Some(value) => Ok((moment, value)),
            None => Err(("this point has no `value`".to_owned(), expected("a number"))),
        }
    }
}
