//! What the stats of a core on another machine may say.

use std::time::Duration;

use throng_measure::metric::MetricKind;
use throng_measure::{CounterField, OperationCounts, PerOperation};

use super::{AHEAD_MAX, CORE_USERS_MAX};
use crate::generator::{AddressTally, CoreStats, CueTally, LimitTally};

impl CoreStats {
    /// Checks what a core on another machine says `elapsed` after the run began. It said `before`
    /// last. So no sum of several cores is too large for its type, and no counter goes back.
    ///
    /// # Errors
    /// A count is larger than a core can count in that time, or smaller than before, or there are
    /// more users than a core has.
    pub fn check(&self, before: &Self, elapsed: Duration) -> Result<(), String> {
        self.check_lists()?;
        let seconds = (elapsed + AHEAD_MAX).as_secs();
        let most = COUNT_MAX_PER_S.saturating_mul(seconds).min(COUNT_MAX);
        if let Some(count) = self.counts().find(|count| *count > most) {
            return Err(format!("a count of {count}: a core counts {most} in {seconds} s at most"));
        }
        check_growth(self.counters.fields(), before.counters.fields())?;
        check_growth(self.core.fields(), before.core.fields())?;
        let users = [
            ("active users", self.counters.users_active),
            ("connections", self.counters.connected),
            ("resting users", self.resting),
        ];
        match users.into_iter().find(|(_, count)| *count > CORE_USERS_MAX) {
            Some((what, count)) => {
                Err(format!("{count} {what} of one core: at most {CORE_USERS_MAX}"))
            }
            None => Ok(()),
        }
    }

    /// Checks how much it says of each kind of thing.
    fn check_lists(&self) -> Result<(), String> {
        for (what, count, most) in [
            ("classes", self.classes.len(), PARTS_MAX),
            ("judged classes", self.judged_classes.len(), PARTS_MAX),
            ("close codes", self.close_codes.len(), PARTS_MAX),
            ("reasons of failed connects", self.connect_failures.len(), PARTS_MAX),
            ("probes", self.probes.len(), PARTS_MAX),
            ("steps", self.steps.len(), PARTS_MAX),
            ("addresses", self.addresses.len(), PARTS_MAX),
            ("limits", self.limits.len(), PARTS_MAX),
            ("barriers and signals", self.cues.len(), PARTS_MAX),
            ("first errors", self.samples.len(), SAMPLES_MAX),
            ("early closes", self.early_closes.len(), SAMPLES_MAX),
        ] {
            if count > most {
                return Err(format!("{count} {what} of one core: {most} at most"));
            }
        }
        Ok(())
    }

    /// Returns all counts that are summed over cores.
    fn counts(&self) -> impl Iterator<Item = u64> {
        let Self { counters, core, classes, errors, close_codes, .. } = self;
        let values = |fields: CounterField| fields.value;
        let counted = counters.fields().map(values).chain(core.fields().map(values));
        let counted = counted.chain(classes.iter().flat_map(|it| it.fields()).map(values));
        let judged = self.judged_classes.iter().flat_map(PerOperation::iter);
        let counted = counted.chain(judged.flat_map(|(_, of)| {
            let OperationCounts { started, ok, failed, waiting, without_answer } = of.counts;
            [started, ok, failed, waiting, without_answer]
        }));
        let kinds = errors.iter().copied().chain(close_codes.iter().map(|(_, count)| *count));
        let kinds = kinds.chain(self.connect_failures.iter().map(|(_, count)| *count));
        let kinds = kinds.chain(self.statuses.iter().flat_map(|it| [it.answers, it.unexpected]));
        let steps = self.steps.iter().flat_map(|step| [step.ok, step.errors, step.waiting]);
        let probes = self.probes.iter().flat_map(|probe| probe.counters.fields()).map(values);
        let followed = [self.followed.answers, self.followed.repeats, self.resting];
        let addresses = self.addresses.iter().flat_map(|AddressTally { ok, failed }| {
            std::iter::once(*ok).chain(failed.iter().map(|(_, count)| *count))
        });
        let limits = self.limits.iter().flat_map(|LimitTally { steps, held, held_us }| {
            // The turns of steps that wait together add up.
            [*steps, *held, *held_us / CORE_USERS_MAX]
        });
        let cues = self.cues.iter().flat_map(|cue| {
            let CueTally { opened, waits, waiting, waiting_most, wait_us_most } = *cue;
            [opened, waits, waiting, waiting_most, wait_us_most]
        });
        let tallies = addresses.chain(limits).chain(cues);
        counted.chain(kinds).chain(steps).chain(probes).chain(followed).chain(tallies)
    }
}

