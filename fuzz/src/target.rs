//! The URL of a target.

use throng_load::scenario::Target;

/// Checks that a target round-trips, and that an error has a position in the text.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Target::parse(text) {
        Ok(target) => {
            assert_eq!(Target::parse(&target.url()).as_ref(), Ok(&target), "{text:?}");
            let header = target.host_header();
            assert!(!header.contains(['\r', '\n', ' ', '/']), "{header:?}");
            assert!(target.path.bytes().all(|byte| byte.is_ascii_graphic()), "{:?}", target.path);
        }
        Err(error) => {
            assert!(text.get(error.span.clone()).is_some(), "{error:?} in {text:?}");
        }
    }
}
