//! The stream of a watch.

use throng_measure::watch::{WatchHeader, WatchLine};

/// Checks that a header and a line round-trip.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match WatchHeader::parse(text) {
        Ok(header) => {
            let written = serde_json::to_string(&header).unwrap();
            assert_eq!(WatchHeader::parse(&written), Ok(header));
        }
        Err(why) => assert!(!why.is_empty()),
    }
    if let Ok(line) = serde_json::from_str::<WatchLine>(text) {
        let written = serde_json::to_string(&line).unwrap();
        let again: WatchLine = serde_json::from_str(&written).unwrap();
        assert_eq!((again.at_ms, again.kernel), (line.at_ms, line.kernel));
    }
}