fn check_growth(
    now: impl Iterator<Item = CounterField>,
    before: impl Iterator<Item = CounterField>,
) -> Result<(), String> {
    let counters = now.zip(before).filter(|(now, _)| now.kind == MetricKind::Counter);
    for (now, before) in counters {
        if now.value < before.value {
            return Err(format!("{} fell from {} to {}", now.name, before.value, now.value));
        }
    }
    Ok(())
}

/// Things of one kind that a core counts at most.
const PARTS_MAX: usize = 100_000;
/// Errors and closes that a core tells in one report at most.
const SAMPLES_MAX: usize = 1_000;
/// What one core counts in a second at most: the bytes of 137 Gbit/s.
const COUNT_MAX_PER_S: u64 = 1 << 34;
/// What one core counts at most: so much, a hundred days long. The sum of a hundred cores fits.
const COUNT_MAX: u64 = 1 << 57;

#[cfg(test)]
mod tests {
    use throng_measure::StepInterval;

    use super::*;

    const ELAPSED: Duration = Duration::from_secs(4);

    #[track_caller]
    fn check(change: impl FnOnce(&mut CoreStats), why: &str) {
        let mut before = CoreStats::new(0, 1);
        before.counters.connects_ok = 7;
        let mut now = before.clone();
        assert_eq!(now.check(&before, ELAPSED), Ok(()));
        change(&mut now);
        let error = now.check(&before, ELAPSED).unwrap_err();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn a_core_counts_no_more_than_it_can_and_never_backwards() {
        let most = 64 * COUNT_MAX_PER_S;
        check(|stats| stats.counters.messages_sent = most + 1, "a core counts 1099511627776 in");
        check(|stats| stats.core.bytes_sent = u64::MAX, "a count of 18446744073709551615");
        check(|stats| stats.classes[0].connects_ok = u64::MAX, "a count");
        check(|stats| stats.errors[1] = u64::MAX, "a count");
        check(|stats| stats.close_codes = vec![(None, u64::MAX)], "a count");
        let step = StepInterval { waiting: u64::MAX, ..StepInterval::default() };
        check(|stats| stats.steps = vec![step], "a count");
        check(|stats| stats.cues = vec![CueTally { waits: u64::MAX, ..Default::default() }], "a");
        check(|stats| stats.addresses = vec![AddressTally { ok: most + 1, failed: vec![] }], "a");
        check(|stats| stats.followed.repeats = u64::MAX, "a count");
        check(|stats| stats.counters.connects_ok = 6, "connects_ok fell from 7 to 6");
        check(|stats| stats.counters.users_active = CORE_USERS_MAX + 1, "16777217 active users");
        check(|stats| stats.resting = CORE_USERS_MAX + 1, "resting users");
        check(|stats| stats.samples = vec![Default::default(); 1_001], "1001 first errors");
        check(|stats| stats.cues = vec![CueTally::default(); 100_001], "100001 barriers and");
    }

    #[test]
    fn gauges_fall_and_counters_may_be_as_large_as_a_core_can_count() {
        let mut before = CoreStats::new(0, 1);
        before.counters.users_active = 5;
        let mut now = CoreStats::new(0, 1);
        now.core.bytes_received = 64 * COUNT_MAX_PER_S;
        assert_eq!(now.check(&before, ELAPSED), Ok(()));
    }
}
