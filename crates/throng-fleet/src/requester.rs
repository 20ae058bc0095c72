//! A process that asks agents for something outside a run.

use std::sync::Arc;
use std::time::Duration;

use throng_bus::{Bus, BusDenial, BusError, BusSubscription, Name, PAYLOAD_BYTES_MAX};
use throng_driver::Clock;

use crate::agent_facts::process_name;
use crate::agent_process::END_TIMEOUT;
use crate::message::AgentFacts;
use crate::request::{AgentAnswer, AgentWish, Answer, LogLine, Request};
use crate::subjects::{GroupSubjects, speaker};
use crate::within;

/// A process that asks agents of a group to end, or for their last lines.
///
/// A bus may lose messages, so it repeats a request until it is answered, and gives up after a
/// time.
pub struct Requester {
    bus: Arc<dyn Bus>,
    subjects: GroupSubjects,
    name: Name,
    answers: BusSubscription,
}

/// What became of an agent that was asked to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEnd {
    /// It has ended.
    Ended,
    /// It goes on with this run.
    Busy(String),
    /// It goes on: it keeps results of this run that were not fetched.
    Keeps(String),
    /// It was about to end, and has not said within [`END_PATIENCE`] that it has.
    Unsure,
    /// It did not answer within [`ANSWER_PATIENCE`].
    Silent,
}

/// What became of an agent's part of a run that it was asked to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentStop {
    /// It ramps its load down, and keeps what it measured.
    Stopping,
    /// It goes on: this coordinator is there, and can end the run.
    Coordinated(String),
    /// It forgets the run, whose load was not started, and is free.
    Forgotten,
    /// Its load has ended. It is free once the results are delivered, or the coordinator has been
    /// silent for 15 s.
    LoadEnded,
    /// It does not, or no longer, make the run.
    NotMade,
    /// It did not answer within [`ANSWER_PATIENCE`].
    Silent,
}

impl Requester {
    /// Joins a group.
    ///
    /// # Errors
    /// The bus is away.
    pub fn join(bus: Arc<dyn Bus>, subjects: GroupSubjects) -> Result<Self, BusError> {
        let name = process_name();
        let answers = bus.subscribe(&subjects.answers(&name))?;
        Ok(Self { bus, subjects, name, answers })
    }

    /// Returns what the bus does not let this process do, if it has refused anything: then agents
    /// may be silent because they hear nothing.
    pub fn denial(&self) -> Option<BusDenial> {
        self.bus.denial()
    }

    /// Returns the last lines of an agent, so many at most; `None` if it does not answer within
    /// [`ANSWER_PATIENCE`].
    pub fn log(&self, agent: &AgentFacts, lines_max: usize) -> Option<Vec<LogLine>> {
        let mut log = None;
        let wish = AgentWish::Log { lines_max };
        self.ask(&[agent], &wish, ANSWER_PATIENCE, |_, answer| {
            if let AgentAnswer::Log(lines) = answer {
                log = Some(lines);
            }
            log.is_some()
        });
        log
    }

    /// Asks agents to end. An agent that makes a run refuses, unless `force` is true: then it ramps
    /// its load down and delivers what it measured first. Gives `heard` the end of each agent, as
    /// soon as it is known.
    pub fn end(
        &self,
        agents: &[&AgentFacts],
        force: bool,
        mut heard: impl FnMut(&AgentFacts, AgentEnd),
    ) {
        let wish = AgentWish::End { force };
        let mut is_ending = vec![false; agents.len()];
        let mut is_over = vec![false; agents.len()];
        let mut take = |index: usize, answer| {
            let end = match answer {
                AgentAnswer::Ended => AgentEnd::Ended,
                AgentAnswer::Busy { run } => AgentEnd::Busy(run.to_string()),
                AgentAnswer::Keeps { run } => AgentEnd::Keeps(run.to_string()),
                AgentAnswer::Ending => {
                    is_ending[index] = true;
                    return false;
                }
                _ => return false,
            };
            heard(agents[index], end);
            is_over[index] = true;
            true
        };
        self.ask(agents, &wish, END_PATIENCE, &mut take);
        for (index, agent) in agents.iter().enumerate().filter(|(index, _)| !is_over[*index]) {
            heard(agent, if is_ending[index] { AgentEnd::Unsure } else { AgentEnd::Silent });
        }
    }

