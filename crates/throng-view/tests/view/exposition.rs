//! A strict reader of Prometheus' text format, which panics where a scrape would fail or `promtool`
//! would complain.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Labels of a sample, sorted by name.
type Labels = BTreeMap<String, String>;

/// The samples of a scrape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exposition {
    /// The type of each family.
    types: BTreeMap<String, String>,
    samples: BTreeMap<(String, Labels), f64>,
}

impl Exposition {
    #[track_caller]
    pub(crate) fn parse(text: &str) -> Self {
        let mut exposition = Self::default();
        let (mut helped, mut family) = (BTreeSet::new(), String::new());
        assert!(text.ends_with('\n'), "a scrape ends with a newline");
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(!help.is_empty() && helped.insert(name.to_owned()), "{line}");
                assert!(!help.contains("microseconds"), "no base unit: {line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(helped.contains(name), "help comes first: {line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                let reserved = ["_count", "_sum", "_bucket"];
                assert!(!reserved.iter().any(|end| name.ends_with(end)), "{line}");
                let units = ["us", "ms", "s", "kb", "permille", "millicpus", "percent"];
                assert!(!name.split('_').any(|word| units.contains(&word)), "no base unit: {line}");
                family = name.to_owned();
                let known = exposition.types.insert(family.clone(), kind.to_owned());
                assert_eq!(known, None, "a second family: {line}");
            } else {
                exposition.add(line, &family);
            }
        }
        exposition.check_histograms();
        exposition
    }

    #[track_caller]
    fn add(&mut self, line: &str, family: &str) {
        let (name, labels, value) = sample(line);
        let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("not of {family}: {line}"));
        let is_histogram = self.types[family] == "histogram";
        assert!(
            suffix.is_empty() != is_histogram
                && ["", "_bucket", "_sum", "_count"].contains(&suffix),
            "{line}"
        );
        assert!(self.samples.insert((name, labels), value).is_none(), "twice: {line}");
    }

    /// Checks that buckets are cumulative, and that the last of them holds the count.
    #[track_caller]
    fn check_histograms(&self) {
        let mut buckets: BTreeMap<(&str, Labels), Vec<(f64, f64)>> = BTreeMap::new();
        for ((name, labels), value) in &self.samples {
            let Some(family) = name.strip_suffix("_bucket") else { continue };
            let mut labels = labels.clone();
            let le = labels.remove("le").unwrap().replace("+Inf", "inf").parse().unwrap();
            buckets.entry((family, labels)).or_default().push((le, *value));
        }
        for ((family, labels), mut buckets) in buckets {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.is_sorted_by_key(|(_, count)| *count), "{family}: {buckets:?}");
            let count = self.samples[&(format!("{family}_count"), labels)];
            assert_eq!(buckets.last(), Some(&(f64::INFINITY, count)), "{family}");
        }
    }

    /// Returns the names of all families.
    pub(crate) fn families(&self) -> impl Iterator<Item = &str> {
        self.types.keys().map(String::as_str)
    }

    /// Returns the value of a sample.
    pub(crate) fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        self.samples.get(&(name.to_owned(), labels)).copied()
    }

    /// Asserts on a sample.
    #[track_caller]
    pub(crate) fn check(&self, name: &str, labels: &[(&str, &str)], expected: f64) {
        let found = self.get(name, labels);
        assert_eq!(found, Some(expected), "{name} {labels:?} in {self:#?}");
    }

    /// Asserts that no counter and no histogram of a run or a server is smaller than before or has
    /// gone. Those of machines may be unreadable for a moment.
    #[track_caller]
    pub(crate) fn has_grown_since(&self, before: &Self) {
        let is_ours =
            |name: &str| ["throng_load", "throng_server"].iter().any(|of| name.starts_with(of));
        for (key, value) in before.samples.iter().filter(|(key, _)| is_ours(&key.0)) {
            let of = |end| {
                let family = key.0.strip_suffix(end)?;
                before.types.get(family).map(String::as_str)
            };
            let is_histogram = ["_bucket", "_sum", "_count"].map(of).contains(&Some("histogram"));
            if of("") == Some("counter") || is_histogram {
                let now = self.samples.get(key);
                assert!(now.is_some_and(|now| now >= value), "{key:?}: {value}, then {now:?}");
            }
        }
    }
}

/// Returns the text at a URL of an endpoint.
#[allow(dead_code)]
#[track_caller]
pub(crate) fn fetch(url: &str) -> String {
    let addr = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
    let mut stream = TcpStream::connect(addr).unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.to_owned()
}

/// Parses the line of a sample: name, labels, value.
#[track_caller]
fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no sample: {line:?}"));
    let (name, mut rest) = line.split_at(end);
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    assert!(
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_name),
        "{line}"
    );
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line:?}"));
            let (value, after) = quoted(after);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line:?}"));
    (name.to_owned(), labels, value.parse().unwrap_or_else(|_| panic!("{line:?}")))
}

/// Returns a quoted text without its escapes, and what follows its closing quote.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, c @ ('"' | '\\'))) => value.push(c),
                other => panic!("no escape: {other:?} in {text:?}"),
            },
            c => value.push(c),
        }
    }
    panic!("not closed: {text:?}");
}
