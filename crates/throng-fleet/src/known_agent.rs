//! What a coordinator knows of an agent of its group.

use std::time::Duration;

use throng_base::Instant;
use throng_base::units::show_duration;

use crate::agent_facts::version;
use crate::agent_run::COORDINATOR_SILENT_AFTER;
use crate::clock_offset::ClockOffset;
use crate::message::{AgentFacts, HeldRun, Hello};

/// An agent that has said who it is.
#[derive(Clone, Debug)]
pub struct KnownAgent {
    /// What it said last.
    pub hello: Hello,
    /// How far its clock is from this one, once it has answered a question.
    pub offset: Option<ClockOffset>,
    /// The moment for which the offset holds.
    pub(crate) offset_at: Instant,
    /// True if its clock, or this one, stepped between two answers.
    pub has_stepped: bool,
    /// The moment at which it was heard last.
    pub heard: Instant,
    /// Another process that had the same name at the same time.
    pub rival: Option<AgentFacts>,
}

impl KnownAgent {
    /// Returns why the agent cannot begin a run, with what to do; `None` if it can.
    pub fn why_not_free(&self) -> Option<String> {
        let facts = &self.hello.facts;
        if let Some(rival) = &self.rival {
            return Some(format!(
                "another agent has this name: pid {} on {}, pid {} on {}; give one another --name",
                facts.pid, facts.host, rival.pid, rival.host
            ));
        }
        if facts.version != version() {
            return Some(format!(
                "it is throng {}, and this is {}; run the same version on all machines",
                facts.version,
                version()
            ));
        }
        if let Some(run) = &self.hello.busy {
            return Some(run.why_busy());
        }
        if self.has_stepped {
            return Some(
                "its clock, or this one, stepped while it was asked: begin again when both are \
                 steady"
                    .to_owned(),
            );
        }
        self.offset.is_none().then(|| "it does not answer".to_owned())
    }
}

impl HeldRun {
    /// Returns the time since the last word of the coordinator, if another one may take the run
    /// over.
    pub fn orphan_for(&self) -> Option<Duration> {
        let silence = Duration::from_millis(self.silent_ms);
        // The kept seconds are what a user reads.
        (silence > COORDINATOR_SILENT_AFTER).then(|| Duration::from_secs(silence.as_secs()))
    }

    fn why_busy(&self) -> String {
        let (run, coordinator) = (&self.key.run, &self.key.coordinator);
        match self.orphan_for() {
            None => format!("it makes run {run} of {coordinator}"),
            Some(silence) => format!(
                "it makes run {run} of {coordinator}, which has been silent for {}: take the run \
                 over with `throng run --resume {run}`, or end it with `throng fleet stop {run}`",
                show_duration(silence)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_bus::{Name, Text};

    use super::*;
    use crate::message::RunKey;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// Returns an agent that can begin a run, after `change`.
    fn agent(change: impl FnOnce(&mut KnownAgent)) -> KnownAgent {
        let (name, host) = (name("a"), name("host-a"));
        let facts = AgentFacts { name, host, pid: 1, version: version(), ..AgentFacts::default() };
        let hello =
            Hello { facts, calibration: None, busy: None, kept: vec![], answers: None, now_us: 1 };
        let mut agent = KnownAgent {
            hello,
            offset: Some(ClockOffset { ahead_us: 0, error_us: 1 }),
            offset_at: Instant::ZERO,
            has_stepped: false,
            heard: Instant::ZERO,
            rival: None,
        };
        change(&mut agent);
        agent
    }

    fn held(silent_ms: u64) -> HeldRun {
        let key = RunKey { run: name("8fe4407a"), coordinator: name("web-1") };
        HeldRun { key, started_us: Some(1), silent_ms, is_delivered: false }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut KnownAgent), why: Option<&str>) {
        assert_eq!(agent(change).why_not_free().as_deref(), why);
    }

    #[test]
    fn an_agent_that_answers_and_has_nothing_to_do_is_free() {
        check(|_| {}, None);
        // What it keeps of earlier runs does not matter.
        check(|agent| agent.hello.kept = vec![held(60_000)], None);
    }

    #[test]
    fn an_agent_of_another_version_is_told_with_both() {
        let why = format!(
            "it is throng 0.0.9 (fleet 1), and this is {}; run the same version on all machines",
            version()
        );
        let old = |agent: &mut KnownAgent| agent.hello.facts.version = Text::cut("0.0.9 (fleet 1)");
        check(old, Some(&why));
    }

    #[test]
    fn an_agent_whose_clock_has_stepped_is_told() {
        check(
            |agent| agent.has_stepped = true,
            Some(
                "its clock, or this one, stepped while it was asked: begin again when both are \
                 steady",
            ),
        );
    }

    #[test]
    fn a_busy_agent_is_told_with_its_run_and_its_coordinator() {
        let busy = |agent: &mut KnownAgent| agent.hello.busy = Some(held(900));
        check(busy, Some("it makes run 8fe4407a of web-1"));
    }

    #[test]
    fn a_silent_coordinator_is_told_with_the_two_ways_out() {
        check(
            |agent| agent.hello.busy = Some(held(42_700)),
            Some(
                "it makes run 8fe4407a of web-1, which has been silent for 42s: take the run over \
                 with `throng run --resume 8fe4407a`, or end it with `throng fleet stop 8fe4407a`",
            ),
        );
    }

    #[test]
    fn an_agent_that_shares_its_name_or_does_not_answer_is_told() {
        let rival = AgentFacts { pid: 2, host: name("host-b"), ..AgentFacts::default() };
        check(
            |agent| agent.rival = Some(rival),
            Some(
                "another agent has this name: pid 1 on host-a, pid 2 on host-b; give one another \
                 --name",
            ),
        );
        check(|agent| agent.offset = None, Some("it does not answer"));
    }
}
