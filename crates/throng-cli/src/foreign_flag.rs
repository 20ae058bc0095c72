//! Flags of other load generators: the error names what `throng run` has in their place.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Adds a tip to the error of a flag that `throng run` does not have, in place of the most similar
/// flag.
pub(crate) fn explain(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return error };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let is_of_run = error.kind() == ErrorKind::UnknownArgument && usage.contains("throng run");
    let names = |(flags, _): &&(&[&str], &str)| flags.contains(&flag.as_str());
    if let Some((_, tip)) = TIPS.iter().find(names).filter(|_| is_of_run) {
        let tip = vec![StyledStr::from(*tip)];
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::TrailingArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tip));
    }
    error
}

/// Flags that other load generators have, and what to do here.
const TIPS: [(&[&str], &str); 5] = [
    (
        &["--duration", "--for", "--time", "--length", "-d"],
        "the scenario sets the length of a run: load: [ramp: {to: 9, over: 5s}, hold: {for: 9s}]",
    ),
    (
        &["--vus", "--concurrency", "--connections", "--clients", "-c", "-u"],
        "the number of users: --users N",
    ),
    (&["--rate", "--rps", "-r"], "the rate of arrivals: --arrivals 100/s"),
    (&["--output", "--out", "-o"], "the run file: --record FILE; a report: --report FILE"),
    (&["--url", "--host"], "the address to load: --target URL"),
];

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::Throng;

    fn error(arguments: &[&str]) -> String {
        let arguments = ["throng"].iter().chain(arguments);
        explain(Throng::try_parse_from(arguments).unwrap_err()).to_string()
    }

    #[test]
    fn the_flag_of_another_load_generator_has_a_tip() {
        for (flags, tip) in TIPS {
            for flag in flags {
                let text = error(&["run", "a.yaml", flag, "10"]);
                assert!(text.contains(&format!("'{flag}' found")), "{text}");
                assert!(text.contains(&format!("tip: {tip}")), "{text}");
                assert_eq!(text.matches("tip:").count(), 1, "{text}");
            }
        }
        let text = error(&["run", "a.yaml", "--detail"]);
        assert!(text.contains("'--details'"), "{text}");
        let text = error(&["report", "--rate", "5"]);
        assert!(!text.contains("--arrivals"), "{text}");
    }
}