    /// Asks agents to stop their parts of a run whose coordinator is away. Gives `heard` what
    /// becomes of each.
    pub fn stop(
        &self,
        agents: &[&AgentFacts],
        run: &Name,
        mut heard: impl FnMut(&AgentFacts, AgentStop),
    ) {
        let wish = AgentWish::Stop { run: run.clone() };
        let mut has_answered = vec![false; agents.len()];
        self.ask(agents, &wish, ANSWER_PATIENCE, |index, answer| {
            let stop = match answer {
                AgentAnswer::Stopping => AgentStop::Stopping,
                AgentAnswer::Coordinated { coordinator } => {
                    AgentStop::Coordinated(coordinator.to_string())
                }
                AgentAnswer::Forgotten => AgentStop::Forgotten,
                AgentAnswer::LoadEnded => AgentStop::LoadEnded,
                AgentAnswer::NotMade => AgentStop::NotMade,
                _ => return false,
            };
            heard(agents[index], stop);
            has_answered[index] = true;
            true
        });
        for (agent, _) in agents.iter().zip(has_answered).filter(|(_, has_answered)| !has_answered)
        {
            heard(agent, AgentStop::Silent);
        }
    }

    /// Asks agents, and gives `take` their answers, each with the index of its agent, until `take`
    /// has returned true for each agent. Gives up an agent without an answer after
    /// [`ANSWER_PATIENCE`], and all of them after `patience`.
    fn ask(
        &self,
        agents: &[&AgentFacts],
        wish: &AgentWish,
        patience: Duration,
        mut take: impl FnMut(usize, AgentAnswer) -> bool,
    ) {
        let begin = Clock.now();
        let (first_until, until) = (begin + ANSWER_PATIENCE, begin + patience);
        let mut state = vec![AnswerState::Silent; agents.len()];
        let mut ask_at = begin;
        loop {
            let now = Clock.now();
            let is_open = |asked: &AnswerState| match asked {
                AnswerState::Silent => now < first_until,
                AnswerState::Answered => now < until,
                AnswerState::Done => false,
            };
            if !state.iter().any(is_open) {
                return;
            }
            if ask_at <= now {
                let silent = state.iter().zip(agents).filter(|(it, _)| **it == AnswerState::Silent);
                silent.for_each(|(_, agent)| self.send(agent, wish));
                ask_at = now + ASK_EVERY;
            }
            let Ok(message) = self.answers.next_within(TURN) else {
                // The bus has ended.
                return;
            };
            let Some(message) = message else { continue };
            let answer = within::read::<Answer>(&message.payload, PAYLOAD_BYTES_MAX);
            let Ok(answer) = answer else { continue };
            let speaker = speaker(&message.subject);
            let is_from = |agent: &&AgentFacts| {
                agent.incarnation == answer.incarnation && agent.name == speaker
            };
            let Some(index) = agents.iter().position(is_from) else { continue };
            if state[index] != AnswerState::Done {
                let is_done = take(index, answer.answer);
                state[index] = if is_done { AnswerState::Done } else { AnswerState::Answered };
            }
        }
    }

