//! Writes families of metrics.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::{
    CounterValueEncoder, DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue,
    GaugeValueEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Unit;
use throng_measure::metric::MetricKind;
use throng_measure::{CounterField, ProcessUse, Tally};
use throng_report::render::escape_document;

use super::buckets::BucketCounts;
use super::name::FamilyName;

/// The labels of a sample, each a name and a value.
pub(super) type Labels = Vec<(&'static str, String)>;

/// A writer of families. All samples of a family stand together, after its help and its type.
#[derive(Debug)]
pub(super) struct Families<'a>(DescriptorEncoder<'a>);

impl<'a> Families<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    /// Writes a family of counters or gauges. The values are in the recorded unit.
    pub(super) fn write(
        &mut self,
        name: &FamilyName,
        kind: MetricKind,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        let metric_type = match kind {
            MetricKind::Counter => MetricType::Counter,
            MetricKind::Gauge | MetricKind::Maximum => MetricType::Gauge,
        };
        let help = help_text(help);
        let FamilyName { base, unit, divisor } = name;
        let mut family = self.0.encode_descriptor(base, &help, unit.as_ref(), metric_type)?;
        for (labels, value) in samples {
            let value = Number(value / divisor);
            if labels.is_empty() {
                value.write(&mut family, kind)?;
            } else {
                value.write(&mut family.encode_family(&labels)?, kind)?;
            }
        }
        Ok(())
    }

    /// Writes a family of one gauge without a unit.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let name = FamilyName::plain(name);
        self.write(&name, MetricKind::Gauge, help, [(Labels::new(), value as f64)])
    }

    /// Writes a family of one gauge that is always 1 and says something with its labels.
    pub(super) fn info(&mut self, name: &str, help: &str, labels: &Labels) -> fmt::Result {
        let help = help_text(help);
        self.0.encode_descriptor(name, &help, None, MetricType::Info)?.encode_info(labels)
    }

    /// Writes all fields of a table of counters, each as a family. Leaves out those that `keeps`
    /// refuses.
    pub(super) fn fields(
        &mut self,
        prefix: &str,
        fields: impl Iterator<Item = CounterField>,
        keeps: impl Fn(MetricKind) -> bool,
    ) -> fmt::Result {
        for field in fields.filter(|field| keeps(field.kind)) {
            let name = FamilyName::of_field(prefix, field.name);
            self.write(&name, field.kind, field.doc, [(Labels::new(), field.value as f64)])?;
        }
        Ok(())
    }

    /// Writes a tally as a family of counters with one label.
    pub(super) fn tally(
        &mut self,
        name: &str,
        help: &str,
        label: &'static str,
        tally: &Tally,
    ) -> fmt::Result {
        let samples = by_label(label, tally.0.iter().map(|(name, n)| (name.as_str(), *n)));
        self.write(&FamilyName::plain(name), MetricKind::Counter, help, samples)
    }

    /// Writes histograms as one family, each with its own labels.
    pub(super) fn histograms<'b>(
        &mut self,
        name: &str,
        help: &str,
        histograms: impl IntoIterator<Item = (Labels, &'b BucketCounts)>,
    ) -> fmt::Result {
        let help = help_text(help);
        let mut family =
            self.0.encode_descriptor(name, &help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for (labels, counts) in histograms {
            let (sum_s, count, buckets) = (counts.sum_s(), counts.count(), counts.buckets());
            if labels.is_empty() {
                family.encode_histogram::<NoLabelSet>(sum_s, count, &buckets, None)?;
            } else {
                let mut family = family.encode_family(&labels)?;
                family.encode_histogram::<NoLabelSet>(sum_s, count, &buckets, None)?;
            }
        }
        Ok(())
    }

    /// Writes CPU time and memory of the process that answers, with the names that Prometheus'
    /// clients give them in every language. A process that could not be read has none.
    pub(super) fn own_process(&mut self, process: &ProcessUse) -> fmt::Result {
        if !process.is_known() {
            return Ok(());
        }
        let name =
            FamilyName { divisor: 1e6, ..FamilyName::with_unit("process_cpu", Unit::Seconds) };
        let cpu_us = process.cpu_us() as f64;
        self.write(
            &name,
            MetricKind::Counter,
            "CPU time of this process, in user mode and in the kernel.",
            [(Labels::new(), cpu_us)],
        )?;
        self.write(
            &FamilyName::with_unit("process_resident_memory", Unit::Bytes),
            MetricKind::Gauge,
            "Resident memory of this process.",
            [(Labels::new(), process.rss_bytes as f64)],
        )
    }
}

/// Returns the text of a label: at most [`LABEL_CHARS_MAX`] characters of it, and none that a
/// terminal would obey. The encoder escapes line breaks and quotes.
pub(super) fn label_value(text: &str) -> String {
    match text.char_indices().nth(LABEL_CHARS_MAX) {
        None => escape_document(text),
        Some((end, _)) => format!("{}…", escape_document(&text[..end])),
    }
}

/// The most characters of a label: paths and names of a scenario may be of any length, and every
/// sample repeats them.
pub(super) const LABEL_CHARS_MAX: usize = 200;

/// Returns a sample for each name, with the name as a label. Names whose labels are equal, because
/// they are cut, are one sample.
pub(super) fn by_label<'a>(
    label: &'static str,
    counts: impl Iterator<Item = (&'a str, u64)>,
) -> impl Iterator<Item = (Labels, f64)> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    counts.for_each(|(name, n)| *sums.entry(label_value(name)).or_default() += n);
    sums.into_iter().map(move |(name, n)| (vec![(label, name)], n as f64))
}

/// Converts a doc comment to one line of plain text, without characters that need an escape, and
/// without the recorded unit: the metric has another one.
fn help_text(doc: &str) -> String {
    let text = doc.trim().trim_start_matches("Gauge: ").replace(", in microseconds", "");
    let plain: String = text
        .chars()
        .filter(|c| !['`', '[', ']'].contains(c))
        .map(|c| if ['"', '\\'].contains(&c) || c.is_control() { ' ' } else { c })
        .collect();
    let mut chars = plain.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// A value, written without a decimal point if it is whole.
struct Number(f64);

impl Number {
    fn write(&self, out: &mut MetricEncoder<'_>, kind: MetricKind) -> fmt::Result {
        match kind {
            MetricKind::Counter => out.encode_counter(self, NO_EXEMPLAR),
            MetricKind::Gauge | MetricKind::Maximum => out.encode_gauge(self),
        }
    }

    /// Returns the whole number, if it is one and a float holds it exactly.
    fn whole(&self) -> Option<i64> {
        const EXACT: f64 = (1_u64 << 53) as f64;
        (self.0.fract() == 0.0 && self.0.abs() < EXACT).then_some(self.0 as i64)
    }
}

impl EncodeCounterValue for Number {
    fn encode(&self, encoder: &mut CounterValueEncoder<'_>) -> fmt::Result {
        match self.whole().and_then(|whole| u64::try_from(whole).ok()) {
            Some(whole) => EncodeCounterValue::encode(&whole, encoder),
            None => EncodeCounterValue::encode(&self.0.max(0.0), encoder),
        }
    }
}

impl EncodeGaugeValue for Number {
    fn encode(&self, encoder: &mut GaugeValueEncoder<'_>) -> fmt::Result {
        match self.whole() {
            Some(whole) => EncodeGaugeValue::encode(&whole, encoder),
            None => EncodeGaugeValue::encode(&self.0, encoder),
        }
    }
}

const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, f64>> = None;
