//! Run files and their histograms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use throng_report::Histogram;
use throng_report::runfile::{is_run_file, read};

/// Checks that a file is read or refused, and that a histogram round-trips.
pub fn check(bytes: &[u8]) {
    if let Ok(file) = read(&mut &bytes[..]) {
        let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
        assert!(file.intervals.len() as u64 + file.lines_torn < lines.max(2));
    }
    let _ = is_run_file(bytes);
    // Few inputs begin like a run file.
    let with_header = [HEADER, bytes].concat();
    let file = read(&mut &with_header[..]).unwrap();
    for interval in &file.intervals {
        if let Some(load) = &interval.load {
            check_histogram(&load.connect);
        }
    }
    if let Ok(histogram) = Histogram::decode(&String::from_utf8_lossy(bytes)) {
        check_histogram(&histogram);
    }
    if let Ok(histogram) = Histogram::decode(&BASE64.encode(bytes)) {
        check_histogram(&histogram);
    }
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