    fn send(&self, agent: &AgentFacts, wish: &AgentWish) {
        let (asker, incarnation) = (self.name.clone(), agent.incarnation.clone());
        let wish = wish.clone();
        let request = Request { asker, incarnation, wish };
        let bytes = serde_json::to_vec(&request).expect("a request is JSON");
        // One that the bus refuses is sent again.
        _ = self.bus.publish(&self.subjects.requests(&agent.name), &bytes);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerState {
    Silent,
    Answered,
    Done,
}

/// Time in which an agent answers.
pub const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// Time in which an agent ends: a load that it runs is ramped down and delivered.
pub const END_PATIENCE: Duration = Duration::from_secs(END_TIMEOUT.as_secs() + 5);
/// Time between two requests to an agent that has not answered.
const ASK_EVERY: Duration = Duration::from_millis(500);
const TURN: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::sync::mpsc;
    use std::thread::JoinHandle;

    use throng_bus::MemoryBus;

    use super::*;
    use crate::agent_process::AgentProcess;

    fn subjects(group: &str) -> GroupSubjects {
        GroupSubjects::new(group).unwrap()
    }

    /// An agent on a thread, which ends when it is asked to.
    fn agent(bus: &MemoryBus, group: &str) -> (AgentFacts, JoinHandle<()>) {
        let facts = AgentFacts::of_this_process(Name::new("a").ok(), Vec::new());
        let (name, subjects, bus) = (facts.clone(), subjects(group), Arc::new(bus.clone()));
        let (joined, has_joined) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut agent = AgentProcess::new(name, subjects, bus, Vec::new()).unwrap();
            agent.work(|| false, |_| _ = joined.send(()));
        });
        has_joined.recv().unwrap();
        (facts, thread)
    }

    fn requester(bus: &MemoryBus, group: &str) -> Requester {
        Requester::join(Arc::new(bus.clone()), subjects(group)).unwrap()
    }

    fn end(requester: &Requester, agents: &[&AgentFacts]) -> Vec<(Name, AgentEnd)> {
        let mut ends = Vec::new();
        requester.end(agents, false, |agent, end| ends.push((agent.incarnation.clone(), end)));
        ends
    }

    #[test]
    fn an_agent_tells_its_last_lines_and_ends() {
        let bus = MemoryBus::new();
        let (facts, thread) = agent(&bus, "ours");
        let requester = requester(&bus, "ours");
        let log = requester.log(&facts, 10).unwrap();
        assert!(log[0].text.starts_with("agent a of group ours: "), "{log:?}");
        assert!(log[0].at.ends_with('Z'), "{log:?}");
        assert_eq!(end(&requester, &[&facts]), [(facts.incarnation.clone(), AgentEnd::Ended)]);
        thread.join().unwrap();
    }

    #[test]
    fn of_two_agents_with_one_name_the_right_one_ends() {
        let bus = MemoryBus::new();
        let (one, first) = agent(&bus, "ours");
        let (two, second) = agent(&bus, "ours");
        let requester = requester(&bus, "ours");
        assert_eq!(end(&requester, &[&two]), [(two.incarnation.clone(), AgentEnd::Ended)]);
        second.join().unwrap();
        assert!(requester.log(&one, 1).is_some());
        assert!(!first.is_finished());
        end(&requester, &[&one]);
        first.join().unwrap();
    }

    #[test]
    fn an_agent_of_another_group_is_silent() {
        let bus = MemoryBus::new();
        let (facts, thread) = agent(&bus, "theirs");
        let ours = requester(&bus, "ours");
        assert_eq!(end(&ours, &[&facts]), [(facts.incarnation.clone(), AgentEnd::Silent)]);
        end(&requester(&bus, "theirs"), &[&facts]);
        thread.join().unwrap();
    }

    #[test]
    fn a_request_that_the_bus_refuses_is_repeated() {
        let bus = MemoryBus::new();
        let (facts, thread) = agent(&bus, "ours");
        let requester = requester(&bus, "ours");
        bus.set_reachable(false);
        let was_away = Arc::new(AtomicBool::new(false));
        let back = {
            let (bus, was_away) = (bus.clone(), Arc::clone(&was_away));
            std::thread::spawn(move || {
                std::thread::sleep(ASK_EVERY / 2);
                was_away.store(true, SeqCst);
                bus.set_reachable(true);
            })
        };
        assert!(requester.log(&facts, 1).is_some());
        assert!(was_away.load(SeqCst), "it answered while the bus was away");
        back.join().unwrap();
        end(&requester, &[&facts]);
        thread.join().unwrap();
    }
}
