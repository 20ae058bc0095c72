//! The output of a test harness, as numbers and names.

/// The outcome of one step, read from its output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The number of passed tests, including skipped ones.
    pub(super) passed: u64,
    pub(super) failed: u64,
    /// The number of tests that were skipped or could not be judged.
    pub(super) ignored: u64,
    /// The names of the failed tests.
    pub(super) failures: Vec<String>,
    /// The skipped tests or parts of tests, as `test: reason`.
    pub(super) skipped: Vec<String>,
    /// The sums of the suites that judge: `31 of 33 walls named; not judged: flood (…)`.
    pub(super) judged: Vec<String>,
}

impl Outcome {
    /// Parses the output of one harness, or of several in a row.
    pub(super) fn parse(text: &str) -> Self {
        let mut found = Self::default();
        // The test to which the current output belongs, and a flag for the list of failed tests.
        let (mut test, mut in_failures) = ("", false);
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.split(' ').next()) {
                (test, in_failures) = (name, false);
            } else if line == "failures:" {
                (test, in_failures) = ("", true);
            } else if line == "successes:" {
                (test, in_failures) = ("", false);
            } else if let Some(result) = line.strip_prefix("test result: ") {
                (test, in_failures) = ("", false);
                found.passed += number_before(result, " passed");
                found.failed += number_before(result, " failed");
                found.ignored += number_before(result, " ignored");
            } else if let Some(name) = line.strip_prefix("    ").filter(|_| in_failures) {
                found.failures.push(name.to_owned());
            } else if let Some(judged) = line.strip_prefix("judged: ") {
                found.judged.push(judged.to_owned());
            } else if let Some((before, reason)) = line.split_once("skipped: ") {
                found.skip(before, test, reason);
            }
        }
        found
    }

    /// Adds a skipped test. A test that writes past the harness names itself in the reason.
    fn skip(&mut self, before: &str, test: &str, reason: &str) {
        let is_own_line = before.is_empty() || before.starts_with("test ");
        if !is_own_line {
            return;
        }
        let skipped = match test {
            "" => reason.to_owned(),
            test => format!("{test}: {reason}"),
        };
        if !self.skipped.contains(&skipped) {
            self.skipped.push(skipped);
        }
    }
}

/// Returns the number before ` passed` in `ok. 12 passed; 0 failed`.
fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_default();
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 4 tests
test a::works ... ok
test a::skips ... ok
test b::fails ... FAILED
test b::panics ... FAILED

successes:

---- a::skips stdout ----
skipped: nft is not installed


successes:
    a::skips
    a::works

failures:

---- b::fails stdout ----
thread 'b::fails' panicked at src/b.rs:1:1:
assertion failed
    left: 1

---- b::panics stdout ----
no


failures:
    b::fails
    b::panics

test result: FAILED. 2 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.31s
";

    #[test]
    fn a_harness_is_read() {
        let found = Outcome::parse(OUTPUT);
        assert_eq!((found.passed, found.failed), (2, 2));
        assert_eq!(found.failures, ["b::fails", "b::panics"]);
        assert_eq!(found.skipped, ["a::skips: nft is not installed"]);
    }

    #[test]
    fn harnesses_in_a_row_are_summed_up() {
        let found = Outcome::parse(&format!("{OUTPUT}\n{OUTPUT}"));
        assert_eq!((found.passed, found.failed), (4, 4));
        assert_eq!(found.skipped.len(), 1);
    }

    #[test]
    fn the_sum_of_a_suite_that_judges_is_kept() {
        let said = "judged: 32 of 33 walls named; not judged: flood (others had 40 %)\n";
        let expected = ["32 of 33 walls named; not judged: flood (others had 40 %)"];
        assert_eq!(Outcome::parse(said).judged, expected);
    }

    #[test]
    fn a_test_that_skips_past_the_harness_is_listed() {
        let said = "test walls ... skipped: SYN flood: one CPU\nok\nskipped: tsung: not here\n\
                    test x ... ok\nthis text says that skipped: is a word\n";
        assert_eq!(Outcome::parse(said).skipped, ["SYN flood: one CPU", "tsung: not here"]);
    }
}
