//! The block `lab` of a lab's YAML file.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The block `lab`. Texts that are called expressions are those of `docs/scenario.md`; sentences
/// and cells have expressions in braces, as [`super::sentence`] says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabSpec {
    pub(crate) article: String,
    pub(crate) summary: String,
    /// The lab from which this one takes all else, except the parameters that it names itself.
    pub(crate) like: Option<String>,
    /// A condition: measures the machine's throughput first, as `connects` and `messages`.
    #[serde(default = "zero")]
    pub(crate) calibrate: String,
    /// Expressions, each of which may use those above it, in place of the scenario's parameters.
    #[serde(default)]
    pub(crate) params: OrderedTexts,
    /// The most connections at one time, an expression.
    #[serde(default = "users")]
    pub(crate) users: String,
    /// The connections for which the server has fd tables. Default: `users`.
    pub(crate) places: Option<String>,
    /// The kind of server for `throng serve`.
    #[serde(default)]
    pub(crate) server: String,
    /// The servers that share topics over the bus.
    #[serde(default = "one")]
    pub(crate) nodes: u8,
    /// The time after which the server closes an idle connection; 0 s for the kind's default.
    #[serde(default = "zero")]
    pub(crate) idle_timeout: String,
    /// The length of an interval.
    #[serde(default = "second")]
    pub(crate) interval: String,
    /// The expected length of the load. Default: that of the scenario.
    pub(crate) seconds: Option<String>,
    /// What watches the run and may end it: a name of [`super::analyses`].
    pub(crate) watch: Option<String>,
    /// A note before the load, with `{control}` for the generator's control socket.
    pub(crate) note: Option<String>,
    /// The setup, a sentence.
    #[serde(default)]
    pub(crate) setup: String,
    /// Values that only tables and sentences use: expressions, or names of [`super::analyses`].
    #[serde(default)]
    pub(crate) values: OrderedTexts,
    /// The fields of the result in JSON: expressions, or names of [`super::analyses`].
    #[serde(default)]
    pub(crate) row: OrderedTexts,
    /// The moment until which the run is judged, in milliseconds. Default: its end.
    pub(crate) judged_until: Option<String>,
    #[serde(default)]
    pub(crate) tables: Vec<TableSpec>,
    /// The conclusions: of each list, the first claim whose condition holds.
    #[serde(default)]
    pub(crate) verdict: Vec<Vec<Claim>>,
    /// Reservations, chosen as the conclusions are.
    #[serde(default)]
    pub(crate) notes: Vec<Vec<Claim>>,
}

/// A table of the report.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableSpec {
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<RowsSpec>,
}

/// Rows of a table; cells that are missing at the end are empty.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum RowsSpec {
    One(Vec<String>),
    /// A row for each item of a list or a mapping, or `none` without any.
    Each {
        each: String,
        cells: Vec<String>,
        none: Option<Vec<String>>,
    },
}

/// A sentence and its condition.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) when: Option<String>,
    pub(crate) say: String,
}

/// The file; its other fields are the scenario.
#[derive(Deserialize)]
struct LabFile {
    lab: LabSpec,
}

impl LabSpec {
    pub(crate) fn parse(yaml: &str) -> Result<Self, serde_saphyr::Error> {
        serde_saphyr::from_str::<LabFile>(yaml).map(|file| file.lab)
    }

    /// Takes from `other` what a run is and what it shows.
    pub(crate) fn like(self, other: &Self) -> Self {
        Self {
            article: self.article,
            summary: self.summary,
            params: self.params.before(other.params.clone()),
            ..other.clone()
        }
    }
}

/// A mapping from names to texts, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrderedTexts(pub(crate) Vec<(String, String)>);

impl OrderedTexts {
    /// Returns the entries of `other`, each replaced by the one here with the same name.
    fn before(self, other: Self) -> Self {
        let of = |(name, text): (String, String)| {
            let ours = self.0.iter().find(|(known, _)| *known == name);
            (name, ours.map_or(text, |(_, ours)| ours.clone()))
        };
        Self(other.0.into_iter().map(of).collect())
    }
}

impl<'de> Deserialize<'de> for OrderedTexts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = OrderedTexts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping from names to expressions")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<OrderedTexts, A::Error> {
        let mut texts = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            texts.push(entry);
        }
        Ok(OrderedTexts(texts))
    }
}

fn zero() -> String {
    "0".to_owned()
}

fn one() -> u8 {
    1
}

fn second() -> String {
    "1s".to_owned()
}

fn users() -> String {
    "users".to_owned()
}
