//! Tells, once each, what the first error of a kind was. How many there are is in the counters.

use std::collections::BTreeSet;

use throng_report::RunEventKind;

use crate::generator::ErrorSample;

/// What is to be told, and what was told before.
#[derive(Debug, Default)]
pub(super) struct ErrorsShown {
    kinds: BTreeSet<String>,
    waiting: Vec<RunEventKind>,
}

impl ErrorsShown {
    /// Takes the samples of one core; another core may have shown such an error before.
    pub(super) fn take_in(&mut self, samples: &mut Vec<ErrorSample>) {
        for ErrorSample { kind, expected, got } in samples.drain(..) {
            if self.kinds.insert(kind.clone()) {
                self.waiting.push(RunEventKind::FirstError { kind, expected, got });
            }
        }
    }

    /// Returns what was not told yet.
    pub(super) fn tell(&mut self) -> Vec<RunEventKind> {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_told_once_however_many_cores_have_met_it() {
        let sample = |kind: &str, got: &str| ErrorSample {
            kind: kind.to_owned(),
            expected: "`ok`".to_owned(),
            got: got.to_owned(),
        };
        let mut shown = ErrorsShown::default();
        shown.take_in(&mut vec![sample("a", "1"), sample("b", "2")]);
        shown.take_in(&mut vec![sample("a", "3")]);
        let got: Vec<_> = shown.tell().iter().map(ToString::to_string).collect();
        assert_eq!(got, ["first a: expected `ok`, received 1", "first b: expected `ok`, received 2"]);
        shown.take_in(&mut vec![sample("b", "4")]);
        assert_eq!(shown.tell(), []);
    }
}
