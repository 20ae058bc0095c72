//! Run files and their histograms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use throng_report::export::{CsvExport, RunExport};
use throng_report::page::{PageBuilder, html};
use throng_report::runfile::{RunFile, is_run_file, read};
use throng_report::{Diagnosis, Histogram, Summary};

/// Checks that a file is read or refused, that what was read can be shown, and that a histogram
/// round-trips.
pub fn check(bytes: &[u8]) {
    if let Ok(file) = read(&mut &bytes[..]) {
        let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
        assert!(file.intervals.len() as u64 + file.lines_torn < lines.max(2));
    }
    let _ = is_run_file(bytes);
    // Few inputs begin like a run file.
    let with_header = [HEADER, bytes].concat();
    let file = read(&mut &with_header[..]).unwrap();
    check_shown(&file);
    for interval in &file.intervals {
        if let Some(load) = &interval.load {
            load.times.seen.iter().for_each(|(_, histogram)| check_histogram(histogram));
        }
    }
    if let Ok(histogram) = Histogram::decode(&String::from_utf8_lossy(bytes)) {
        check_histogram(&histogram);
    }
    if let Ok(histogram) = Histogram::decode(&BASE64.encode(bytes)) {
        check_histogram(&histogram);
    }
}

/// Checks that whatever was read can be summarized, drawn and exported.
fn check_shown(file: &RunFile) {
    let summary = Summary::of(file);
    let mut page = PageBuilder::new();
    let mut csv = CsvExport::new(Vec::new()).unwrap();
    for interval in &file.intervals {
        page.add(interval);
        csv.add(interval).unwrap();
    }
    let diagnosis = Diagnosis::default();
    let export = RunExport {
        header: &file.header,
        summary: &summary,
        judgements: &[],
        diagnosis: &diagnosis,
        warnings: &file.warnings,
    };
    let json = export.json();
    html("", &page.page(&file.header, &json, &file.warnings), Vec::new()).unwrap();
    assert!(!export.junit().contains('\u{1b}') && !export.markdown().contains('\u{1b}'));
    let _ = export.github();
}

fn check_histogram(histogram: &Histogram) {
    let again = Histogram::decode(&histogram.encode()).unwrap();
    assert_eq!(&again, histogram);
    let sum: u64 = histogram.iter().map(|(_, n)| u64::from(n)).sum();
    assert_eq!(sum, histogram.count());
    let mut before = 0;
    for percent in [0.0, 50.0, 99.9, 100.0] {
        let value = histogram.percentile(percent);
        assert!(before <= value && value <= histogram.max());
        before = value;
    }
}

const HEADER: &[u8] = b"{\"schema\":\"throng.run/1\"}\n";
