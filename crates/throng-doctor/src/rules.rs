//! What may have stopped a run: one file a cause.
//!
//! A rule is a pure function over a [`Case`] and says at most one thing. It speaks only where something happened to the run that
//! its cause explains; a number that is merely large is no finding. What it has not seen it does not guess.
//! Each has a test for when it must speak and one for when it must stay silent.

mod accept_queue_overflow;
mod generator_saturated;

use throng_report::Finding;

use crate::case::Case;

/// A cause by its name.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The id of its finding, which is also the name of its file.
    pub id: &'static str,
    /// Ids of what is a mere consequence wherever this one was found too: a finding of such an id comes after it.
    pub explains: &'static [&'static str],
    /// The rule itself.
    pub find: fn(&Case<'_>) -> Option<Finding>,
}

/// All of them. Where two findings are as grave and neither explains the other, the one that stands here first comes first: what is
/// nearer to the root of things, and easier to move.
pub const RULES: &[Rule] = &[generator_saturated::RULE, accept_queue_overflow::RULE];

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_explains_rules_that_there_are_and_not_itself() {
        for rule in RULES {
            assert_eq!(RULES.iter().filter(|other| other.id == rule.id).count(), 1, "{}", rule.id);
            for explained in rule.explains {
                assert!(
                    *explained != rule.id && RULES.iter().any(|other| other.id == *explained),
                    "{explained}"
                );
            }
        }
    }

    #[test]
    fn a_quiet_run_gives_no_rule_anything_to_say() {
        fixture::Run::quiet().check_all(&[]);
    }
}
